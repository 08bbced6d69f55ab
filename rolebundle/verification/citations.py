"""The citations of a draft, and what they name. Pure.

A citation is ``[3]``, ``[1, 3]``, ``[2-4]``, ``[^3]``, ``(source 3)``, ``³``, ``path:start-end``,
``[path:line]``, ``path#L3-L9``, a chunk id, ``(path, p. 3)``, ``[Smith 2021]``, or a Markdown link
or footnote that names one of these.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

CitationKind = Literal["number", "locator", "chunk_id", "page", "work"]
_MAX_EXPANDED = 10


class Citation(NamedTuple):
    """A citation: its range, its kind, and what it names.

    ``target`` is ``3`` for ``[3]``, ``path:start-end``, a chunk id, ``NAME#page=3``, or the name of
    a work. ``[2-4]`` and ``[1, 3]`` are one citation for each number, with the same range.
    """

    start: int
    end: int
    kind: CitationKind
    target: str


_NUMBERS = r"\^?\d{1,4}(?:\s?[-–,;]\s?\^?\d{1,4})*"
_SOURCE = r"(?:sources?|passages?|refs?|references?|citations?|chunks?)\s?[:#]?\s?"
_NUMBERED = re.compile(
    rf"(?:{_SOURCE})?({_NUMBERS})(?:,\s?pp?\.\s?\d+(?:[-–]\d+)?)?", re.IGNORECASE
)
_SOURCED = re.compile(rf"(?:see )?{_SOURCE}({_NUMBERS})", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_WORK = re.compile(
    r"(?!(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*,? \d)"
    r"[A-Z][^\W\d_]+(?:(?:,| and| &| et al\.?)?(?: [A-Z][^\W\d_]+)?){0,3},? (?:19|20)\d\d[a-z]?"
    r"(?:,? pp?\.? ?\d+.*)?"
)
_FOOTNOTE = re.compile(r"\^[\w.-]{1,50}")
_LINK = re.compile(r"\[([^\[\]]{0,300})\]\([ \t]?<?([^()\s<>]*)>?(?:[ \t]\"[^\"\n]*\")?\)")
_BRACKET = re.compile(r"[\[【]([^\[\]【】]{1,300})[\]】]")
_PARENTHESES = re.compile(r"\(([^()]{1,300})\)")
_RAISED = re.compile(r"(?:(?<=[.,;:!?\"”’)])|(?<=[^\W\d_]{4}))[¹²³⁴-⁹][⁰¹²³⁴-⁹]?(?![\w⁰¹²³⁴-⁹/])")
_PAGES = re.compile(
    r"(?:,[ \t]?|[ \t])\(?(?:pages?|pp?\.?|S\.)[ \t]?(\d{1,6})(?:[ \t]?[-–][ \t]?(\d{1,6}))?$",
    re.IGNORECASE,
)
_LINES = re.compile(r"(\d{1,9})(?:[-–](\d{1,9}))?")
_ANCHOR = re.compile(r"L(\d{1,9})(?:[-–]L?(\d{1,9}))?")
_HASH = re.compile(r"[0-9a-f]{10}(?:-\d{1,6})?")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
_QUOTATION = re.compile('["“”„«»「」]')
_TOKEN = re.compile(r"[^\s\[\](){}<>\"'`“”„‘’«»‹›|,;*【】]+")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|“”«»\[\]()]+")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PHRASE = re.compile(r"[\"“„«‘'].*[\"”“»’']", re.DOTALL)
_TAG = re.compile(
    r"</?(?!q\b)[a-zA-Z][\w-]*(?:[ \t]+[\w:-]+(?:=(?:\"[^\"\n]*\"|'[^'\n]*'))?)*[ \t]*/?>"
)
Range = tuple[int, int]
Target = tuple[CitationKind, str]
Definitions = Mapping[str, Sequence[Citation]]
"""What footnotes and labels cite."""


def citations_in(
    text: str, start: int, end: int, definitions: Definitions
) -> tuple[list[Citation], list[Range]]:
    """The citations of a range, and the ranges in it whose punctuation is not the prose's.

    The latter are citations, code, addresses, tags and the targets of links. Both are in order.
    """
    found: list[Citation] = []
    code = _code_spans(text, start, end)
    urls = [match.span() for match in _URL.finditer(text, start, end)]
    taken = [*urls]
    for pattern, targets_of in _FORMS:
        excluded = merged(taken)
        for match in pattern.finditer(text, start, end):
            if is_inside(match.start(), excluded) or is_inside(match.start(), code):
                continue
            targets = targets_of(match, definitions)
            if targets is not None:
                taken.append(match.span())
                found += [Citation(*match.span(), *target) for target in dict.fromkeys(targets)]
    excluded = merged(taken)
    for match in _TOKEN.finditer(text, start, end):
        token = match[0].rstrip(".:!?…")
        if (":" in token or "#" in token) and not is_inside(match.start(), excluded):
            at = match.start()
            found += [Citation(at, at + len(token), *t) for t in _places(token, is_marked=False)]
    tags = [match.span() for match in _TAG.finditer(text, start, end)]
    links = [(match.end(1), match.end()) for match in _LINK.finditer(text, start, end)]
    opaque = merged([*urls, *tags, *links, *code, *(c[:2] for c in found)])
    return sorted(found, key=lambda citation: citation[:2]), opaque


def _linked(match: re.Match[str], _definitions: Definitions) -> Sequence[Target]:
    number = _NUMBERED.fullmatch(match[1])
    place = [*_places(match[2].removeprefix("./"), is_marked=True)]
    return place or ([*_numbers(number[1])] if number else [])


def _bracketed(match: re.Match[str], definitions: Definitions) -> Sequence[Target] | None:
    """What ``[inner]`` cites; ``None`` if it is no citation, nothing if it explains something."""
    inner = match[1].strip()
    if inner in definitions and (definitions[inner] or inner.startswith("^")):
        return [(c.kind, c.target) for c in definitions[inner]][:_MAX_EXPANDED]
    if (number := _NUMBERED.fullmatch(inner)) and not _YEAR.fullmatch(inner):
        return [*_numbers(number[1])]
    if _FOOTNOTE.fullmatch(inner) or _WORK.fullmatch(inner):
        return [("work", inner)]
    return _listed(inner)


def _parenthesized(match: re.Match[str], _definitions: Definitions) -> Sequence[Target] | None:
    if sourced := _SOURCED.fullmatch(match[1].strip()):
        return [*_numbers(sourced[1])]
    listed = _listed(match[1])
    is_work = re.search(r"et al\.?|[a-z], ", match[1]) and _WORK.fullmatch(match[1])
    return [("work", match[1])] if listed is None and is_work else listed


def _raised(match: re.Match[str], _definitions: Definitions) -> Sequence[Target]:
    return [("number", unicodedata.normalize("NFKC", match[0]))]


_FORMS = (
    (_LINK, _linked), (_BRACKET, _bracketed), (_PARENTHESES, _parenthesized), (_RAISED, _raised),
)  # fmt: skip
"""The marks of citations, and what a match cites; ``None`` if it is no citation."""


def _numbers(text: str) -> Iterator[Target]:
    for part in re.split("[,;]", text.replace("^", "")):
        first, last = (int(re.split("[-–]", part)[at]) for at in (0, -1))
        if 0 <= last - first < _MAX_EXPANDED:
            yield from (("number", str(number)) for number in range(first, last + 1))
        else:
            yield "number", part.strip()


def _listed(inner: str) -> list[Target] | None:
    """What the text in brackets or parentheses cites, if all of it is places."""
    if match := _PAGES.search(inner):
        name = inner[: match.start()].strip(' \t"“”*_`')
        if not any(map(str.isalpha, name)) or _QUOTATION.search(name):
            return None
        pages = range(int(match[1]), int(match[2] or match[1]) + 1)
        return [("page", f"{name}#page={page}") for page in pages[:_MAX_EXPANDED]]
    places = [[*_places(part.strip(" \t`"), is_marked=True)] for part in re.split("[,;]", inner)]
    return [place for of_part in places for place in of_part] if all(places) else None


def _places(token: str, *, is_marked: bool) -> Iterator[Target]:
    """The locator or chunk id that a token is.

    ``is_marked``: it stands in brackets, so that forms which are common in prose count as well.
    """
    if not 3 <= len(token) <= 300 or "://" in token or _QUOTATION.search(token):
        return
    path, _, anchor = token.rpartition("#")
    if path and (match := _ANCHOR.fullmatch(anchor)):
        yield "locator", f"{path}:{match[1]}-{match[2] or match[1]}"
    elif path and (
        _HASH.fullmatch(anchor)
        or (is_marked and re.fullmatch(r"[\w.-]{1,80}", anchor) and " " not in path)
    ):
        yield "chunk_id", token
    else:
        path, _, lines = token.rpartition(":")
        match = _LINES.fullmatch(lines)
        is_path = any(map(str.isalpha, path)) and ("/" in path or _EXTENSION.search(path))
        if match and is_path and (match[2] or is_marked):
            yield "locator", f"{path}:{match[1]}-{match[2] or match[1]}"


def _code_spans(text: str, start: int, end: int) -> list[Range]:
    """Code between backticks that is no quoted phrase."""
    return [
        match.span()
        for match in CODE.finditer(text, start, end)
        if not (" " in match[2] and _PHRASE.fullmatch(match[2].strip()))
    ]


def merged(spans: Iterable[Range]) -> list[Range]:
    """The ranges in order; ranges that overlap are joined."""
    result: list[Range] = []
    for start, end in sorted(spans):
        if result and start < result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result


def is_inside(position: int, spans: Sequence[Range]) -> bool:
    """Whether a position is in one of the sorted, disjoint ranges."""
    at = bisect_right(spans, (position, position + 1_000_000)) - 1
    return at >= 0 and spans[at][0] <= position < spans[at][1]
