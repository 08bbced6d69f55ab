"""The citations of a draft, and what they name. Pure.

A citation is ``[3]``, ``[1, 3]``, ``[2-4]``, ``[^3]``, ``(source 3)``, ``³``, ``path:start-end``,
``[path:line]``, a chunk id, or ``[Smith 2021]``, which is known to nobody.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

CitationKind = Literal["number", "locator", "chunk_id", "work"]
_MAX_EXPANDED = 10


class Citation(NamedTuple):
    """A citation: its range, its kind, and what it names.

    ``target`` is ``3`` for ``[3]``, ``path:start-end``, a chunk id, or the name of a work.
    ``[2-4]`` and ``[1, 3]`` are one citation for each number, with the same range.
    """

    start: int
    end: int
    kind: CitationKind
    target: str


_NUMBERS = r"\^?\d{1,4}(?:\s?[-–,;]\s?\^?\d{1,4})*"
_SOURCE = r"(?:sources?|passages?|refs?|references?|citations?|chunks?)\s?[:#]?\s?"
_NUMBERED = re.compile(rf"(?:(?:see )?({_SOURCE}))?({_NUMBERS})", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_WORK = re.compile(
    r"(?!(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*,? \d)"
    r"[A-Z][^\W\d_]+(?:(?:,| and| &| et al\.?)?(?: [A-Z][^\W\d_]+)?){0,3},? (?:19|20)\d\d[a-z]?"
)
_ENCLOSED = re.compile(r"\[([^\[\]]{1,300})\]|\(([^()\[\]]{1,300})\)")
_RAISED = re.compile(r"(?:(?<=[.,;:!?\"”’)])|(?<=[^\W\d_]{4}))[¹²³⁴-⁹][⁰¹²³⁴-⁹]?(?![\w⁰¹²³⁴-⁹/])")
_LINES = re.compile(r"(\d{1,9})(?:[-–](\d{1,9}))?")
_HASH = re.compile(r"[0-9a-f]{10}(?:-\d{1,6})?")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
_QUOTATION = re.compile('["“”„«»「」]')
_TOKEN = re.compile(r"[^\s\[\](){}<>\"'`“”„‘’«»‹›|,;*]+")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|“”«»\[\]()]+")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
Range = tuple[int, int]
Target = tuple[CitationKind, str]


def citations_in(text: str, start: int, end: int) -> tuple[list[Citation], list[Range]]:
    """The citations of a range, and the ranges in it whose punctuation is not the prose's.

    The latter are citations, code and addresses. Both are in order.
    """
    opaque = [m.span() for pattern in (_URL, CODE) for m in pattern.finditer(text, start, end)]
    found: list[Citation] = []
    for pattern in (_ENCLOSED, _RAISED, _TOKEN):
        excluded = merged([*opaque, *(citation[:2] for citation in found)])
        for match in pattern.finditer(text, start, end):
            if not is_inside(match.start(), excluded):
                found += _cited_by(pattern, match)
    opaque = merged([*opaque, *(citation[:2] for citation in found)])
    return sorted(found, key=lambda citation: citation[:2]), opaque


def _cited_by(pattern: re.Pattern[str], match: re.Match[str]) -> Iterator[Citation]:
    """What a match of a pattern cites."""
    first, last = match.span()
    targets: list[Target]
    if pattern is _RAISED:
        targets = [("number", unicodedata.normalize("NFKC", match[0]))]
    elif pattern is _TOKEN:
        token = match[0].rstrip(".:!?…")
        last = first + len(token)
        targets = [*_places(token, is_marked=False)]
    else:
        targets = _enclosed((match[1] or match[2]).strip(), is_bracket=match[1] is not None)
    yield from (Citation(first, last, *target) for target in dict.fromkeys(targets))


def _enclosed(inner: str, *, is_bracket: bool) -> list[Target]:
    """What the text in brackets or parentheses cites, if all of it does."""
    number = _NUMBERED.fullmatch(inner)
    if number and (number[1] or (is_bracket and not _YEAR.fullmatch(inner))):
        return [*_numbers(number[2])]
    if is_bracket and _WORK.fullmatch(inner):
        return [("work", inner)]
    places = [[*_places(part.strip(" \t`"), is_marked=True)] for part in re.split("[,;]", inner)]
    return [place for of_part in places for place in of_part] if all(places) else []


def _numbers(text: str) -> Iterator[Target]:
    for part in re.split("[,;]", text.replace("^", "")):
        first, last = (int(re.split("[-–]", part)[at]) for at in (0, -1))
        if 0 <= last - first < _MAX_EXPANDED:
            yield from (("number", str(number)) for number in range(first, last + 1))
        else:
            yield "number", part.strip()


def _places(token: str, *, is_marked: bool) -> Iterator[Target]:
    """The locator or chunk id that a token is.

    ``is_marked``: it stands in brackets, so that forms which are common in prose count as well.
    """
    if not 3 <= len(token) <= 300 or "://" in token or _QUOTATION.search(token):
        return
    path, _, anchor = token.rpartition("#")
    is_name = is_marked and re.fullmatch(r"[\w.-]{1,80}", anchor) and " " not in path
    if path and (_HASH.fullmatch(anchor) or is_name):
        yield "chunk_id", token
        return
    path, _, lines = token.rpartition(":")
    match = _LINES.fullmatch(lines)
    is_path = any(map(str.isalpha, path)) and ("/" in path or _EXTENSION.search(path))
    if match and is_path and (match[2] or is_marked):
        yield "locator", f"{path}:{match[1]}-{match[2] or match[1]}"


def merged(spans: Iterable[Range]) -> list[Range]:
    """The ranges in order; ranges that overlap are joined."""
    result: list[Range] = []
    for start, end in sorted(spans):
        if result and start < result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result


def is_inside(position: int, spans: Sequence[Range]) -> bool:
    """Whether a position is in one of the sorted, disjoint ranges."""
    at = bisect_right(spans, (position, position + 1_000_000)) - 1
    return at >= 0 and spans[at][0] <= position < spans[at][1]
