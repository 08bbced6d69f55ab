"""Source code as text: a block is a definition, or what stands together at the left margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions, block_of, is_blank, open_text
from rolebundle.ingest.readers.source_outline import Unit, units


def _read(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``.
    """
    file = open_text(data, path)
    blocks = tuple(_blocks(file.lines, path))
    yield ParsedDocument(blocks=blocks, lines=file.lines, notes=file.notes)


def _blocks(lines: Sequence[str], path: str) -> Iterator[Block]:
    first = next((i for i, line in enumerate(lines) if not is_blank(line)), len(lines))
    found = [*units(lines, path), Unit(len(lines))]
    if found[0].start > first:
        found.insert(0, Unit(first))
    for unit, below in pairwise(found):
        level, heading = unit.level, unit.heading
        yield block_of(lines, "code", unit.start, below.start, level=level, heading=heading)


READER = Reader("source", 2, _read)
