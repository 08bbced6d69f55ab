"""Clauses of contracts and letters, whose headings are numbered: ``§ 2 Rent``, ``3. Deposit``.

Each is a section of its own, so that a passage has one clause, and a citation names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.text.decoding import one_line

_SIGN = r"(?:§[ \t]?|(?:Clause|Section|Article|Artikel|Ziffer|Cláusula|Artículo|Art\.)[ \t])"
_CLAUSE = re.compile(
    rf"[ \t]*[*_]{{0,2}}{_SIGN}?"
    r"(\d{1,2})[.):]?[ \t]+[^\W\d_][^\n]{1,70}(?<![.,;:!?])[*_]{0,2}[ \t]*"
)
_NUMBERED = re.compile(rf"{_SIGN}(?:\d|[IVX]+\b)|(\d{{1,2}})[.):]?[ \t]", re.IGNORECASE)
"""How the heading of a clause begins; the group is a number without a sign."""
_MIN_CLAUSES = 3
_MAX_HEADINGS = 1
"""A document with more has sections of its own."""
_MAX_CHARS = 3_600
"""Of a longer document no passage has most of the clauses."""
_Place = tuple[int, int]
"""The number of a block, and of a line in it."""


def with_clauses(parsed: ParsedDocument) -> ParsedDocument:
    """The document with a heading for each clause, if they are counted from 1, each with a text.

    Of one with headings, only the level of those of its clauses is found.
    """
    is_long = sum(len(block.text) for block in parsed.blocks) > _MAX_CHARS
    headings = [block for block in parsed.blocks if block.level]
    if len(headings) > _MAX_HEADINGS:
        return _with_level(parsed, headings, is_long=is_long)
    if is_long:
        return parsed
    found: list[_Place] = []
    has_text = True
    for number, block in enumerate(parsed.blocks):
        lines = [*block.text.split("\n"), ""]
        for at, (line, below) in enumerate(pairwise(lines)):
            is_text = block.kind in ("paragraph", "list") and not below.lstrip()[:1].islower()
            match = _CLAUSE.fullmatch(line) if is_text else None
            if match and int(match[1]) == len(found) + 1:
                if not has_text:
                    return parsed  # Items of a list.
                found.append((number, at))
            has_text = not match and (has_text or bool(line.strip()))
    if len(found) < _MIN_CLAUSES or not has_text:
        return parsed
    return replace(parsed, blocks=tuple(_split(parsed, found)))


def _with_level(parsed: ParsedDocument, headings: list[Block], *, is_long: bool) -> ParsedDocument:
    numbered = [(block.level, _NUMBERED.match(block.heading)) for block in headings]
    level = min((level for level, match in numbered if match), default=0)
    numbers = [match[1] for at, match in numbered if match and at == level]
    # Sections of a manual have numbers, too; those of a long one are read together.
    is_counted = not is_long and numbers == [*map(str, range(1, len(numbers) + 1))]
    if len(numbers) < _MIN_CLAUSES or (any(numbers) and not is_counted):
        return parsed
    return replace(parsed, clauses=level)


def _split(parsed: ParsedDocument, headings: list[_Place]) -> Iterator[Block]:
    for number, block in enumerate(parsed.blocks):
        places = [at for of, at in headings if of == number]
        starts = {0, *places, *(at + 1 for at in places)}
        for first, part in block.parts(starts, line_exact=parsed.line_exact):
            if first in places:
                words = one_line(part.text).strip("*_ ")
                yield part._replace(kind="heading", level=1, heading=words, header="")
            else:
                yield part
