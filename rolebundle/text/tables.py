"""The header row of a table whose rows are lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

CELL_MARKS = "|\t;,"
"""What may stand between the cells of a row."""
_FIGURE = re.compile(r"(?:^|[|\t;,])\W*\d(?!\d{3}\W*(?:[|\t;,]|$))")
"""A cell that begins with a figure, and is no year."""
_QUOTED = re.compile(r'"[^"]*"')
MAX_HEADER_ROW = 10
"""Rows below are no header of the table at the top."""


def has_figures(row: str) -> bool:
    """Whether a cell of a row begins with a figure; a year may name a column."""
    return _FIGURE.search(row) is not None


def names_columns(row: str, above: str, mark: str = "|") -> bool:
    """Whether a row of texts is the header, and not the row above: a title, or a key and its value.

    Args:
        row: has texts only, if ``above`` is empty.
        above: what was the header so far; empty if there was none.
        mark: stands between cells.
    """
    borders, above_borders = (
        _QUOTED.sub("", line).strip(" |").count(mark) for line in (row, above)
    )
    return above_borders < min(borders, 2) and not (above and has_figures(row))


def header_index(rows: Sequence[str], mark: str = "|") -> int:
    """Which of the first ten rows is the header: the first one, or one below titles and keys."""
    top = 0
    for number, row in enumerate(rows[:MAX_HEADER_ROW]):
        top = number if names_columns(row, rows[top], mark) else top
    return top
