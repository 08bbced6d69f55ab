"""Whether a sentence gives a row of a table the cell of another one. Pure."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from rolebundle.contracts.documents import Passage
from rolebundle.text.replaced import says
from rolebundle.text.words import content_words
from rolebundle.verify.quotes import denies, lower_words


def table_or_text(passage: Passage) -> str:
    """The text of a passage; the cells of separated values are divided as in other tables."""
    lines = passage.content.split("\n")
    if not passage.path.endswith((".csv", ".tsv")):
        return passage.content
    delimiter = max(",;\t", key=lines[0].count)
    return "\n".join(" | ".join(row) for row in csv.reader(lines, delimiter=delimiter))


def other_cell(
    text: str, passages: Sequence[Passage], exact: Sequence[Passage]
) -> tuple[str, Passage, str] | None:
    """The cell of another row that a sentence has in place of that of its row, or ``None``.

    Its row is the cited one, or the one with most of its words.

    Args:
        text: the sentence.
        passages: which it cites.
        exact: the same ones, with the cited lines only.

    Returns:
        What differs, the passage and the row.
    """
    words = content_words(text)
    if says(text, "change") or any(map(denies, lower_words(text))):
        return None
    for passage, lines in zip(passages, exact, strict=False):
        head, *rows = _rows(passage) or [[]]
        found = [words & content_words(" ".join(row)) for row in rows]
        of_lines, most = _rows(lines), max(map(len, found), default=0)
        own = [row for row in rows if row in of_lines]
        if len(own) == len(rows):  # It cites all of them.
            own = [row for row, shared in zip(rows, found, strict=True) if len(shared) == most > 1]
        if len(own) != 1:
            continue
        row = own[0]
        texts = *head, *row, passage.document.title, *passage.headings
        elsewhere = (p.content for p in exact if p is not lines)
        known = content_words("\n".join((*texts, *elsewhere)))
        others = frozenset().union(*found) - known
        for other in rows:
            for cell, mine in zip(other, row, strict=False):
                is_free = bool(mine) and words.isdisjoint(content_words(mine))
                if is_free and others and content_words(cell) == others:
                    return f'"{cell}" for "{mine}"', passage, " | ".join(row)
    return None


def _rows(passage: Passage) -> list[list[str]]:
    """The cells of the rows of a table, its head first."""
    lines = (line for line in table_or_text(passage).split("\n") if "|" in line)
    cells = (line.removeprefix("|").rstrip(" |").split("|") for line in lines)
    return [[*map(str.strip, row)] for row in cells]
