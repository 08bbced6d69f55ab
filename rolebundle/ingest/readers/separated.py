"""One file with several documents, split at a declared separator line.

The rest of a separator line is the title. A title that stands alone between two separator lines
belongs to the text after it. The content is read as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions, is_blank, open_text
from rolebundle.ingest.readers.markdown import markdown_document

_MAX_TITLE_CHARS = 100
_NOT_WORD = re.compile(r"[\W_]+")


class _Part(NamedTuple):
    """The lines between two separator lines, and their indexes."""

    title: str
    ordinal: int
    start: int
    lines: Sequence[str]

    @property
    def filled(self) -> list[str]:
        """The lines that are not blank."""
        return [line.strip() for line in self.lines if not is_blank(line)]


def _read(
    data: bytes, path: str, options: ReaderOptions
) -> Iterable[ParsedDocument | DocumentError]:
    """One document per part. Text before the first separator is a document as well.

    A part with bad front matter yields its error, and the other parts follow.

    Raises:
        DocumentError: ``no_separator``, ``undecodable``.
    """
    if not options.separator:
        raise DocumentError(
            "no_separator",
            f"{path}: the reader `separated` requires a separator",
            "set `separator` in rolebundle.toml",
        )
    file = open_text(data, path)
    keys: set[str] = set()
    for part in _with_titles(_boxed(list(_parts(file.lines, options.separator)))):
        slug = _NOT_WORD.sub("-", part.title.lower()).strip("-") or str(part.ordinal)
        key, number = slug, 1
        while key in keys:
            number += 1
            key = f"{slug}-{number}"
        keys.add(key)
        end = part.start + len(part.lines)
        try:
            yield _titled(markdown_document(file, path, part.start, end, key=key), part.title)
        except DocumentError as error:
            yield error


def _titled(document: ParsedDocument, title: str) -> ParsedDocument:
    """The document with its title: without a heading it is the first line of several, if short."""
    if not title and document.blocks and not document.inferred:
        lines = [line.strip() for block in document.blocks for line in block.text.split("\n")]
        lines = [line for line in lines if line]
        title = lines[0] if len(lines) > 1 and len(lines[0]) <= _MAX_TITLE_CHARS else ""
    return replace(document, inferred={"title": title}) if title else document


def _parts(lines: Sequence[str], separator: str) -> Iterator[_Part]:
    mark = re.escape(separator[0])
    # As in "=== Title ===", or in a separator line that is longer than declared.
    closing = re.compile("$" if separator[0].isalnum() else rf"(?:^|\s){mark}+$|{mark}{{2,}}$")
    title, start = "", 0
    ends = [i for i, line in enumerate(lines) if line.startswith(separator)]
    for ordinal, end in enumerate([*ends, len(lines)]):
        yield _Part(title, ordinal, start, lines[start:end])
        if end < len(lines):
            title = closing.sub("", lines[end][len(separator) :].strip()).strip()
            start = end + 1


def _boxed(parts: list[_Part]) -> list[_Part]:
    """The parts, with titles that all stand alone between two separator lines in their places."""
    boxes, bodies = parts[1::2], parts[2::2]
    is_boxed = (
        not parts[0].filled
        and len(boxes) == len(bodies) > 0
        and not any(part.title for part in parts)
        and all(len(box.lines) == len(box.filled) == 1 for box in boxes)
        and any(len(body.lines) > 1 for body in bodies)
    )
    if not is_boxed:
        return parts
    return [
        body._replace(title=box.filled[0], ordinal=box.ordinal)
        for box, body in zip(boxes, bodies, strict=True)
    ]


def _with_titles(parts: Sequence[_Part]) -> Iterator[_Part]:
    """The parts with a title or text. A title without text is that of the untitled text below."""
    waiting: _Part | None = None
    for part in parts:
        if waiting and part.filled and not part.title:
            yield part._replace(title=waiting.title, ordinal=waiting.ordinal)
            waiting = None
        elif part.filled or part.title:
            if waiting:
                yield waiting
            waiting = None if part.filled else part
            if part.filled:
                yield part
    if waiting:
        yield waiting


READER = Reader("separated", 3, _read)
