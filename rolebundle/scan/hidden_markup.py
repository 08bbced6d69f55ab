"""Text that a page's markup hides: comments, invisible elements, white on white, off the screen.

The source is searched in addition to what a reader finds on the page, because readers drop parts of
it, such as comments and menus. Ordinary pages have comments and hidden icons too, so the severity
of a finding is ``low`` unless its text reads like an instruction to a model. Style sheets are not
evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import unescape

from rolebundle.scan.finding import Finding, Severity, ascii_note
from rolebundle.scan.hidden_style import SIMILAR_COLOR, WHITE, color, declarations, hiding
from rolebundle.scan.instructions import Patterns
from rolebundle.scan.linear import compiled

MAX_FINDINGS = 1_000
# A longer tag, or a longer text of an element, is cut.
_MAX_TAG_CHARS = 2_000
_MAX_TEXT_CHARS = 4_000


def _unless_followed(letters: str, continuation: str) -> str:
    """An RE2 expression that matches unless ``letters`` and not ``continuation`` follow."""
    for letter in reversed(letters):
        continuation = rf"(?:\z|[^{letter}]|{letter}{continuation})"
    return continuation


# Whatever may hide an element. One search over the page finds the places to examine.
_HIDERS = (
    r"(?i)display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}(?:hidden|collapse)"
    r"|opacity\s{0,3}:\s{0,3}0?\.?0|font-size\s{0,3}:\s{0,3}0?\.?[01]"
    r"|color\s{0,3}[:=]|text-indent\s{0,3}:\s{0,3}-|(?:left|top|right|bottom)\s{0,3}:\s{0,3}-\d{3}"
    r"|(?:height|width)\s{0,3}:\s{0,3}0|clip(?:-path)?\s{0,3}:|scale\(0"
    r"|\shidden[\s=>/]|type\s{0,3}=\s{0,3}[\"']?hidden|aria-hidden\s{1,3}=|aria-hidden="
    # Every page hides icons and numbers from screen readers. There is no hit if the element ends
    # after at most twenty characters and none of them is a letter.
    + _unless_followed('"true">', r"(?:[^<\pL]{21}|[^<\pL]{0,20}(?:\z|\pL|<(?:\z|[^/])))")
)
_STYLE = re.compile(r"""\bstyle\s{0,9}=\s{0,9}("[^"]{0,2000}"|'[^']{0,2000}')""", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]{0,2000}\"|'[^']{0,2000}'")
_HIDDEN_ATTRIBUTE = re.compile(r"\s(hidden|aria-hidden)(?:[\s=/>]|$)", re.IGNORECASE)
_ARIA_FALSE = re.compile(r"aria-hidden\s{0,3}=\s{0,3}[\"']?false", re.IGNORECASE)
_NAME = re.compile(r"<([A-Za-z][A-Za-z0-9:-]{0,40})")
_TAG = re.compile(r"<[^<>]{0,2000}>")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_NO_TEXT = frozenset("script style".split())
_FONT_COLOR = re.compile(r"<font\b[^>]{0,400}?\bcolor\s{0,3}=\s{0,3}[\"']?(#?\w+)", re.IGNORECASE)


def find_hidden_markup(source: str | bytes, patterns: Patterns) -> tuple[Finding, ...]:
    """What the markup of a page hides, in order. Offsets are in characters.

    Args:
        source: the markup; bytes are read as UTF-8.
        patterns: the instructions that make a finding's severity ``high``.
    """
    data = source if isinstance(source, bytes) else source.encode("utf-8", "replace")
    comments = list(_comments(data))
    has_hider = compiled(_HIDERS).search(data) is not None
    if not (comments or has_hider):
        return ()
    # Decoded only now, because most pages end above. Valid UTF-8 is not encoded again below.
    text = data.decode("utf-8", "replace")
    findings = [
        _finding("markup_comment", *comment, patterns) for comment in _in_characters(comments, data)
    ]
    if has_hider:
        findings += _elements(text, text.encode() if "\ufffd" in text else data, patterns)
    findings.sort(key=lambda finding: finding.start)
    return tuple(findings[:MAX_FINDINGS])


def _comments(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Start and end of comments in bytes, and their text. Comments of one word are left out."""
    start = data.find(b"<!--")
    while start >= 0:
        end = data.find(b"-->", start + 4)
        stop = len(data) if end < 0 else end + 3
        # No character has more than four bytes.
        part = data[start + 4 : min(stop, start + 4 * _MAX_TEXT_CHARS)]
        text = part.decode("utf-8", "replace")[:_MAX_TEXT_CHARS].removesuffix("-->")
        # `<!--[if IE]>` and a single word such as `<!-- more -->` are for programs.
        if len(_WORDS.findall(text)) > 1 and not text.startswith("[if "):
            yield start, stop, text
        start = data.find(b"<!--", stop)


def _in_characters(
    comments: Iterable[tuple[int, int, str]], data: bytes
) -> Iterator[tuple[int, int, str]]:
    """The comments with their offsets in characters."""
    last = characters = 0
    for start, stop, text in comments:
        start_character = characters + len(data[last:start].decode("utf-8", "replace"))
        characters = start_character + len(data[start:stop].decode("utf-8", "replace"))
        last = stop
        yield start_character, characters, text


def _elements(source: str, data: bytes, patterns: Patterns) -> Iterator[Finding]:
    read_until = 0
    for offset in _hider_offsets(data, len(data) == len(source)):
        if offset < read_until:
            continue
        start = source.rfind("<", max(read_until, offset - _MAX_TAG_CHARS), offset)
        name = _NAME.match(source, start) if start >= 0 else None
        if name is None:
            continue
        end = source.find(">", start, start + _MAX_TAG_CHARS)
        if end < offset:  # The match is between tags: it is text about styles.
            continue
        kind = _kind(source[start : end + 1])
        if not kind:
            continue
        tag = name[1].lower()
        stop, text = _content(source, tag, end + 1)
        read_until = max(stop, end + 1)
        if tag in _NO_TEXT or not _WORDS.search(text):
            continue
        yield _finding(kind, start, read_until, text, patterns)


def _hider_offsets(data: bytes, is_ascii: bool) -> Iterator[int]:
    """The offsets, in characters, of whatever may hide an element."""
    search = compiled(_HIDERS).search
    last = characters = 0
    match = search(data)
    while match is not None:
        # One byte later, so that the tag's `<` is before the offset. Matches may overlap.
        offset = match.start() + 1
        if not is_ascii:
            characters += len(data[last:offset].decode("utf-8", "ignore"))
            last = offset
        yield offset if is_ascii else characters
        match = search(data, offset)


def _kind(tag: str) -> str:
    bare = _QUOTED.sub('""', tag)
    hidden = _HIDDEN_ATTRIBUTE.search(bare)
    if hidden and not (hidden[1].lower() == "aria-hidden" and _ARIA_FALSE.search(tag)):
        return "aria_hidden" if hidden[1].lower() == "aria-hidden" else "invisible_element"
    style = _STYLE.search(tag)
    declared = declarations(unescape(style[1][1:-1])) if style else {}
    way = hiding(declared)
    if way is not None:
        return way.kind
    text_color = color(declared.get("color", "") or _font_color(tag))
    background = color(declared.get("background-color", "")) or WHITE
    if text_color is None or background.alpha == 0:
        return ""
    is_same = text_color.over(background).distance(background) <= SIMILAR_COLOR
    return "white_text" if is_same else ""


def _font_color(tag: str) -> str:
    match = _FONT_COLOR.search(tag)
    return match[1].lower() if match else ""


def _content(source: str, tag: str, start: int) -> tuple[int, str]:
    """The end of an element, and its text. A longer text is cut, and its rest is searched again."""
    if tag in _VOID:
        return start, ""
    part = source[start : start + _MAX_TEXT_CHARS]
    depth = 1
    for match in _tags_named(tag).finditer(part):
        depth += -1 if match[0].startswith("</") else 1
        if depth == 0:
            end = part.find(">", match.start())
            part = part[: match.start()]
            return start + (match.end() if end < 0 else end + 1), _text(part)
    return start + len(part), _text(part)


def _text(part: str) -> str:
    return _TAG.sub(" ", part).strip()


# Bounded, because a document chooses the names of its elements.
@lru_cache(maxsize=256)
def _tags_named(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</?{re.escape(tag)}\b", re.IGNORECASE)


def _finding(kind: str, start: int, end: int, text: str, patterns: Patterns) -> Finding:
    severity: Severity = "high" if patterns.find(text) else "low"
    return Finding(kind, start, end, ascii_note(" ".join(text.split())), severity)
