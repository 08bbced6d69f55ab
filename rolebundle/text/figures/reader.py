"""A text that is read for figures, and the figures that were found. Pure."""

from __future__ import annotations

from rolebundle.text.figures import patterns
from rolebundle.text.figures.quantities import COMMA_LANGUAGES
from rolebundle.text.figures.values import Reading, TextFigure, is_word_character

PLAIN_FIGURE = TextFigure(0, 0, "", ())
LOOSE_FIGURE = PLAIN_FIGURE._replace(is_loose=True)


class FigureReader:
    """A text that is read from left to right.

    Attributes:
        original: the text.
        text: the same with plain digits, dashes and spaces. Places are the same in all three.
        low: ``text`` in lower case.
        language: its language.
        grammar: what the language adds.
        comma: whether the language writes decimals with a comma.
        found: the figures that were found.
        position: the end of the last one.
        tried: a place where no address begins.
    """

    def __init__(self, text: str, language: str) -> None:
        plain = text if text.isascii() else text.translate(patterns.PLAIN)
        low = plain.lower()
        if len(low) != len(plain):
            low = "".join(c if len(c.lower()) != 1 else c.lower() for c in plain)
        self.original, self.text, self.low = text, plain, low
        self.language = language
        self.grammar = patterns.grammar(language)
        self.comma = language in COMMA_LANGUAGES
        self.position, self.tried = 0, -1
        self.found: list[TextFigure] = []

    def add(self, start: int, end: int, *readings: Reading, like: TextFigure | None = None) -> None:
        """Add a figure; what its readings do not say is as in ``like``."""
        figure = like or PLAIN_FIGURE
        text = self.original[start:end]
        self.found.append(figure._replace(start=start, end=end, text=text, readings=readings))
        self.position = end

    def chunk_start(self, start: int) -> int:
        """Where the characters begin that may belong to one address or identifier with a place."""
        low, first = self.low, max(self.position, start - patterns.MAX_CHUNK)
        while start > first and low[start - 1] not in patterns.OUTSIDE:
            start -= 1
        return start

    def word_before(self, start: int) -> str:
        """The word right before a place, or "#"."""
        text, first = self.text, max(self.position, start - patterns.MAX_CHUNK)
        end = start
        if end > first and text[end - 1] == "#":
            end -= 1
        if end > first and text[end - 1] in " -":
            end -= 1
        start_of_word = end
        while start_of_word > first and is_word_character(text[start_of_word - 1]):
            start_of_word -= 1
        word = text[start_of_word:end].lstrip("_.+0123456789")
        return word or ("#" if text[start - 1 : start] == "#" else "")
