"""As much of a page's source as has to be parsed.

Two thirds of the tags on a page of documentation are navigation, of which nothing is read, and
links and highlighting inside the text, which change neither its words nor its structure. libxml2
would make elements of them all. They are taken out of the source first, but only where nobody can
doubt what they are: on a page of tokens that every parser of HTML reads alike. Any other page stays
as it is, and what is hidden on it stays hidden (docs/decisions/0018).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rolebundle.ingest.readers.byte_patterns import byte_pattern

# libxml2 refuses a text of ten million bytes without a tag in it.
_LONGEST = 8_000_000
_INLINE: tuple[str, ...] = ("span", "a", "code", "em", "strong", "b", "i", "tt")
# Further elements whose content is markup, unlike that of `<textarea>` or `<xmp>`; those with a
# hyphen in their name are the page's own.
_OTHER = (
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
# No tag inside, so that none that is taken out makes another one.
_RAW = r"(?:[^<]|<[^/!<a-z])*"
_TOKENS = (
    "[^<]",
    rf"</?(?:{'|'.join((*_INLINE, *_OTHER))}){_ATTRIBUTES}>",
    # With a hyphen inside or with a tag, not with both.
    r"<!--(?:[^->](?:[^-<]|-[^-<])*|[^->][^-]*)?-->",
    rf"<script{_ATTRIBUTES}>{_RAW}</script\s*>",
    rf"<style{_ATTRIBUTES}>{_RAW}</style\s*>",
    "<title>[^<]*</title>",
    "<[!?][a-z][^<>]*>",
)
_PLAIN = f"(?i)(?:{'|'.join(_TOKENS)})*".encode()
_MAIN = rb"""(?i)<main[\s/>]|role\s*=\s*["']?main"""
_ROLE_TAG = rf"(?i)<(?:article|div|section){_ATTRIBUTES}>".encode()
_HEAD_END = b"</head>"
# What may hide an element is left to the reader, unless the element is empty and shows nothing. So
# is a tag over two lines: without it, a line would be missing, or a word be cut in two.
_ATTRIBUTE_NAME = r"(?!style|hidden|aria-hidden)[a-z][a-z0-9_:-]*+"
_HARMLESS = rf"""(?: {_ATTRIBUTE_NAME}(?:="[^"<\n]*+"|='[^'<\n]*+')?)*+ ?+"""
_EMPTY = r"<(i|span) [^<>\n]*+></\1>"
_START_TAG = re.compile(rb"<([a-z]+)[\s/>]", re.IGNORECASE)
_LINE_NUMBERS = rb"(?i)lineno"


class Reduced(NamedTuple):
    """A source to parse instead of a page's own, and whether its beginning was left out."""

    source: bytes
    is_cut: bool


def reduced(source: bytes) -> Reduced:
    """``source`` without what stands before its first main part, and without tags inside text.

    Lines keep their numbers. It comes back as it is where it could be read in two ways.
    """
    start, end = _prefix(source)
    # Each piece by itself, so that it is cut between two tokens.
    pieces = (0, start), (start, end), (end, len(source))
    if len(source) > _LONGEST or not all(_is_plain(source, *piece) for piece in pieces):
        return Reduced(source, is_cut=False)
    breaks = b"\n" * source.count(b"\n", start, end)
    text = b"".join((source[:start], breaks, source[end:]))
    return Reduced(_without_inline_tags(text), is_cut=start < end)


def _is_plain(source: bytes, start: int, end: int) -> bool:
    return byte_pattern(_PLAIN).fullmatch(source, start, end) is not None


def _prefix(source: bytes) -> tuple[int, int]:
    """What stands between the head and the first main part; nothing where one is missing."""
    main = _main_start(source)
    head = source.find(_HEAD_END, 0, max(main, 0))
    return (head + len(_HEAD_END), main) if head >= 0 else (0, 0)


def _main_start(source: bytes) -> int:
    """Where the start tag of the first main part begins, or -1."""
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
    names = _INLINE
    if byte_pattern(_LINE_NUMBERS).search(source):
        # One may be the number of a line, which is no part of the text.
        names = tuple(name for name in names if name != "span")
    text = _tags(names).sub(b"", source)
    if byte_pattern(_start_of(names)).search(text) is None:
        return text
    # An end tag whose start tag is still there has to stay as well.
    left = {name.decode().lower() for name in _START_TAG.findall(text)}
    return _tags(tuple(name for name in names if name not in left)).sub(b"", source)


@lru_cache(maxsize=64)
def _tags(names: tuple[str, ...]) -> re.Pattern[bytes]:
    any_of = "|".join(names)
    return re.compile(rf"<(?:/(?:{any_of})|(?:{any_of}){_HARMLESS})>|{_EMPTY}".encode())


@lru_cache(maxsize=64)
def _start_of(names: tuple[str, ...]) -> bytes:
    return rf"(?i)<(?:{'|'.join(names)})[\s/>]".encode()
