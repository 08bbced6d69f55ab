"""Markdown, with front matter."""

from __future__ import annotations

from collections.abc import Iterable

from rolebundle.ingest.front_matter import read_front_matter
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.markdown_blocks import first_heading, markdown_blocks
from rolebundle.ingest.readers.text_file import open_text


class MarkdownReader:
    """Reads ``.md`` and its kin."""

    name = "markdown"
    suffixes = suffixes_of("markdown")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document a file."""
        file = open_text(data, path)
        front = read_front_matter(file.lines, path)
        blocks = markdown_blocks(file.lines, front.body if front else 0, len(file.lines))
        title = first_heading(blocks)
        yield ParsedDocument(
            blocks=blocks,
            declared=front.declared if front else {},
            declared_at=front.declared_at if front else 1,
            found={"title": title} if title else {},
            lines=file.lines,
            notes=file.notes,
        )


READER = MarkdownReader()
