"""The block rules of Markdown, for a whole file or for a part of one.

markdown-it-py parses blocks only; inline markup is parsed for headings alone. That is four times
as fast as a full parse, and nothing here needs more: a block's text is its source lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from rolebundle.ingest.parsed import Block, BlockKind
from rolebundle.ingest.readers.text_file import LONGEST_TITLE, block_of, runs

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


@cache
def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def markdown_blocks(lines: Sequence[str], start: int, end: int) -> tuple[Block, ...]:
    """The blocks of ``lines[start:end]``, with the line numbers of the whole."""
    return tuple(_blocks(lines, start, end))


def first_heading(blocks: Sequence[Block]) -> str:
    """The words of the first heading of level 1, or nothing."""
    return next((block.heading for block in blocks if block.level == 1), "")


def _blocks(lines: Sequence[str], start: int, end: int) -> Iterator[Block]:
    covered = start
    for token, content in _top_level(_block_parser().parse("\n".join(lines[start:end]) + "\n")):
        if token.map is None:
            continue
        first, last = token.map[0] + start, min(token.map[1] + start, end)
        if first >= last:
            continue
        # markdown-it gives no token to link reference definitions.
        yield from _left_over(lines, covered, first)
        covered = last
        if token.type == "heading_open":
            words = plain_words(content)
            level = int(token.tag[1])
            yield block_of(lines, "heading", first, last, level=level, heading=words)
        elif token.type in _KINDS:
            yield block_of(lines, _KINDS[token.type], first, last)
    yield from _left_over(lines, covered, end)


def _left_over(lines: Sequence[str], start: int, end: int) -> Iterator[Block]:
    for first, last in runs(lines, start, end):
        yield block_of(lines, "paragraph", first, last)


def _top_level(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """The tokens that open a top-level block, each with the inline source of the next token."""
    for i, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            following = tokens[i + 1] if i + 1 < len(tokens) else None
            yield token, following.content if following and following.type == "inline" else ""


def plain_words(markup: str) -> str:
    """A heading's words: what a reader sees of ``markup``."""
    if len(markup) > LONGEST_TITLE:
        return " ".join(markup.split())
    markup = _ANCHOR.sub("", markup)
    if _MARKUP.search(markup):
        tokens = _inline_parser().parseInline(markup)
        markup = "".join(_words(tokens[0].children or [])) if tokens else markup
    return " ".join(markup.split())


def _words(tokens: Sequence[Any]) -> Iterator[str]:
    for token in tokens:
        if token.type in {"text", "code_inline", "text_special"}:
            yield token.content
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
        elif token.type == "image":
            yield "".join(_words(token.children or []))
