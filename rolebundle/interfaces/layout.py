"""Text in a terminal: width, columns, wrapping and style."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Literal, TextIO
from unicodedata import combining, east_asian_width

from rolebundle.retrieval.passage_text import one_line

Kind = Literal["heading", "locator", "match", "minor", "caution", "rejected", "good"]

# SGR parameters (ECMA-48). The basic colours are those that the user has chosen for the terminal.
_CODES: Mapping[Kind, str] = {
    "heading": "1",
    "locator": "36",
    "match": "1;33",
    "minor": "2",
    "caution": "33",
    "rejected": "31",
    "good": "32",
}


class Style:
    """Paints texts, if there is colour."""

    def __init__(self, *, color: bool = False) -> None:
        self.color = color

    def __call__(self, kind: Kind, text: str) -> str:
        """The text in the colour of its kind."""
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.color and text else text

    def parts(self, text: str, spans: Iterable[tuple[int, int]]) -> str:
        """The text with the given parts painted as matches.

        Args:
            text: a text without colours.
            spans: offsets of the first character of a part and of the one after its last; in
                order, and without overlaps.
        """
        if not self.color:
            return text
        pieces, read = [], 0
        for start, end in spans:
            pieces += [text[read:start], self("match", text[start:end])]
            read = end
        return "".join((*pieces, text[read:]))


NO_ROLE = "(no role)"
"""What is shown in place of a role's id if a request names none."""

PLAIN = Style()


def has_color(stream: TextIO | None) -> bool:
    """Whether to print colours: if the stream is a terminal that takes them.

    ``NO_COLOR`` (https://no-color.org) and ``TERM=dumb`` switch them off.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream is not None and stream.isatty()


DEFAULT_WIDTH = 100
"""Columns of what is no terminal."""
_MIN_WIDTH = 40
_HANGING = "  "
_WORD = re.compile(r"\S+")
_COMMAND = re.compile("`[^`]*`")
# Control characters other than line break and tab, marks of direction, separators of lines.
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def terminal_width(without: int = DEFAULT_WIDTH) -> int:
    """The columns of the terminal, at least 40; ``without`` a terminal so many."""
    return max(_MIN_WIDTH, shutil.get_terminal_size((without, 24)).columns)


def harmless(text: str) -> str:
    """A text of several lines without characters that could change what a terminal shows."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def on_one_line(text: str) -> str:
    """A text on one line, uncut: names of documents in it may hold line breaks."""
    return one_line(text, len(text))


def copyable(command: str) -> str:
    """A command whose arguments are quoted, with what cannot be printed as `$'\\x0a'`."""
    return "".join(
        character if character.isprintable() else f"'$'{_bytes_of(character)}''"
        for character in command
    )


def _bytes_of(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def columns(text: str) -> int:
    """How many columns a line takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(line: str, width: int) -> str:
    """A line that takes at most ``width`` columns; a cut is marked with an ellipsis."""
    if columns(line) <= width:
        return line
    return f"{line[: _fitting(line, 0, width - 1)]}…"


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A text on one line as lines with an indent. A word that is wider than a line stays whole."""
    return [f"{indent}{text[start:end]}" for start, end in spans(text, width - len(indent))]


def folded(line: str, width: int) -> list[str]:
    """A line as several if it is too wide; the later ones are indented by two columns more.

    Commands between backticks stay whole, so that they can be copied.
    """
    if columns(line) <= width:
        return [line]
    text = line.lstrip()
    indent = " " * (len(line) - len(text))
    unbroken = _COMMAND.sub(lambda command: command[0].replace(" ", "\0"), text)
    first, *further_lines = wrapped(unbroken, width - len(_HANGING), indent)
    return [
        part.replace("\0", " ")
        for part in (first, *(f"{_HANGING}{part}" for part in further_lines))
    ]


def spans(text: str, width: int, *, break_words: bool = False) -> list[tuple[int, int]]:
    """The lines of a text, as the offsets of their first character and of the one after the last.

    Args:
        text: a text on one line.
        width: columns of a line, at least 1.
        break_words: break words that are wider than a line. By default they stay whole.
    """
    lines: list[tuple[int, int]] = []
    for start, end in _words(text, width, break_words=break_words):
        if lines and columns(text[lines[-1][0] : end]) <= width:
            lines[-1] = (lines[-1][0], end)
        else:
            lines.append((start, end))
    return lines


def _words(text: str, width: int, *, break_words: bool) -> Iterator[tuple[int, int]]:
    for word in _WORD.finditer(text):
        start, end = word.span()
        # A character takes at most two columns.
        while break_words and 2 * (end - start) > width < columns(text[start:end]):
            middle = max(_fitting(text, start, width), start + 1)
            yield start, middle
            start = middle
        yield start, end


def _fitting(text: str, start: int, width: int) -> int:
    """The end of the longest part from ``start`` on that takes at most ``width`` columns."""
    end = start
    while end < len(text) and (width := width - _columns(text[end])) >= 0:
        end += 1
    return end


@cache
def _columns(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
