"""The protocol of a reader, and what readers of plain text share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.front_matter import FrontMatter, read_front_matter
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.text.decoding import decode, split_lines

MAX_TITLE_CHARS = 500
"""Longer headings keep their markup: the patterns that remove it do not run in linear time."""


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """Settings of a reader, from the manifest or the command line."""

    separator: str = ""
    """For ``separated``: a line that begins with this text starts a new document."""


Read = Callable[[bytes, str, ReaderOptions], Iterable[ParsedDocument | DocumentError]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns the bytes of one file into documents.

    Attributes:
        name: the name that a manifest uses for the reader.
        version: must be raised if the output changes, so that unchanged files are read again.
        read: parses the content of the file at a path (relative, forward slashes). If a file holds
            several documents, a *yielded* error concerns one of them and the others are still read.
            A *raised* ``DocumentError`` concerns the whole file; its code is the reason
            (``unreadable_pdf``, …).
    """

    name: str
    version: int
    read: Read


@dataclass(frozen=True, slots=True)
class TextFile:
    """The lines of a file, and notes on what was changed to decode them."""

    lines: list[str]
    notes: tuple[str, ...]


def open_text(data: bytes, path: str) -> TextFile:
    """Decode the file at ``path`` and split it into lines.

    Raises:
        DocumentError: ``undecodable``.
    """
    text, notes = decode(data, path)
    return TextFile(split_lines(text), notes)


def front_matter(
    lines: Sequence[str], path: str, start: int = 0, stop: int | None = None
) -> FrontMatter:
    """The front matter at the beginning of ``lines[start:stop]``; an empty one if there is none.

    Raises:
        DocumentError: ``bad_front_matter``.
    """
    return read_front_matter(lines, path, start, stop) or FrontMatter({}, start + 1, start)


def damaged(
    code: str,
    path: str,
    error: object,
    step: str = "open it in its program and save it again, or exclude it",
) -> DocumentError:
    """The error for a file that its parser refuses. What the parser says is at its end.

    Raises:
        MemoryError: the parser had not enough memory, which says nothing about the file.
    """
    if isinstance(error, MemoryError):
        raise error
    problem = "it is empty, damaged, or another kind of file than its name says"
    return DocumentError(code, f"{path}: {problem}", with_detail(step, error))


def is_blank(line: str) -> bool:
    """Whether ``line`` is empty or white space only."""
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
    """The block of ``lines[start:end]``, without blank lines at its end."""
    while end > start + 1 and is_blank(lines[end - 1]):
        end -= 1
    return Block(kind, "\n".join(lines[start:end]), start + 1, end, level, heading)


def runs(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The index ranges of consecutive lines that are not blank."""
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
