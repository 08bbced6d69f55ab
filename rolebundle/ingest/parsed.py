"""The plain values that pass between reading, chunking and storing.

bytes ─▶ reader ─▶ ParsedDocument (blocks with their lines) ─▶ chunking ─▶ StoredChunk
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]
ContentType = Literal["paragraph", "table", "list", "code", "excerpt"]


class Block(NamedTuple):
    """One structural unit that is not cut unless it alone is over the maximum.

    A tuple, because a page has hundreds.

    ``start_line`` and ``end_line`` are 1-based, inclusive, in the file as ingested. Where the
    reader is line-exact, ``text`` is exactly those lines joined by newlines.
    """

    kind: BlockKind
    text: str
    start_line: int
    end_line: int
    level: int = 0
    """Heading level 1–6; 0 for everything that is not a heading."""
    heading: str = ""
    """A heading's plain words, without markup; empty for everything else."""
    page: int = 0
    """The page that it stands on, from 1; 0 where the format has no pages."""
    aligned: bool = False
    """Whether each line of ``text`` stands on one line of the file, where the document as a
    whole is not line-exact: pieces of the block then have lines of their own."""


@dataclass(frozen=True, slots=True)
class ReadyChunk:
    """A chunk that the file brings along ready-made; it is stored as it is."""

    chunk_id: str
    content: str
    start_line: int
    end_line: int
    content_type: ContentType = "paragraph"
    tags: tuple[str, ...] = ()
    applicable_roles: tuple[str, ...] = ()
    excluded_roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One document as a reader found it, before its metadata is resolved.

    A file may hold many. ``declared`` is what the document says of itself (front matter and the
    like), unvalidated; ``declared_at`` is the line where that begins, for error messages.
    ``found`` is what the format tells without anyone declaring it, such as an HTML ``<title>``:
    it is weaker than every declaration.
    """

    blocks: tuple[Block, ...] = ()
    ready: tuple[ReadyChunk, ...] = ()
    declared: Mapping[str, object] = field(default_factory=dict)
    declared_at: int = 1
    found: Mapping[str, object] = field(default_factory=dict)
    key: str = ""
    """Names the document inside its file where the file holds many; empty for a whole file."""
    line_exact: bool = True
    """Whether a block's text is exactly the lines that it names."""
    lines: Sequence[str] = ()
    """All lines of the file, where ``line_exact``: a chunk is cut from them, gaps included."""
    notes: tuple[str, ...] = ()
    """What the reader left out and why, for the report."""
