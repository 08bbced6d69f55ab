"""What a rendered Markdown file does not show: comments, titles of links, hidden HTML.

Code is left alone: it is shown as it is. The lines stay, so that locators are correct.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple

from lxml import etree
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from rolebundle.ingest.readers.html_hidden import hidden_elements, hiding_sheets
from rolebundle.scan.finding import HiddenPart

# A text without any of this hides nothing.
_HINT = re.compile(r"""<[!?/A-Za-z]|^ {0,3}\[[^\]\n]*\]:|\]\([^)\n]*["'(]""", re.MULTILINE)
_TOKEN = re.compile(
    r"\\.|`+|<!--|<\?|<![A-Za-z\[]|</?[A-Za-z][A-Za-z0-9-]*(?=[\s/>])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>",
    re.DOTALL,
)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)")
_ATTRIBUTE = re.compile(r"""\s+([A-Za-z_][\w.:-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_CLOSERS = {"<!--": "-->", "<?": "?>"}
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
# Elements that end with their paragraph if no tag closes them.
_OPEN_BLOCKS = frozenset("div section article details main aside center table ul ol form".split())
_NEVER_SHOWN = frozenset(("script", "style", "template", "datalist"))
_SHOWN_ATTRIBUTES = frozenset("alt href src srcset style class id width height name rel".split())
_LINK_TITLE = re.compile(
    r"""\]\(\s*(?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)?)"""
    r"""(\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))\s*\)"""
)
_DEFINITION_TITLE = re.compile(r"""\s+(?:"[^"]*"|'[^']*'|\([^()]*\))\s*\Z""")
_LABEL = re.compile(r"\[([^\[\]]{1,999})\]")
_FOOTNOTE = re.compile(r"^ {0,3}\[(\^[^\]\s]+)\]:(.*)", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*\n")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_BREAK = re.compile(r"[^\n]")
_MIN_ATTRIBUTE_WORDS = 3
_MIN_LABEL_WORDS = 3
MAX_ROUNDS = 4
"""Removing a part can complete another one. Honest files need one round."""


class Hidden(NamedTuple):
    """A hidden range of a text, in characters. If it is kept, people may see it."""

    start: int
    end: int
    kind: str
    text: str
    is_labelled: bool = False
    is_kept: bool = False


def may_hide(text: str) -> bool:
    """Whether a Markdown text contains anything that may hide a part of it."""
    return _HINT.search(text) is not None


def hidden_ranges(
    text: str, tokens: Sequence[Token], environment: Mapping[str, Any]
) -> list[Hidden]:
    """What is hidden in a Markdown text, in order; ranges that are removed do not overlap.

    Args:
        text: the text.
        tokens: its block tokens.
        environment: what the parser recorded: the link reference definitions.
    """
    lines = _Lines(text)
    masked = _masked(text, lines, tokens)
    comments, tags, masked = _comments_and_tags(masked)
    ranges = [*comments, *_definitions(text, masked, lines, environment)]
    ranges += (
        Hidden(*match.span(1), "markup_comment", match[1].strip())
        for match in _LINK_TITLE.finditer(masked)
    )
    if tags:
        ranges += _elements(masked, tags)
    ranges.sort(key=lambda part: (part.start, -part.end))
    return list(_without_overlaps(ranges))


def removed(text: str, ranges: Sequence[Hidden]) -> str:
    """The text without the ranges that are not kept; its line breaks stay."""
    parts, copied_until = [], 0
    for part in ranges:
        if not part.is_kept:
            parts += [
                text[copied_until : part.start],
                "\n" * text.count("\n", part.start, part.end),
            ]
            copied_until = part.end
    return "".join((*parts, text[copied_until:]))


def hidden_parts(text: str, ranges: Sequence[Hidden], offset: int) -> Iterator[HiddenPart]:
    """The ranges as parts of the file, with the offsets of their lines.

    ``offset`` is that of the text in the file.
    """
    starts = _Lines(text).starts
    for part in ranges:
        start = starts[bisect_right(starts, part.start) - 1]
        end = starts[bisect_right(starts, max(part.start, part.end - 1))] - 1
        yield HiddenPart(
            part.kind,
            " ".join(part.text.split()),
            offset + start,
            offset + end,
            part.is_labelled,
            part.is_kept,
        )


def _without_overlaps(ranges: Sequence[Hidden]) -> Iterator[Hidden]:
    covered_until = 0
    for part in ranges:
        if part.is_kept or part.start >= covered_until:
            yield part
            covered_until = covered_until if part.is_kept else max(covered_until, part.end)


class _Lines:
    """The offsets of the lines of a text."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The offsets of the lines from ``first`` to before ``last``, counted from 0."""
        end = self.starts[min(last, len(self.starts) - 1)]
        return self.starts[min(first, len(self.starts) - 1)], end


def _masked(text: str, lines: _Lines, tokens: Sequence[Token]) -> str:
    """The text with spaces for all code blocks; its length stays."""
    parts, copied_until = [], 0
    for token in tokens:
        if token.type in {"fence", "code_block"} and token.map is not None:
            start, end = lines.span(*token.map)
            if start >= copied_until:
                parts += [text[copied_until:start], _NOT_BREAK.sub(" ", text[start:end])]
                copied_until = end
    return "".join((*parts, text[copied_until:]))[: len(text)]


def _comments_and_tags(masked: str) -> tuple[list[Hidden], list[tuple[int, int]], str]:
    """The comments, the offsets of the tags, and the text without comments and code spans."""
    runs: dict[int, list[int]] = defaultdict(list)
    for run in re.finditer("`+", masked):
        runs[len(run[0])].append(run.start())
    blanks = [blank.start() for blank in _BLANK.finditer(masked)]
    comments: list[Hidden] = []
    tags: list[tuple[int, int]] = []
    covered: list[tuple[int, int]] = []
    missing: set[str] = set()
    at = 0
    while (match := _TOKEN.search(masked, at)) is not None:
        mark, start, at = match[0], match.start(), match.end()
        if mark[0] == "`":
            same = runs[len(mark)]
            following = bisect_left(same, at)
            if following < len(same) and same[following] < _next_offset(blanks, at, len(masked)):
                at = same[following] + len(mark)
                covered.append((start, at))
        elif mark[0] == "<" and mark[1] in "!?":
            closer = _CLOSERS.get(mark, ">")
            end = -1 if closer in missing else masked.find(closer, at)
            is_block = _begins_line(masked, start)
            if end < 0:
                missing.add(closer)
                if not (is_block and mark == "<!--"):
                    continue
            end = len(masked) if end < 0 else end + len(closer)
            if is_block or end <= _next_offset(blanks, at, len(masked)):
                comments.append(Hidden(start, end, "markup_comment", masked[at : end - 1]))
                covered.append((start, end))
                at = end
        elif mark[0] == "<":
            tags.append(match.span())
    return comments, tags, _blanked(masked, covered)


def _begins_line(text: str, at: int) -> bool:
    """Whether nothing but blanks and marks of quotes is before it in its line."""
    while at and text[at - 1] in " >":
        at -= 1
    return not at or text[at - 1] == "\n"


def _next_offset(offsets: Sequence[int], at: int, default: int) -> int:
    index = bisect_left(offsets, at)
    return offsets[index] if index < len(offsets) else default


def _blanked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    parts, copied_until = [], 0
    for start, end in ranges:
        parts += [text[copied_until:start], _NOT_BREAK.sub(" ", text[start:end])]
        copied_until = end
    return "".join((*parts, text[copied_until:]))


def _definitions(
    text: str, masked: str, lines: _Lines, environment: Mapping[str, Any]
) -> Iterator[Hidden]:
    """Link definitions that nothing refers to, the titles of the others, and unused footnotes."""
    defined = [
        *environment.get("references", {}).items(),
        *((item["label"], item) for item in environment.get("duplicate_refs", ())),
    ]
    # A definition is text only by its title, or if its label is a phrase.
    spans = [
        (lines.span(*item["map"]), label)
        for label, item in defined
        if item.get("map") and (item["title"] or len(label.split()) >= _MIN_LABEL_WORDS)
    ]
    used: set[str] | None = None
    for (start, end), label in spans:
        definition = text[start:end].rstrip("\n")
        if used is None:
            outside_spans = _blanked(masked, sorted({span for span, _ in spans}))
            used = {normalizeReference(match[1]) for match in _LABEL.finditer(outside_spans)}
        if normalizeReference(label) not in used:
            yield Hidden(start, start + len(definition), "markup_comment", definition)
        elif title := _DEFINITION_TITLE.search(definition):
            yield Hidden(start + title.start(), start + title.end(), "markup_comment", title[0])
    # CommonMark shows footnotes as they are written; other renderers leave out an unused one.
    for note in _FOOTNOTE.finditer(masked):
        if masked.count(f"[{note[1]}]") == 1:
            yield Hidden(*note.span(), "markup_comment", note[2], is_labelled=True, is_kept=True)


def _elements(masked: str, tags: Sequence[tuple[int, int]]) -> Iterator[Hidden]:
    """Hidden elements, elements whose content is not text, and attributes with a text."""
    root, ends = _tree(masked, tags)
    source = " ".join(masked[start:end] for start, end in tags).encode()
    styles = "".join(
        f"<style>{element.text or ''}</style>" for element in root.iter("style")
    ).encode("utf-8", "replace")
    for item in hidden_elements(root, root, source + styles, hiding_sheets(styles + source)):
        if item.element is not root:
            yield Hidden(*ends[item.element], *item[1:3], item.is_labelled, item.is_kept)
    for element in root.iter(*_NEVER_SHOWN):
        yield Hidden(*ends[element], "markup_comment", " ".join(element.itertext()))
    for start, end in tags:
        name = _TAG.match(masked, start)
        # A name with a capital letter is a component's, whose attributes may be shown.
        if name is None or name[1] or not name[2].islower() or "-" in name[2]:
            continue
        for attribute in _ATTRIBUTE.finditer(masked, name.end(), end):
            value = (attribute[2] or "").strip("\"'")
            if (
                attribute[1].lower() not in _SHOWN_ATTRIBUTES
                and len(value.split()) >= _MIN_ATTRIBUTE_WORDS
            ):
                yield Hidden(*attribute.span(), "markup_comment", unescape(value))


def _tree(masked: str, tags: Sequence[tuple[int, int]]) -> tuple[Any, dict[Any, tuple[int, int]]]:
    """The elements of a text as a tree, and their offsets."""
    root = etree.Element("html")
    spans: dict[Any, tuple[int, int]] = {}
    open_elements: list[tuple[Any, int]] = [(root, 0)]
    last, read_until = root, 0

    texts: list[str] = []

    def add_texts() -> None:
        text = _NOT_XML.sub(" ", "".join(texts))
        texts.clear()
        if last is open_elements[-1][0] and not len(last):
            last.text = text
        else:
            last.tail = text

    def close(count: int, end: int) -> Any:
        for element, start in open_elements[len(open_elements) - count :]:
            is_block = element.tag in _OPEN_BLOCKS
            blank = None if is_block else _BLANK.search(masked, start, end)
            spans[element] = start, end if blank is None else blank.start()
        element = open_elements[len(open_elements) - count][0]
        del open_elements[len(open_elements) - count :]
        return element

    for start, end in tags:
        match = _TAG.match(masked, start)
        if match is None or start < read_until:
            continue
        texts.append(masked[read_until:start])
        read_until, name = end, match[2].lower()
        if match[1]:
            depth = next(
                (i for i, (e, _) in enumerate(reversed(open_elements[1:]), 1) if e.tag == name), 0
            )
            if depth:
                add_texts()
                unclosed = open_elements[len(open_elements) - depth][1]
                last = close(depth, end)
                spans[last] = unclosed, end
            continue
        if len(open_elements) > 200:
            continue
        add_texts()
        attributes = {
            attribute.lower(): _NOT_XML.sub(" ", unescape(value.strip("\"'")))
            for attribute, value in _ATTRIBUTE.findall(masked[match.end() : end])
            if ":" not in attribute
        }
        last = etree.SubElement(open_elements[-1][0], name, attributes)
        spans[last] = start, end
        if name not in _VOID and not masked.startswith("/>", end - 2):
            open_elements.append((last, start))
    texts.append(masked[read_until:])
    add_texts()
    close(len(open_elements), len(masked))
    return root, spans
