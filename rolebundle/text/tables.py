"""The header row and the cells of tables whose rows are lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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


# -- cells -----------------------------------------------------------------------------------------

_COLUMN = re.compile(r"\S+(?: \S+)*")
_NARROW = re.compile(r"^\S.*?(?=(?: (?=\S*\d)\S+){2,}$)|(?<= )(?=\S*\d)\S+(?=(?: (?=\S*\d)\S+)*$)")
"""The columns of a line that ends with numbers: a label, and each number."""
_DIGIT = re.compile(r"\d")
_NUMBER_CELL = re.compile(r"\W*\d(?!\d{3}$)")
"""How a cell begins that is no heading; a year may be one."""
_MAX_NARROW_LINE = 120
"""A longer line is prose."""


class Cell(NamedTuple):
    """A cell of a table, the headings of its column and row, and the other cells of its row.

    Cells with digits are blank in ``beside``, whose cells are divided by "|".
    """

    start: int
    text: str
    column: str
    row: str
    beside: str = ""

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


def cells_in(text: str) -> Iterator[Cell]:
    """The cells of tables: the rows are lines with "|", or in three columns with wide gaps."""
    rows, position = list[list[tuple[int, str]]](), 0
    for line in [*text.split("\n"), ""]:
        start, position = position, position + len(line) + 1
        is_row = "|" in line or (rows and line.startswith("+-")) or line.startswith("+=")
        columns = () if is_row else [*_COLUMN.finditer(line)]
        if not is_row and len(columns) < 3 and len(line) < _MAX_NARROW_LINE:
            columns = [*_NARROW.finditer(line)]
        if is_row or len(columns) > 2:
            if not set(line) <= set("|:-+= \t\r"):
                # Without a border, the first cell may be blank: " | 10 kg | 340".
                border = len(line) - len(line.lstrip()) if line.rstrip().endswith("|") else 0
                cells = columns or re.compile(r"[^|]+").finditer(line.rstrip(), border)
                rows.append([(start + match.start(), match[0]) for match in cells])
            continue
        if len(rows) > 1 or (rows and len(rows[0]) > 3):
            yield from _headed(rows)
        rows = []


def _headed(rows: list[list[tuple[int, str]]]) -> Iterator[Cell]:
    """The cells of a table with their headings.

    A row with figures is no header. A title or a date may stand above it, in shorter rows.
    """
    names = [[cell.strip() for _, cell in row] for row in rows]
    name = ""
    wide = (n for n, row in enumerate(names[:5]) if all(len(row) > len(up) for up in names[:n]))
    top = next((n for n in wide if not any(map(_NUMBER_CELL.match, names[n]))), len(rows))
    for number, row in enumerate(rows):
        # A row may have more lines, and more cells that name it.
        name = row[0][1].strip() or name
        words = " | ".join("" if _DIGIT.search(cell) else cell.strip() for _, cell in row[1:])
        header = names[top] if number > top else []
        for column, (start, cell) in enumerate(row):
            heading = header[column] if column < len(header) else ""
            yield Cell(start, cell, heading, name if column else "", words)
