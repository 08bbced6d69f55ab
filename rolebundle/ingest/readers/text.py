"""Plain text: paragraphs between blank lines, and the headings of pod and AsciiDoc."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

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
# The delimiters of blocks whose lines are shown as they are, and of comments.
_ASCIIDOC_FENCE = re.compile(r"-{4,}|\.{4,}|\+{4,}|/{4,}|```")
_POD_FORMATTING = re.compile(r"[A-Z]<+\s*([^<>]*?)\s*>+")


class TextReader:
    """Reads ``.txt`` and similar files, and every text file without a reader of its own."""

    name = "text"
    suffixes = suffixes_of("text")
    version = 3

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file."""
        file = open_text(data, path)
        front = read_front_matter(file.lines, path)
        suffix = path[path.rfind(".") :].lower() if "." in path else ""
        blocks = tuple(_blocks(file.lines, front.body_index if front else 0, suffix))
        # The first heading of pod is NAME.
        is_asciidoc = _HEADINGS.get(suffix) is _ASCIIDOC
        title = next((b.heading for b in blocks if b.level == 1), "") if is_asciidoc else ""
        yield ParsedDocument(
            blocks=blocks,
            inferred={"title": title} if title else {},
            declared=front.declared if front else {},
            declared_at=front.declared_at if front else 1,
            lines=file.lines,
            notes=(*file.notes, *(front.notes if front else ())),
        )


def _blocks(lines: Sequence[str], body: int, suffix: str) -> Iterator[Block]:
    pattern = _HEADINGS.get(suffix)
    fenced = _fenced(lines, body) if pattern is _ASCIIDOC else frozenset()
    for start, end in runs(lines, body, len(lines)):
        if pattern is None:
            yield block_of(lines, "paragraph", start, end)
        else:
            yield from _with_headings(lines, start, end, pattern, fenced)


def _fenced(lines: Sequence[str], body: int) -> frozenset[int]:
    """The lines of AsciiDoc in which nothing is a heading."""
    fenced: list[int] = []
    opened, fence = 0, ""
    for i in range(body, len(lines)):
        line = lines[i].rstrip()
        if not fence and (match := _ASCIIDOC_FENCE.match(line)):
            # A block of code may name its language.
            opened, fence = i, match[0] if match[0] in ("```", line) else ""
        elif fence and line == fence:
            fenced += range(opened, i)
            fence = ""
    return frozenset(fenced)


def _with_headings(
    lines: Sequence[str],
    start: int,
    end: int,
    pattern: re.Pattern[str],
    fenced: AbstractSet[int],
) -> Iterator[Block]:
    """Split a run of lines before and after each heading line."""
    first = start
    for i in range(start, end):
        match = pattern.match(lines[i])
        if not match or i in fenced:
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
