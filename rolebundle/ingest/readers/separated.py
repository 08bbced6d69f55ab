"""One file with several documents, split at a declared separator line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rolebundle.errors import DocumentError
from rolebundle.ingest.front_matter import read_front_matter
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, TextFile, is_blank, open_text
from rolebundle.ingest.readers.markdown import first_heading, read_markdown

_NOT_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines between two separator lines, as indexes."""

    title: str
    ordinal: int
    start: int
    end: int


class SeparatedReader:
    """Reads a file in which each document begins with a separator line.

    The rest of the separator line is the title. The content is read as Markdown.
    """

    name = "separated"
    suffixes = suffixes_of("separated")
    version = 2

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
                "set `separator` in rolebundle.toml, or --separator",
            )
        file = open_text(data, path)
        used_keys: set[str] = set()
        for part in _parts(file.lines, options.separator):
            try:
                yield _document(file, part, path, _key(part, used_keys))
            except DocumentError as error:
                yield error


def _parts(lines: Sequence[str], separator: str) -> Iterator[_Part]:
    title, ordinal, start = "", 0, 0
    for i, line in enumerate(lines):
        if line.startswith(separator):
            if ordinal or any(not is_blank(above) for above in lines[:i]):
                yield _Part(title, ordinal, start, i)
            title, ordinal, start = line[len(separator) :].strip(), ordinal + 1, i + 1
    if ordinal or any(not is_blank(line) for line in lines):
        yield _Part(title, ordinal, start, len(lines))


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
    title = part.title or first_heading(blocks)
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


READER = SeparatedReader()
