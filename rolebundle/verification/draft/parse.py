"""The parts of a draft that can be checked: sentences, quotes and citations. Pure.

A draft is split into blocks by its Markdown: paragraphs, items of lists, rows of tables, headings,
blockquotes, code. Each block of prose is split into sentences. A sentence never ends inside a
quote, and a citation right after a full stop belongs to the sentence before it.

A quote is text between quotation marks, or a blockquote that is no callout (``[!NOTE]``). A mark
without its partner quotes to the end, or from the beginning, of its block, so that a missing mark
hides nothing. Of nested quotes only the outermost is reported; it contains the others. Single marks
quote only beside spaces or punctuation, because they are apostrophes as well.

A citation is ``[3]``, ``[1, 3]``, ``[2-4]``, ``[^3]``, ``path:start-end``, ``[path:line]``,
``path#L3-L9``, a chunk id, ``(path, p. 3)``, or a Markdown link or footnote that names one of
these. A citation in the middle of a quote is part of the quoted text.

Every step is linear in the length of the draft, whatever its characters are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rolebundle.text.figures.quantities import words_of
from rolebundle.verification.draft.parse_blocks import (
    Block,
    BlockKind,
    Range,
    blocks_of,
    is_inside,
    merged,
)
from rolebundle.verification.draft.parse_citations import (
    LINK,
    URL,
    CitationKind,
    CitationMark,
    citations_of,
    code_spans,
    definitions_of,
)
from rolebundle.verification.draft.parse_quotes import (
    ATTRIBUTION,
    CLOSERS,
    Quotation,
    is_callout,
    pieces_of,
    runs_of,
    unwrapped,
    without_citations,
)


class DraftSentence(NamedTuple):
    """A sentence of the draft, of an item of a list, or a row of a table.

    ``start`` and ``end`` are characters of the draft. ``has_content`` is false for headings, code,
    questions, greetings and other text that states nothing. A heading with a full stop is a
    sentence. A blockquote belongs to the sentence before it if that ends with a colon.
    """

    start: int
    end: int
    text: str
    has_content: bool


class DraftQuote(NamedTuple):
    """Quoted text: the range between the quotation marks, and the number of its sentence.

    ``text`` is the draft's text of the range; in a blockquote with the marks of its lines.
    """

    start: int
    end: int
    text: str
    sentence: int


class DraftCitation(NamedTuple):
    """A citation: its range, its kind, what it names, and the number of its sentence.

    ``target`` is ``3`` for ``[3]``, ``path:start-end``, a chunk id, or ``NAME#page=3``, where
    ``NAME`` is a path or a title. ``[2-4]`` and ``[1, 3]`` are one citation for each number, with
    the same range.
    """

    start: int
    end: int
    kind: CitationKind
    target: str
    sentence: int


class Draft(NamedTuple):
    """A parsed draft. Sentences do not overlap; quotes and citations are in order."""

    text: str
    sentences: tuple[DraftSentence, ...]
    quotes: tuple[DraftQuote, ...]
    citations: tuple[DraftCitation, ...]

    def texts(self) -> list[str]:
        """The texts of the sentences with spaces instead of their citations."""
        texts = [sentence.text for sentence in self.sentences]
        for number, citations in groupby(self.citations, key=lambda citation: citation.sentence):
            start, text = self.sentences[number].start, texts[number]
            pieces, end = [], 0
            # Several citations may have one range: [1, 3].
            for first, last in dict.fromkeys((c.start - start, c.end - start) for c in citations):
                if end <= first < last <= len(text):
                    pieces += [text[end:first], " " * (last - first)]
                    end = last
            texts[number] = "".join((*pieces, text[end:]))
        return texts


def parse_draft(text: str) -> Draft:
    """The sentences, quotes and citations of a draft."""
    blocks = blocks_of(text)
    definitions = definitions_of(text, blocks)
    quotation = Quotation(text)
    sentences: list[DraftSentence] = []
    quotes: list[Range] = []
    marks: list[CitationMark] = []
    before = ""
    for block in blocks:
        if block.kind == "code":
            sentences.append(DraftSentence(*block[1:], text[block.start : block.end], False))
            before = ""
            continue
        cited = citations_of(text, block, definitions)
        opaque = _opaque(text, block, cited)
        spans = quotation.ranges(block, opaque)
        if block.kind == "quote" and not is_callout(text, block):
            pieces = pieces_of(text, block, cited)
            spans = [unwrapped(text, piece, spans) for piece in pieces]
            ranges = runs_of(block, pieces, cited)
        else:
            spans = [without_citations(text, span, cited) for span in spans]
            ranges = list(_sentence_ranges(text, block, spans, opaque, cited))
        spans = [span for span in spans if span[0] < span[1]]
        cited = _outside(cited, spans)
        has_joined = before == "quote" and _is_source_line(text, block, cited)
        if has_joined or (before == "lead-in" and block.kind == "quote"):
            # What a quote is introduced with, or ends with, names its source.
            ranges[0] = (sentences.pop().start, ranges[0][1])
        for start, end in ranges:
            content = block.kind == "quote" or _has_content(text, start, end, block.kind, cited)
            sentences.append(DraftSentence(start, end, text[start:end], content))
        before = _is_before(text, block, cited)
        quotes += spans
        marks += cited
    quotes += quotation.between
    starts = [sentence.start for sentence in sentences]

    def number(position: int) -> int:
        return max(0, bisect_right(starts, position) - 1)

    return Draft(
        text,
        tuple(sentences),
        tuple(
            DraftQuote(start, end, text[start:end], number(start))
            for start, end in sorted(set(quotes))
        ),
        tuple(
            DraftCitation(mark.start, mark.end, kind, target, number(mark.start))
            for mark in marks
            for kind, target in mark.targets
        ),
    )


# Only what is surely not shown: a tag with proper attributes.
_TAG = re.compile(
    r"</?(?!(?:q|blockquote)\b)[a-zA-Z][\w-]*"
    r"(?:[ \t]+[\w:-]+(?:=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'<>=]+))?)*[ \t]*/?>",
    re.IGNORECASE,
)

_STOP = re.compile(r"[.!?…]+|[。！？｡।॥؟۔]+")
_WIDE_STOPS = frozenset("。！？｡")
_ABBREVIATIONS = frozenset(
    """
    e.g i.e eg ie cf vs viz al etc dr mr mrs ms prof sr jr st mt ed eds approx ca est min max dept
    inc ltd co corp gen gov rev
    hon capt col lt sgt jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
    z.b d.h u.a bzw ggf usw evtl bspw inkl zzgl abs str tel vgl m.e o.g s.o s.u
    """.split()
)
_BEFORE_NUMBERS = frozenset(
    "no nos nr fig figs eq eqs ref refs sec sect ch chap vol vols pp p art".split()
)
"""Abbreviations only before a digit: "no" also ends sentences."""
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
_WORD_AFTER = re.compile(r"\s*([^\W_]{1,12})")
_WORD_BEFORE = re.compile(r"[\w.]*$")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_STATES_NOTHING = re.compile(
    r"(?:hello|hi|hey|dear|thanks|thank you|sure|certainly|of course|great question|sorry"
    r"|best regards|kind regards|regards|sincerely|cheers|let me know|hope this helps"
    r"|i hope this helps|please let me know|feel free)\b",
    re.IGNORECASE,
)
_GREETING_WORDS = 12
_LEAD_IN_WORDS = 12


def _sentence_ranges(
    text: str,
    block: Block,
    quotes: Sequence[Range],
    opaque: Sequence[Range],
    marks: Sequence[CitationMark],
) -> Iterator[Range]:
    """The sentences of a block. None ends inside a quote, code, a URL or a citation."""
    start, end = block.start, block.end
    if block.kind in ("row", "header", "heading", "quote"):
        yield start, end
        return
    closed = merged([*opaque, *((first - 1, last + 1) for first, last in quotes)])
    inner = [(first + 1, last) for first, last in closed if first + 1 < last]
    number = 0
    for match in _STOP.finditer(text, start, end):
        stop = match.end()
        if match.start() < start:
            continue
        while stop < end and text[stop] in CLOSERS:
            stop += 1
        after = _skip_space(text, stop, end)
        # Citations right after the full stop.
        while number < len(marks) and marks[number].start < after:
            number += 1
        cited = number
        while cited < len(marks) and marks[cited].start == after:
            after = _skip_space(text, marks[cited].end, end)
            cited += 1
        has_citation = cited > number
        if after >= end:
            break
        if text[after].islower() or is_inside(after, inner):
            continue
        is_wide = match[0][-1] in _WIDE_STOPS
        if not (is_wide or has_citation or text[after - 1].isspace()):
            continue
        if match[0] == "." and not has_citation and is_abbreviation(text, match.start(), start):
            continue
        yield start, start + len(text[start:after].rstrip())
        start = after
    if start < end:
        yield start, end


def _skip_space(text: str, at: int, end: int) -> int:
    while at < end and text[at].isspace():
        at += 1
    return at


def is_abbreviation(text: str, stop: int, start: int) -> bool:
    """Whether the full stop at ``stop`` follows an abbreviation; ``start`` bounds the search."""
    match = _WORD_BEFORE.search(text, max(start, stop - 12), stop)
    word = match[0].lower() if match else ""
    if word in ("etc", "al"):
        return False
    after = _WORD_AFTER.match(text, stop + 1)
    following = after[1] if after else ""
    if word in _BEFORE_NUMBERS:
        return following[:1].isdigit()
    if word.isdigit() and len(word) <= 2 and following.lower() in words_of("de").months:
        return True  # "3. März"
    return word in _ABBREVIATIONS or (word != "i" and _INITIALS.fullmatch(word) is not None)


def _has_content(
    text: str, start: int, end: int, kind: BlockKind, marks: Sequence[CitationMark]
) -> bool:
    """Whether a range states something that can be true or false."""
    if kind == "header":
        return False
    words = _words(text, start, end, marks)
    sentence = text[start:end].rstrip(" \t\r\n*_\"'”’)»")
    if kind == "heading" and not sentence.endswith((".", "!", "。")):
        return False
    has_digit = any(any(map(str.isdigit, word)) for word in words)
    if len(words) < 2 and not has_digit and not _is_wide(words):
        return False
    if sentence.endswith(("?", "？", "؟")) or has_digit:
        return has_digit and not sentence.endswith(("?", "？", "؟"))
    if sentence.endswith((":", "：")):
        return len(words) > _LEAD_IN_WORDS
    return not (len(words) <= _GREETING_WORDS and _STATES_NOTHING.match(text, start, end))


def _is_wide(words: Sequence[str]) -> bool:
    return any(len(word) > 3 and not word.isascii() for word in words)


def _words(text: str, start: int, end: int, marks: Sequence[CitationMark]) -> list[str]:
    """The words of a range outside citations and URLs."""
    first = bisect_right(marks, (start, 0, ()))
    words: list[str] = []
    position = start
    for mark in [*marks[first : bisect_right(marks, (end, 0, ()))], CitationMark(end, end, ())]:
        if position < mark.start:
            words += _WORD.findall(URL.sub(" ", text[position : min(mark.start, end)]))
        position = max(position, mark.end)
    return words


def _opaque(text: str, block: Block, marks: Sequence[CitationMark]) -> list[Range]:
    """Ranges whose punctuation is not the prose's: code, URLs, citations and tags. In order."""
    start, end = block.start, block.end
    spans = code_spans(text, start, end)
    spans += [mark[:2] for mark in marks]
    for pattern in (URL, _TAG):
        spans += [match.span() for match in pattern.finditer(text, start, end)]
    # A link's target, not its text.
    spans += [(match.end(1), match.end()) for match in LINK.finditer(text, start, end)]
    return merged(spans)


def _outside(marks: Sequence[CitationMark], spans: Sequence[Range]) -> list[CitationMark]:
    spans = sorted(spans)
    return [mark for mark in marks if not is_inside(mark.start, spans)]


def _is_source_line(text: str, block: Block, marks: Sequence[CitationMark]) -> bool:
    """Whether a paragraph only names the source of the blockquote before it."""
    if block.kind != "prose" or not marks:
        return False
    if ATTRIBUTION.match(text, block.start, block.end):
        return True
    return not _words(text, block.start, block.end, marks)


def _is_before(text: str, block: Block, marks: Sequence[CitationMark]) -> str:
    """What a block is to the next one: ``quote`` without a source, ``lead-in``, or nothing."""
    if block.kind == "quote":
        return "" if marks else "quote"
    _, end = without_citations(text, (block.start, block.end), marks)
    is_text = block.kind in ("prose", "item")
    return "lead-in" if is_text and text[block.start : end].rstrip("*_ ").endswith(":") else ""
