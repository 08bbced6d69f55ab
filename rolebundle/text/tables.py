"""The tables of a text, and the headings of their cells. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]
_RULE = re.compile(r"\s*[|+]?\s*:?[-=]{2,}:?\s*(?:[|+\s]\s*:?[-=]{2,}:?\s*)*[|+]?\s*")


def tables_in(text: str) -> Iterator[tuple[list[list[Span]], bool]]:
    """The rows of each table, and whether it has a header. It has pipes, "=", tabs or commas."""
    rows, has_header, columns, position = list[list[Span]](), False, list[int](), 0
    for line in [*text.split("\n"), ""]:
        start, position = position, position + len(line) + 1
        if line.strip() and _RULE.fullmatch(line):
            has_header = has_header or len(rows) == 1
            if line.strip()[0] == "=" and not columns:
                columns = [match.start() for match in re.finditer("=+", line)]
            continue
        spans = _row(line, columns, len(rows[0]) if rows else 0)
        if len(spans) > 1:
            rows.append([(start + first, start + last) for first, last in spans])
            continue
        if len(rows) > 1:
            yield rows, has_header
        rows, has_header, columns = [], False, []


def _row(line: str, columns: list[int], width: int) -> list[Span]:
    """The cells of a line; empty if it is no row of a table."""
    if columns:
        edges = [first for first in columns if first < len(line)]
        return [*zip(edges, [*edges[1:], len(line)], strict=True)] if line.strip() else []
    mark = "|" if line.count("|") > 1 or (width and "|" in line) else "\t" if "\t" in line else ","
    if mark == "," and (re.search(r"[.;:]\s|, ", line) or width not in (0, line.count(",") + 1)):
        return []
    edges = [-1, *(match.start() for match in re.finditer(re.escape(mark), line)), len(line)]
    spans = [(first + 1, last) for first, last in pairwise(edges)]
    if mark == "|":
        spans = [
            span
            for span in spans
            if line[slice(*span)].strip() or (span[0] and span[1] < len(line))
        ]
    return spans


def headed_cells(
    text: str, table: tuple[list[list[Span]], bool]
) -> Iterator[tuple[int, int, str, str, str]]:
    """Each cell: where it stands, the headings of its column and row, and the rest of its row."""
    rows, has_header = table
    texts = [[text[first:last].strip() for first, last in row] for row in rows]
    has_header = has_header or not any(re.match(r"\W*\d", cell) for cell in texts[0])
    for number, (row, cells) in enumerate(zip(rows, texts, strict=True)):
        header = texts[0] if has_header and number else []
        for column, (first, last) in enumerate(row):
            heading = header[column] if column < len(header) else ""
            others = " ".join(cell for n, cell in enumerate(cells) if n not in (0, column))
            yield first, last, heading, cells[0] if column and header else "", others
