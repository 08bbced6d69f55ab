"""Hidden text: characters that a reader does not see and a model reads, or reads otherwise.

Each run of such characters is judged between its visible neighbours, because most of them have a
use: emoji are joined by them, Persian and Hindi are spelled with them, Thai breaks its lines at
them, Hebrew is mixed with Latin by them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from rolebundle.contracts.finding import Finding, ascii_note
from rolebundle.scan import characters as ch
from rolebundle.scan.bidi import Directions
from rolebundle.scan.lookalikes import (
    LATIN,
    TO_CYRILLIC,
    TO_LATIN,
    TWO_SCRIPTS,
    WORTH_A_LOOK,
    words_of_two_scripts,
)

_RUN = re.compile(f"[{ch.HIDDEN}]+")
_KIND_OF = [(re.compile(f"[{members}]"), kind) for kind, members in ch.KINDS.items()]
_SAME = {kind: pattern for pattern, kind in _KIND_OF}
_LONG = 256
_ZWJ = "\u200d"
_MANY = 3
# A soft hyphen on both sides of a single letter marks no syllable.
_SPELLED_OUT = re.compile("\u00ad(?=\\w\u00ad)")


MAX_FOUND = 10_000
"""A text with more is made of it, and is told by the first ones as well."""


def find_hidden(text: str, most: int = MAX_FOUND) -> tuple[Finding, ...]:
    """The hidden text in a text, in order, at most ``most`` places of each sort."""
    # What is left without the plain characters is small in most languages, and this is ten times
    # as fast as a regular expression over the whole.
    rest = text.encode("utf-8", "surrogatepass").translate(None, ch.PLAIN)
    if not rest:
        return ()
    left = rest.decode("utf-8", "surrogatepass")
    runs = _RUN.search(left) is not None
    words = WORTH_A_LOOK.search(left) is not None and TWO_SCRIPTS.search(text) is not None
    if not runs and not words:
        return ()
    found = _hidden_characters(text, most) if runs else []
    if words:
        found += [
            Finding(kind, start, end, _word_note(kind, text[start : min(end, start + 60)]))
            for start, end, kind in islice(words_of_two_scripts(text), most)
        ]
        found.sort(key=lambda finding: finding.start)
    return tuple(found)


def _word_note(kind: str, word: str) -> str:
    reads_as = word.translate(TO_LATIN if kind == "homoglyph" else TO_CYRILLIC)
    twins = [letter for letter in word if letter in LATIN]
    codes = " ".join(f"U+{ord(letter):04X}" for letter in dict.fromkeys(twins))
    if kind == "homoglyph":
        return ascii_note(f"reads as {reads_as!r}: {codes}")
    return "Latin letters in a Cyrillic word"


def _hidden_characters(text: str, most: int) -> list[Finding]:
    directions = Directions(text)
    found: list[Finding] = []
    hyphens = {match.start() for match in _SPELLED_OUT.finditer(text)}
    hyphens |= {place + 2 for place in hyphens}
    for match in _RUN.finditer(text):
        start, end = match.span()
        run = match.group()
        before = text[start - 1] if start else ""
        after = text[end] if end < len(text) else ""
        if start == 0 and run[0] == "\ufeff":  # A byte order mark, where it belongs.
            start, run = 1, run[1:]
        if not run or _is_legitimate(run, before, after, start, directions, hyphens):
            continue
        found += _findings(run, start)
        if len(found) >= most:
            break
    return found


def _is_legitimate(
    run: str, before: str, after: str, start: int, directions: Directions, hyphens: set[int]
) -> bool:
    if len(run) == 1 and ord(run) not in _WITHOUT_EMBEDDINGS:
        if before and run in "\ufe0e\ufe0f\u200d" and _is_emoji_glue(run, before, after):
            return True
        return _belongs(run, before, after, start, directions, hyphens)
    if before == ch.BLACK_FLAG and ch.is_flag(run):
        return True
    if before and _is_emoji_glue(run, before, after):
        return True
    marks = run.translate(_WITHOUT_EMBEDDINGS)
    if len(marks) != len(run) and not _all_closed(run, start, directions):
        return False
    if len(marks) >= _MANY or (len(marks) == 2 and not _is_pair(marks)):
        return False
    # The neighbours of a mark beside an isolate are the letters around both.
    return all(
        _belongs(character, before, after, place, directions, hyphens)
        for place, character in enumerate(run, start)
        if character in marks
    )


_WITHOUT_EMBEDDINGS = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u2066\u2067\u2068\u2069"))
_DIRECTIONAL = frozenset(ch.MARKS)


def _all_closed(run: str, start: int, directions: Directions) -> bool:
    return all(
        place in directions.legitimate
        for place, character in enumerate(run, start)
        if ord(character) in _WITHOUT_EMBEDDINGS
    )


def _is_pair(marks: str) -> bool:
    """Whether two hidden characters in a row are seen in honest texts."""
    first, second = marks[0], marks[1]
    if first == second:
        return first in "\u200c" + ch.MARKS
    if ch.is_selector(first):
        return second in "\u200d\u200c\u180e" + ch.MARKS
    return first in _DIRECTIONAL or second in _DIRECTIONAL


def _is_emoji_glue(run: str, before: str, after: str) -> bool:
    pictographs = ch.is_pictograph(after) if after else None
    if run in ("\ufe0e", "\ufe0f"):
        # Combining keycap after a digit, or any pictograph before.
        if before in "0123456789#*":
            return after == "\u20e3" or run == "\ufe0e"
        return ch.takes_emoji_selector(before) is not None
    if run in (_ZWJ, "\ufe0f\u200d"):
        return ch.is_pictograph(before) is not None and pictographs is not None
    return False


def _belongs(
    character: str, before: str, after: str, place: int, directions: Directions, hyphens: set[int]
) -> bool:
    """Whether a hidden character is at home between its visible neighbours."""
    if character in ch.MARKS:
        # Between two Latin letters it splits a word, whatever the rest of the text is.
        return directions.has_rtl and not (_is_ascii_letter(before) and _is_ascii_letter(after))
    if character == ch.SOFT_HYPHEN:
        return bool(before and ch.is_letter_before_hyphen(before)) and place not in hyphens
    if ch.is_selector(character):
        return _selector_belongs(character, before, after)
    test = _AT_HOME.get(character)
    return test is not None and any(side and test(side) for side in (before, after))


def _is_ascii_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _selector_belongs(character: str, before: str, after: str) -> bool:
    if not before:
        return False
    if character in "\u180b\u180c\u180d\u180f":
        return ch.is_mongolian(before) is not None
    if character >= "\U000e0100":
        registered = character <= ch.LAST_REGISTERED_SELECTOR
        return registered and ch.takes_ideographic_selector(before) is not None
    if character in "\ufe0e\ufe0f":
        return _is_emoji_glue(character, before, after)
    return ch.takes_other_selector(before) is not None


_AT_HOME = {
    "\u200b": ch.is_unspaced,
    "\u2060": ch.is_unspaced,
    "\u200c": ch.is_joining,
    "\u200d": ch.is_joining,
    "\u034f": ch.is_joining,
    "\u180e": ch.is_mongolian,
    "\u115f": ch.is_jamo,
    "\u1160": ch.is_jamo,
    "\u2800": ch.is_braille,
    "\u17b4": ch.is_khmer,
    "\u17b5": ch.is_khmer,
}


@lru_cache(maxsize=1_024)
def _short_finding(character: str) -> tuple[str, str]:
    kind = _kind(character)
    return kind, _note(kind, character)


def _findings(run: str, start: int) -> list[Finding]:
    """A run of hidden characters as findings, one for each stretch of a kind."""
    if len(run) == 1:  # Most of them, and a text may be made of nothing else.
        kind, note = _short_finding(run)
        return [Finding(kind, start, start + 1, note)]
    found: list[Finding] = []
    begin = 0
    if len(run) > _LONG:  # Nobody reads what alternates for so long, and it may go on for ever.
        same = all(map(_SAME[_kind(run[0])].match, run))
        note = _note(_kind(run[0]), run) if same else f"{len(run)} characters of several kinds"
        return [Finding(_kind(run[0]), start, start + len(run), note)]
    kinds = [_kind(character) for character in run]
    for place in range(1, len(run) + 1):
        if place == len(run) or kinds[place] != kinds[begin]:
            part = run[begin:place]
            note = _note(kinds[begin], part)
            found.append(Finding(kinds[begin], start + begin, start + place, note))
            begin = place
    return found


@lru_cache(maxsize=1_024)
def _kind(character: str) -> str:
    return next(kind for pattern, kind in _KIND_OF if pattern.match(character))


def _note(kind: str, run: str) -> str:
    decoded = decoded_text(kind, run)
    if decoded:
        return ascii_note(f"decodes to {decoded!r}")
    codes = " ".join(f"U+{ord(character):04X}" for character in dict.fromkeys(run[:64]))
    return ascii_note(f"{len(run)} x {codes}" if len(run) > 1 else codes)


def decoded_text(kind: str, run: str) -> str:
    """What a run of tag characters or selectors spells, or nothing where it spells nothing."""
    if kind == "tag_characters":
        text = "".join(chr(ord(c) - 0xE0000) for c in run if "\U000e0020" <= c < "\U000e007f")
        return text if text.isprintable() else ""
    if kind == "variation_selectors":
        # One selector a byte, the way that is in use: 16 of the first block, 240 of the second.
        values = bytes(
            ord(c) - 0xFE00 if c <= "\ufe0f" else ord(c) - 0xE0100 + 16
            for c in run
            if "\ufe00" <= c <= "\ufe0f" or c >= "\U000e0100"
        )
        text = values.decode("utf-8", "replace")
        spelled = len(text) > 1 and "\ufffd" not in text and text.isprintable()
        return text if spelled else ""
    return ""
