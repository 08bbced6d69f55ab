"""Reduces the source of a page to the part that must be parsed.

Two thirds of the tags on a page of documentation are navigation, which is not read, or links and
highlighting inside the text, which change neither its words nor its structure. libxml2 would create
an element for each of them. They are removed from the source first, but only if the page consists
of tokens that all HTML parsers read in the same way. Any other page stays unchanged, and hidden
elements stay hidden (docs/decisions/0018).

RE2 finds quickly that a pattern is absent: several times as fast as ``re`` on most pages.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped, unused-ignore]

# libxml2 refuses a text of ten million bytes without a tag in it.
_MAX_BYTES = 8_000_000
_INLINE: tuple[str, ...] = ("span", "a", "code", "em", "strong", "b", "i", "tt")
# Other elements whose content is markup, unlike that of `<textarea>` or `<xmp>`. A name with a
# hyphen is that of a custom element.
_MARKUP_TAGS = (
    "abbr acronym address area article aside base big blockquote body br button caption center"
    " circle cite col colgroup dd defs del desc details dfn dir div dl dt ellipse fieldset"
    " figcaption figure font footer form g h[1-6] head header hgroup hr html img input ins kbd"
    " label legend li line link main map mark menu meta nav noscript ol optgroup option p path"
    " picture polygon polyline pre q rect s samp search section select small source stop strike sub"
    " summary sup svg symbol table tbody td text tfoot th thead time tr u ul use var wbr"
    " [a-z]+-[a-z-]+"
).split()
_ATTRIBUTE = r"""\s+[^\s"'<>/=]+(?:\s*=\s*(?:"[^"<]*"|'[^'<]*'|[^\s"'=<>`]+))?"""
_ATTRIBUTES = rf"(?:{_ATTRIBUTE})*\s*/?"
# Contains no tag, so that removing tags cannot create a new one.
_RAW = r"(?:[^<]|<[^/!<a-z])*"
_TOKENS = (
    "[^<]",
    rf"</?(?:{'|'.join((*_INLINE, *_MARKUP_TAGS))}){_ATTRIBUTES}>",
    # May contain a hyphen or a tag, but not both.
    r"<!--(?:[^->](?:[^-<]|-[^-<])*|[^->][^-]*)?-->",
    rf"<script{_ATTRIBUTES}>{_RAW}</script\s*>",
    rf"<style{_ATTRIBUTES}>{_RAW}</style\s*>",
    "<title>[^<]*</title>",
    "<[!?][a-z][^<>]*>",
)
# A source, or a part of one, of tokens that all HTML parsers read in the same way.
_UNAMBIGUOUS = f"(?i)(?:{'|'.join(_TOKENS)})*".encode()
_MAIN = rb"""(?i)<main[\s/>]|role\s*=\s*["']?main"""
_ROLE_TAG = rf"(?i)<(?:article|div|section){_ATTRIBUTES}>".encode()
_HEAD_END = b"</head>"
_HIDING_TAG = (
    rb"(?i)<([a-z][a-z0-9]*)[^<>]*[\s\"'/](?:(?:hidden|popover)[\s=/>]|(?:style|bgcolor|text)\s*=)"
)
_VOID = frozenset((b"img", b"input", b"meta", b"link", b"br", b"hr"))
# The names of attributes that cannot hide an element.
_ATTRIBUTE_NAME = r"(?!style|hidden|aria-hidden|popover)[a-z][a-z0-9_:-]*+"
# The attributes of an inline tag that may be removed. They do not hide the element, and contain no
# line break, which would be lost with the tag.
_HARMLESS_ATTRIBUTES = rf"""(?: {_ATTRIBUTE_NAME}(?:="[^"<\n]*+"|='[^'<\n]*+')?)*+ ?+"""
# An empty element may be removed whatever its attributes are.
_EMPTY_ELEMENT = r"<(i|span) [^<>\n]*+></\1>"
_START_TAG = re.compile(rb"<([a-z]+)[\s/>]", re.IGNORECASE)
_LINE_NUMBERS = rb"(?i)lineno"


class Reduced(NamedTuple):
    """The source to parse, and whether a part before the main part was cut."""

    source: bytes
    is_cut: bool


def reduce_source(source: bytes, *, keep_tags: bool = False) -> Reduced:
    """Remove the part between the head and the first main part, and inline tags.

    Line numbers do not change. A source that could be parsed in two ways is returned unchanged, and
    so is one whose main part is in an element that may be hidden.

    Args:
        source: the source of the page in UTF-8.
        keep_tags: whether a style sheet may hide any element, so that all of them are needed.
    """
    if keep_tags:
        return Reduced(source, is_cut=False)
    start, end = _prefix(source)
    if start < end and _may_wrap_main(source[start:end]):
        start = end = 0
    # Each piece is checked alone, so that the cuts are between two tokens.
    pieces = (0, start), (start, end), (end, len(source))
    if len(source) > _MAX_BYTES or not all(_is_unambiguous(source, *piece) for piece in pieces):
        return Reduced(source, is_cut=False)
    breaks = b"\n" * source.count(b"\n", start, end)
    text = b"".join((source[:start], breaks, source[end:]))
    return Reduced(_without_inline_tags(text), is_cut=start < end)


def _is_unambiguous(source: bytes, start: int, end: int) -> bool:
    """Whether all HTML parsers read this part of the source in the same way."""
    return byte_pattern(_UNAMBIGUOUS).fullmatch(source, start, end) is not None


def _prefix(source: bytes) -> tuple[int, int]:
    """The range between the head and the first main part; empty if either is missing."""
    main = _main_start(source)
    head = source.find(_HEAD_END, 0, max(main, 0))
    return (head + len(_HEAD_END), main) if head >= 0 else (0, 0)


def _may_wrap_main(prefix: bytes) -> bool:
    """Whether a tag before the main part may hide or color it: its element is not closed before."""
    for tag in byte_pattern(_HIDING_TAG).finditer(prefix):
        name = tag[1].lower()
        after_tag = prefix[tag.end() :].lower()
        if after_tag.count(b"<" + name) >= after_tag.count(b"</" + name) and name not in _VOID:
            return True
    return False


def _main_start(source: bytes) -> int:
    """The offset of the start tag of the first main part, or -1."""
    match = byte_pattern(_MAIN).search(source)
    if match is None:
        return -1
    start: int = match.start()
    if source.startswith(b"<", start):
        return start
    tag = source.rfind(b"<", 0, start)
    whole_tag = byte_pattern(_ROLE_TAG).match(source, max(tag, 0))
    return tag if whole_tag is not None and whole_tag.end() > start else -1


def _without_inline_tags(source: bytes) -> bytes:
    """Remove the inline tags of a source that have no attribute that may hide an element.

    If a start tag with such an attribute stays, all tags of its name stay, so that each start tag
    has its end tag.
    """
    names = _INLINE
    if byte_pattern(_LINE_NUMBERS).search(source):
        # A span may contain a line number, which is not part of the text.
        names = tuple(name for name in names if name != "span")
    text = _tags(names).sub(b"", source)
    if byte_pattern(_start_of(names)).search(text) is None:
        return text
    remaining = {name.decode().lower() for name in _START_TAG.findall(text)}
    return _tags(tuple(name for name in names if name not in remaining)).sub(b"", source)


@lru_cache(maxsize=64)
def _tags(names: tuple[str, ...]) -> re.Pattern[bytes]:
    """A pattern of removable tags of these names, and of empty ``i`` and ``span`` elements."""
    any_of = "|".join(names)
    return re.compile(
        rf"<(?:/(?:{any_of})|(?:{any_of}){_HARMLESS_ATTRIBUTES})>|{_EMPTY_ELEMENT}".encode()
    )


@lru_cache(maxsize=64)
def _start_of(names: tuple[str, ...]) -> bytes:
    return rf"(?i)<(?:{'|'.join(names)})[\s/>]".encode()


@cache
def byte_pattern(expression: bytes) -> Any:
    r"""Compile an RE2 pattern over bytes. Its ``\s`` does not match the vertical tab."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # One byte, one character.
    return re2.compile(expression, options)
