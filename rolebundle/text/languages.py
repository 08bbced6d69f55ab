"""The language of a text, by its script, its letters and its function words. Pure.

A guess that costs microseconds and loads nothing. It decides what is indexed and searched beside
the words themselves (`forms.py`), and never what is left out of an index: a wrong guess finds no
less than none.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import chain

from rolebundle.text.stop_words import ENGLISH, STOP_WORDS

LOOKED_AT = 4_000
"""Characters from the beginning of a text that are enough to tell."""
_ENOUGH = 0.04
"""The least share of function words in a text of a language; running text has 0.3."""
_FEWEST = 2
"""The least number of them."""

# What a language writes beside a to z, for texts too short to have function words.
_ALPHABETS = {
    "ca": "àçèéíïòóúü",
    "cs": "áčďéěíňóřšťúůýž",
    "da": "æøåé",
    "de": "äöüß",
    "es": "áéíñóúü",
    "et": "äõöüšž",
    "fi": "äöå",
    "fr": "àâæçèéêëîïôœùûüÿ",
    "hu": "áéíóöőúüű",
    "it": "àèéìíòóù",
    "lt": "ąčęėįšųūž",
    "nl": "áéëïóöü",
    "no": "æøåéò",
    "pl": "ąćęłńóśźż",
    "pt": "àáâãçéêíóôõúü",
    "ro": "ăâîșțşţ",
    "sv": "åäöé",
    "tr": "çğıöşüâîû\u0307",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
}
# The first that fits; two where the letters do not tell. Compiled by those who need them.
_BY_LETTERS = (
    ("[ыэъё]", ("ru",)),
    ("[іїєґ]", ("uk",)),
    ("[ђјљњћџ]", ("sr",)),
    ("[\u0400-\u04ff]", ("ru", "uk")),
    ("[\u0370-\u03ff\u1f00-\u1fff]", ("el",)),
    ("[\u0561-\u0587]", ("hy",)),
    ("[پچژگ]", ("fa",)),
    ("[\u0620-\u06d3]", ("ar",)),
    ("[\u0904-\u0963]", ("hi",)),
    ("[\u0b83-\u0bcd]", ("ta",)),
)
# With what hangs on it: an address, a path or a name in code is one word, and none of a language.
_LATIN = re.compile(r"[a-z\u00df-\u024f\u0307\u1e00-\u1eff]+(?:[.@/:_]+\w+|\d\w*)*")
_SPECIAL = re.compile("[\u00df-\u024f\u0307\u1e00-\u1eff]")
# Spaces for all bytes but small letters.
_LETTERS = bytes(byte if 0x61 <= byte <= 0x7A else 0x20 for byte in range(256))


def _languages_of_words() -> dict[str, tuple[str, ...]]:
    languages: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for language, words in STOP_WORDS.items():
        for word in words:
            # Single letters are names of variables and of units in any language.
            if word not in ENGLISH and (len(word) > 1 or not word.isascii()):
                languages[word] += (language,)
    return dict(languages)


# Without what English has: what remains is telling also in a text that is half English.
_LANGUAGES_OF = _languages_of_words()
_ASCII_WORDS = frozenset(word.encode() for word in _LANGUAGES_OF if word.isascii())


def likely_languages(text: str) -> tuple[str, ...]:
    """The languages but English that a short text, such as a question, may be in.

    Returns:
        ISO 639-1 codes, for Latin letters and for others; none where nothing tells, and for Latin
        letters where more tells of English.
    """
    text = text[:LOOKED_AT].lower()
    found = () if text.isascii() else _by_letters(text)
    hits, words = _hits(text)
    most = max(hits.values(), default=0)
    if most and most >= sum(word in ENGLISH for word in words):
        found += tuple(sorted(language for language, count in hits.items() if count == most))
    return found


def latin_language(text: str) -> str:
    """The language but English that running text in Latin letters is in; empty where none is told.

    Args:
        text: the first 4,000 characters are looked at.
    """
    text = text[:LOOKED_AT].lower()
    if _surely_english(text):
        return ""
    hits, words = _hits(text)
    most = max(hits.values(), default=0)
    if most < max(_FEWEST, _ENOUGH * len(words)):
        return ""
    return min(language for language, count in hits.items() if count == most)


def letters_language(text: str) -> str:
    """The language of a text in other letters than Latin ones, of which one can be told."""
    return next(iter(_by_letters(text[:LOOKED_AT].lower())), "")


def _surely_english(text: str) -> bool:
    """Whether it has too few words of other languages, even if each piece of a word is one.

    It takes a third of the time of :func:`_hits`.
    """
    if not text.isascii() and _SPECIAL.search(text):
        return False
    pieces = text.encode("utf-8", "replace").translate(_LETTERS).split()
    return sum(map(_ASCII_WORDS.__contains__, pieces)) < _FEWEST


def _by_letters(text: str) -> tuple[str, ...]:
    return next((languages for letters, languages in _BY_LETTERS if re.search(letters, text)), ())


def _hits(text: str) -> tuple[Counter[str], list[str]]:
    """Language → function words in a text, one more where its alphabet has all letters; words."""
    words = _LATIN.findall(text)
    telling = [word for word in words if word in _LANGUAGES_OF]
    hits = Counter(chain.from_iterable(map(_LANGUAGES_OF.__getitem__, telling)))
    if text.isascii():
        return hits, words
    special = set(_SPECIAL.findall("".join(set(text))))
    if special:
        hits.update(code for code, letters in _ALPHABETS.items() if special.issubset(letters))
    return hits, words
