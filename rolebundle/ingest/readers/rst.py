"""reStructuredText, with Sphinx's roles and directives left as they are written."""

from __future__ import annotations

from collections.abc import Iterable

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.rst_blocks import rst_blocks
from rolebundle.ingest.readers.text_file import open_text


class RstReader:
    """Reads ``.rst`` and its kin."""

    name = "rst"
    suffixes = suffixes_of("rst")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document a file."""
        file = open_text(data, path)
        blocks = rst_blocks(file.lines)
        title = next((block.heading for block in blocks if block.level), "")
        yield ParsedDocument(
            blocks=blocks,
            found={"title": title} if title else {},
            lines=file.lines,
            notes=file.notes,
        )


READER = RstReader()
