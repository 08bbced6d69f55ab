"""The quotes of a draft: text between quotation marks, and blockquotes. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from rolebundle.verification.draft.parse_blocks import LINE, QUOTE_MARKS, Block, Range, is_inside
from rolebundle.verification.draft.parse_citations import CitationMark

_DOUBLE = re.compile(
    r"[\"＂“”„‟❝❞″«»‹›「」『』〝〞〟]|``|''|</?(?:q|blockquote)\b[^<>\n]*>"
    r"|&(?:quot|ldquo|rdquo|laquo|raquo|#34|#8220|#8221);",
    re.IGNORECASE,
)
_SAME = {
    "＂": '"', "″": '"', "❝": "“", "❞": "”", "&quot;": '"', "&#34;": '"', "&ldquo;": "“",
    "&#8220;": "“", "&rdquo;": "”", "&#8221;": "”", "&laquo;": "«", "&raquo;": "»",
}  # fmt: skip
_SINGLE = re.compile("['‘’‚‛´′`]")
_CLASSES = {
    mark: number
    for number, marks in enumerate(('"“”„‟', "«»", "‹›", "「」", "『』", "〝〞〟"))
    for mark in marks
}
_TEX, _HTML = 6, 7
_BEFORE_QUOTE = frozenset("([{<>*_~-–—―/|=:'‘‚“„«‹\"，。、：；（")
_AFTER_QUOTE = "'’)]}”\"»"
_ELISION = re.compile(r"(?:\d\ds?|tis|twas|em|til|till|cause|cos|n|round|bout)\b", re.IGNORECASE)


class Quotation:
    """Finds quotes. Knows of a double mark that an earlier block left open.

    ``between`` are the blocks between an open mark and the block that closes it.
    """

    def __init__(self, text: str) -> None:
        self.between: list[Range] = []
        self._text = text
        self._since_open: list[Range] | None = None

    def ranges(self, block: Block, opaque: Sequence[Range]) -> list[Range]:
        """The quotes of a block, in order. A quote in a table does not leave its cell."""
        start, end = block.start, block.end
        if block.kind not in ("row", "header"):
            return self._in_part(start, end, opaque)
        ranges = []
        while start <= end:
            bar = self._text.find("|", start, end)
            stop = bar if bar >= 0 else end
            ranges += self._in_part(start, stop, opaque)
            start = stop + 1
        return ranges

    def _in_part(self, start: int, end: int, opaque: Sequence[Range]) -> list[Range]:
        quotes = self._double_quotes(start, end, opaque)
        position = start
        singles: list[Range] = []
        for quote_start, quote_end in [*quotes, (end, end)]:
            singles += self._single_quotes(position, quote_start, opaque)
            position = max(position, quote_end)
        return sorted(quotes + singles)

    def _double_quotes(self, start: int, end: int, opaque: Sequence[Range]) -> list[Range]:
        text = self._text
        quotes: list[Range] = []
        stack: list[tuple[int, int, str]] = []  # Position after the mark, class, mark.
        depth = [0] * 8
        closed = start
        for match in _DOUBLE.finditer(text, start, end):
            at, after = match.span()
            mark = _SAME.get(match[0].lower(), match[0])
            if is_inside(at, opaque):
                continue
            left = text[at - 1] if at > start else " "
            right = text[after] if after < end else " "
            kind = _CLASSES.get(mark, _TEX if mark in ("``", "''") else _HTML)
            opened_by = ""
            if depth[kind]:
                opened_by = next(opener for _, same, opener in reversed(stack) if same == kind)
            role = _role(mark, left, right, opened_by)
            if role == "open":
                stack.append((after, kind, mark))
                depth[kind] += 1
            elif role == "close" and depth[kind]:
                while True:
                    opened, popped_kind, _ = stack.pop()
                    depth[popped_kind] -= 1
                    if popped_kind == kind:
                        break
                if not stack:
                    quotes.append((opened, at))
                    closed = after
            elif role == "close" and not stack:
                # A mark that nothing opened.
                quotes.append((closed, at))
                closed = after
                self.between += self._since_open or ()
                self._since_open = None
        if stack:
            quotes.append((stack[0][0], end))
            self._since_open = []
        elif self._since_open is not None:
            self._since_open.append((start, end))
        return quotes

    def _single_quotes(self, start: int, end: int, opaque: Sequence[Range]) -> Iterator[Range]:
        text = self._text
        opened: int | None = None
        is_directed = False
        closing: int | None = None
        for match in _SINGLE.finditer(text, start, end):
            at, after, mark = match.start(), match.end(), match[0]
            if is_inside(at, opaque):
                continue
            left = text[at - 1] if at > start else " "
            right = text[after] if after < end else " "
            may_open = (
                not left.isalnum()
                and left not in _AFTER_QUOTE
                and not right.isspace()
                and not _ELISION.match(text, after, end)
            )
            if may_open and (opened is None or closing is not None):
                if opened is not None and closing is not None:
                    yield opened, closing
                opened, closing, is_directed = after, None, mark in "‘‚"
            elif opened is not None and not left.isspace() and not right.isalnum():
                closing = at
                if left not in "sS":
                    # Not the apostrophe of a plural.
                    yield opened, closing
                    opened = closing = None
        if opened is not None and (closing is not None or is_directed):
            yield opened, end if closing is None else closing


def _role(mark: str, left: str, right: str, opened_by: str) -> Literal["open", "close", "none"]:
    """What a quotation mark does, from its neighbours and the mark that is open."""
    is_free_left = left.isspace() or left in _BEFORE_QUOTE
    is_free_right = right.isspace() or not (right.isalnum() or right in "([{“„«‹\"'‘$€£-−…*_`")
    if mark in "「『〝‟" or mark == "``":
        return "open"
    if mark in "」』〞〟" or mark == "''":
        return "close" if opened_by or mark != "''" else "none"
    if mark.startswith("<"):
        return "close" if mark.startswith("</") else "open"
    if mark == "„":
        return "open"
    if mark == "“":
        return "close" if opened_by == "„" and not is_free_left else "open"
    if mark in "«‹":
        return "close" if opened_by in ("»", "›") else "open"
    if mark in "”»›":
        if opened_by and not (opened_by == mark and is_free_left and not is_free_right):
            return "close"
        return "open" if is_free_left and not is_free_right else "close"
    if opened_by:
        return "open" if is_free_left and not is_free_right else "close"
    if left.isdigit() and (is_free_right or right in "x×"):
        return "none"  # Inches.
    return "close" if is_free_right and not left.isspace() else "open"


_CALLOUT = re.compile(r"[ \t]*(?:>[ \t]?)+\[!\w{1,20}\]")
ATTRIBUTION = re.compile(r"(?:[—–―]|--)[ \t]?\S")
_ENDS = ".!?…。！？؟।"
CLOSERS = "\"'”’»›)]}*_`」』＂"


def pieces_of(text: str, block: Block, marks: Sequence[CitationMark]) -> list[Range]:
    """The quoted parts of a blockquote: its paragraphs, cut at citations after a full stop."""
    paragraphs: list[Range] = []
    is_open = False
    for line in LINE.finditer(text, block.start, block.end):
        if not line[0]:
            continue
        match = QUOTE_MARKS.match(text, line.start(), line.end())
        start = match.end() if match else line.start()
        end = line.start() + len(line[0].rstrip())
        if start >= end or ATTRIBUTION.match(text, start, end):
            is_open = False
        elif is_open:
            paragraphs[-1] = paragraphs[-1][0], end
        else:
            paragraphs.append((start, end))
            is_open = True
    pieces: list[Range] = []
    number = 0
    for start, end in paragraphs:
        position = start
        while number < len(marks) and marks[number].start < end:
            mark = marks[number]
            number += 1
            if mark.start < position:
                continue
            before = text[position : mark.start].rstrip().rstrip(CLOSERS)
            if not before or before[-1] in _ENDS:
                pieces.append((position, mark.start))
                position = mark.end
        pieces.append((position, end))
    trimmed = [without_citations(text, piece, marks) for piece in pieces]
    return [piece for piece in trimmed if any(map(str.isalnum, text[slice(*piece)]))]


def is_callout(text: str, block: Block) -> bool:
    """Whether a blockquote is a note, as in ``> [!NOTE]``, and quotes nothing."""
    return _CALLOUT.match(text, block.start, block.end) is not None


def unwrapped(text: str, piece: Range, spans: Sequence[Range]) -> Range:
    """The quote in a blockquote that is wholly in quotation marks."""
    at = bisect_right(spans, (piece[0] + 2, 0))
    for start, end in spans[max(0, at - 1) : at + 1]:
        is_whole = start - piece[0] in (1, 2) and 0 <= piece[1] - end <= 2
        if is_whole and not any(map(str.isalnum, text[end : piece[1]])):
            return start, end
    return piece


def runs_of(block: Block, pieces: Sequence[Range], marks: Sequence[CitationMark]) -> list[Range]:
    """The sentences of a blockquote: up to the citation after each piece, or all of it."""
    runs: list[Range] = []
    start = block.start
    number = 0
    for _, next_piece in pairwise(pieces):
        stop = 0
        while number < len(marks) and marks[number].start < next_piece[0]:
            stop = marks[number].end
            number += 1
        if stop > start:
            runs.append((start, stop))
            start = stop
    return [*runs, (start, block.end)] if start < block.end else runs


def without_citations(text: str, span: Range, marks: Sequence[CitationMark]) -> Range:
    """A quote without citations and space at its ends."""
    start, end = span
    first = bisect_right(marks, (start, 0, ()))
    while True:
        while start < end and text[start].isspace():
            start += 1
        if first < len(marks) and marks[first].start == start and marks[first].end <= end:
            start = marks[first].end
            first += 1
        else:
            break
    last = bisect_right(marks, (end, 0, ())) - 1
    while True:
        while start < end and text[end - 1].isspace():
            end -= 1
        if last >= first and marks[last].end == end and marks[last].start >= start:
            end = marks[last].start
            last -= 1
        else:
            return start, end
