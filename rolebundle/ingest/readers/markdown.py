"""Markdown, with front matter.

markdown-it-py parses blocks only. Inline markup is parsed for headings alone. That is four times
as fast as a full parse and sufficient: the text of a block is its source lines.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import unescape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from rolebundle.errors import DocumentError
from rolebundle.ingest.declarations import limiting_key
from rolebundle.ingest.front_matter import front_matter, with_blocks
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import MAX_TITLE_CHARS, open_text, parser_errors, unique_key
from rolebundle.ingest.readers.html_hidden import Page, page_sheets, parsed_page
from rolebundle.ingest.readers.line_blocks import block_of, first_text, is_blank, runs
from rolebundle.resources import data_file
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import cleaned, one_line, split_lines
from rolebundle.text.links import found_in
from rolebundle.text.strict_json import LocatedObject, NotStrictError, line_index, parse_located

_KINDS: Mapping[str, BlockKind] = data_file(__file__, "outlines.toml")["markdown"]
"""The kind of a block by the first token of it."""
_MARKUP = re.compile(r"[*_`\[\]<>&\\!~]")
_ANCHOR = re.compile(r"\s*\{#[^}]*\}\s*$")


def _read(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``, ``bad_front_matter``.
    """
    lines, notes = open_text(data, path)
    yield _document(lines, notes, path, 0, len(lines))


def _document(
    lines: Sequence[str], notes: tuple[str, ...], path: str, start: int, end: int, key: str = ""
) -> ParsedDocument:
    """The document of ``lines[start:end]``; it may begin with front matter.

    Args:
        lines: all lines of the file.
        notes: what was changed to decode them.
        path: its path, for messages.
        start: the index of the first line.
        end: the index after the last line.
        key: the name of the document in a file of several.

    Raises:
        DocumentError: ``bad_front_matter``.
    """
    front, first = front_matter(lines, path, start, end)
    shown, hidden, blocks = read_markdown(lines, first, end)
    found = found_in((block.text for block in blocks if block.kind != "code"), path)
    return with_blocks(front, blocks, notes, key=key, lines=shown, hidden=hidden, found=found)


MarkdownText = tuple[Sequence[str], tuple[HiddenPart, ...], tuple[Block, ...]]
"""All lines of a file, without what is hidden in the part that was read; this; and its blocks."""


def read_markdown(lines: Sequence[str], start: int, end: int) -> MarkdownText:
    """Read ``lines[start:end]``; line numbers refer to all of ``lines``."""
    text = "\n".join(lines[start:end])
    environment: dict[str, Any] = {}
    tokens = _block_parser().parse(text + "\n", environment)
    parts: tuple[HiddenPart, ...] = ()
    if _HINT.search(text) and (ranges := _hidden_ranges(text, tokens, environment)):
        parts = tuple(_hidden_parts(text, ranges, sum(map(len, lines[:start])) + start))
        removed = ((part.start, part.end) for part in ranges if not part.is_kept)
        visible = _replaced(text, removed, "")
        tokens = _block_parser().parse(visible + "\n")
        lines = [*lines[:start], *visible.split("\n"), *lines[end:]]
    return lines, parts, tuple(_blocks(lines, start, end, tokens))


def plain_words(markup: str) -> str:
    """The words of a heading as a browser shows them, without markup."""
    if len(markup) > MAX_TITLE_CHARS:
        return one_line(markup)
    markup = _ANCHOR.sub("", markup)
    if _MARKUP.search(markup):
        tokens = _inline_parser().parseInline(markup)
        markup = "".join(_words(tokens[0].children or [])) if tokens else markup
    return one_line(markup)


@cache
def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _blocks(lines: Sequence[str], start: int, end: int, tokens: Sequence[Token]) -> Iterator[Block]:
    covered = start
    for number, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        first, last = token.map[0] + start, min(token.map[1] + start, end)
        if first >= last:
            continue
        # markdown-it emits no token for link reference definitions.
        yield from _uncovered(lines, covered, first)
        covered = last
        if token.type == "heading_open":
            words = plain_words(tokens[number + 1].content)
            block = block_of(lines, "heading", first, last)
            yield block._replace(level=int(token.tag[1]), heading=words)
        elif token.type in _KINDS:
            block = block_of(lines, _KINDS[token.type], first, last)
            yield block._replace(header=lines[first]) if block.kind == "table" else block
    yield from _uncovered(lines, covered, end)


def _uncovered(lines: Sequence[str], start: int, end: int) -> Iterator[Block]:
    """Lines that belong to no token, as paragraphs."""
    for first, last in runs(lines, start, end):
        yield block_of(lines, "paragraph", first, last)


def _words(tokens: Sequence[Any]) -> Iterator[str]:
    for token in tokens:
        if token.type in {"text", "code_inline", "text_special"}:
            yield token.content
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
        elif token.type == "image":
            yield "".join(_words(token.children or []))


# -- markdown hidden --
#
# What a rendered Markdown file does not show: comments, titles of links, hidden HTML.
#
# Code is left alone: it is shown as it is. The lines stay, so that locators are correct.


# A text without any of this hides nothing.
_HINT = re.compile(r"""<[!?/A-Za-z]|^ {0,3}\[[^\]\n]*\]:|\]\([^)\n]*["'(]""", re.MULTILINE)
_TOKEN = re.compile(
    r"\\.|`+|<!--|<\?|<![A-Za-z\[]"
    # Not a component that closes itself, such as `<Script src="a.js" />`.
    r"|(?!<[A-Z][^<>]*/>)<(?P<unshown>(?i:script|style|template|datalist))(?=[\s/>])"
    r"|<(?P<name>[A-Za-z][A-Za-z0-9-]*)(?=[\s/>])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""\s+([A-Za-z_][\w.:-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_CLOSERS = {"<!--": "-->", "<?": "?>"}
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

Span = tuple[int, int]


def _comment(span: Span, text: str) -> HiddenPart:
    return HiddenPart("markup_comment", text, *span, is_labelled=False)


def _hidden_ranges(
    text: str, tokens: Sequence[Token], environment: Mapping[str, Any]
) -> list[HiddenPart]:
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
    ranges += (_comment(match.span(1), match[1].strip()) for match in _LINK_TITLE.finditer(masked))
    if tags:
        ranges += [*_elements(masked, starts), *_attributes(masked, tags)]
    ranges.sort(key=lambda part: (part.start, -part.end))
    separate, covered_until = [], 0
    for part in ranges:
        if part.is_kept or part.start >= covered_until:
            separate.append(part)
            if not part.is_kept:
                covered_until = part.end
    return separate


def _hidden_parts(text: str, ranges: Sequence[HiddenPart], offset: int) -> Iterator[HiddenPart]:
    """The ranges as parts of the file, with the offsets of their lines.

    ``offset`` is that of the text in the file.
    """
    starts = _line_starts(text)
    for part in ranges:
        start = starts[bisect_right(starts, part.start) - 1]
        end = starts[bisect_right(starts, max(part.start, part.end - 1))] - 1
        yield part._replace(text=one_line(part.text), start=offset + start, end=offset + end)


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


def _comments_and_tags(masked: str) -> tuple[list[HiddenPart], list[re.Match[str]], str]:
    """The comments, the tags that open elements, and the text without comments and code spans.

    Elements whose content is not text count as comments. They stay in the text: style sheets hide.
    """
    runs: dict[int, list[int]] = defaultdict(list)
    for run in re.finditer("`+", masked):
        runs[len(run[0])].append(run.start())
    blanks = [blank.start() for blank in _BLANK.finditer(masked)]
    comments: list[HiddenPart] = []
    tags: list[re.Match[str]] = []
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
        elif match["unshown"]:
            end_tag = re.compile(rf"</{match['unshown']}\b[^<>]*>", re.IGNORECASE)
            found = None if match["unshown"] in missing else end_tag.search(masked, at)
            if found is None:
                missing.add(match["unshown"])
            end = found.end() if found else _following(blanks, at, len(masked))
            comments.append(_comment((start, end), masked[at:end]))
            tags.append(match)
            at = end
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
                comments.append(_comment((start, end), masked[at : end - 1]))
                covered.append((start, end))
                at = end
        elif match["name"]:
            tags.append(match)
    return comments, tags, _replaced(masked, covered, " ")


def _following(offsets: Sequence[int], at: int, default: int) -> int:
    index = bisect_left(offsets, at)
    return offsets[index] if index < len(offsets) else default


def _definitions(
    text: str, masked: str, starts: Sequence[int], environment: Mapping[str, Any]
) -> Iterator[HiddenPart]:
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
            yield _comment((start, start + len(definition)), definition)
        elif title := _DEFINITION_TITLE.search(definition):
            yield _comment((start + title.start(), start + title.end()), title[0])
    # CommonMark shows footnotes as they are written; other renderers leave out an unused one.
    for note in _FOOTNOTE.finditer(masked):
        if masked.count(f"[{note[1]}]") == 1:
            yield HiddenPart("markup_comment", note[2], *note.span(), is_kept=True)


def _elements(masked: str, starts: Sequence[int]) -> Iterator[HiddenPart]:
    """Hidden elements. Their text stays: where it ends in the Markdown is not known."""
    root, problem = parsed_page(b"<body>" + masked.encode("utf-8", "replace"))
    if problem:
        # Nested too deep; the rest of the tree is missing.
        yield HiddenPart("invisible_element", "", 0, len(masked), is_kept=True)
    for element, part in Page(root, root, page_sheets(root)).hidden():
        if part.text:
            at = starts[min(element.sourceline or 1, len(starts)) - 1]
            yield part._replace(start=at, end=at, is_kept=True)


def _attributes(masked: str, tags: Sequence[re.Match[str]]) -> Iterator[HiddenPart]:
    """Attributes with a text that is not shown."""
    for tag in tags:
        name = tag["name"] or ""
        # A name with a capital letter is a component's, whose attributes may be shown.
        if not name.islower() or "-" in name:
            continue
        for attribute in _ATTRIBUTE.finditer(masked, tag.end("name"), tag.end()):
            value = (attribute[2] or "").strip("\"'")
            is_text = len(value.split()) >= _MIN_ATTRIBUTE_WORDS
            if is_text and attribute[1].lower() not in _SHOWN_ATTRIBUTES:
                yield _comment(attribute.span(), unescape(value))


# -- separated --
#
# One file with several documents, split at a declared separator line. The rest of the line is the
# title. The content is read as Markdown.


_NOT_WORD = re.compile(r"[\W_]+")
_CLOSING_MARKS = " \t=-*#~_"  # as in "=== Title ==="


def _read_separated(
    data: bytes, path: str, separator: str
) -> Iterable[ParsedDocument | DocumentError]:
    """One document per part with text, also of the part before the first separator.

    A part with bad front matter yields its error, and the other parts follow.

    Raises:
        DocumentError: ``no_separator``, ``undecodable``.
    """
    if not separator:
        problem = f"{path}: the reader `separated` requires a separator"
        step = "set `separator` in rolebundle.toml"
        raise DocumentError("no_separator", problem, step)
    lines, notes = open_text(data, path)
    keys: set[str] = set()
    separators = [i for i, line in enumerate(lines) if line.startswith(separator)]
    for number, (before, end) in enumerate(pairwise((-1, *separators, len(lines)))):
        start = before + 1
        if all(map(is_blank, lines[start:end])):
            continue
        title = lines[before][len(separator) :].strip(_CLOSING_MARKS) if number else ""
        slug = _NOT_WORD.sub("-", title.lower()).strip("-") or str(number)
        key = unique_key(slug, keys)
        try:
            document = _document(lines, notes, path, start, end, key)
            yield replace(document, inferred={"title": title}) if title else document
        except DocumentError as error:
            yield error


# -- ipynb --
#
# Jupyter notebooks of format 4: the cells as people wrote them, without outputs.


# Tags and settings with which a notebook is shown without the source of a cell.
_HIDING_TAGS = frozenset({"hide-cell", "hide-input", "hide_input", "remove-cell", "remove-input"})
_HIDING_KEYS = ("hide_input", "hidden", "source_hidden")


def _read_notebook(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file. A chunk never spans two cells.

    Raises:
        DocumentError: ``unreadable_notebook``, ``undecodable``.
    """
    lines, notes = open_text(data, path)
    text = "\n".join(lines)
    notebook = _parsed(text, path)
    blocks: list[Block] = []
    hidden: list[HiddenPart] = []
    line_of = line_index(text)
    for number, cell in enumerate(_member(notebook, "cells", list), 1):
        if isinstance(cell, dict):
            blocks += _cell(cell, number, line_of, max(1, len(lines)), hidden)
    title = next((block.heading for block in blocks if block.heading), "")
    metadata = _member(notebook, "metadata", dict).items()
    properties = {f"metadata.{name}": value for name, value in metadata if limiting_key(name)}
    yield ParsedDocument(
        blocks=tuple(blocks),
        inferred={**properties, "title": title},
        line_exact=False,
        notes=notes,
        hidden=tuple(hidden),
    )


def _parsed(text: str, path: str) -> Mapping[str, Any]:
    with parser_errors("unreadable_notebook", path):
        try:
            value = parse_located(text)
        except NotStrictError:
            # Outputs may contain NaN, which Jupyter writes. Without offsets, lines are not known.
            value = json.loads(text)
        if not (isinstance(value, dict) and "cells" in value):
            raise ValueError("it has no cells")
    return value


def _cell(
    cell: Mapping[str, Any],
    number: int,
    line_of: Callable[[int], int],
    last: int,
    hidden: list[HiddenPart],
) -> Iterator[Block]:
    """The blocks of a cell. What it hides is added to ``hidden``."""
    source = cell.get("source")
    pieces = source if isinstance(source, list) else [source]
    lines = split_lines(cleaned("".join(piece for piece in pieces if isinstance(piece, str))))
    start = first_text(lines)
    if start == len(lines):
        return
    first, end = 1, last
    if isinstance(cell, LocatedObject):
        first, end = map(line_of, cell.spans["source"])
    kind = cell.get("cell_type")
    if kind == "markdown":
        _, parts, blocks = read_markdown(lines, 0, len(lines))
        # Their offsets are not those of the file.
        hidden += (part._replace(start=0, end=0) for part in parts)
    else:
        block_kind: BlockKind = "code" if kind == "code" else "paragraph"
        blocks = (block_of(lines, block_kind, start, len(lines)),)
    if _is_hidden(_member(cell, "metadata", dict)):
        text = "\n".join(block.text for block in blocks)
        hidden.append(HiddenPart("invisible_element", text, is_kept=True))
    for block in blocks:
        yield block._replace(start_line=first, end_line=end, anchor=f"cell {number}")


def _is_hidden(metadata: Mapping[str, Any]) -> bool:
    """Whether people see a cell only after a click, or not at all."""
    settings = (metadata, _member(metadata, "jupyter", dict))
    tags = [tag for tag in _member(metadata, "tags", list) if isinstance(tag, str)]
    return not _HIDING_TAGS.isdisjoint(tags) or any(
        owner.get(key) is True for owner in settings for key in _HIDING_KEYS
    )


def _member(owner: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """A member that is a ``list`` or ``dict``; an empty one if there is none of this kind."""
    value = owner.get(key)
    return value if isinstance(value, kind) else kind()


READERS = {"markdown": (6, _read), "separated": (6, _read_separated), "ipynb": (4, _read_notebook)}
