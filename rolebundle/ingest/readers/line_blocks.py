"""Blocks of lines, as text, Markdown, mail and PDF have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rolebundle.ingest.parsed import Block, BlockKind


def is_blank(line: str) -> bool:
    """Whether ``line`` is empty or white space only."""
    return not line or line.isspace()


def first_text(lines: Sequence[str]) -> int:
    """The index of the first line that is not blank; that after the last one if all are."""
    return next((i for i, line in enumerate(lines) if not is_blank(line)), len(lines))


def block_of(lines: Sequence[str], kind: BlockKind, start: int, end: int) -> Block:
    """The block of ``lines[start:end]``, without blank lines at its end."""
    while end > start + 1 and is_blank(lines[end - 1]):
        end -= 1
    return Block(kind, "\n".join(lines[start:end]), start + 1, end)


def runs(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The index ranges of consecutive lines that are not blank."""
    for is_empty, group in groupby(range(start, end), lambda i: is_blank(lines[i])):
        if not is_empty:
            indexes = list(group)
            yield indexes[0], indexes[-1] + 1
