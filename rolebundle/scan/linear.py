"""Pattern matching in linear time: RE2 over the UTF-8 of a text, with offsets in characters.

No pattern and no document can make a search take longer than linear time. For that reason RE2 has
neither look-around nor back-references.

Searching for sixty whole patterns at once is slow, because many partial matches are open at every
place. A pattern therefore has two parts. The whole text is searched once for the beginnings of all
patterns, which are cheap. At each hit the whole patterns are tried, for a limited length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import re2

# Per set of patterns, for RE2's cache of states. It is rebuilt when it is full.
_MAX_CACHE_BYTES = 64 * 1024 * 1024
MAX_MATCH_BYTES = 800
"""The longest match in bytes of UTF-8; a sentence is shorter."""

Span = tuple[int, int, int, str]
"""A match: the number of the pattern, the offsets in characters, and the matched text."""


class PatternError(ValueError):
    """A pattern that RE2 does not accept; the message gives the reason."""


class LinearPatterns:
    """Patterns that are searched for together; each is a pair of its beginning and its rest."""

    def __init__(
        self, patterns: Sequence[tuple[str, str]], max_match_bytes: int = MAX_MATCH_BYTES
    ) -> None:
        self._whole = [*map("".join, patterns)]
        beginnings = dict.fromkeys(f"(?:{begins})" for begins, _ in patterns)
        self._beginnings = compiled("|".join(beginnings))
        self._set = re2.Set.MatchSet(_options())
        for pattern in self._whole:
            self._set.Add(pattern)
        self._set.Compile()
        self._max_match_bytes = max_match_bytes

    def spans(self, text: str, max_per_pattern: int) -> list[Span]:
        """The matches in order, at most ``max_per_pattern`` of each pattern.

        Args:
            text: the text to search.
            max_per_pattern: the limit of each pattern's matches.
        """
        data = utf8(text)
        return list(_in_characters(sorted(self._matches(data, max_per_pattern)), data))

    def _matches(self, data: bytes, max_per_pattern: int) -> Iterator[tuple[int, int, int]]:
        """Start and end in bytes, and the pattern's number."""
        counts = [0] * len(self._whole)
        match_set = self._set.Match
        for beginning in self._beginnings.finditer(data):
            start = beginning.start()
            window = data[start : start + self._max_match_bytes]
            for number in match_set(window) or ():
                counts[number] += 1
                if counts[number] <= max_per_pattern:
                    match = compiled(self._whole[number]).match(window)
                    yield start, start + (match.end() if match else 1), number


def utf8(text: str) -> bytes:
    """The UTF-8 of a text. An unpaired surrogate has none and becomes "?", one character too."""
    return text.encode("utf-8", "replace")


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False  # RE2 would write errors to standard error.
    options.max_mem = _MAX_CACHE_BYTES
    return options


def full_match_set() -> Any:
    """An empty set of patterns, each of which is to match a whole text."""
    return re2.Set.FullMatchSet(_options())


@cache
def compiled(pattern: str) -> Any:
    """A pattern that matches bytes of UTF-8."""
    return re2.compile(pattern, _options())


def check(pattern: str, **options: bool) -> Any:
    """A pattern from outside as :func:`compiled`, with these options of RE2.

    Raises:
        PatternError: it does not compile, or matches the empty text.
    """
    settings = _options()
    for name, value in options.items():
        setattr(settings, name, value)
    try:
        regex = re2.compile(pattern, settings)
    except re2.error as error:
        raise PatternError(error.args[0].decode("utf-8", "replace")) from None
    if regex.search(b"") is not None:
        raise PatternError("matches the empty text")
    return regex


def _in_characters(matches: Iterable[tuple[int, int, int]], data: bytes) -> Iterator[Span]:
    place = characters = 0
    for start, end, number in matches:
        characters += len(data[place:start].decode("utf-8", "replace"))
        place = start
        matched = data[start:end].decode("utf-8", "replace")
        yield number, characters, characters + len(matched), matched
