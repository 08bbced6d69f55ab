"""Where a quote stands in a passage. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

from rolebundle.verification.draft.fold import Folded, fold, without_quote_marks
from rolebundle.verification.draft.quote_context import (
    cut_problem,
    cut_word,
    gap_problem,
    is_figure,
    turns,
    words_of,
)

_MAX_PARTS = 8
_MAX_PLACES = 12  # Of one part in one passage.

_ELLIPSIS = re.compile(r" ?(?:\[ ?\.{3,4} ?\]|\( ?\.{3,4} ?\)|(?<!\.)\.{3,4}(?!\.)) ?")
_BRACKETS = re.compile(r"( ?)\[([^\[\]]*)\]")
_EDITORIAL = re.compile(
    r"sic!?|(?:emphasis|italics) (?:added|mine|ours|in (?:the )?original)|(?:my|our) emphasis",
    re.IGNORECASE,
)
_PRONOUN = (
    r"(?i:\b(?:he|she|it|they|him|her|them|his|hers|its|theirs?|this|that|these|those|we|us|ours?"
    r"|i|me|my|mine|you|yours?)\b)"
)
_MAX_REPLACEMENT = 5  # Words.


class Quote(NamedTuple):
    """A quote that can be looked for.

    Attributes:
        folded: the folded text.
        readings: the ways to read it: each a list of patterns of the parts between ellipses.
        problem: why a reading is not possible, or nothing.
    """

    folded: str
    readings: tuple[tuple[re.Pattern[str], ...], ...]
    problem: str


class Place(NamedTuple):
    """Where a quote stands in a passage's content, and why that does not count, or nothing."""

    start: int
    end: int
    problem: str


def read_quote(text: str, *, in_blockquote: bool) -> Quote:
    """Prepare a quote. ``in_blockquote``: its lines begin with the marks of a blockquote."""
    quoted = without_quote_marks(text) if in_blockquote else text
    quoted_text = fold(quoted).text.strip()
    joined = fold(quoted, joins_lines=True).text.strip()
    problem = ""
    readings: dict[tuple[str, ...], tuple[re.Pattern[str], ...]] = {}
    for folded in dict.fromkeys((quoted_text, joined)):
        # A comma or full stop at its end may be the draft's.
        for literal in dict.fromkeys((folded, folded.rstrip(".,").rstrip() or folded)):
            readings[(literal,)] = (re.compile(_literal(literal, is_first=True)),)
            parts = [part for part in _ELLIPSIS.split(literal) if part.strip()]
            if parts == [literal] and "[" not in literal:
                continue
            try:
                readings["", *parts] = _patterns(parts)
            except ValueError as error:
                problem = str(error)
    return Quote(quoted_text, tuple(readings.values()), problem)


def _patterns(parts: list[str]) -> tuple[re.Pattern[str], ...]:
    if len(parts) > _MAX_PARTS:
        raise ValueError(f"The quote has {len(parts)} parts; {_MAX_PARTS} are allowed.")
    if len(parts) > 1 and any(len(words_of(part)) < 2 for part in parts):
        raise ValueError("A part of the quote is a single word.")
    return tuple(re.compile(_pattern(part)) for part in parts)


def _pattern(part: str) -> str:
    """A pattern of a part with words in brackets.

    ``[t]he`` is "the" or "The". ``[the team]`` stands for a pronoun. ``[sic]`` is the draft's.
    """
    pattern, position = "", 0
    for match in _BRACKETS.finditer(part):
        space, inner = match[1], match[2].strip()
        pattern += _literal(part[position : match.start()], is_first=not position)
        following = part[match.end() : match.end() + 1]
        if _EDITORIAL.fullmatch(inner):
            pass
        elif len(inner) == 1 and inner.isalpha() and following.isalpha():
            pattern += f"{space}{_either_case(inner)}"
        elif _is_replacement(inner):
            pattern += f"{space}{_PRONOUN}"
        else:
            raise ValueError(f"“[{inner[:60]}]” is not in the passage.")
        position = match.end()
    return pattern + _literal(part[position:], is_first=not position)


def _literal(text: str, *, is_first: bool) -> str:
    """A pattern of a text; ``is_first``: its first letter may be upper or lower case."""
    if not is_first or not text:
        return re.escape(text)
    return _either_case(text[0]) + re.escape(text[1:])


def _either_case(letter: str) -> str:
    swapped = letter.swapcase()
    is_pair = len(swapped) == 1 and swapped != letter and swapped.swapcase() == letter
    return f"[{letter}{swapped}]" if is_pair else re.escape(letter)


def _is_replacement(inner: str) -> bool:
    words = words_of(inner)
    is_sound = not any(is_figure(word) or turns(word) for word in words)
    return is_sound and 0 < len(words) <= _MAX_REPLACEMENT


def find_quote(quote: Quote, content: str) -> Place | None:
    """A place of the quote in a passage: one that counts, or else the first, or none."""
    doubtful: Place | None = None
    if not any(_occurs(parts, text) for text in _texts(content) for parts in quote.readings):
        return None
    for folded in _variants(content):
        for parts in quote.readings:
            for place in _places(parts, folded, content):
                if not place.problem:
                    return place
                doubtful = doubtful or place
    return doubtful


@lru_cache(maxsize=512)
def _variants(content: str) -> tuple[Folded, ...]:
    unjoined = fold(content)
    joined = fold(content, joins_lines=True)
    return (unjoined,) if joined.text == unjoined.text else (unjoined, joined)


@lru_cache(maxsize=2048)
def _texts(content: str) -> tuple[str, ...]:
    # The ranges of the original take most of the memory, and most passages lack most quotes.
    return tuple(folded.text for folded in _variants(content))


def _occurs(parts: tuple[re.Pattern[str], ...], text: str) -> bool:
    return all(part.search(text) for part in parts)


def _places(parts: tuple[re.Pattern[str], ...], folded: Folded, content: str) -> list[Place]:
    """The places of all parts in their order, as ranges of the passage's content."""
    if not _occurs(parts, folded.text):
        return []
    reached = _ranges(parts[0], folded, content, 0)
    for part in parts[1:]:
        following: dict[int, Place] = {}
        for place in reached:
            for start, end, cut in _ranges(part, folded, content, place.end):
                problem = place.problem or cut or gap_problem(content, place.end, start) or ""
                if end not in following or (following[end].problem and not problem):
                    following[end] = Place(place.start, end, problem)
        reached = list(following.values())[:_MAX_PLACES]
    return [
        place._replace(problem=place.problem or cut_problem(content, place.start, place.end) or "")
        for place in reached
    ]


def _ranges(part: re.Pattern[str], folded: Folded, content: str, position: int) -> list[Place]:
    """The places of a part from a position of the content on."""
    ranges: list[Place] = []
    at = bisect_left(folded.starts, position)
    while len(ranges) < _MAX_PLACES and (match := part.search(folded.text, at)):
        start, end = folded.original(*match.span())
        ranges.append(Place(start, end, cut_word(content, start, end) or ""))
        at = match.start() + 1
    return ranges
