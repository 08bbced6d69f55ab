"""Whether the words of a sentence stand together somewhere in the evidence. Pure.

The measure is lexical. So it can say that a sentence is *uncovered*: its words stand in no three
consecutive sentences of the evidence. It cannot say that a sentence is true: then it is *covered*.

The score of a sentence is a logistic regression on three features, which `benchmarks/verify.py`
fits and checks: the share of its content words in the best window of three sentences, of its
words in runs of three that occur in the evidence, and whether a figure in digits is missing.
Weights by idf make no difference there, so all content words count the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from string import punctuation
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import Finding, Span
from rolebundle.text.figures.find import find_figures
from rolebundle.text.languages import latin_language
from rolebundle.text.sentences import END
from rolebundle.text.words import Stems, language_of, stems_of
from rolebundle.verification.draft.figures import FigureIndex, evidence_of
from rolebundle.verification.draft.findings import shorten, unchecked_language
from rolebundle.verification.draft.parse import Draft

WINDOW = 3
"""Sentences of the evidence that are looked at together."""
RUN = 3
"""Words that count as a run if they follow each other in the evidence, too."""


class Features(NamedTuple):
    """What the score of a sentence is made of; each from 0 to 1.

    Attributes:
        coverage: share of the content words that stand in the best window.
        runs: share of all words that are in a run of the evidence.
        missing_figure: 1 if a figure in digits stands nowhere in the evidence.
    """

    coverage: float
    runs: float
    missing_figure: float


WEIGHTS = Features(coverage=1.79, runs=1.93, missing_figure=-1.84)
INTERCEPT = -1.44
"""Fitted on AttributionBench by `benchmarks/verify.py`."""
UNCOVERED = 0.22
"""Below this score a sentence is uncovered: at least 80% of such claims are not supported."""
_THIN = 0.5
"""If a smaller share of the content words stands together, no passage is near the sentence.

A covered sentence then has a remedy, and an uncovered one names no passage.
"""
_MAX_NAMED = 5
"""How many missing words a finding names."""


class Match(NamedTuple):
    """The best window for a sentence.

    Attributes:
        features: what the score is made of.
        passage: the number of the passage; -1 if there is none.
        window: its text.
        missing: the content words of the sentence that it does not contain, as stems.
    """

    features: Features
    passage: int
    window: str
    missing: tuple[str, ...]

    @property
    def score(self) -> float:
        """From 0 to 1; higher means that the sentence is more likely to be supported."""
        pairs = zip(WEIGHTS, self.features, strict=True)
        return 1 / (1 + math.exp(-INTERCEPT - sum(weight * value for weight, value in pairs)))


def check_coverage(
    draft: Draft, passages: Sequence[Passage], cited: Mapping[int, Sequence[Passage]]
) -> list[Finding]:
    """One finding for each sentence with content: ``covered`` or ``uncovered``.

    A sentence whose words cannot be read is ``unchecked_language``.

    Args:
        draft: the parsed draft, or a part of it.
        passages: all passages of the evidence.
        cited: the passages that a sentence cites, by its number. They are preferred.
    """
    default = latin_language(draft.text) or "en"
    texts = draft.texts()
    evidence = Evidence(passages)
    of_cited: dict[tuple[str, ...], Evidence] = {}
    findings = []
    for number, sentence in enumerate(draft.sentences):
        if not sentence.has_content:
            continue
        language = language_of(texts[number], default)
        words = stems_of(texts[number], language)
        span = Span(start=sentence.start, end=sentence.end)
        if not words.content:
            if any(map(str.isalpha, texts[number])) and language not in ("en", default):
                problem = f"its words cannot be compared in this language ({language})"
                findings.append(unchecked_language("coverage", span, sentence.text, problem))
            continue
        own = None
        if cited.get(number):
            ids = tuple(passage.chunk_id for passage in cited[number])
            own = of_cited[ids] = of_cited.get(ids) or Evidence(cited[number])
        match, of = (own.best_match(texts[number], language, words) if own else None), own
        if match is None or match.score < UNCOVERED:
            match, of = evidence.best_match(texts[number], language, words), evidence
        missing = _missing_words(texts[number], language, match.missing) if match else []
        findings.append(_finding(span, sentence.text, match, of.passages if of else (), missing))
    return findings


def best_match(text: str, language: str, passages: Sequence[Passage]) -> Match | None:
    """The window of the passages that has most of a sentence's content words.

    Args:
        text: a sentence without its citations.
        language: ISO 639-1 code of the sentence.
        passages: the evidence.

    Returns:
        ``None`` if there are no passages, or the sentence has no content words.
    """
    return Evidence(passages).best_match(text, language, stems_of(text, language))


class Evidence:
    """Passages that sentences are compared with."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self._indexes = [_index_of(passage) for passage in passages]
        self._figures: list[FigureIndex] | None = None
        self._runs = frozenset[tuple[str, ...]]().union(*(index.runs for index in self._indexes))

    def best_match(self, text: str, language: str, words: Stems) -> Match | None:
        """As the function of this name; ``words`` are the stems of the text."""
        terms = frozenset(words.content)
        if not terms or not self.passages:
            return None
        counts = [len(terms & index.terms) for index in self._indexes]
        best, best_passage, best_window = 0, -1, 0
        # A window has no more words than its passage.
        for place in sorted(range(len(counts)), key=counts.__getitem__, reverse=True):
            if counts[place] <= best:
                break
            count, window = self._indexes[place].best_window(terms)
            if count > best:
                best, best_passage, best_window = count, place, window
        missing, window_text = [*dict.fromkeys(words.content)], ""
        if best_passage >= 0:
            index = self._indexes[best_passage]
            missing = [t for t in missing if not index.places.get(t, 0) >> best_window & 1]
            window_text = " ".join(index.sentences[best_window : best_window + WINDOW])
        in_runs = {
            place + offset
            for place, run in enumerate(_runs(words.all))
            if run in self._runs
            for offset in range(RUN)
        }
        features = Features(
            best / len(terms),
            len(in_runs) / len(words.all) if words.all else 0.0,
            float(self._lacks_figure(text, language)),
        )
        return Match(features, best_passage, window_text, tuple(missing))

    def _lacks_figure(self, text: str, language: str) -> bool:
        """Whether a figure in digits stands nowhere; "two" often only structures a text."""
        figures = [
            figure
            for figure in find_figures(text, language)
            if not figure.is_loose and any(map(str.isdecimal, figure.text))
        ]
        if figures and self._figures is None:
            self._figures = [evidence_of(passage) for passage in self.passages]
        indexes = self._figures or ()
        return any(not any(index.support(figure) for index in indexes) for figure in figures)


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[first:] for first in range(RUN)), strict=False)


def _missing_words(text: str, language: str, stems: Sequence[str]) -> list[str]:
    """The words of a sentence that have the stems; the stems, if they are pairs of letters."""
    words = (word.strip(punctuation) for word in text.split())
    of_words = {word: stems_of(word, language).content for word in words}
    return [word for word, own in of_words.items() if own and set(own) <= set(stems)] or [*stems]


def _finding(
    span: Span, text: str, match: Match | None, passages: Sequence[Passage], missing: Sequence[str]
) -> Finding:
    words = ", ".join(missing[:_MAX_NAMED])
    if match is None or match.score < UNCOVERED:
        is_near = match is not None and match.features.coverage >= _THIN
        nearest = passages[match.passage] if match and is_near else None
        return Finding(
            check="coverage",
            code="uncovered",
            fails=True,
            span=span,
            text=shorten(text),
            chunk_id=nearest.chunk_id if nearest else None,
            locator=nearest.locator if nearest else None,
            true_text=shorten(match.window) if match and nearest else None,
            note=f"no passage says this; missing, among others: {words}" if words else None,
            remedy="Say what the evidence says, or leave the sentence out.",
        )
    passage = passages[match.passage]
    is_thin = match.features.coverage < _THIN
    return Finding(
        check="coverage",
        code="covered",
        fails=False,
        span=span,
        text=shorten(text),
        chunk_id=passage.chunk_id,
        locator=passage.locator,
        true_text=shorten(match.window),
        note=f"{match.features.coverage:.0%} of its content words stand together there"
        + (f"; missing, among others: {words}" if is_thin else ""),
        remedy="Read the passage: most words of the sentence are not in it." if is_thin else None,
    )


# -- evidence --------------------------------------------------------------------------------------


class _Index(NamedTuple):
    """A passage as it is looked up.

    Attributes:
        sentences: its title with its headings, and its sentences.
        terms: its content words.
        places: content word → the windows that contain it, one bit for each by its first sentence.
        runs: all runs of words.
    """

    sentences: tuple[str, ...]
    terms: frozenset[str]
    places: dict[str, int]
    runs: frozenset[tuple[str, ...]]

    def best_window(self, terms: Iterable[str]) -> tuple[int, int]:
        """How many of the terms the best window has, and its first sentence."""
        counts: defaultdict[int, int] = defaultdict(int)
        for term in terms:
            windows = self.places.get(term, 0)
            while windows:
                lowest = windows & -windows
                counts[lowest] += 1
                windows ^= lowest
        window = max(counts, key=lambda bit: (counts[bit], -bit))
        return counts[window], window.bit_length() - 1


def _index_of(passage: Passage) -> _Index:
    head = " · ".join((passage.document.title, *passage.headings))
    return _index(head, passage.content, passage.document.language.partition("-")[0])


@lru_cache(maxsize=1024)
def _index(head: str, content: str, declared: str) -> _Index:
    # Cached, because the next draft often has much of the same evidence.
    language = language_of(content, declared if declared != "und" else "en")
    sentences = (head, *(part for part in END.split(content) if part.strip()))
    places: defaultdict[str, int] = defaultdict(int)
    runs: set[tuple[str, ...]] = set()
    for number, sentence in enumerate(sentences):
        words, terms = stems_of(sentence, language)
        windows = (1 << WINDOW) - 1 << number >> WINDOW - 1
        for term in terms:
            places[term] |= windows
        runs.update(_runs(words))
    return _Index(sentences, frozenset(places), dict(places), frozenset(runs))
