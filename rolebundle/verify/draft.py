"""The sentences of a draft with their quotes and citations. Pure.

A draft is split by its Markdown into blocks: paragraphs, items, rows of tables, headings,
blockquotes. Blocks of code are left out. A block of prose is split into sentences, none of which
ends inside a quote; a citation right after a full stop belongs to the sentence before it.

A quote is text between quotation marks, or a blockquote that is no callout (``[!NOTE]``). A mark
without its partner quotes to the end, or from the beginning, of its block, so that a missing mark
hides nothing. Of nested quotes only the outermost is reported. Single marks quote only beside
spaces or punctuation, because they are apostrophes as well.

A citation is ``[3]``, ``[1, 3]``, ``[2-4]``, ``[^3]``, ``(source 3)``, ``³``, ``path:start-end``,
``[path:line]``, a chunk id, or ``[Smith 2021]``, which is known to nobody. The name of a known file
may have any signs, stand in quotation marks, and cite the whole file in brackets or parentheses.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeVar

from rolebundle.retrieval.passage_text import shown_name
from rolebundle.storage.corpus import joined
from rolebundle.text.references import Lines, parse_lines
from rolebundle.text.spellings import composed
from rolebundle.text.tokens import Range, is_inside
from rolebundle.text.words import WORD, is_no_sentence_end

# -- citations -------------------------------------------------------------------------------------

CitationKind = Literal["number", "locator", "chunk_id", "document", "work"]
_MAX_EXPANDED = 10


class Citation(NamedTuple):
    """A citation: its range, its kind, and what it names.

    ``target`` is ``3`` for ``[3]``, ``path:start-end``, a chunk id, a path, or the name of a work.
    ``[2-4]`` and ``[1, 3]`` are one citation for each number, with the same range.
    """

    start: int
    end: int
    kind: CitationKind
    target: str

    @property
    def lines(self) -> Lines | None:
        """The path and the lines of ``path:start-end``; ``None`` for other targets."""
        return parse_lines(self.target) if self.kind == "locator" else None


_NUMBERS = r"\^?\d{1,4}(?:\s?[-–,;]\s?\^?\d{1,4})*"
_SOURCE = r"(?:sources?|passages?|refs?|references?|citations?|chunks?)\s?[:#]?\s?"
_NUMBERED = re.compile(rf"(?:(?:see )?({_SOURCE}))?({_NUMBERS})", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_WORK = re.compile(
    r"(?!(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*,? \d)"
    r"[A-Z][^\W\d_]+(?:(?:,| and| &| et al\.?)?(?: [A-Z][^\W\d_]+)?){0,3},? (?:19|20)\d\d[a-z]?"
)
_ENCLOSED = re.compile(r"\[([^\[\]]{1,300})\]|\(([^()\[\]]{1,300})\)")
_RAISED = re.compile(r"(?:(?<=[.,;:!?\"”’)])|(?<=[^\W\d_]{4}))[¹²³⁴-⁹][⁰¹²³⁴-⁹]?(?![\w⁰¹²³⁴-⁹/])")
_LINE_NUMBERS = re.compile(r"(\d{1,9})(?:[-–](\d{1,9}))?")
_HASH = re.compile(r"[0-9a-f]{10}(?:-\d{1,6})?")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
_QUOTATION = re.compile('["“”„«»「」]')
_TOKEN = re.compile(r"[^\s\[\](){}<>\"'`“”„‘’«»‹›|,;*]+")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|“”«»\[\]()]+")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
Target = tuple[CitationKind, str]

_NAME_END = re.compile(r"(?<=\S)(?=[\"”`]?(?::\d|\s?[)\],;]|#[0-9a-f]{10}))")
_BEFORE_NAME = re.compile(rf"[(\[]\s?(?:see )?(?:{_SOURCE})?\Z|^\s?[,;]\s?\Z", re.IGNORECASE)
_LONGEST_BEFORE = 30
_AFTER_NAME = re.compile(
    rf"([\"”`]?)((?::{_LINE_NUMBERS.pattern}|#({_HASH.pattern}))?)(?!\w)([\"”`]?)(?:\s?([)\],;]))?"
)
NAME_ENDING = 4
"""How many of the last characters of a name are looked up first; a shorter name is not searched."""


def name_endings(text: str) -> frozenset[str]:
    """The last characters of all that may be a cited name."""
    ends = (match.end() for match in _NAME_END.finditer(text))
    return frozenset(text[max(0, end - NAME_ENDING) : end] for end in ends)


class FileNames:
    """The names of files that a draft may cite, and the path that each one means."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._names = dict[str, tuple[str, str]]()
        lengths = defaultdict[str, set[int]](set)
        for name, path in paths.items():
            shown = shown_name(name, 0).removeprefix('"').removesuffix('"')
            for spelling in (name, composed(name), shown):
                self._names.setdefault(spelling, (name, path))
                lengths[spelling[-NAME_ENDING:]].add(len(spelling))
        self._lengths = {ending: sorted(of, reverse=True) for ending, of in lengths.items()}

    def citations(self, text: str, start: int, end: int, opaque: Sequence[Range]) -> list[Citation]:
        """The citations of a range by these names; of names that end at one place, the longest.

        A name alone cites if it stands first in parentheses or brackets, or after another citation.
        One with lines cites everywhere but in the opaque ranges, and after words in parentheses.
        """
        found = list[Citation]()
        if not self._names:
            return found
        enclosed = (m.span() for m in _ENCLOSED.finditer(text, start, end))
        hidden, last = joined(sorted([*opaque, *enclosed]), -1), start
        for at in (m.end() for m in _NAME_END.finditer(text, start, end)):
            lengths = self._lengths.get(text[max(start, at - NAME_ENDING) : at], ())
            firsts = (at - length for length in lengths if at - length >= last)
            first = next((first for first in firsts if text[first:at] in self._names), at)
            if first < at and (citation := self._citation(text, first, at, last, end, hidden)):
                found.append(citation)
                last = citation.end
        return found

    def _citation(
        self, text: str, first: int, at: int, last: int, end: int, hidden: Sequence[Range]
    ) -> Citation | None:
        """What the name from ``first`` to ``at`` cites, after a citation that ends at ``last``."""
        after = _AFTER_NAME.match(text, at, end)
        if after is None:
            return None
        quote, suffix, start_line, end_line, digest, closing, following = after.groups(default="")
        is_quoted = first > last and text[first - 1] in '"“„`' and bool(quote or closing)
        begin, stop = first - is_quoted, after.end(6 if is_quoted else 2)
        before = text[max(last, begin - _LONGEST_BEFORE) : begin]
        opener = _BEFORE_NAME.search(before)
        name, path = self._names[text[first:at]]
        if opener is None:
            is_part = is_inside(begin, hidden) or re.search(r"[\w/.-]\Z", before)
            is_citation = bool(suffix) and not is_part
        else:
            is_citation = bool(suffix or (following and _is_path(name)))
            begin -= len(opener[0].lstrip(" ,;"))
            stop = after.end(7) if following in (")", "]") else stop
        if not is_citation or (quote and not is_quoted):
            return None
        if digest:
            return Citation(begin, stop, "chunk_id", name + suffix)
        if suffix:
            return Citation(begin, stop, "locator", f"{path}:{start_line}-{end_line or start_line}")
        return Citation(begin, stop, "document", path)


def citations_in(
    text: str, start: int, end: int, names: FileNames
) -> tuple[list[Citation], list[Range]]:
    """The citations of a range, and the ranges in it whose punctuation is not the prose's.

    The latter are citations, code and addresses. Both are in order.
    """
    opaque = [m.span() for pattern in (_URL, CODE) for m in pattern.finditer(text, start, end)]
    found = [*names.citations(text, start, end, opaque)]
    named = tuple(found)
    for pattern in (_ENCLOSED, _RAISED, _TOKEN):
        excluded = joined(sorted([*opaque, *(citation[:2] for citation in found)]), -1)
        for match in pattern.finditer(text, start, end):
            if not (is_inside(match.start(), excluded) or _within(named, *match.span())):
                found += _cited_by(pattern, match)
    opaque = joined(sorted([*opaque, *(citation[:2] for citation in found)]), -1)
    return sorted(found, key=lambda citation: citation[:2]), opaque


def _cited_by(pattern: re.Pattern[str], match: re.Match[str]) -> Iterator[Citation]:
    """What a match of a pattern cites."""
    first, last = match.span()
    targets: list[Target]
    if pattern is _RAISED:
        targets = [("number", unicodedata.normalize("NFKC", match[0]))]
    elif pattern is _TOKEN:
        token = match[0].rstrip(".:!?…")
        last = first + len(token)
        targets = [*_places(token, is_marked=False)]
    else:
        targets = _enclosed((match[1] or match[2]).strip(), is_bracket=match[1] is not None)
    yield from (Citation(first, last, *target) for target in dict.fromkeys(targets))


def _enclosed(inner: str, *, is_bracket: bool) -> list[Target]:
    """What the text in brackets or parentheses cites, if all of it does."""
    number = _NUMBERED.fullmatch(inner)
    if number and (number[1] or (is_bracket and not _YEAR.fullmatch(inner))):
        return [*_numbers(number[2])]
    if is_bracket and _WORK.fullmatch(inner):
        return [("work", inner)]
    places = [[*_places(part.strip(' \t`"'), is_marked=True)] for part in re.split("[,;]", inner)]
    return [place for of_part in places for place in of_part] if all(places) else []


def _numbers(text: str) -> Iterator[Target]:
    for part in re.split("[,;]", text.replace("^", "")):
        first, last = (int(re.split("[-–]", part)[at]) for at in (0, -1))
        if 0 <= last - first < _MAX_EXPANDED:
            yield from (("number", str(number)) for number in range(first, last + 1))
        else:
            yield "number", part.strip()


def _places(token: str, *, is_marked: bool) -> Iterator[Target]:
    """The locator or chunk id that a token is.

    ``is_marked``: it stands in brackets, so that forms which are common in prose count as well.
    """
    if not 3 <= len(token) <= 300 or "://" in token or _QUOTATION.search(token):
        return
    path, _, anchor = token.rpartition("#")
    is_name = is_marked and re.fullmatch(r"[\w.-]{1,80}", anchor) and " " not in path
    if path and (_HASH.fullmatch(anchor) or is_name):
        yield "chunk_id", token
        return
    path, _, lines = token.rpartition(":")
    match = _LINE_NUMBERS.fullmatch(lines)
    if match and _is_path(path) and (match[2] or is_marked):
        yield "locator", f"{path}:{match[1]}-{match[2] or match[1]}"


def _is_path(name: str) -> bool:
    return any(map(str.isalpha, name)) and ("/" in name or _EXTENSION.search(name) is not None)


# -- the parts of a draft --------------------------------------------------------------------------

Kind = Literal["prose", "item", "heading", "row", "header", "quote"]


class Sentence(NamedTuple):
    """A sentence of the draft, an item of a list, or a row of a table, with what is checked in it.

    Attributes:
        has_content: false for headings, questions and other text that states nothing.
        quotes: the ranges between quotation marks.
        header: the head of its table.
        block_start: where its paragraph, item or row begins.
    """

    start: int
    end: int
    text: str
    kind: Kind
    has_content: bool = False
    quotes: tuple[Range, ...] = ()
    citations: tuple[Citation, ...] = ()
    header: str = ""
    block_start: int = 0

    def prose(self, *, with_quotes: bool = False) -> str:
        """The text with spaces instead of its citations and quotes."""
        text = self.text
        for start, end in (*(c[:2] for c in self.citations), *(() if with_quotes else self.quotes)):
            first, last = max(0, start - self.start), min(len(text), end - self.start)
            text = text[:first] + " " * (last - first) + text[last:]
        return text


_Span = TypeVar("_Span", bound=tuple[Any, ...])


def parse_draft(text: str, names: FileNames) -> Iterator[Sentence]:
    """The sentences of a draft, in order, with their quotes and citations."""
    for block in _blocks(text):
        for first, last in _pieces(text, block.start, block.end, (), _MAX_BLOCK):
            part = block._replace(
                start=first, end=last, text=text[first:last], block_start=block.start
            )
            yield from _sentences_of_block(text, part, names)


def _sentences_of_block(text: str, block: Sentence, names: FileNames) -> Iterator[Sentence]:
    start, end = block.start, block.end
    cited, opaque = citations_in(text, start, end, names)
    if block.kind == "quote" and not _CALLOUT.match(block.text):
        marks = (m.span() for m in _QUOTE_CUT.finditer(text, start, end))
        cuts = joined(sorted([*(c[:2] for c in cited), *marks]), -1)
        edges = [start, *(at for cut in cuts for at in cut), end]
        pieces = zip(edges[::2], edges[1::2], strict=True)
        quotes = [_unmarked(text, *_trimmed(text, *piece, {}, {})) for piece in pieces]
    else:
        after, before = {c.start: c.end for c in cited}, {c.end: c.start for c in cited}
        quotes = [_trimmed(text, *q, after, before) for q in _quotes(text, block, opaque)]
    quotes = [(a, b) for a, b in quotes if any(map(str.isalnum, text[a:b]))]
    cited = [citation for citation in cited if not is_inside(citation.start, quotes)]
    inner = joined(sorted([*opaque, *quotes]), -1)
    for whole in _ranges(text, block, inner, cited):
        for first, last in _pieces(text, *whole, inner, _MAX_SENTENCE):
            sentence = block._replace(
                start=first, end=last, text=text[first:last],
                quotes=tuple(_within(quotes, first, last)),
                citations=tuple(_within(cited, first, last)),
            )  # fmt: skip
            yield sentence._replace(has_content=_states_something(sentence))


def _within(spans: Sequence[_Span], first: int, last: int) -> Sequence[_Span]:
    """The spans, of spans in their order, that begin in a range."""
    return spans[slice(*(bisect_left(spans, at, key=itemgetter(0)) for at in (first, last)))]


# -- blocks ----------------------------------------------------------------------------------------

_LINE_END = re.compile(r"\r\n?|\n|\Z")
_QUOTE_MARKS = re.compile(r"[ \t]*(?!>>> )(?:>[ \t]?)+")
_QUOTE_CUT = re.compile(
    r"(?m:^[ \t]*(?:>[ \t]?)+(?:$|(?:[—–―]|--|\(?source:)[ \t]?\S[^\r\n]*))"
    r"|\(?source:[ \t]*(?=\[)",
    re.I,
)
_CALLOUT = re.compile(r"[ \t]*(?:>[ \t]?)+\[!\w{1,20}\]")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[^`\r\n]*$")
_RULE = re.compile(r" {0,3}([-*_=])(?:[ \t]*\1)*$")
_MARKED: dict[Kind, re.Pattern[str]] = {
    "heading": re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)"),
    "item": re.compile(
        r"[ \t]*(?:[-*+•‣◦▪]|\d{1,9}[.)]|\[\^?[\w.-]{1,50}\]:)[ \t]+(?:\[[ xX]\][ \t]+)?"
    ),
}


def _blocks(text: str) -> Iterator[Sentence]:
    """The blocks of a text, in order. They begin after the mark of an item or heading."""
    lines = [*pairwise([0, *(match.end() for match in _LINE_END.finditer(text))])]
    block: Sentence | None = None
    is_open, table, number, searched = False, "", 0, dict[str, int]()
    while number < len(lines):
        start, end = lines[number]
        line = text[start:end].rstrip()
        end = start + len(line)
        code_end = _fence_end(text, lines, number, searched)
        number += 1
        rule = _RULE.match(line)
        marked = next(
            ((k, m) for k, pattern in _MARKED.items() if (m := pattern.match(line))), None
        )
        kind: Kind = "prose"
        begin, header = start, ""
        if block and is_open and "|" in line and "-" in line and set(line) <= set("|:- \t"):
            head = text[text.rfind("\n", 0, block.end) + 1 : block.end]
            table, is_open = f"{head}\n{line}"[:_MAX_SENTENCE], False
            block = block._replace(kind="header")
            continue
        if not line or (rule and (not is_open or rule[1] in "-=")):
            is_open, table = False, ""
            continue
        if code_end:
            number, is_open, table = code_end + 1, False, ""
            continue
        if line.lstrip().startswith("|") or (table and "|" in line):
            kind, header = "row", table
        elif _QUOTE_MARKS.match(line):
            kind = "quote"
        elif marked:
            kind, match = marked
            begin = start + match.end()
            kind = "quote" if _QUOTE_MARKS.match(line, match.end()) else kind
        continued = ("prose", "item") if kind == "prose" else ("quote",) * (kind == "quote")
        is_next = is_open and begin == start
        if is_next and block and block.kind in continued and end - block.start < _MAX_BLOCK:
            block = block._replace(end=end)
        elif begin < end:
            if block:
                yield block
            block = Sentence(begin, end, "", kind, header=header)
        is_open, table = kind != "heading" and begin < end, table if kind == "row" else ""
    if block:
        yield block


def _fence_end(text: str, lines: Sequence[Range], first: int, searched: dict[str, int]) -> int:
    """The last line of the block of code that a line opens, or 0. An open fence is no fence.

    ``searched``: fence → the line before which no line closes it.
    """
    opening = _FENCE.match(text, *lines[first])
    if opening is None:
        return 0
    fence = opening[1]
    last = min(len(lines), first + _MAX_CODE_LINES)
    for number in range(max(first + 1, searched.get(fence, 0)), last):
        line = text[slice(*lines[number])].strip()
        if line.startswith(fence) and not line.strip(fence[0]):
            return number
    searched[fence] = last
    return 0


# -- quotes ----------------------------------------------------------------------------------------

_DOUBLE = re.compile('["“”„‟«»‹›「」『』]')
_CLOSED_BY = {marks[0]: marks[1:] for marks in '"" “” „“” ‟” «» ‹› 「」 『』 »« ›‹ ””'.split()}
"""Opening mark → the marks that close it."""
_EITHER = '"”»›'  # These open or close.
_ELISION = r"(?:\d\ds?|tis|twas|em|til|till|cause|n|round|bout)\b"
_IN_SINGLE = r"(?:[^'‘’‚‛]|(?<=[^\W_])['’])+?"
_SINGLE = re.compile(
    rf"(?<![^\W_'’)\]}}])['‘‚‛](?!\s|{_ELISION})"
    # After an s the mark may be the apostrophe of a plural.
    rf"({_IN_SINGLE}(?<![\ssS])|{_IN_SINGLE}(?<!\s))['‘’](?![^\W_])",
    re.IGNORECASE,
)
_CLOSERS = "\"'”’»›)]}*_`」』 "


def _quotes(text: str, block: Sentence, opaque: Sequence[Range]) -> Iterator[Range]:
    """The ranges between quotation marks."""
    position, end = block.start, block.end
    for first, last in [*_double_quotes(text, position, end, opaque), (end, end)]:
        for match in _SINGLE.finditer(text, position, first):
            if not is_inside(match.start(), opaque):
                yield match.span(1)
        if first < end:
            yield first, last
        position = last


def _double_quotes(text: str, start: int, end: int, opaque: Sequence[Range]) -> Iterator[Range]:
    opened, opener, depth, closed = -1, "", 0, start
    for match in _DOUBLE.finditer(text, start, end):
        if is_inside(match.start(), opaque):
            continue
        mark, (first, last) = match[0], match.span()
        left = text[first - 1] if first > start else " "
        right = text[last] if last < end else " "
        may_open = (
            not right.isspace() and not left.isalnum() and (right.isalnum() or left in " \n\t([{")
        )
        is_nested = mark == opener and may_open and left.isspace()
        if opened >= 0:
            depth += mark == opener and (is_nested or mark not in _CLOSED_BY[opener])
            depth -= mark in _CLOSED_BY[opener] and not is_nested
            if not depth:
                yield opened, match.start()
                opened, closed = -1, match.end()
        elif mark in _CLOSED_BY and (may_open or mark not in _EITHER):
            opened, opener, depth = match.end(), mark, 1
        elif not (mark == '"' and left.isdigit()):  # Inches.
            yield closed, match.start()  # A mark that nothing opened.
            closed = match.end()
    if opened >= 0:
        yield opened, end


def _trimmed(
    text: str, start: int, end: int, after: Mapping[int, int], before: Mapping[int, int]
) -> Range:
    """A quote without space and citations at its ends.

    ``after`` maps the start of each citation to its end, ``before`` its end to its start.
    """
    while start < end and (text[start].isspace() or start in after):
        start = after.get(start, start + 1)
    while start < end and (text[end - 1].isspace() or end in before):
        end = before.get(end, end - 1)
    return start, end


def _unmarked(text: str, start: int, end: int) -> Range:
    """A part of a blockquote without the marks around it, or its quotation marks."""
    marks = _QUOTE_MARKS.match(text, start, end)
    start = marks.end() if marks else start
    # A citation that follows may stand in parentheses, or behind a dash.
    end = start + len(text[start:end].rstrip(" \t\r\n>(—–―-"))
    is_whole = end - start > 1 and text[end - 1] in _CLOSED_BY.get(text[start], "")
    return (start + 1, end - 1) if is_whole else (start, end)


# -- sentences -------------------------------------------------------------------------------------

_STOP = re.compile(r"[.!?…]+|[。！？｡।॥؟۔]+")
_MAX_CODE_LINES = 2_000
_MAX_SENTENCE, _MAX_BLOCK, _LONGEST_WORD = 1_000, 20_000, 100
"""Characters. What is longer is checked in parts, so that no check takes long."""
_LEAD_IN_WORDS = 12


def _ranges(
    text: str, block: Sentence, inner: Sequence[Range], cited: Sequence[Citation]
) -> Iterator[Range]:
    """The sentences of a block. None ends inside a quote, code, a URL or a citation."""
    start, end = block.start, block.end
    citations = {citation.start: citation.end for citation in cited}
    ends = {last for _, last in inner}
    for match in _STOP.finditer(text, start, end) if block.kind in ("prose", "item") else ():
        stop = match.end()
        if match.start() < start or (is_inside(match.start(), inner) and stop not in ends):
            continue
        after = _after(text, stop, end, _CLOSERS.strip())
        following = _after(text, after, end)
        while following in citations:
            following = _after(text, citations[following], end)
            after = 0
        if following >= end:
            break
        is_free = not after or text[following - 1].isspace() or match[0][-1] in "。！？｡"
        is_short = match[0] == "." and after and is_no_sentence_end(text, match.start())
        if is_free and not is_short and not text[following].islower():
            yield start, start + len(text[start:following].rstrip())
            start = following
    if start < end:
        yield start, end


def _pieces(
    text: str, start: int, end: int, inner: Sequence[Range], length: int
) -> Iterator[Range]:
    """A range in parts of this length at most: cut at a line's end or between words.

    It is not cut inside the inner ranges.
    """
    while end - start > length:
        limit = start + length
        ends = text.rfind("\n", start + 1, limit), text.rfind(" ", limit - _LONGEST_WORD, limit)
        cut = 1 + max(ends) or limit
        at = bisect_right(inner, cut, key=itemgetter(0)) - 1
        if at >= 0 and inner[at][0] < cut < inner[at][1]:
            cut = inner[at][0] if inner[at][0] > start else inner[at][1]
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _after(text: str, at: int, end: int, characters: str = " \t\r\n\u00a0\u3000") -> int:
    """The first place from ``at`` on that has none of the characters."""
    while at < end and text[at] in characters:
        at += 1
    return at


def _states_something(sentence: Sentence) -> bool:
    """Whether a sentence states something that can be true or false."""
    prose = sentence.prose(with_quotes=True)
    words = WORD.findall(re.sub(r"(?:https?://|www\.)\S+", " ", prose))
    ending = prose.rstrip("\t\r\n*_'" + _CLOSERS)[-1:]
    has_digit = any(character.isdigit() for word in words for character in word)
    if sentence.kind == "header" or ending in ("?", "？", "؟"):
        return False
    if sentence.kind == "heading" and ending not in (".", "!", "。"):
        return False
    if sentence.kind != "quote" and ending in (":", "：") and len(words) <= _LEAD_IN_WORDS:
        return has_digit
    return len(words) > 1 or has_digit or any(len(w) > 3 and not w.isascii() for w in words)
