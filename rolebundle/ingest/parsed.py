"""The values that are passed from reading to chunking and storing.

bytes ─▶ reader ─▶ ParsedDocument (blocks with their lines) ─▶ chunking ─▶ StoredChunk
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from rolebundle.scan.finding import HiddenPart
from rolebundle.storage.documents import StoredChunk
from rolebundle.text.links import Found

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


class Flag(NamedTuple):
    """A kind of finding of the scan, and its lines in the file; the whole file for what concerns
    all passages of the document.
    """  # noqa: D205

    kind: str
    start_line: int = 0
    end_line: int = 1 << 62


class Block(NamedTuple):
    """A structural unit, which is only split if it exceeds the maximum chunk size.

    A tuple, because a page has hundreds of them.

    ``start_line`` and ``end_line`` are lines of the ingested file, 1-based and inclusive. If the
    document is line-exact, ``text`` is exactly these lines, joined by newlines.
    """

    kind: BlockKind
    text: str
    start_line: int
    end_line: int
    level: int = 0
    """Level 1–6 of a heading, or of a definition in source code; 0 for other blocks. A block of
    code with a level but no heading ends the definitions of that level."""
    heading: str = ""
    """The plain words of a heading, without markup, or what is defined; empty for other blocks."""
    page: int = 0
    """The page of the block, from 1; 0 if the format has no pages."""
    anchor: str = ""
    """Where the block is, if lines do not tell it: ``slide 4``, ``cell 5``. A page needs no anchor.
    Blocks with different anchors are never in the same chunk."""
    aligned: bool = False
    """Whether each line of ``text`` is one line of the file although the document is not
    line-exact. Pieces of the block then have exact lines as well."""
    header: str = ""
    """The header row of the table that the block is, or is a part of, as it is in the text."""

    def moved(self, lines: int) -> Block:
        """The block so many lines further down in the file."""
        return self._replace(start_line=self.start_line + lines, end_line=self.end_line + lines)

    def parts(self, starts: Iterable[int], *, line_exact: bool) -> Iterator[tuple[int, Block]]:
        """The blocks that begin at some of its lines, counted from 0; none without text.

        Their own lines of the file are known if the document is line-exact, or the block aligned.
        """
        lines, at = self.text.split("\n"), self.start_line
        for first, end in pairwise([*sorted(starts), len(lines)]):
            text = "\n".join(lines[first:end])
            span = (at + first, at + end - 1) if line_exact or self.aligned else (at, self.end_line)
            if text.strip():
                yield first, self._replace(text=text, start_line=span[0], end_line=span[1])


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One document as read, before its metadata is resolved. A file may contain several.

    ``declared`` is the unvalidated metadata that the document declares, for example in its front
    matter, and ``declared_at`` is the line where it begins, for error messages. ``inferred`` is
    metadata from the format, such as an HTML ``<title>``; every declaration takes precedence. Its
    other keys, such as a mail's sender, become attributes.
    """

    blocks: tuple[Block, ...] = ()
    ready: tuple[StoredChunk, ...] = ()
    """Chunks that are defined in the file and stored unchanged; their hash is still empty."""
    declared: Mapping[str, object] = field(default_factory=dict)
    declared_at: int = 1
    inferred: Mapping[str, object] = field(default_factory=dict)
    key: str = ""
    """The name of the document within a file of several; empty if it is the whole file."""
    line_exact: bool = True
    """Whether the text of each block is exactly its lines."""
    lines: Sequence[str] = ()
    """All lines of the file if ``line_exact``. Chunks are slices of them, including gaps."""
    notes: tuple[str, ...] = ()
    """What the reader skipped or changed, for the report, `ls` and `get`."""
    left_out: float = 0
    """The share of the document that the reader left out, from 0 to 1."""
    hidden: tuple[HiddenPart, ...] = ()
    """What the format hides from people. Unless it is kept, it is not in the text."""
    attached: tuple[tuple[str, bytes], ...] = ()
    """The name and content of each file that is attached, which becomes documents of its own."""
    found: tuple[Found, ...] = ()
    """Tags in the text, and links to other files."""
    has_fields: bool = False
    """Whether its blocks are records whose lines have labels, as ``Where: the hall``."""
    clauses: int = 0
    """The level of headings below which each section is a clause, and stands apart; 0: none."""
    flags: tuple[Flag, ...] | None = None
    """What the scan found; ``None`` before it, and if it found nothing."""


def title_in(blocks: Iterable[Block]) -> str:
    """The first heading of level 1; empty if there is none."""
    return next((block.heading for block in blocks if block.level == 1), "")
