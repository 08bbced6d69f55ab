"""What the readers of plain text share: a file as clean lines, and runs of lines as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rolebundle.ingest.parsed import Block, BlockKind
from rolebundle.text.text_decoding import decode_noting, split_lines

# Markup is taken out of headings up to this length; the patterns for it are not linear.
LONGEST_TITLE = 500


@dataclass(frozen=True, slots=True)
class TextFile:
    """The lines of a file, and what had to be done to get them."""

    lines: list[str]
    notes: tuple[str, ...]


def open_text(data: bytes, path: str) -> TextFile:
    """The file at ``path`` as lines.

    Raises:
        DocumentError: ``undecodable``.
    """
    text, notes = decode_noting(data, path)
    return TextFile(split_lines(text), notes)


def is_blank(line: str) -> bool:
    """Whether nothing can be seen on ``line``."""
    return not line or line.isspace()


def block_of(
    lines: Sequence[str],
    kind: BlockKind,
    start: int,
    end: int,
    *,
    level: int = 0,
    heading: str = "",
) -> Block:
    """The block of ``lines[start:end]``, blank lines at its end left off."""
    while end > start + 1 and is_blank(lines[end - 1]):
        end -= 1
    return Block(kind, "\n".join(lines[start:end]), start + 1, end, level, heading)


def runs(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Index ranges of the runs of lines between blank ones."""
    first = -1
    for i in range(start, end):
        if is_blank(lines[i]):
            if first >= 0:
                yield first, i
                first = -1
        elif first < 0:
            first = i
    if first >= 0:
        yield first, end
