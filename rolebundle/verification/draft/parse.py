"""The parts of a draft that can be checked: sentences, quotes and citations. Pure.

A draft is split by its Markdown into blocks: paragraphs, items, rows of tables, headings,
blockquotes, code. A block of prose is split into sentences, none of which ends inside a quote; a
citation right after a full stop belongs to the sentence before it.

A quote is text between quotation marks, or a blockquote that is no callout (``[!NOTE]``). A mark
without its partner quotes to the end, or from the beginning, of its block, so that a missing mark
hides nothing. Of nested quotes only the outermost is reported. Single marks quote only beside
spaces or punctuation, because they are apostrophes as well.

Every step is linear in the length of the draft, whatever its characters are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rolebundle.verification.draft.marks import Citation, code_spans, citations_in, is_inside, merged

BlockKind = Literal["prose", "item", "heading", "code", "row", "header", "quote", "definition"]
Range = tuple[int, int]


class Sentence(NamedTuple):
    """A sentence of the draft, an item of a list, or a row of a table, with what is checked in it.

    Attributes:
        start, end, text: the range and the text.
        has_content: false for headings, code, questions and other text that states nothing.
        quotes: the ranges between quotation marks.
        citations: in order.
        header: the head of its table; empty for what is no row.
        is_code: whether it is a block of code.
    """

    start: int
    end: int
    text: str
    has_content: bool
    quotes: tuple[Range, ...] = ()
    citations: tuple[Citation, ...] = ()
    header: str = ""
    is_code: bool = False

    def prose(self, *, with_quotes: bool = False) -> str:
        """The text with spaces instead of its citations and quotes."""
        ranges = [(c.start, c.end) for c in self.citations] + ([] if with_quotes else [*self.quotes])
        text = self.text
        for start, end in ranges:
            first, last = max(0, start - self.start), min(len(text), end - self.start)
            text = text[:first] + " " * (last - first) + text[last:]
        return text


class Block(NamedTuple):
    """A range of the draft; it begins after the mark of an item, heading or definition."""

    kind: BlockKind
    start: int
    end: int
    header: str = ""


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_QUOTE_MARKS = re.compile(r"[ \t]*(?!>>> )(?:>[ \t]?)+")
_INDENTED = re.compile(r" {4}|\t")
_DEFINITION = re.compile(r" {0,3}\[\^?[^\]\[\s]{1,50}\]:[ \t]*")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`\r\n]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦▪]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_RULE = re.compile(r" {0,3}([-*_=])(?:[ \t]*\1)*$")
_MARKED: tuple[tuple[BlockKind, re.Pattern[str]], ...] = (
    ("heading", _HEADING), ("definition", _DEFINITION), ("item", _ITEM),
)  # fmt: skip
_CALLOUT = re.compile(r"[ \t]*(?:>[ \t]?)+\[!\w{1,20}\]")


def parse_draft(text: str) -> list[Sentence]:
    """The sentences of a draft, in order, with their quotes and citations."""
    blocks = _blocks(text)
    definitions: dict[str, tuple[Citation, ...]] = {}
    for block in blocks:
        if block.kind == "definition":
            label = text[text.rfind("[", 0, block.start) + 1 : text.rfind("]", 0, block.start)]
            definitions.setdefault(label, tuple(citations_in(text, block.start, block.end, {})))
    sentences: list[Sentence] = []
    before = ""
    for block in blocks:
        start, end = block.start, block.end
        if block.kind == "code":
            sentences.append(Sentence(start, end, text[start:end], False, is_code=True))
            before = ""
            continue
        cited = citations_in(text, start, end, definitions)
        opaque = merged([*((c.start, c.end) for c in cited), *code_spans(text, start, end)])
        is_quote = block.kind == "quote" and not _CALLOUT.match(text, start)
        quotes = [] if is_quote else [_trimmed(text, q, cited) for q in _quotes(text, block, opaque)]
        if is_quote:
            quotes = _blockquote(text, block, cited)
        quotes = [(first, last) for first, last in quotes if first < last]
        cited = [c for c in cited if not is_inside(c.start, quotes)]
        ranges = [*_sentences(text, block, quotes, opaque, cited)]
        if sentences and ranges and (
            (before == "lead-in" and block.kind == "quote")
            or (before == "quote" and block.kind == "prose" and cited and _names_source(text, block, cited))
        ):
            # What a quote is introduced with, or ends with, names its source.
            joined = sentences.pop()
            ranges[0] = joined.start, ranges[0][1]
            quotes, cited = [*joined.quotes, *quotes], [*joined.citations, *cited]
        for first, last in ranges:
            inside = tuple(q for q in quotes if first <= q[0] < last)
            own = tuple(c for c in cited if first <= c.start < last)
            sentence = Sentence(first, last, text[first:last], False, inside, own, block.header)
            states = block.kind == "quote" or _states_something(sentence, block.kind)
            sentences.append(sentence._replace(has_content=states))
        tail = sentences[-1].prose(with_quotes=True).rstrip(" *_") if ranges else ""
        before = "lead-in" if block.kind in ("prose", "item") and tail.endswith(":") else ""
        if is_quote and not cited:
            before = "quote"
    return sentences


# -- blocks ----------------------------------------------------------------------------------------


def _blocks(text: str) -> list[Block]:
    lines = [
        (match.start(), match.start() + len(match[0].rstrip()))
        for match in _LINE.finditer(text) if match[0]
    ]  # fmt: skip
    blocks: list[Block] = []
    is_open, header, number = False, "", 0
    unclosed: dict[str, int] = {}
    while number < len(lines):
        start, end = lines[number]
        line = text[start:end]
        last = _fence_end(text, lines, number, unclosed)
        number += 1
        if last:
            blocks.append(Block("code", start, lines[last][1]))
            is_open, header, number = False, "", last + 1
        elif line and not is_open and _INDENTED.match(line):
            if blocks and blocks[-1].kind == "code" and not text[blocks[-1].end : start].strip():
                blocks[-1] = blocks[-1]._replace(end=end)
            else:
                blocks.append(Block("code", start, end))
        elif not line or (is_open and "|" in line and "-" in line and set(line) <= set("|:- \t")):
            if line and blocks[-1].kind in ("row", "prose"):
                first = text.rfind("\n", 0, blocks[-1].end) + 1
                header = f"{text[first : blocks[-1].end]}\n{line}"
                blocks[-1] = blocks[-1]._replace(kind="header")
            else:
                header = ""
            is_open = False
        elif (rule := _RULE.match(line)) and (not is_open or rule[1] in "-="):
            if is_open and blocks[-1].kind == "prose":
                blocks[-1] = blocks[-1]._replace(kind="heading")  # Underlined text.
            is_open, header = False, ""
        elif line.lstrip().startswith("|") or (header and "|" in line):
            blocks.append(Block("row", start, end, header))
            is_open = True
        elif is_quoted := _QUOTE_MARKS.match(line):
            if is_open and blocks[-1].kind == "quote":
                blocks[-1] = blocks[-1]._replace(end=end)
            else:
                blocks.append(Block("quote", start, end))
            is_open, header = True, ""
        elif marked := next(((k, m) for k, p in _MARKED if (m := p.match(line))), None):
            kind, match = marked
            is_quoted = _QUOTE_MARKS.match(line, match.end())
            if match.end() < len(line):
                blocks.append(Block("quote" if is_quoted else kind, start + match.end(), end))
            is_open, header = kind != "heading" and match.end() < len(line), ""
        elif is_open and blocks[-1].kind in ("prose", "item", "definition"):
            blocks[-1] = blocks[-1]._replace(end=end)
        else:
            blocks.append(Block("prose", start, end))
            is_open, header = True, ""
    return blocks


def _fence_end(text: str, lines: Sequence[Range], first: int, unclosed: dict[str, int]) -> int:
    """The last line of the block of code that a line opens, or 0. An open fence is no fence."""
    opening = _FENCE.match(text[slice(*lines[first])])
    if not opening or len(opening[1]) >= unclosed.get(opening[1][0], 1_000_000):
        return 0
    for number in range(first + 1, len(lines)):
        line = text[slice(*lines[number])].strip()
        if line.startswith(opening[1]) and not line.strip(opening[1][0]):
            return number
    unclosed[opening[1][0]] = len(opening[1])
    return 0


# -- quotes ----------------------------------------------------------------------------------------

_DOUBLE = re.compile(r"[\"＂“”„‟❝❞«»‹›「」『』]|``|''|</?(?:q|blockquote)\b[^<>\n]*>|&(?:quot|ldquo|rdquo);")
_SAME = {"＂": '"', "&quot;": '"', "❝": "“", "❞": "”", "``": "“", "''": "”", "&ldquo;": "“", "&rdquo;": "”"}
_CLOSED_BY = {
    '"': '"', "“": "”", "„": "“”", "‟": "”", "«": "»", "‹": "›", "「": "」", "『": "』", "»": "«",
    "›": "‹", "”": "”", "<q>": ("</q>",),
}  # fmt: skip
_SINGLE = re.compile("['‘’‚‛]")
_ELISION = re.compile(r"(?:\d\ds?|tis|twas|em|til|till|cause|n|round|bout)\b", re.IGNORECASE)
_ATTRIBUTION = re.compile(r"(?:[—–―]|--)[ \t]?\S")
_CLOSERS = "\"'”’»›)]}*_`」』＂"


def _quotes(text: str, block: Block, opaque: Sequence[Range]) -> list[Range]:
    """The ranges between quotation marks, in order. A quote in a table does not leave its cell."""
    cells = [(block.start, block.end)]
    if block.kind in ("row", "header"):
        bars = [m.start() for m in re.compile(r"\|").finditer(text, block.start, block.end)]
        cells = [*zip([block.start, *(bar + 1 for bar in bars)], [*bars, block.end], strict=True)]
    found: list[Range] = []
    for start, end in cells:
        double = [*_double_quotes(text, start, end, opaque)]
        for first, last in zip([start, *(q[1] for q in double)], [*(q[0] for q in double), end], strict=True):
            found += _single_quotes(text, first, last, opaque)
        found += double
    return sorted(found)


def _double_quotes(text: str, start: int, end: int, opaque: Sequence[Range]) -> Iterator[Range]:
    opened, opener, depth, closed = -1, "", 0, start
    for match in _DOUBLE.finditer(text, start, end):
        at, after = match.span()
        if is_inside(at, opaque):
            continue
        mark = _SAME.get(match[0], match[0])
        if mark.startswith("<"):
            mark = "</q>" if mark[1] == "/" else "<q>"
        left, right = text[at - 1] if at > start else " ", text[after] if after < end else " "
        may_open = not right.isspace() and not left.isalnum() and (right.isalnum() or left in "([{" or left.isspace())
        if opened >= 0:
            if mark in _CLOSED_BY[opener] and not (mark in '"”»›' and opener == mark and may_open and left.isspace()):
                depth -= 1
                if not depth:
                    yield opened, at
                    opened, closed = -1, after
            elif mark == opener:
                depth += 1
        elif mark in _CLOSED_BY and (may_open or mark not in '"”»›'):
            opened, opener, depth = after, mark, 1
        elif not (mark == '"' and left.isdigit()):  # Inches.
            if right.isalnum() and left.isalnum() and mark == '"':
                opened, opener, depth = after, mark, 1
            else:
                yield closed, at  # A mark that nothing opened.
                closed = after
    if opened >= 0:
        yield opened, end


def _single_quotes(text: str, start: int, end: int, opaque: Sequence[Range]) -> Iterator[Range]:
    opened, closing, is_directed = -1, -1, False
    for match in _SINGLE.finditer(text, start, end):
        at, after = match.span()
        if is_inside(at, opaque):
            continue
        left, right = text[at - 1] if at > start else " ", text[after] if after < end else " "
        may_open = not (left.isalnum() or left in "'’)]}" or right.isspace() or _ELISION.match(text, after))
        if may_open and (opened < 0 or closing >= 0):
            if closing >= 0:
                yield opened, closing
            opened, closing, is_directed = after, -1, match[0] in "‘‚"
        elif opened >= 0 and not left.isspace() and not right.isalnum():
            closing = at
            if left not in "sS":  # Not the apostrophe of a plural.
                yield opened, closing
                opened = closing = -1
    if opened >= 0 and (closing >= 0 or is_directed):
        yield opened, closing if closing >= 0 else end


def _blockquote(text: str, block: Block, cited: Sequence[Citation]) -> list[Range]:
    """The paragraphs of a blockquote, cut at citations after a full stop."""
    parts: list[Range] = []
    is_open = False
    for line in _LINE.finditer(text, block.start, block.end):
        marks = _QUOTE_MARKS.match(text, line.start(), line.end())
        start, end = marks.end() if marks else line.start(), line.start() + len(line[0].rstrip())
        if start >= end or _ATTRIBUTION.match(text, start, end):
            is_open = False
            continue
        parts = [*parts[:-1], (parts[-1][0], end)] if is_open else [*parts, (start, end)]
        is_open = True
    pieces: list[Range] = []
    for start, end in parts:
        for citation in cited:
            if start < citation.start < end and text[start : citation.start].rstrip()[-1:] in ".!?…。\"”":
                pieces.append((start, citation.start))
                start = citation.end
        pieces.append((start, end))
    trimmed = [_trimmed(text, piece, cited) for piece in pieces]
    return [_without_marks(text, *piece) for piece in trimmed if any(map(str.isalnum, text[slice(*piece)]))]


def _without_marks(text: str, start: int, end: int) -> Range:
    """The quote in a blockquote that is wholly in quotation marks."""
    first, last = text[start], text[end - 1 : end]
    is_whole = first in _CLOSED_BY and last in _CLOSED_BY[first] and text.count(first, start, end) < 3  # noqa: PLR2004
    return (start + 1, end - 1) if is_whole and end - start > 1 else (start, end)


def _trimmed(text: str, span: Range, cited: Sequence[Citation]) -> Range:
    """A quote without citations and space at its ends."""
    start, end = span
    for citation in reversed(cited):
        if start <= citation.start < end <= citation.end + len(text[citation.end : end]) - len(text[citation.end : end].lstrip(" .\n\t")):
            end = citation.start
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


# -- sentences -------------------------------------------------------------------------------------

_STOP = re.compile(r"[.!?…]+|[。！？｡।॥؟۔]+")
_ABBREVIATIONS = frozenset(
    "e.g i.e eg ie cf vs viz dr mr mrs ms prof sr jr st mt ed eds approx ca est min max dept inc ltd "
    "co corp gen gov rev jan feb mar apr jun jul aug sep sept oct nov dec z.b d.h u.a bzw ggf usw "
    "evtl bspw inkl zzgl abs str tel vgl".split()
)
_BEFORE_NUMBERS = frozenset("no nos nr fig figs eq ref refs sec sect ch chap vol vols pp p art".split())
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
_MONTH = re.compile(r"\s+(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)", re.IGNORECASE)
_LEAD_IN_WORDS = 12
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def _sentences(
    text: str, block: Block, quotes: Sequence[Range], opaque: Sequence[Range], cited: Sequence[Citation]
) -> Iterator[Range]:
    """The sentences of a block. None ends inside a quote, code, a URL or a citation."""
    start, end = block.start, block.end
    if block.kind in ("row", "header", "heading", "quote"):
        yield start, end
        return
    inner = merged([*opaque, *quotes])
    after_citation = {c.start: c.end for c in cited}
    for match in _STOP.finditer(text, start, end):
        stop = match.end()
        if match.start() < start or (is_inside(match.start(), inner) and not is_end(text, stop, inner)):
            continue
        while stop < end and text[stop] in _CLOSERS:
            stop += 1
        after = _after_space(text, stop, end)
        has_citation = False
        while after in after_citation:
            has_citation, after = True, _after_space(text, after_citation[after], end)
        if after >= end:
            break
        is_wide = match[0][-1] in "。！？｡"
        if text[after].islower() or not (is_wide or has_citation or text[after - 1].isspace()):
            continue
        if match[0] == "." and not has_citation and is_abbreviation(text, match.start()):
            continue
        yield start, start + len(text[start:after].rstrip())
        start = after
    if start < end:
        yield start, end


def is_end(text: str, stop: int, ranges: Sequence[Range]) -> bool:
    """Whether only closing marks stand between a position and the end of the range around it."""
    _, last = ranges[bisect_right(ranges, (stop - 1, len(text))) - 1]
    return not text[stop:last].strip(_CLOSERS + " ")


def _after_space(text: str, at: int, end: int) -> int:
    while at < end and text[at].isspace():
        at += 1
    return at


def is_abbreviation(text: str, stop: int) -> bool:
    """Whether the full stop at ``stop`` follows an abbreviation or the number of a day."""
    word = (re.search(r"[\w.]*$", text[max(0, stop - 12) : stop]) or [""])[0].lower()
    following = text[stop + 1 : stop + 8]
    if word in _BEFORE_NUMBERS:
        return following.lstrip()[:1].isdigit()
    if word.isdigit():
        return len(word) <= 2 and _MONTH.match(following) is not None  # noqa: PLR2004
    return word in _ABBREVIATIONS or (word != "i" and _INITIALS.fullmatch(word) is not None)


def _names_source(text: str, block: Block, cited: Sequence[Citation]) -> bool:
    """Whether a paragraph only names the source of the blockquote before it."""
    sentence = Sentence(block.start, block.end, text[block.start : block.end], False, (), tuple(cited))
    return bool(_ATTRIBUTION.match(sentence.text)) or not _WORD.search(sentence.prose())


def _states_something(sentence: Sentence, kind: BlockKind) -> bool:
    """Whether a sentence states something that can be true or false."""
    prose = sentence.prose(with_quotes=True)
    words = _WORD.findall(re.sub(r"(?:https?://|www\.)\S+", " ", prose))
    ending = prose.rstrip(" \t\r\n*_\"'”’)»")
    has_digit = any(character.isdigit() for word in words for character in word)
    if kind == "header" or ending.endswith(("?", "？", "؟")):
        return False
    if kind == "heading" and not ending.endswith((".", "!", "。")):
        return False
    if ending.endswith((":", "：")) and len(words) <= _LEAD_IN_WORDS:
        return has_digit
    return len(words) > 1 or has_digit or any(len(w) > 3 and not w.isascii() for w in words)  # noqa: PLR2004


_BREAK = re.compile(
    r"[.!?][\"')\]”’»*_`]*\s+(?=[^\sa-z])|[。！？]|\n[ \t]*\n\s*"
    r"|\n(?=[ \t]*(?:[-*•+|#>]|\d+[.)])[ \t])|(?:^|(?<=\n))[ \t]*#[^\n]*\n"
)


@lru_cache(maxsize=1024)
def sentence_starts(content: str) -> tuple[int, ...]:
    """Where the sentences, items and lines of a passage begin; the first is 0."""
    breaks = (m for m in _BREAK.finditer(content))
    return 0, *(
        m.end() for m in breaks
        if not (m[0][0] == "." and (is_abbreviation(content, m.start()) or _is_number(content, m.start())))
    )  # fmt: skip


def _is_number(content: str, stop: int) -> bool:
    return re.search(r"(?:^|\n)[ \t]*\d{1,4}$", content[max(0, stop - 9) : stop]) is not None
