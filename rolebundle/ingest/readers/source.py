"""Source code as text: a block is a definition, or what stands together at the left margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, block_of, is_blank, open_text
from rolebundle.ingest.readers.source_outline import Unit, units


class SourceReader:
    """Reads source code and configuration files."""

    name = "source"
    suffixes = suffixes_of("source")
    version = 2

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file.

        Raises:
            DocumentError: ``undecodable``.
        """
        file = open_text(data, path)
        blocks = tuple(_blocks(file.lines, path))
        yield ParsedDocument(blocks=blocks, lines=file.lines, notes=file.notes)


def _blocks(lines: Sequence[str], path: str) -> Iterator[Block]:
    first = next((i for i, line in enumerate(lines) if not is_blank(line)), len(lines))
    if first == len(lines):
        return
    found = list(units(lines, path))
    if not found or found[0].start > first:
        found.insert(0, Unit(first))
    for unit, below in pairwise([*found, Unit(len(lines))]):
        yield block_of(
            lines, "code", unit.start, below.start, level=unit.level, heading=unit.heading
        )


READER = SourceReader()
