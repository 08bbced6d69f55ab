"""The text as it is indexed and shown: without what is hidden, look-alikes read as they look."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from rolebundle.contracts.finding import Finding
from rolebundle.scan.characters import HIDDEN, KINDS
from rolebundle.scan.hidden_text import MAX_FOUND, find_hidden
from rolebundle.scan.lookalikes import TO_CYRILLIC, TO_LATIN

_TABLES = {"homoglyph": TO_LATIN, "latin_homoglyph": TO_CYRILLIC}
# Taking one character out can show another: three rounds are more than honest text needs.
_ROUNDS = 3
_ANY_HIDDEN = re.compile(f"[{HIDDEN}]+")

Removal = tuple[list[int], list[int]]
"""Offsets in the shortened text, and how much was taken out up to each."""


def normalized(text: str, findings: Iterable[Finding]) -> str:
    """The text without its hidden characters; line breaks stay where they are."""
    return normalized_with_offsets(text, findings)[0]


def normalized_with_offsets(
    text: str, findings: Iterable[Finding]
) -> tuple[str, tuple[Removal, ...]]:
    """The text without what is hidden, and what :func:`original_offset` needs."""
    found = tuple(findings)
    removals: list[Removal] = []
    for _ in range(_ROUNDS):
        if not found:
            return text, tuple(removals)
        text, removal = _applied(text, found)
        removals.append(removal)
        found = find_hidden(text)
    while found:
        # Made to be uncovered layer by layer, or of nothing else: nothing that may be hidden stays.
        found = find_hidden(text, len(text)) if len(found) >= MAX_FOUND else found
        every = [Finding("zero_width", *match.span(), "") for match in _ANY_HIDDEN.finditer(text)]
        words = [finding for finding in found if finding.kind in _TABLES]
        text, removal = _applied(text, sorted([*every, *words], key=lambda f: f.start))
        removals.append(removal)
        found = find_hidden(text)
    return text, tuple(removals)


def original_offset(removals: tuple[Removal, ...], offset: int) -> int:
    """Where a place in the normalized text was in the original."""
    for places, taken in reversed(removals):
        before = bisect_right(places, offset)
        offset += taken[before - 1] if before else 0
    return offset


def _applied(text: str, findings: Iterable[Finding]) -> tuple[str, Removal]:
    parts: list[str] = []
    places: list[int] = []
    taken: list[int] = []
    done = length = gone = 0
    for kind, start, end, *_ in findings:
        if start < done or not (kind in KINDS or kind in _TABLES):
            continue
        parts.append(text[done:start])
        length += start - done
        if kind in _TABLES:
            # One letter for one letter: offsets stay.
            parts.append(text[start:end].translate(_TABLES[kind]))
            length += end - start
        else:
            gone += end - start
            places.append(length)
            taken.append(gone)
        done = end
    parts.append(text[done:])
    return "".join(parts), (places, taken)
