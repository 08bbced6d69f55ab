"""Source code as text: a block begins at the left margin and includes all indented lines below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, block_of, open_text, runs

# A line at the left margin that begins with one of these ends a unit and does not begin one. They
# are compared as prefixes, so a line such as `endpoint = …` is joined to the unit above it.
_CLOSERS = ("}", ")", "]", "end", "else", "elif", "except", "finally", "catch", "fi", "done")


class SourceReader:
    """Reads source code and configuration files."""

    name = "source"
    suffixes = suffixes_of("source")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file."""
        file = open_text(data, path)
        yield ParsedDocument(blocks=tuple(_units(file.lines)), lines=file.lines, notes=file.notes)


def _units(lines: Sequence[str]) -> Iterator[Block]:
    """A unit continues over blank lines if the next line is indented or closes it."""
    first = last = -1
    for start, end in runs(lines, 0, len(lines)):
        if first >= 0 and not _continues(lines[start]):
            yield block_of(lines, "code", first, last)
            first = start
        elif first < 0:
            first = start
        last = end
    if first >= 0:
        yield block_of(lines, "code", first, last)


def _continues(line: str) -> bool:
    return line[0].isspace() or line.startswith(_CLOSERS)


READER = SourceReader()
