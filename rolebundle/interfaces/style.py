"""Colours for a person at a terminal, by what a text is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal, TextIO

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

    def parts(self, text: str, spans: Iterable[tuple[int, int]], kind: Kind = "match") -> str:
        """The text with the given parts painted.

        Args:
            text: a text without colours.
            spans: offsets of the first character of a part and of the one after its last; in
                order, and without overlaps.
            kind: what the parts are.
        """
        if not self.color:
            return text
        pieces, read = [], 0
        for start, end in spans:
            pieces += [text[read:start], self(kind, text[start:end])]
            read = end
        return "".join((*pieces, text[read:]))


PLAIN = Style()


def has_color(stream: TextIO | None) -> bool:
    """Whether to print colours: if the stream is a terminal that takes them.

    ``NO_COLOR`` (https://no-color.org) and ``TERM=dumb`` switch them off.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream is not None and stream.isatty()
