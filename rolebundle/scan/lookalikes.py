"""Letters of another script inside a word: `раypal` with a Cyrillic `ра`.

A small table after Unicode's confusables.txt (UTS 39): the letters that a common font draws like
a Latin one. Words that people do write in two scripts are left alone: `μm`, `TNFα`, `νmax`,
`IDшник`, `URLа`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CYRILLIC = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХҮԜԌЗаеіјорсухѕһԁԛԝѵүӏ",
        "ABESIJKMHOPCTYXYWG3aeijopcyxshdqwvyl",
        strict=True,
    )
)
_GREEK = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳοαγικνρυχϲετηω", "ABEZHIKMNOPTYXCjoayikvpuxcetnw", strict=True))
_OTHER = dict(zip("ՕՏՍԼօոսհցզքյᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃᏀ", "OSULonuhgqfjABCDEHJKLMPRSTVWZG", strict=True))
LATIN = {**_CYRILLIC, **_GREEK, **_OTHER}
"""Letter → the Latin one that it looks like."""
del LATIN["З"]  # Looks like a digit, and no Latin word has one.

TO_LATIN = str.maketrans(LATIN)
# Inside Cyrillic words it is the Latin letter that is out of place.
TO_CYRILLIC = str.maketrans({latin: own for own, latin in _CYRILLIC.items() if latin != "3"})

_LATIN_LETTERS = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_CYRILLIC_LETTERS = "\u0400-\u0481\u048a-\u052f\u1c80-\u1c8f"
_GREEK_LETTERS = "\u0370-\u03ff\u1f00-\u1fff"
_OTHER_LETTERS = "\u0531-\u0556\u0561-\u0587\u13a0-\u13f5\u13f8-\u13fd"
_FOREIGN_LETTERS = _CYRILLIC_LETTERS + _GREEK_LETTERS + _OTHER_LETTERS
_ACCENTS = "\u0300-\u036f"
# Letters that only look like one in small print, and that formulas use beside Latin ones.
_OF_FORMULAS = frozenset("αγικνρυχετηω")
_SUBSCRIPTS = frozenset(
    "max min eff ref tot avg rel crit obs ray rays sat exp low high opt est ext syn tub".split()
)

WORTH_A_LOOK = re.compile(f"[{_FOREIGN_LETTERS}]")
"""Letters of the scripts that have look-alikes."""
# From a foreign letter on, and then back: those are rare, and a search for one class is quick.
TWO_SCRIPTS = re.compile(
    f"[{_FOREIGN_LETTERS}](?:(?<=[{_LATIN_LETTERS}{_ACCENTS}].)|[{_ACCENTS}]*[{_LATIN_LETTERS}])"
)
"""Where two scripts meet inside a word. Each word of two scripts has such a place."""
_WORD = re.compile(f"[{_LATIN_LETTERS}{_FOREIGN_LETTERS}{_ACCENTS}]+")
_LATIN_LETTER = re.compile(f"[{_LATIN_LETTERS}]")
_FOREIGN_LETTER = re.compile(f"[{_FOREIGN_LETTERS}]")
_GREEK_LETTER = re.compile(f"[{_GREEK_LETTERS}]")
_LATIN_RUN = re.compile(f"[{_LATIN_LETTERS}]+")
_LOWER_LATIN_PASSING = frozenset("aeijopcyxs")
_LATIN_PASSING = frozenset("ABESIJKMHOPCTYXaeijopcyxs")


def words_of_two_scripts(text: str) -> Iterator[tuple[int, int, str]]:
    """Words with letters that pass for another script's, as start, end and kind.

    ``homoglyph`` is a foreign letter in a Latin word, ``latin_homoglyph`` a Latin letter in a
    Cyrillic one.
    """
    judged = 0
    for meeting in TWO_SCRIPTS.finditer(text):
        if meeting.start() < judged:
            continue
        start = meeting.start()
        # A word may have begun before the place where its scripts meet.
        while start > judged and _WORD.match(text[start - 1]):
            start -= 1
        word = _WORD.match(text, start)
        if word is None:
            continue
        judged = word.end()
        kind = _kind(word.group())
        if kind:
            yield start, word.end(), kind


def _kind(word: str) -> str:
    foreign = _FOREIGN_LETTER.findall(word)
    if all(letter in LATIN for letter in foreign):
        return "" if _is_written_so(word, foreign) else "homoglyph"
    if _GREEK_LETTER.search(word):
        return ""
    return "latin_homoglyph" if _has_latin_passing_for_cyrillic(word) else ""


def _is_written_so(word: str, foreign: list[str]) -> bool:
    """Whether people write this word in two scripts, though every foreign letter has a twin."""
    latin = _LATIN_LETTER.findall(word)
    # A small letter cannot stand in for one of an all-capitals word: TNFα, NFκB, URLа, IDе.
    # Omicron is written in no formula.
    if len(latin) > 1 and all(map(str.isupper, latin)) and all(map(str.islower, foreign)):
        return "ο" not in foreign
    if not all(letter in _OF_FORMULAS for letter in foreign):
        return False
    if len(word) <= 3:
        return True  # hν, νe, ρw
    return len(foreign) == 1 and word[0] in _OF_FORMULAS and word[1:] in _SUBSCRIPTS


def _has_latin_passing_for_cyrillic(word: str) -> bool:
    for run in _LATIN_RUN.finditer(word):
        letters = run.group()
        inside = run.start() > 0 and run.end() < len(word)
        if inside and len(letters) <= 2 and _LATIN_PASSING.issuperset(letters):
            return True
        # At an edge, capitals are an abbreviation with an ending: PHPшник.
        if len(letters) <= 2 and _LOWER_LATIN_PASSING.issuperset(letters):
            return True
    return False
