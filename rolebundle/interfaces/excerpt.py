"""Where a text has the terms of a query, and the part of a passage that answers best."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from rolebundle.retrieval.passage_text import one_line, part_of
from rolebundle.storage.lexical_index import Token, tokens
from rolebundle.text.forms import index_tokens, word_forms
from rolebundle.text.languages import latin_language, likely_languages, non_latin_language

EXCERPT_CHARS = 240
_BORDER = " |"
"""What encloses a row of a table."""
_HEADING_MARKS = "#=*: "
_SEPARATES = re.compile(r"[\W_]*+|(?:`{3,}+|~{3,}+)[\w+-]*+|\[[^\]]++\]:\s++\S++")
"""A line without a word, such as the dashes of a table or the underline of a heading; the
beginning of a fence; the address of a link."""


Match = tuple[int, int, int]
"""A term in a text: its first character, the one after its last, and the term's number."""


class Terms:
    """The terms of a query, ready to be found in texts.

    Args:
        shown: words and phrases as a bundle's ``lexical_query`` has them. A stem of another
            language than English begins with a tilde.
        task: their text, which tells the languages of the stems.
    """

    def __init__(self, shown_terms: Sequence[str], task: str) -> None:
        self._phrases: dict[str, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
        self._forms: dict[str, list[int]] = defaultdict(list)
        self._languages: tuple[str, ...] = ()
        shown = (term.removeprefix("~").casefold() for term in shown_terms)
        self.words = frozenset(word for term in shown for word in term.split())
        """The single words, casefolded."""
        for number, term in enumerate(shown_terms):
            if term.startswith("~"):
                self._forms[_indexed(term.removeprefix("~"))].append(number)
                continue
            phrase = tuple(indexed for _, _, indexed in tokens(term))
            if phrase:
                self._phrases[phrase[0]].append((phrase, number))
        if self._forms:
            self._languages = tuple(likely_languages(task))

    def find(self, text: str) -> list[Match]:
        """Every occurrence of every term, in the order of their first characters."""
        found = [*self._words(tokens(text))]
        if self._forms:
            found += self._other_forms(text)
        return sorted(found)

    def _words(self, text: Sequence[Token]) -> Iterator[Match]:
        phrases = self._phrases
        hits = [number for number, token in enumerate(text) if token[2] in phrases]
        for position in hits:
            start, _, indexed = text[position]
            for phrase, number in phrases[indexed]:
                run = text[position : position + len(phrase)]
                if tuple(part for _, _, part in run) == phrase:
                    yield start, run[-1][1], number

    def _other_forms(self, text: str) -> Iterator[Match]:
        own = latin_language(text), non_latin_language(text)
        languages = tuple(dict.fromkeys((*self._languages, *filter(None, own))))
        for start, end, forms in word_forms(text, languages):
            for stem in forms.stems:
                for number in self._forms.get(_indexed(stem), ()):
                    yield start, end, number
            for part in {*forms.pairs, *forms.letters}:
                for number in self._forms.get(_indexed(part), ()):
                    yield from _places(text, part, start, end, number)


@lru_cache(maxsize=4_096)
def _indexed(form: str) -> str:
    """A form as the index has it, which folds it like a word."""
    return " ".join(indexed for _, _, indexed in tokens(index_tokens(form)))


def _places(text: str, part: str, start: int, end: int, number: int) -> Iterator[Match]:
    place = text.find(part, start, end)
    while place >= 0:
        yield place, place + len(part), number
        place = text.find(part, place + 1, end)


def covered(matches: Sequence[Match]) -> list[tuple[int, int]]:
    """The parts of a text that matches cover, in order and without overlaps."""
    parts: list[tuple[int, int]] = []
    for start, end, _ in matches:
        if parts and start <= parts[-1][1]:
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((start, end))
    return parts


def excerpt(
    content: str, terms: Terms, *, above: Collection[str] = (), chars: int = EXCERPT_CHARS
) -> str:
    """The part of a passage with the most of the query's words, on one line.

    Args:
        content: the passage. Lines that only separate are left out.
        terms: the query's terms.
        above: title and headings, which are shown above it and not repeated.
        chars: how long the part may be.
    """
    shown_above = {line.strip(_HEADING_MARKS) for line in above}
    lines = [
        line
        for line in content.splitlines()
        if not _SEPARATES.fullmatch(line.strip()) and line.strip(_HEADING_MARKS) not in shown_above
    ]
    part = part_of("\n".join(lines) or content, terms.words, chars)
    return one_line(part, chars).strip(_BORDER)
