"""Markdown, with front matter.

markdown-it-py parses blocks only. Inline markup is parsed for headings alone. That is four times
as fast as a full parse and sufficient: the text of a block is its source lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers.base import (
    MAX_TITLE_CHARS,
    Reader,
    ReaderOptions,
    TextFile,
    block_of,
    front_matter,
    open_text,
    runs,
)
from rolebundle.ingest.readers.markdown_hidden import (
    MAX_ROUNDS,
    hidden_parts,
    hidden_ranges,
    may_hide,
    removed,
)
from rolebundle.scan.finding import HiddenPart

_KINDS: dict[str, BlockKind] = {
    "paragraph_open": "paragraph",
    "blockquote_open": "paragraph",
    "html_block": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}
_MARKUP = re.compile(r"[*_`\[\]<>&\\!~]")
_ANCHOR = re.compile(r"\s*\{#[^}]*\}\s*$")


def _read(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``, ``bad_front_matter``.
    """
    file = open_text(data, path)
    yield markdown_document(file, path, 0, len(file.lines))


def markdown_document(
    file: TextFile, path: str, start: int, end: int, *, key: str = ""
) -> ParsedDocument:
    """The document of ``file.lines[start:end]``; it may begin with front matter.

    Args:
        file: the file.
        path: its path, for messages.
        start: the index of the first line.
        end: the index after the last line.
        key: the name of the document in a file of several.

    Raises:
        DocumentError: ``bad_front_matter``.
    """
    front = front_matter(file.lines, path, start, end)
    lines, hidden, blocks = read_markdown(file.lines, front.body_index, end)
    title = next((block.heading for block in blocks if block.level == 1), "")
    return ParsedDocument(
        blocks=blocks,
        declared=front.declared,
        declared_at=front.declared_at,
        inferred={"title": title} if title else {},
        key=key,
        lines=lines,
        notes=(*file.notes, *front.notes),
        hidden=hidden,
    )


class MarkdownText(NamedTuple):
    """All lines of a file, without what is hidden in the part that was read, and its blocks."""

    lines: Sequence[str]
    hidden: tuple[HiddenPart, ...]
    blocks: tuple[Block, ...]


def read_markdown(lines: Sequence[str], start: int, end: int) -> MarkdownText:
    """Read ``lines[start:end]``; line numbers refer to all of ``lines``."""
    text = "\n".join(lines[start:end])
    environment: dict[str, Any] = {}
    tokens = _block_parser().parse(text + "\n", environment)
    if not may_hide(text):
        return MarkdownText(lines, (), tuple(_blocks(lines, start, end, tokens)))
    offset = sum(map(len, lines[:start])) + start
    parts: list[HiddenPart] = []
    for _ in range(MAX_ROUNDS):
        ranges = hidden_ranges(text, tokens, environment)
        visible = removed(text, ranges)
        if not parts:
            parts += hidden_parts(text, ranges, offset)
        if visible == text:
            break
        text, environment = visible, {}
        tokens = _block_parser().parse(text + "\n", environment)
    new_lines = [*lines[:start], *text.split("\n"), *lines[end:]] if parts else lines
    return MarkdownText(new_lines, tuple(parts), tuple(_blocks(new_lines, start, end, tokens)))


def plain_words(markup: str) -> str:
    """The words of a heading as a browser shows them, without markup."""
    if len(markup) > MAX_TITLE_CHARS:
        return " ".join(markup.split())
    markup = _ANCHOR.sub("", markup)
    if _MARKUP.search(markup):
        tokens = _inline_parser().parseInline(markup)
        markup = "".join(_words(tokens[0].children or [])) if tokens else markup
    return " ".join(markup.split())


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
    for token, content in _top_level(tokens):
        if token.map is None:
            continue
        first, last = token.map[0] + start, min(token.map[1] + start, end)
        if first >= last:
            continue
        # markdown-it emits no token for link reference definitions.
        yield from _uncovered(lines, covered, first)
        covered = last
        if token.type == "heading_open":
            words = plain_words(content)
            level = int(token.tag[1])
            yield block_of(lines, "heading", first, last, level=level, heading=words)
        elif token.type in _KINDS:
            block = block_of(lines, _KINDS[token.type], first, last)
            yield block._replace(header=lines[first]) if block.kind == "table" else block
    yield from _uncovered(lines, covered, end)


def _uncovered(lines: Sequence[str], start: int, end: int) -> Iterator[Block]:
    """Lines that belong to no token, as paragraphs."""
    for first, last in runs(lines, start, end):
        yield block_of(lines, "paragraph", first, last)


def _top_level(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """The tokens that open a top-level block, each with the inline source of the next token."""
    for i, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            following = tokens[i + 1] if i + 1 < len(tokens) else None
            yield token, following.content if following and following.type == "inline" else ""


def _words(tokens: Sequence[Any]) -> Iterator[str]:
    for token in tokens:
        if token.type in {"text", "code_inline", "text_special"}:
            yield token.content
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
        elif token.type == "image":
            yield "".join(_words(token.children or []))


READER = Reader("markdown", 3, _read)
