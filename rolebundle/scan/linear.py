"""Matching in linear time: RE2, over the UTF-8 of a text, with offsets given in characters.

No pattern, whoever wrote it, and no document, whoever sent it, can make it take longer than its
length allows. RE2 has no look-around and no back-references for that reason.

Sixty patterns that are looked for at once keep a matcher busy with what might still become a
match. So a pattern has two parts. What it begins with is cheap, and the whole text is searched
for all the beginnings in one pass; how it goes on is tried at those places, for a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

# Per set of patterns. RE2 keeps its states in it and starts over when it is full.
_MEMORY = 64 * 1024 * 1024
REACH = 800
"""How many bytes of UTF-8 a match may have; what goes on for longer is no sentence."""


MATCHES_NOTHING = "matches the empty text"


class Span(NamedTuple):
    """A match: which pattern, where in characters, and what it matched."""

    pattern: int
    start: int
    end: int
    text: str


class PatternError(ValueError):
    """A pattern that the linear-time engine does not take; the message says why."""


class LinearPatterns:
    """Patterns that are looked for together; each is what it begins with and how it goes on."""

    def __init__(self, patterns: Sequence[tuple[str, str]], reach: int = REACH) -> None:
        re2 = _re2()
        self._whole = ["".join(pattern) for pattern in patterns]
        beginnings = dict.fromkeys(begins for begins, _ in patterns)
        # A text of plain ASCII has none of the others, and most documentation is that.
        self._ascii = _any_of([one for one in beginnings if _may_be_ascii(one)])
        self._other = _any_of([one for one in beginnings if not _may_be_ascii(one)])
        self._here = re2.Set.MatchSet(_options())
        for pattern in self._whole:
            self._here.Add(pattern)
        self._here.Compile()
        self._reach = reach

    def spans(self, text: str, most: int) -> list[Span]:
        """Where the patterns match, in order, at most ``most`` times each."""
        # A lone surrogate has no UTF-8; as "?" it still is one character.
        data = text.encode("utf-8", "replace")
        searched = (self._ascii, None if text.isascii() else self._other)
        found = [hit for one in searched if one for hit in self._found(one, data, most)]
        if not found:
            return []
        found.sort()
        return list(_in_characters(found, data, text))

    def _found(self, beginnings: Any, data: bytes, most: int) -> Iterator[tuple[int, int, int]]:
        counts = [0] * len(self._whole)
        match_here = self._here.Match
        for beginning in beginnings.finditer(data):
            start = beginning.start()
            window = data[start : start + self._reach]
            for number in match_here(window) or ():
                counts[number] += 1
                if counts[number] <= most:
                    yield start, start + _length(self._whole[number], window), number


@cache
def _re2() -> Any:
    # Here, because a retrieval never scans.
    import re2  # type: ignore[import-untyped, unused-ignore]

    return re2


def _options() -> Any:
    options = _re2().Options()
    options.log_errors = False  # It would write to standard error by itself.
    options.max_mem = _MEMORY
    return options


@cache
def compiled(pattern: str) -> Any:
    """One pattern, ready to match bytes of UTF-8."""
    return _re2().compile(pattern, _options())


def _may_be_ascii(expression: str) -> bool:
    """Whether it names an ASCII letter; escapes and flags are none."""
    if expression.isascii():
        return True
    return re.search("[a-z]", re.sub(r"\\p?.|\(\?i?[:)]", "", expression)) is not None


def _any_of(patterns: Sequence[str]) -> Any:
    return compiled("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def _length(pattern: str, window: bytes) -> int:
    match = compiled(pattern).match(window)
    return int(match.end()) if match else 1


def check(pattern: str) -> None:
    """Whether the engine takes a pattern.

    Raises:
        PatternError: it does not compile, or matches the empty text.
    """
    re2 = _re2()
    try:
        matches_nothing = re2.compile(pattern, _options()).search(b"") is not None
    except re2.error as error:
        reason = error.args[0] if error.args else b"does not compile"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise PatternError(text) from None
    if matches_nothing:
        raise PatternError(MATCHES_NOTHING)


def _in_characters(found: Iterable[tuple[int, int, int]], data: bytes, text: str) -> Iterator[Span]:
    if len(data) == len(text):
        for start, end, number in found:
            yield Span(number, start, end, text[start:end])
        return
    place = characters = 0
    for start, end, number in found:
        characters += len(data[place:start].decode("utf-8", "replace"))
        place = start
        matched = data[start:end].decode("utf-8", "replace")
        yield Span(number, characters, characters + len(matched), matched)
