"""Where a text has the terms of a query, and the part of a passage that answers best."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rolebundle.retrieval.passage_text import one_line
from rolebundle.storage.lexical_index import Token, tokens
from rolebundle.text.forms import index_tokens, word_forms
from rolebundle.text.languages import latin_language, likely_languages, non_latin_language

EXCERPT_CHARS = 240
_WORD_SEARCH = 40
"""A part is cut at a space if there is one within so many characters."""
_BORDER = " |"
"""What encloses a row of a table."""
_HEADING_MARKS = "#=*: "
_SEPARATES = re.compile(r"[\W_]*+|(?:`{3,}+|~{3,}+)[\w+-]*+|\[[^\]]++\]:\s++\S++")
"""A line without a word, such as the dashes of a table or the underline of a heading; the
beginning of a fence; the address of a link."""
_ITEM_MARKS = "-*+•>#|"
_LINE_ENDS = ".!?…:;|。！？{})]"
_SENTENCE_END = re.compile(r"[.!?…] (?<=[^\W\d_]{2}. )(?=[^\W_a-z])|[。！？]")


class Match(NamedTuple):
    """A term in a text: its characters from ``start`` up to ``end``, and the term's number."""

    start: int
    end: int
    term: int


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
                    yield Match(start, run[-1][1], number)

    def _other_forms(self, text: str) -> Iterator[Match]:
        own = latin_language(text), non_latin_language(text)
        languages = tuple(dict.fromkeys((*self._languages, *filter(None, own))))
        for start, end, forms in word_forms(text, languages):
            for stem in forms.stems:
                for number in self._forms.get(_indexed(stem), ()):
                    yield Match(start, end, number)
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
        yield Match(place, place + len(part), number)
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


class Excerpt(NamedTuple):
    """A part of a passage on one line, and where it has the query's terms."""

    text: str
    matches: list[Match]


def excerpt(
    content: str, terms: Terms, *, above: Collection[str] = (), chars: int = EXCERPT_CHARS
) -> Excerpt:
    """The part of a passage with the most terms, if possible of whole lines or sentences.

    Args:
        content: the passage.
        terms: the query's terms.
        above: title and headings, which are shown above it and not repeated.
        chars: about how long the part may be.

    Returns:
        The part without control characters and without lines that only separate. An ellipsis
        marks where a line or sentence is cut.
    """
    text, beginnings = _joined(content, {line.strip(_HEADING_MARKS) for line in above})
    matches = terms.find(text)
    start = _start(text, beginnings, matches, chars)
    end = _end(text, start, beginnings, matches, chars)
    is_cut = start not in beginnings, end not in (*beginnings, len(text))
    start += len(text[start:end]) - len(text[start:end].lstrip(_BORDER))
    text_part = text[start:end].rstrip(_BORDER)
    before, after = ("…" if cut else "" for cut in is_cut)
    shift = len(before) - start
    return Excerpt(
        f"{before}{text_part}{after}",
        [
            Match(match.start + shift, match.end + shift, match.term)
            for match in matches
            if start <= match.start and match.end <= end
        ],
    )


def _joined(content: str, above: Collection[str]) -> tuple[str, list[int]]:
    """The lines that say something as one, and where a line, item or sentence begins in it."""
    lines: list[str] = []
    beginnings = [0]
    length, is_apart = 0, True
    for original in content.splitlines():
        line = one_line(original, len(original))
        if _SEPARATES.fullmatch(line) or line.strip(_HEADING_MARKS) in above:
            is_apart = True
            continue
        if is_apart or lines[-1][-1] in _LINE_ENDS or _is_item(line):
            beginnings.append(length)
        beginnings += [length + match.end() for match in _SENTENCE_END.finditer(line)]
        lines.append(line)
        length, is_apart = length + len(line) + 1, False
    return " ".join(lines) or one_line(content, len(content)), beginnings


def _is_item(line: str) -> bool:
    """Whether a line begins a row, an item of a list or the like: ``|``, ``-``, ``12.``, ``a)``."""
    first = line.partition(" ")[0]
    return line[0] in _ITEM_MARKS or (len(first) <= 4 and first[-1] in ".)")


def _start(text: str, beginnings: Sequence[int], matches: Sequence[Match], chars: int) -> int:
    """Where the part with the most terms begins.

    A term counts by its length, and the less the more often the passage has it.
    """
    if len(text) <= chars:
        return 0
    counts = Counter(match.term for match in matches)
    weights = {match.term: (match.end - match.start) / counts[match.term] for match in matches}
    starts = [match.start for match in matches]
    best, best_key = 0, (0.0, 0)
    for match in matches:
        start = beginnings[bisect_right(beginnings, match.start) - 1]
        if match.end - start > chars:
            start = text.rfind(" ", start, max(start, match.start - chars // 3)) + 1 or match.start
        ends: dict[int, int] = {}
        for following in matches[bisect_left(starts, start) : bisect_left(starts, start + chars)]:
            if following.end <= start + chars:
                ends.setdefault(following.term, following.end)
        # Of several parts with the same terms, the one that has them soonest.
        key = sum(weights[term] for term in sorted(ends)), start - max(ends.values(), default=0)
        if key > best_key:
            best, best_key = start, key
    if len(text) - best < chars:
        # The passage ends soon, so there is space for what precedes.
        fitting = (start for start in beginnings if len(text) - start <= chars or start >= best)
        return next(fitting, best)
    return best


def _end(
    text: str, start: int, beginnings: Sequence[int], matches: Sequence[Match], chars: int
) -> int:
    """Where the part ends: before a line or sentence that would be cut, or else at a space."""
    end = start + chars
    if end >= len(text):
        return len(text)
    last = beginnings[bisect_right(beginnings, end) - 1]
    if last > start + chars // 2 and not any(last <= match.start < end for match in matches):
        return last
    space = text.rfind(" ", end - _WORD_SEARCH, end + 1)
    return space if space > start else end
