"""What a rendered Markdown file does not show: comments, titles of links, hidden HTML.

Code is left alone: it is shown as it is. The lines stay, so that locators are correct.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)[^<>]*>?")
_ATTRIBUTE = re.compile(r"""\s+([A-Za-z_][\w.:-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_CLOSERS = {"<!--": "-->", "<?": "?>"}
# If no tag closes them, these end with the text, and other elements with their paragraph.
_OPEN_BLOCKS = frozenset("div section article details main aside center table ul ol form".split())
# Before that, these end at the next tag of their name.
_ENDED_BY_NEXT = frozenset("p li dt dd option td th tr".split())
_NEVER_SHOWN = ("script", "style", "template", "datalist")
_SHOWN_ATTRIBUTES = frozenset("alt href src srcset style class id width height name rel".split())
_TITLE = r"""\s+(?:"[^"]*"|'[^']*'|\([^()]*\))"""
_LINK_TITLE = re.compile(
    rf"\]\(\s*(?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)?)({_TITLE})\s*\)"
)
_DEFINITION_TITLE = re.compile(rf"{_TITLE}\s*\Z")
_LABEL = re.compile(r"\[([^\[\]]{1,999})\]")
_FOOTNOTE = re.compile(r"^ {0,3}\[(\^[^\]\s]+)\]:(.*)", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*\n")
_NOT_BREAK = re.compile(r"[^\n]")
_MIN_ATTRIBUTE_WORDS = 3
_MIN_LABEL_WORDS = 3
_NUMBER = "data-rolebundle-tag"
MAX_ROUNDS = 4
"""Removing a part can complete another one. Honest files need one round."""

Span = tuple[int, int]


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
    starts = _line_starts(text)
    code = (token.map for token in tokens if token.type in {"fence", "code_block"} and token.map)
    masked = _replaced(text, ((starts[first], starts[last]) for first, last in code), " ")
    comments, tags, masked = _comments_and_tags(masked)
    ranges = [*comments, *_definitions(text, masked, starts, environment)]
    ranges += (
        Hidden(*match.span(1), "markup_comment", match[1].strip())
        for match in _LINK_TITLE.finditer(masked)
    )
    if tags:
        ranges += [*_elements(masked, tags), *_attributes(masked, tags)]
    ranges.sort(key=lambda part: (part.start, -part.end))
    separate, covered_until = [], 0
    for part in ranges:
        if part.is_kept or part.start >= covered_until:
            separate.append(part)
            covered_until = covered_until if part.is_kept else max(covered_until, part.end)
    return separate


def removed(text: str, ranges: Sequence[Hidden]) -> str:
    """The text without the ranges that are not kept; its line breaks stay."""
    return _replaced(text, ((part.start, part.end) for part in ranges if not part.is_kept), "")


def hidden_parts(text: str, ranges: Sequence[Hidden], offset: int) -> Iterator[HiddenPart]:
    """The ranges as parts of the file, with the offsets of their lines.

    ``offset`` is that of the text in the file.
    """
    starts = _line_starts(text)
    for part in ranges:
        start = starts[bisect_right(starts, part.start) - 1]
        end = starts[bisect_right(starts, max(part.start, part.end - 1))] - 1
        words = " ".join(part.text.split())
        place = (offset + start, offset + end)
        yield HiddenPart(part.kind, words, *place, part.is_labelled, part.is_kept)


def _line_starts(text: str) -> list[int]:
    """The offsets of the lines of a text, and its end twice: a token may end after it."""
    return [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1, len(text) + 1]


def _replaced(text: str, spans: Iterable[Span], filler: str) -> str:
    """The text with ``filler`` for each character of the spans, apart from line breaks."""
    parts, copied_until = [], 0
    for start, end in spans:
        if start >= copied_until:
            parts += [text[copied_until:start], _NOT_BREAK.sub(filler, text[start:end])]
            copied_until = end
    return "".join((*parts, text[copied_until:]))


def _comments_and_tags(masked: str) -> tuple[list[Hidden], list[Span], str]:
    """The comments, the offsets of the tags, and the text without comments and code spans."""
    runs: dict[int, list[int]] = defaultdict(list)
    for run in re.finditer("`+", masked):
        runs[len(run[0])].append(run.start())
    blanks = [blank.start() for blank in _BLANK.finditer(masked)]
    comments: list[Hidden] = []
    tags: list[Span] = []
    covered: list[Span] = []
    missing: set[str] = set()
    at = 0
    while (match := _TOKEN.search(masked, at)) is not None:
        mark, start, at = match[0], match.start(), match.end()
        if mark[0] == "`":
            closing = _following(runs[len(mark)], at, len(masked))
            if closing < _following(blanks, at, len(masked)):
                at = closing + len(mark)
                covered.append((start, at))
        elif mark[0] == "<" and mark[1] in "!?":
            closer = _CLOSERS.get(mark, ">")
            end = -1 if closer in missing else masked.find(closer, at)
            before = start  # of the blanks and marks of quotes at the beginning of a line
            while before and masked[before - 1] in " >":
                before -= 1
            is_block = not before or masked[before - 1] == "\n"
            if end < 0:
                missing.add(closer)
                if not (is_block and mark == "<!--"):
                    continue
            end = len(masked) if end < 0 else end + len(closer)
            if is_block or end <= _following(blanks, at, len(masked)):
                comments.append(Hidden(start, end, "markup_comment", masked[at : end - 1]))
                covered.append((start, end))
                at = end
        elif mark[0] == "<":
            tags.append(match.span())
    return comments, tags, _replaced(masked, covered, " ")


def _following(offsets: Sequence[int], at: int, default: int) -> int:
    index = bisect_left(offsets, at)
    return offsets[index] if index < len(offsets) else default


def _definitions(
    text: str, masked: str, starts: Sequence[int], environment: Mapping[str, Any]
) -> Iterator[Hidden]:
    """Link definitions that nothing refers to, the titles of the others, and unused footnotes."""
    defined = [
        *environment.get("references", {}).items(),
        *((item["label"], item) for item in environment.get("duplicate_refs", ())),
    ]
    # A definition is text only by its title, or if its label is a phrase.
    spans = sorted(
        ((starts[item["map"][0]], starts[item["map"][1]]), label)
        for label, item in defined
        if item.get("map") and (item["title"] or len(label.split()) >= _MIN_LABEL_WORDS)
    )
    if spans:
        outside = _replaced(masked, (span for span, _ in spans), " ")
        used = {normalizeReference(match[1]) for match in _LABEL.finditer(outside)}
    for (start, end), label in spans:
        definition = text[start:end].rstrip("\n")
        if normalizeReference(label) not in used:
            yield Hidden(start, start + len(definition), "markup_comment", definition)
        elif title := _DEFINITION_TITLE.search(definition):
            yield Hidden(start + title.start(), start + title.end(), "markup_comment", title[0])
    # CommonMark shows footnotes as they are written; other renderers leave out an unused one.
    for note in _FOOTNOTE.finditer(masked):
        if masked.count(f"[{note[1]}]") == 1:
            yield Hidden(*note.span(), "markup_comment", note[2], is_labelled=True, is_kept=True)


def _elements(masked: str, tags: Sequence[Span]) -> Iterator[Hidden]:
    """Hidden elements, and elements whose content is not text."""
    # Each element has the number of its tag, because lxml does not tell offsets.
    pieces, copied_until = [], 0
    for number, (start, _) in enumerate(tags):
        name = _TAG.match(masked, start)
        if name and not name[1]:
            pieces += [masked[copied_until : name.end(2)], f' {_NUMBER}="{number}"']
            copied_until = name.end(2)
    source = "".join((*pieces, masked[copied_until:])).encode("utf-8", "replace")
    parser = etree.HTMLParser(encoding="utf-8", recover=True, no_network=True, collect_ids=False)
    root = etree.fromstring(b"<body>" + source, parser)
    last = parser.error_log.last_error
    if last is not None and last.level >= etree.ErrorLevels.FATAL:
        # Nested too deep; the rest of the tree is missing.
        yield Hidden(0, len(masked), "invisible_element", "", is_labelled=True, is_kept=True)
    spans = _spans(masked, tags)
    for item in hidden_elements(root, root, source, hiding_sheets(source)):
        if place := item.element.get(_NUMBER):
            start, end = spans[int(place)]
            words = " ".join(_TAG.sub(" ", masked[start:end]).split())
            yield Hidden(start, end, item.kind, words, item.is_labelled, item.is_kept)
    for element in root.iter(*_NEVER_SHOWN):
        if place := element.get(_NUMBER):
            text = " ".join(map(str, element.itertext()))
            yield Hidden(*spans[int(place)], "markup_comment", text)


def _spans(masked: str, tags: Sequence[Span]) -> list[Span]:
    """The offsets of the element of each tag."""
    open_tags: dict[str, list[int]] = defaultdict(list)
    spans = list(tags)
    for number, (start, end) in enumerate(tags):
        match = _TAG.match(masked, start)
        name = match[2].lower() if match else ""
        if match is None or not match[1]:
            open_tags[name].append(number)
        elif open_tags[name]:
            opening = open_tags[name].pop()
            spans[opening] = spans[opening][0], end
    blanks = [blank.start() for blank in _BLANK.finditer(masked)]
    for name, numbers in open_tags.items():
        following = len(masked)
        for number in reversed(numbers):
            start, end = spans[number]
            is_block = name in _OPEN_BLOCKS
            last = len(masked) if is_block else _following(blanks, end, len(masked))
            spans[number] = start, min(last, following)
            following = start if name in _ENDED_BY_NEXT else following
    return spans


def _attributes(masked: str, tags: Sequence[Span]) -> Iterator[Hidden]:
    """Attributes with a text that is not shown."""
    for start, end in tags:
        name = _TAG.match(masked, start)
        # A name with a capital letter is a component's, whose attributes may be shown.
        if name is None or name[1] or not name[2].islower() or "-" in name[2]:
            continue
        for attribute in _ATTRIBUTE.finditer(masked, name.end(2), end):
            value = (attribute[2] or "").strip("\"'")
            is_text = len(value.split()) >= _MIN_ATTRIBUTE_WORDS
            if is_text and attribute[1].lower() not in _SHOWN_ATTRIBUTES:
                yield Hidden(*attribute.span(), "markup_comment", unescape(value))
