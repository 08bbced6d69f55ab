"""The citations of a draft, and what they name. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from rolebundle.verification.draft.parse_blocks import DEFINITION, Block, Range, is_inside

CitationKind = Literal["number", "locator", "chunk_id", "page"]
Target = tuple[CitationKind, str]
"""What a citation names, as in ``DraftCitation``."""


class CitationMark(NamedTuple):
    """A place that cites, and what it cites."""

    start: int
    end: int
    targets: tuple[Target, ...]


_CODE_MARKS = re.compile("`+")
_MAX_EXPANDED = 10
_MAX_NAME = 300
_NUMBERS = r"\^?\d{1,4}(?:\s?[-–,;]\s?\^?\d{1,4})*"
_SOURCE_WORD = r"(?:(?:sources?|passages?|refs?|references?|citations?|chunks?)\s?[:#]?\s?)?"
_NUMBERED = re.compile(
    rf"{_SOURCE_WORD}({_NUMBERS})(?:,\s?pp?\.\s?\d+(?:[-–]\d+)?)?", re.IGNORECASE
)
_FOOTNOTE = re.compile(r"\^[\w.-]{1,50}")
_YEAR = re.compile(r"(?:19|20)\d\d")
LINK = re.compile(r"\[([^\[\]]*)\]\([ \t]?<?([^()\s<>]*)>?(?:[ \t]\"[^\"\n]*\")?\)")
_BRACKET = re.compile(r"[\[【]([^\[\]【】]{1,300})[\]】]")
_IN_PARENTHESES = re.compile(r"\(([^()]{1,300})\)")
_PAGES = re.compile(
    r"(?:,[ \t]?|[ \t])\(?(?:pages?|pp?\.?|S\.)[ \t]?(\d{1,6})(?:[ \t]?[-–][ \t]?(\d{1,6}))?$",
    re.IGNORECASE,
)
_LINES = re.compile(r"(\d{1,9})(?:[-–](\d{1,9}))?")
_LINE_ANCHOR = re.compile(r"L(\d{1,9})(?:[-–]L?(\d{1,9}))?")
_SHORT_HASH = re.compile(r"[0-9a-f]{10}(?:-\d{1,6})?")
_PLACE = re.compile(r"[\w.-]{1,80}")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
# A quote is no part of a name.
_QUOTATION = re.compile('["“”„«»「」]')
_TOKEN = re.compile(r"[^\s\[\](){}<>\"'`“”„‘’«»‹›|,;*【】]+")
URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|“”«»\[\]()]+")


def definitions_of(text: str, blocks: Sequence[Block]) -> dict[str, tuple[Target, ...]]:
    """What footnotes and link definitions cite, by their label; the first of a label counts."""
    definitions: dict[str, tuple[Target, ...]] = {}
    for block in blocks:
        if block.kind == "definition":
            line_start = max(text.rfind("\n", 0, block.start), text.rfind("\r", 0, block.start)) + 1
            match = DEFINITION.match(text, line_start)
            if match and match[1] not in definitions:
                marks = citations_of(text, block, {})
                cited = (target for mark in marks for target in mark.targets)
                definitions[match[1]] = tuple(dict.fromkeys(cited))[:_MAX_EXPANDED]
    return definitions


def citations_of(
    text: str, block: Block, definitions: Mapping[str, tuple[Target, ...]]
) -> list[CitationMark]:
    """The citations of a block, in order."""
    start, end = block.start, block.end
    marks: list[CitationMark] = []
    covered: list[Range] = []

    def add(first: int, last: int, targets: Sequence[Target]) -> None:
        covered.append((first, last))
        if targets:
            marks.append(CitationMark(first, last, tuple(dict.fromkeys(targets))))

    code = code_spans(text, start, end)
    for match in LINK.finditer(text, start, end):
        if not is_inside(match.start(), code):
            is_number = _NUMBERED.fullmatch(match[1])
            place = _token_targets(match[2].removeprefix("./"), is_marked=True)
            if is_number and not place:
                place = _numbers(is_number[1])
            add(match.start(), match.end(), place)
    for pattern in (_BRACKET, _IN_PARENTHESES):
        excluded = sorted(covered)
        for match in pattern.finditer(text, start, end):
            if is_inside(match.start(), excluded) or is_inside(match.start(), code):
                continue
            in_brackets = pattern is _BRACKET
            targets = (
                _bracketed(match[1], definitions) if in_brackets else _bracketed_targets(match[1])
            )
            if targets is not None:
                add(match.start(), match.end(), targets)
    excluded = sorted(covered + [match.span() for match in URL.finditer(text, start, end)])
    for match in _TOKEN.finditer(text, start, end):
        token = match[0]
        if (":" in token or "#" in token) and not is_inside(match.start(), excluded):
            token = token.rstrip(".:!?…")
            if place := _token_targets(token, is_marked=False):
                add(match.start(), match.start() + len(token), place)
    return sorted(marks)


def _bracketed(
    inner: str, definitions: Mapping[str, tuple[Target, ...]]
) -> Sequence[Target] | None:
    """What ``[inner]`` cites; ``None`` if it is no citation, nothing if it explains something."""
    inner = inner.strip()
    if inner in definitions and (definitions[inner] or inner.startswith("^")):
        return definitions[inner]
    if (match := _NUMBERED.fullmatch(inner)) and not _YEAR.fullmatch(inner):
        return _numbers(match[1])
    if _FOOTNOTE.fullmatch(inner):
        return ()
    return _bracketed_targets(inner)


def _numbers(text: str) -> list[Target]:
    targets: list[Target] = []
    for part in re.split("[,;]", text.replace("^", "")):
        ends = [end.strip() for end in re.split("[-–]", part)]
        first, last = int(ends[0]), int(ends[-1])
        if len(ends) > 2 or not 0 <= last - first < _MAX_EXPANDED:
            targets.append(("number", part.strip()))
        else:
            targets += [("number", str(number)) for number in range(first, last + 1)]
    return targets


def _bracketed_targets(inner: str) -> list[Target] | None:
    """What the text in brackets or parentheses cites, if all of it is places."""
    if ":" not in inner and "#" not in inner and not any(map(str.isdigit, inner)):
        return None
    if match := _PAGES.search(inner):
        name = inner[: match.start()].strip(' \t"“”*_`')
        pages = range(int(match[1]), int(match[2] or match[1]) + 1)
        if not any(map(str.isalpha, name)) or _QUOTATION.search(name):
            return None
        return [("page", f"{name}#page={page}") for page in pages[:_MAX_EXPANDED]]
    targets: list[Target] = []
    for part in re.split("[,;]", inner):
        place = _token_targets(part.strip(" \t`"), is_marked=True)
        if not place:
            return None
        targets += place
    return targets


def _token_targets(token: str, *, is_marked: bool) -> list[Target]:
    """The locator or chunk id that a token is, or nothing.

    ``is_marked``: it stands in brackets, so that forms which are common in prose count as well.
    """
    if not 3 <= len(token) <= _MAX_NAME or "://" in token or _QUOTATION.search(token):
        return []
    path, hash_sign, anchor = token.rpartition("#")
    if hash_sign and path:
        if match := _LINE_ANCHOR.fullmatch(anchor):
            return [("locator", f"{path}:{match[1]}-{match[2] or match[1]}")]
        is_chunk = is_marked and _PLACE.fullmatch(anchor) and not any(map(str.isspace, path))
        return [("chunk_id", token)] if is_chunk or _SHORT_HASH.fullmatch(anchor) else []
    path, colon, lines = token.rpartition(":")
    match = _LINES.fullmatch(lines)
    if not colon or not match or not any(map(str.isalpha, path)):
        return []
    is_path = "/" in path or _EXTENSION.search(path)
    if not is_path or not (match[2] or is_marked):
        return []
    return [("locator", f"{path}:{match[1]}-{match[2] or match[1]}")]


def code_spans(text: str, start: int, end: int) -> list[Range]:
    """Code between backticks, in order, without code that is one quoted phrase."""
    runs = [match.span() for match in _CODE_MARKS.finditer(text, start, end)]
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for number, (first, last) in enumerate(runs):
        by_length[last - first].append(number)
    spans = []
    number = 0
    while number < len(runs):
        first, last = runs[number]
        same = by_length[last - first]
        at = bisect_right(same, number)
        number += 1
        if at < len(same):
            closing = runs[same[at]]
            inner = text[last : closing[0]].strip()
            if not (" " in inner and inner[0] in "\"“„«'‘" and inner[-1] in "\"”“»'’"):
                spans.append((first, closing[1]))
            number = same[at] + 1
    return spans
