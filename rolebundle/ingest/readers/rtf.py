"""Rich Text (RTF): the text that Word, WordPad and TextEdit show, one line per paragraph.

A first pass takes out what is hidden, the data of pictures and the instructions of fields, and
marks headings. striprtf then makes the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rolebundle.ingest.declarations import limiting_key
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import own_title, parser_errors
from rolebundle.ingest.readers.package import TextBlocks, hidden_kind
from rolebundle.scan.hidden_style import WHITE, Color
from rolebundle.text.decoding import one_line

_TOKEN = re.compile(
    r"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?\d{1,10})?[ ]?|(?P<brace>[{}])"
    r"|\\'[0-9A-Fa-f]{2}|\\[\s\S]|[^\\{}]+|\\"
)
_AWAY = frozenset("fldinst pict objdata themedata datastore colorschememapping blipuid".split())
"""Groups whose text is data, which may be large."""
_LEFT_OUT = {"header": "headers and footers", "footer": "headers and footers",
             "annotation": "comments", "shptxt": "text boxes"}  # fmt: skip
_TEXT_WORDS = frozenset("tab line cell row u lquote rquote bullet footnote".split())
"""Words that are text themselves, and so are hidden with it."""
_HEADINGS = "\ue0f0\ue0f1\ue0f2\ue0f3\ue0f4\ue0f5"
"""Characters for private use, of which one is before a heading of each level."""
_STYLE = re.compile(r"\{\\s(\d{1,4})\b([^{}]*(?:\{[^{}]*\}[^{}]*)?);\}")
_LEVEL = re.compile(r"\\outlinelevel([0-5])\b|\bheading ([1-6])$", re.IGNORECASE)
_COLOR = re.compile(r"((?:\\(?:red|green|blue)\d{1,3}\s*|\\c\w+\s*)*);")
_SHADING = re.compile(r"\\(?:cl|tr)?cbpat[1-9]|\\shp\b")
_PART = re.compile(r"\\(red|green|blue)(\d{1,3})")
_MAX_HEAD = 1_000_000
"""Characters in which the tables and the properties of a document are looked for."""
_TIME = r"\{\\%s\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})"
_PROPERTY = re.compile(r"\{\\propname ([^{}]*)\}\s*\\proptype\d+\s*\{\\staticval ([^{}]*)\}")


class _Look(NamedTuple):
    """How a text is shown, by the words before it."""

    kind: str = ""
    """The kind of hidden text that it is by a word, or ``data``; empty if it is shown."""
    foreground: int = 0
    background: int = 0
    size: float | None = None
    end: str = ""
    """What is written where its group ends."""


def text_of(source: str) -> tuple[str, dict[str, str]]:
    """The text that a document shows, and the hidden texts by their kinds.

    Args:
        source: the document, with one character for each byte.
    """
    shown, hidden = _parts(source)
    return _plain(shown), {kind: _plain(text) for kind, text in hidden.items()}


def _plain(source: str) -> str:
    from striprtf.striprtf import rtf_to_text

    text: str = rtf_to_text(source, errors="replace")  # type: ignore[no-untyped-call]
    # A sign beyond the first 65,536 is written as two halves.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _parts(source: str) -> tuple[str, dict[str, str]]:
    """The source without what is not shown; and by kind, with hidden texts alone."""
    colors = _colors(source)
    styles = ((style[1], _LEVEL.search(style[2])) for style in _STYLE.finditer(source[:_MAX_HEAD]))
    levels = {int(name): int(at[1] or int(at[2]) - 1) for name, at in styles if at}
    looks, look = list[_Look](), _Look()
    # The kind of a hidden text, or "" if it is shown; whether it is a text; the source.
    pieces: list[tuple[str, bool, str]] = []
    at = 0
    while match := _TOKEN.match(source, at):
        at = match.end()
        word, token = match["word"], match[0]
        number = int(match["number"] or 0)
        if match["brace"] == "{":
            looks.append(look)
            look = look._replace(end="")
        elif match["brace"]:
            pieces.append((look.kind, True, look.end))
            look = looks.pop() if looks else _Look()
        elif word == "bin":
            at += max(0, number)
            continue
        elif word in _AWAY:
            look = look._replace(kind="data")
        elif word == "footnote":
            # Beside its place in the text, in brackets.
            look, token = look._replace(end="]"), " ["
        elif word in ("v", "deleted", "plain", "cf", "cb", "chcbpat", "highlight", "fs"):
            look = _changed(look, word, number, is_off=match["number"] == "0")
        elif word == "outlinelevel" and number < len(_HEADINGS):
            token += _HEADINGS[number]
        elif word == "s" and number in levels:
            token += _HEADINGS[levels[number]]
        is_text = not (word or match["brace"] or token == "\\*") or word in _TEXT_WORDS
        kind = (look.kind or _unseen(look, colors)) if is_text else ""
        pieces.append((kind, is_text, token))
    kinds = {kind for kind, _, _ in pieces} - {"", "data"}
    shown = "".join(token for kind, _, token in pieces if not kind)
    return shown, {
        kind: "".join(token for of, is_text, token in pieces if of == kind or not (of or is_text))
        for kind in sorted(kinds)
    }


def _changed(look: _Look, word: str, number: int, *, is_off: bool) -> _Look:
    if word == "plain":
        return _Look(kind="data" if look.kind == "data" else "", end=look.end)
    if word in ("v", "deleted"):
        kind = "invisible_element" if word == "v" else "tracked_deletion"
        if look.kind == "data":
            return look
        return look._replace(kind="" if is_off else kind)
    if word == "fs":
        return look._replace(size=number / 2)  # In half points.
    if word == "cf":
        return look._replace(foreground=number)
    return look._replace(background=number)


def _unseen(look: _Look, colors: Sequence[Color | None]) -> str:
    """How a text is hidden by its color and size; empty if it is not."""
    of = dict(enumerate(colors))
    return hidden_kind(of.get(look.foreground), of.get(look.background) or WHITE, look.size)


def _colors(source: str) -> list[Color | None]:
    """The table of colors; ``None`` for the usual one."""
    if _SHADING.search(source):
        return []  # A white text may stand on a dark cell.
    table = re.search(r"\\colortbl\b([^{}]{0,100000})", source[:_MAX_HEAD])
    colors: list[Color | None] = []
    for entry in _COLOR.finditer(table[1]) if table else ():
        parts = {name: min(255, int(value)) for name, value in _PART.findall(entry[1])}
        channels = (parts.get(name, 0) for name in ("red", "green", "blue"))
        colors.append(Color(*channels) if parts else None)
    return colors


def _properties(source: str) -> dict[str, Any]:
    head = source[:_MAX_HEAD]
    code_page = re.search(r"\\ansicpg\d+", head)

    def value(text: str) -> str:
        return one_line(_plain(f"{{\\rtf1{code_page[0] if code_page else ''} {text}}}"))

    texts = {name: value(text) for name, text in re.findall(r"\{\\(title|author) ([^{}]*)\}", head)}
    times = (re.search(_TIME % name, head) for name in ("revtim", "creatim"))
    dates = ["-".join(time.groups()) for time in times if time and time[1] >= "1970"]
    limits = {value(name): value(text) for name, text in _PROPERTY.findall(source)}
    return {
        **{f"property.{name}": text for name, text in limits.items() if limiting_key(name)},
        "title": own_title(texts.get("title", "")),
        "authors": [texts["author"]] if texts.get("author") else [],
        "updated_at": dates[0] if dates else "",
    }


def _read(data: bytes, path: str, _separator: str) -> Iterator[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``unreadable_rtf``, ``rtf_too_large``.
    """
    with parser_errors("unreadable_rtf", path):
        source = data.decode("latin-1")
        if not source.lstrip().startswith("{\\rtf"):
            raise ValueError("it does not begin as Rich Text")
        text, hidden = text_of(source)
        blocks = TextBlocks("rtf", path)
        rows: list[Sequence[str]] = []
        for line in (*text.split("\n"), ""):
            if line.endswith("|"):
                rows.append([*line.split("|")])
                continue
            blocks.table(rows)
            rows = []
            words = line.lstrip(_HEADINGS)
            if words != line:
                blocks.heading(words, _HEADINGS.index(line[-len(words) - 1]) + 1)
            else:
                blocks.add("paragraph", line)
        for kind, words in hidden.items():
            blocks.hide(kind, words.translate(dict.fromkeys(map(ord, _HEADINGS))))
        left = sorted({name for word, name in _LEFT_OUT.items() if f"\\{word}" in source})
        notes = [f"left out: {', '.join(left)}"] if left else []
        yield blocks.document(_properties(source), notes)


READERS = {"rtf": (1, _read)}
