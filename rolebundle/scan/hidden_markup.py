"""Text that a page's markup hides: comments, invisible elements, white on white, off the screen.

The source is scanned, because a reader of documents drops hidden text or takes it for visible text.
Ordinary pages have comments and hidden icons too, so the severity of a finding is ``low`` unless
its text reads like an instruction to a model. Style sheets are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from rolebundle.scan.finding import Finding, Severity, ascii_note
from rolebundle.scan.instructions import Patterns
from rolebundle.scan.linear import compiled

MAX_FINDINGS = 1_000
# A longer tag, or a longer text of an element, is cut.
_MAX_TAG_CHARS = 2_000
_MAX_TEXT_CHARS = 4_000
# Of 255: colors that differ by no more look the same, and a color above the second looks white.
_MAX_SAME_COLOR_DISTANCE = 40
_MIN_WHITE = 235


def _unless_followed(letters: str, rest: str) -> str:
    """An RE2 expression that matches unless ``letters`` follows, or if ``rest`` comes after it."""
    for letter in reversed(letters):
        rest = rf"(?:\z|[^{letter}]|{letter}{rest})"
    return rest


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
_COLORS = {"white": (255, 255, 255), "black": (0, 0, 0), "snow": (255, 250, 250)}
_COLORS |= {"ivory": (255, 255, 240), "whitesmoke": (245, 245, 245), "ghostwhite": (248, 248, 255)}
_COLORS |= {"red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "gray": (128, 128, 128)}
_MARKDOWN_LABEL = r"\]: {0,9}(?:#|<>) {0,9}[(\"']"
_MARKDOWN_COMMENT = re.compile(
    r"^ {0,3}\[[^\]\n]{1,80}\]: {0,9}(?:#|<>) {0,9}([(\"'][^\n]{3,2000})$", re.MULTILINE
)


def find_hidden_markup(source: str | bytes, patterns: Patterns) -> tuple[Finding, ...]:
    """What the markup of a page or a Markdown file hides, in order. Offsets are in characters.

    Args:
        source: the markup; bytes are read as UTF-8.
        patterns: the instructions that make a finding's severity ``high``.
    """
    data = source if isinstance(source, bytes) else source.encode("utf-8", "replace")
    comments = list(_comments(data))
    has_hider = compiled(_HIDERS).search(data) is not None
    has_label = compiled(_MARKDOWN_LABEL).search(data) is not None
    if not (comments or has_hider or has_label):
        return ()
    # Decoded only now, because most pages end above. Valid UTF-8 is not encoded again below.
    text = data.decode("utf-8", "replace")
    findings = [
        _finding("markup_comment", *comment, patterns) for comment in _in_characters(comments, data)
    ]
    if has_label:
        findings += _markdown_comments(text, patterns)
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
        here = characters + len(data[last:start].decode("utf-8", "replace"))
        characters = here + len(data[start:stop].decode("utf-8", "replace"))
        last = stop
        yield here, characters, text


def _markdown_comments(source: str, patterns: Patterns) -> Iterator[Finding]:
    for match in _MARKDOWN_COMMENT.finditer(source):
        if _WORDS.search(match[1]):
            yield _finding("markup_comment", match.start(), match.end(), match[1], patterns)


def _elements(source: str, data: bytes, patterns: Patterns) -> Iterator[Finding]:
    done = 0
    for offset in _hider_offsets(data, len(data) == len(source)):
        if offset < done:
            continue
        start = source.rfind("<", max(done, offset - _MAX_TAG_CHARS), offset)
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
        done = max(stop, end + 1)
        if tag in _NO_TEXT or not _WORDS.search(text):
            continue
        yield _finding(kind, start, done, text, patterns)


def _hider_offsets(data: bytes, is_ascii: bool) -> Iterator[int]:
    """The offsets, in characters, of whatever may hide an element."""
    search = compiled(_HIDERS).search
    last = characters = 0
    match = search(data)
    while match is not None:
        # One byte later, so that the tag's `<` is before the offset. Matches may overlap.
        here = match.start() + 1
        if not is_ascii:
            characters += len(data[last:here].decode("utf-8", "ignore"))
            last = here
        yield here if is_ascii else characters
        match = search(data, here)


def _kind(tag: str) -> str:
    bare = _QUOTED.sub('""', tag)
    hidden = _HIDDEN_ATTRIBUTE.search(bare)
    if hidden and not (hidden[1].lower() == "aria-hidden" and _ARIA_FALSE.search(tag)):
        return "aria_hidden" if hidden[1].lower() == "aria-hidden" else "invisible_element"
    declared = _declarations(tag)
    if not declared:
        return "white_text" if _is_white(_attribute_color(tag)) else ""
    if _is_invisible(declared):
        return "invisible_element"
    if _is_off_screen(declared):
        return "off_screen_element"
    return "white_text" if _is_unreadable(declared) else ""


def _declarations(tag: str) -> dict[str, str]:
    style = _STYLE.search(tag)
    if style is None:
        return {}
    pairs = (part.partition(":") for part in style[1][1:-1].split(";"))
    return {
        name.strip().lower(): value.replace("!important", "").strip().lower()
        for name, _, value in pairs
    }


def _is_invisible(declared: dict[str, str]) -> bool:
    if declared.get("display") == "none":
        return True
    if declared.get("visibility") in {"hidden", "collapse"}:
        return True
    if _number(declared.get("opacity", "1")) <= 0.05:
        return True
    if "font-size" in declared and _number(declared["font-size"]) <= 0.1:
        return True
    if declared.get("font-size", "").endswith("px") and _number(declared["font-size"]) <= 1:
        return True
    is_flat = any(_number(declared.get(side, "9")) == 0 for side in ("height", "width"))
    if is_flat and declared.get("overflow") == "hidden":
        return True
    return "scale(0" in declared.get("transform", "")


def _is_off_screen(declared: dict[str, str]) -> bool:
    if _number(declared.get("text-indent", "0")) <= -100:
        return True
    is_moved = declared.get("position") in {"absolute", "fixed", "relative"}
    if is_moved and any(
        _number(declared.get(side, "0")) <= -100 for side in ("left", "top", "right", "bottom")
    ):
        return True
    clipped = declared.get("clip", "").replace(" ", "")
    return clipped.startswith(("rect(0", "rect(1px")) or "inset(50%" in declared.get(
        "clip-path", ""
    )


def _is_unreadable(declared: dict[str, str]) -> bool:
    if declared.get("color") == "transparent":
        return True
    color = _color(declared.get("color", ""))
    declared_background = declared.get("background-color", declared.get("background", ""))
    if not declared_background:
        return _is_white(color)
    background = _color(declared_background)
    if color is None or background is None:
        return False
    return (
        max(abs(a - b) for a, b in zip(color, background, strict=True)) <= _MAX_SAME_COLOR_DISTANCE
    )


def _is_white(color: tuple[int, ...] | None) -> bool:
    return color is not None and min(color) >= _MIN_WHITE


def _attribute_color(tag: str) -> tuple[int, ...] | None:
    match = re.search(r"<font\b[^>]{0,400}?\bcolor\s{0,3}=\s{0,3}[\"']?(#?\w+)", tag, re.IGNORECASE)
    return _color(match[1].lower()) if match else None


def _color(value: str) -> tuple[int, ...] | None:
    value = value.strip()
    if value.startswith("#"):
        digits = value[1:].split()[0] if value[1:].split() else ""
        if len(digits) in {3, 4}:
            digits = "".join(digit * 2 for digit in digits)
        if len(digits) in {6, 8} and re.fullmatch(r"[0-9a-f]+", digits):
            return tuple(int(digits[index : index + 2], 16) for index in (0, 2, 4))
        return None
    rgb = re.match(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})", value)
    if rgb:
        return tuple(int(part) for part in rgb.groups())
    return _COLORS.get(value.split()[0]) if value else None


def _number(value: str) -> float:
    match = re.match(r"-?(?:\d{1,9}\.?\d{0,9}|\.\d{1,9})", value)
    return float(match[0]) if match else 1.0


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


@cache
def _tags_named(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</?{re.escape(tag)}\b", re.IGNORECASE)


def _finding(kind: str, start: int, end: int, text: str, patterns: Patterns) -> Finding:
    severity: Severity = "high" if patterns.find(text) else "low"
    return Finding(kind, start, end, ascii_note(" ".join(text.split())), severity)
