"""One file with several documents, split at a declared separator line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rolebundle.errors import DocumentError
from rolebundle.ingest.front_matter import read_front_matter
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, TextFile, is_blank, open_text
from rolebundle.ingest.readers.markdown import first_heading, read_markdown

_MAX_TITLE_CHARS = 100
_NOT_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines between two separator lines, as indexes."""

    title: str
    ordinal: int
    start: int
    end: int


class SeparatedReader:
    """Reads a file with a separator line before, or between, its documents.

    The rest of a separator line is the title. A title that stands alone between two separator lines
    belongs to the text after it. The content is read as Markdown.
    """

    name = "separated"
    suffixes = suffixes_of("separated")
    version = 3

    def read(
        self, data: bytes, path: str, options: ReaderOptions
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
        used_keys: set[str] = set()
        parts = [*_parts(file.lines, options.separator)]
        for part in _with_titles(_boxed(parts, file.lines), file.lines):
            try:
                yield _document(file, part, path, _key(part, used_keys))
            except DocumentError as error:
                yield error


def _parts(lines: Sequence[str], separator: str) -> Iterator[_Part]:
    mark = re.escape(separator[0])
    # As in "=== Title ===", or in a separator line that is longer than declared.
    closing = re.compile("$" if separator[0].isalnum() else rf"(?:^|\s){mark}+$|{mark}{{2,}}$")
    title, ordinal, start = "", 0, 0
    for i, line in enumerate(lines):
        if line.startswith(separator):
            yield _Part(title, ordinal, start, i)
            title = closing.sub("", line[len(separator) :].strip()).strip()
            ordinal, start = ordinal + 1, i + 1
    yield _Part(title, ordinal, start, len(lines))


def _boxed(parts: Sequence[_Part], lines: Sequence[str]) -> Sequence[_Part]:
    """The parts, with titles that all stand alone between two separator lines in their places."""
    first = parts[0]
    boxes, bodies = parts[1::2], parts[2::2]
    is_boxed = (
        _is_empty(first, lines)
        and len(boxes) == len(bodies) > 0
        and not any(part.title for part in parts)
        and all(box.end - box.start == 1 and not _is_empty(box, lines) for box in boxes)
        and any(body.end - body.start > 1 for body in bodies)
    )
    if not is_boxed:
        return parts
    return [
        replace(part, title=lines[part.start].strip(), start=part.end) if i % 2 else part
        for i, part in enumerate(parts)
    ]


def _with_titles(parts: Sequence[_Part], lines: Sequence[str]) -> Iterator[_Part]:
    """The parts with a title or text. A title without text is that of the untitled text below."""
    waiting: _Part | None = None
    for part in parts:
        if _is_empty(part, lines):
            if part.title:
                if waiting:
                    yield waiting
                waiting = part
        elif waiting and not part.title:
            yield replace(part, title=waiting.title, ordinal=waiting.ordinal)
            waiting = None
        else:
            if waiting:
                yield waiting
            yield part
            waiting = None
    if waiting:
        yield waiting


def _is_empty(part: _Part, lines: Sequence[str]) -> bool:
    return all(is_blank(line) for line in lines[part.start : part.end])


def _key(part: _Part, used_keys: set[str]) -> str:
    slug = _NOT_WORD.sub("-", part.title.lower()).strip("-") or str(part.ordinal)
    key, n = slug, 1
    while key in used_keys:
        n += 1
        key = f"{slug}-{n}"
    used_keys.add(key)
    return key


def _document(file: TextFile, part: _Part, path: str, key: str) -> ParsedDocument:
    front = read_front_matter(file.lines, path, part.start, part.end)
    start = front.body_index if front else part.start
    lines, hidden, blocks = read_markdown(file.lines, start, part.end)
    title = part.title or first_heading(blocks) or _first_line(lines[start : part.end])
    return ParsedDocument(
        blocks=blocks,
        declared=front.declared if front else {},
        declared_at=front.declared_at if front else part.start + 1,
        inferred={"title": title} if title else {},
        key=key,
        lines=lines,
        notes=(*file.notes, *(front.notes if front else ())),
        hidden=hidden,
    )


def _first_line(lines: Sequence[str]) -> str:
    """The first line of a text of several lines, if it is short enough for a title."""
    filled_lines = [line.strip() for line in lines if not is_blank(line)][:2]
    return (
        filled_lines[0]
        if len(filled_lines) == 2 and len(filled_lines[0]) <= _MAX_TITLE_CHARS
        else ""
    )


READER = SeparatedReader()
