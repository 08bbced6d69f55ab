"""The parts of a draft that can be checked: sentences, quotes and citations. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

CitationKind = Literal["number", "locator", "chunk_id", "page"]


class DraftSentence(NamedTuple):
    """A sentence of the draft, or an item of a list, or a cell of a table.

    ``start`` and ``end`` are characters of the draft. ``has_content`` is false for headings, code,
    greetings and other text that states nothing.
    """

    start: int
    end: int
    text: str
    has_content: bool


class DraftQuote(NamedTuple):
    """Quoted text: the range between the quotation marks, and the number of its sentence."""

    start: int
    end: int
    text: str
    sentence: int


class DraftCitation(NamedTuple):
    """A citation: its range, its kind, what it names, and the number of its sentence.

    ``target`` is ``3`` for ``[3]``, ``path:start-end``, a chunk id, or the page with its path.
    """

    start: int
    end: int
    kind: CitationKind
    target: str
    sentence: int


class Draft(NamedTuple):
    """A parsed draft. Sentences do not overlap; quotes and citations are in order."""

    text: str
    sentences: tuple[DraftSentence, ...]
    quotes: tuple[DraftQuote, ...]
    citations: tuple[DraftCitation, ...]

    def citations_of(self, sentence: int) -> tuple[DraftCitation, ...]:
        """The citations of a sentence, by its number."""
        return tuple(citation for citation in self.citations if citation.sentence == sentence)
