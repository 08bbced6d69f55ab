"""Plain text: paragraphs between blank lines, and the headings of pod and AsciiDoc."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rolebundle.ingest.front_matter import read_front_matter
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import (
    MAX_TITLE_CHARS,
    ReaderOptions,
    block_of,
    open_text,
    runs,
)

_POD = re.compile(r"=head([1-6])\s+(.*)")
_ASCIIDOC = re.compile(r"(={1,6})\s+(\S.*)")
_HEADINGS = {
    ".pod": _POD,
    ".adoc": _ASCIIDOC,
    ".asciidoc": _ASCIIDOC,
}
_POD_FORMATTING = re.compile(r"[A-Z]<+\s*([^<>]*?)\s*>+")


class TextReader:
    """Reads ``.txt`` and similar files, and every text file without a reader of its own."""

    name = "text"
    suffixes = suffixes_of("text")
    version = 2

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file."""
        file = open_text(data, path)
        front = read_front_matter(file.lines, path)
        suffix = path[path.rfind(".") :].lower() if "." in path else ""
        yield ParsedDocument(
            blocks=tuple(_blocks(file.lines, front.body_index if front else 0, suffix)),
            declared=front.declared if front else {},
            declared_at=front.declared_at if front else 1,
            lines=file.lines,
            notes=(*file.notes, *(front.notes if front else ())),
        )


def _blocks(lines: Sequence[str], body: int, suffix: str) -> Iterator[Block]:
    pattern = _HEADINGS.get(suffix)
    for start, end in runs(lines, body, len(lines)):
        if pattern is None:
            yield block_of(lines, "paragraph", start, end)
        else:
            yield from _with_headings(lines, start, end, pattern)


def _with_headings(
    lines: Sequence[str], start: int, end: int, pattern: re.Pattern[str]
) -> Iterator[Block]:
    """Split a run of lines before and after each heading line."""
    first = start
    for i in range(start, end):
        match = pattern.match(lines[i])
        if not match:
            continue
        if first < i:
            yield _body(lines, first, i, pattern)
        level = int(match[1]) if pattern is _POD else len(match[1])
        words = match[2]
        if pattern is _POD and len(words) <= MAX_TITLE_CHARS:
            words = _POD_FORMATTING.sub(r"\1", words)
        yield block_of(lines, "heading", i, i + 1, level=level, heading=words.strip())
        first = i + 1
    if first < end:
        yield _body(lines, first, end, pattern)


def _body(lines: Sequence[str], start: int, end: int, pattern: re.Pattern[str]) -> Block:
    verbatim = pattern is _POD and all(lines[i][0] in " \t" for i in range(start, end))
    return block_of(lines, "code" if verbatim else "paragraph", start, end)


READER = TextReader()
