"""The blocks of a draft's Markdown: paragraphs, items, rows, headings, blockquotes, code. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Range = tuple[int, int]
"""The first character, and the one after the last."""
BlockKind = Literal["prose", "item", "heading", "code", "row", "header", "quote", "definition"]


class Block(NamedTuple):
    """A range of the draft. It begins after the mark of an item, heading or definition.

    A blockquote is one block with the marks of its lines. ``header`` is the head of a table, and
    ``definition`` the text of a footnote or of a link's label.
    """

    kind: BlockKind
    start: int
    end: int


LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
QUOTE_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)+")
DEFINITION = re.compile(r" {0,3}\[(\^?[^\]\[\s]{1,50})\]:[ \t]*")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^\r\n]*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦▪]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_RULE = re.compile(r" {0,3}([-*_=])(?:[ \t]*\1)*$")
_DOUBLE = re.compile('["“”„«»「」『』]')
_OPENING = {"”": "“", "“": "„", "»": "«", "」": "「", "』": "『"}
# The kinds that begin with a mark, which is not part of the block.
_MARKED: tuple[tuple[BlockKind, re.Pattern[str]], ...] = (
    ("heading", _HEADING),
    ("definition", DEFINITION),
    ("item", _ITEM),
)


def blocks_of(text: str) -> list[Block]:
    """The blocks of a text, in order. Blank lines and rules are in none."""
    return list(_Reader(text).blocks())


class _Reader:
    """Reads line by line. ``_open`` is the block that the next line may continue."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: list[Range] = [
            (match.start(), match.start() + len(match[0].rstrip()))
            for match in LINE.finditer(text)
            if match[0]
        ]
        self._open: Block | None = None
        self._quoted = _OpenMarks()
        self._in_table = False

    def blocks(self) -> Iterator[Block]:
        fences = _fences(self._text, self._lines)
        number = 0
        while number < len(self._lines):
            last = fences.get(number)
            if last is None:
                yield from self._line(number)
                number += 1
            else:
                yield from self._close()
                yield Block("code", self._lines[number][0], self._lines[last][1])
                number = last + 1
        yield from self._close()

    def _close(self, *, in_table: bool = False) -> Iterator[Block]:
        if self._open:
            yield self._open
        self._open = None
        self._quoted = _OpenMarks()
        self._in_table = in_table

    def _line(self, number: int) -> Iterator[Block]:
        start, end = self._lines[number]
        line = self._text[start:end]
        block = self._open
        is_quoted = self._quoted.any()
        if not line:
            yield from self._close()
        elif block and _is_delimiter_row(line) and "|" in self._text[block.start : block.end]:
            yield from self._table_head(block, number)
        elif not is_quoted and (rule := _RULE.match(line)) and (not block or rule[1] in "-="):
            if block and block.kind == "prose":
                # Underlined text is a heading.
                self._open = block._replace(kind="heading")
            yield from self._close()
        elif QUOTE_MARKS.match(line):
            yield from self._add("quote", start, end, continues=("quote",))
        elif line.lstrip().startswith("|") or (self._in_table and "|" in line):
            in_table = self._in_table
            yield from self._close(in_table=in_table)
            self._open = Block("row", start, end)
        elif is_quoted and (_ITEM.match(line) or _RULE.match(line)):
            # A dash at the beginning of a line.
            yield from self._add("prose", start, end, continues=("prose", "item", "definition"))
        else:
            for kind, pattern in _MARKED:
                if match := pattern.match(line):
                    yield from self._close()
                    if match.end() < len(line):
                        has_quote = QUOTE_MARKS.match(line, match.end()) is not None
                        self._open = Block("quote" if has_quote else kind, start + match.end(), end)
                        self._quoted.read(line)
                    if kind == "heading":
                        yield from self._close()
                    return
            yield from self._add("prose", start, end, continues=("prose", "item", "definition"))

    def _add(
        self, kind: BlockKind, start: int, end: int, *, continues: tuple[BlockKind, ...]
    ) -> Iterator[Block]:
        if self._open and self._open.kind in continues:
            self._open = self._open._replace(end=end)
        else:
            yield from self._close()
            self._open = Block(kind, start, end)
        self._quoted.read(self._text[start:end])

    def _table_head(self, block: Block, number: int) -> Iterator[Block]:
        """The line before a delimiter row is the table's head."""
        first = max(self._lines[number - 1][0], block.start)
        if block.start < first:
            yield Block(block.kind, block.start, self._lines[number - 2][1])
        self._open = Block("header", first, block.end)
        yield from self._close(in_table=True)


class _OpenMarks:
    """Which double quotation marks are open in a block."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def any(self) -> bool:
        return any(self._open.values())

    def read(self, line: str) -> None:
        for mark in _DOUBLE.findall(line):
            if mark == '"':
                self._open[mark] = 1 - self._open.get(mark, 0)
            elif (opening := _OPENING.get(mark)) and self._open.get(opening):
                self._open[opening] -= 1
            elif mark in _OPENING.values():
                self._open[mark] = self._open.get(mark, 0) + 1


def _is_delimiter_row(line: str) -> bool:
    return "|" in line and "-" in line and set(line) <= set("|:- \t")


def _fences(text: str, lines: Sequence[Range]) -> dict[int, int]:
    """First and last line of each code block. A fence that is not closed is no fence."""
    candidates = []
    for number, (start, end) in enumerate(lines):
        if (match := _FENCE.match(text, start, end)) and "`" not in match[2]:
            candidates.append((number, match[1], not match[2].strip()))
    # The longest fence that can close a block, from each candidate on.
    longest = [{"`": 0, "~": 0}]
    for _, fence, can_close in reversed(candidates):
        lengths = dict(longest[-1])
        if can_close:
            lengths[fence[0]] = max(lengths[fence[0]], len(fence))
        longest.append(lengths)
    longest.reverse()
    fences: dict[int, int] = {}
    at = 0
    while at < len(candidates):
        first, opening, _ = candidates[at]
        at += 1
        if longest[at][opening[0]] < len(opening):
            continue
        while True:
            last, closing, can_close = candidates[at]
            at += 1
            if can_close and closing[0] == opening[0] and len(closing) >= len(opening):
                break
        fences[first] = last
    return fences


def is_inside(position: int, spans: Sequence[Range]) -> bool:
    """Whether a position is in one of the sorted, disjoint ranges."""
    at = bisect_right(spans, (position, len(spans) and spans[-1][1])) - 1
    return at >= 0 and spans[at][0] <= position < spans[at][1]


def merged(spans: Sequence[Range]) -> list[Range]:
    """The ranges in order; ranges that overlap are joined."""
    result: list[Range] = []
    for start, end in sorted(spans):
        if result and start < result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result
