"""The lexical lane: BM25 over FTS5. The task's terms and the role's are scored separately.

If several compartments are visible, each proposes its best chunks, and these are scored again with
the statistics of everything that is visible: :class:`Statistics` is BM25 as FTS5 computes it
(Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; constants
and floor are those of SQLite's ``fts5_aux.c``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Self

from rolebundle.retrieval.candidate import Query, Term
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.query import words_of
from rolebundle.storage import compartments, lexical_index
from rolebundle.storage.compartments import Compartment
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.lexical_index import first_by_score
from rolebundle.storage.passages import passages_by_rowid
from rolebundle.text.forms import index_tokens
from rolebundle.text.stop_words import ENGLISH
from rolebundle.text.words import is_english, rarity

RARE = 50
"""An exact term that at most so many chunks have is shown in a passage that has it."""
EXACT_PROPOSED = 5
"""So many of the best chunks with a rare exact term are proposed."""
OFTEN = 2
"""A word that at least so many chunks have may be the right spelling of another one."""
MIN_LETTERS, MAX_LETTERS = 4, 20
"""The length of words that may be misspelled."""
MAX_CORRECTED = 4
"""At most so many words of a task are corrected; of each, so many spellings are looked at."""
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"

K1 = 1.2
"""Saturation: the smaller, the less further occurrences of a term count."""
B = 0.75
"""How much the length of a chunk counts, in [0, 1]."""
_MIN_IDF = 1e-6


# -- the lane ------------------------------------------------------------------------------------


def match_expression(terms: Iterable[Term]) -> str:
    """Terms as an FTS5 expression in which no text is syntax (law 4).

    Each term is one quoted phrase; phrases are joined by OR. A term of weight n occurs n times,
    so that bm25() counts it n times.
    """
    return " OR ".join(_literal(term) for term in terms for _ in range(term.weight))


def propose(
    corpus: Corpus,
    query: Query,
    depth: int,
    within: Sequence[int] | None = None,
    exact: Sequence[str] = (),
    *,
    facts: bool = False,
) -> tuple[dict[int, float], dict[int, float]]:
    """The chunks that match the task's terms best, and those that match the role's terms best.

    Args:
        corpus: an open corpus.
        query: the built query.
        depth: how many chunks each of the two may propose.
        within: rowids of the documents to search in; ``None`` for all.
        exact: words and phrases; the best chunks with each are proposed, too.
        facts: propose remembered facts, by the statistics of documents and facts.

    Returns:
        Rowid → BM25 against the task's terms, and the same against the role's.
    """
    index = _index(corpus, facts=facts)
    having = [
        rowid for words in exact for rowid in index.best([Term(words)], EXACT_PROPOSED, within)
    ]
    task = index.best(query.task_terms, depth, within)
    by_exact = index.completed(query.task_terms, task, having)
    by_task = {**{rowid: by_exact.get(rowid, 0.0) for rowid in having}, **task}
    return by_task, index.best(query.expansion_terms, depth, within)


def exact_words(corpus: Corpus, query: Query) -> tuple[list[str], list[str]]:
    """The exact words and phrases of a task that are rare, and those that occur nowhere."""
    counts = _index(corpus).frequencies([_literal(Term(words)) for words in query.task.exact])
    counted = list(zip(query.task.exact, counts, strict=True))
    return (
        [words for words, count in counted if 0 < count <= RARE],
        [words for words, count in counted if not count],
    )


def with_corrections(corpus: Corpus, query: Query) -> Query:
    """The query in which each misspelled word of the task is searched as a known one as well.

    A word counts as misspelled if English and the visible chunks do not have it, and one change of
    a letter turns it into a word that at least ``OFTEN`` of them have. Of several, function words
    come first, then English words, then the more frequent. Names are as they are.
    """
    index = _index(corpus)
    own = sorted(query.wordings[0] - query.names)
    places = [place for place in own if _may_be_misspelled(query.content_words[place][0].text)]
    if not index.visible or not places:
        return query
    counts = index.frequencies([match_expression(query.content_words[place]) for place in places])
    content_words = list(query.content_words)
    corrected: dict[str, str] = {}
    unknown = [place for place, count in zip(places, counts, strict=True) if not count]
    for place in unknown[:MAX_CORRECTED]:
        word = content_words[place][0].text
        changed = one_change_away(word)
        known = index.frequencies([_literal(Term(other)) for other in changed])
        often = [
            (other in ENGLISH, is_english(other), count, other)
            for count, other in zip(known, changed, strict=True)
            if count >= OFTEN
        ]
        for _, is_known, _, other in sorted(often, reverse=True)[:MAX_CORRECTED]:
            if is_known or _is_written(index, other):
                corrected[word] = other
                content_words[place] = (*content_words[place], Term(other))
                break
    terms = tuple(Term(other) for other in corrected.values())
    return query._replace(
        content_words=tuple(content_words),
        task_terms=(*query.task_terms, *terms),
        corrected=corrected,
    )


def _is_written(index: _Index, word: str) -> bool:
    """Whether one of the best chunks for a word has it; the index may only know another form."""
    best = index.best([Term(word)], EXACT_PROPOSED)
    passages = passages_by_rowid(index.corpus, list(best)).values()
    return any(
        word in words_of(f"{passage.document.title} {passage.content}") for passage in passages
    )


def _may_be_misspelled(word: str) -> bool:
    is_plain = MIN_LETTERS <= len(word) <= MAX_LETTERS and word.isascii() and word.isalpha()
    return is_plain and not is_english(word)


def one_change_away(word: str) -> list[str]:
    """The words with one letter removed, exchanged, replaced or added (Damerau, 1964)."""
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    found = {head + tail[1:] for head, tail in splits if tail}
    found |= {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    found |= {head + letter + tail[1:] for head, tail in splits if tail for letter in _ALPHABET}
    found |= {head + letter + tail for head, tail in splits for letter in _ALPHABET}
    return sorted(found - {word})


def score(
    corpus: Corpus,
    query: Query,
    rowids: Sequence[int],
    by_task: Mapping[int, float] = MappingProxyType({}),
    by_role: Mapping[int, float] = MappingProxyType({}),
    *,
    facts: bool = False,
) -> dict[int, tuple[float, float]]:
    """Rowid → the BM25 against the task's terms and against the role's; only of what matches.

    Args:
        corpus: an open corpus.
        query: the built query.
        rowids: of the chunks.
        by_task: the scores that are known from :func:`propose`.
        by_role: the same against the role's terms.
        facts: score remembered facts.
    """
    index = _index(corpus, facts=facts)
    if not index.visible:
        return {}
    task = index.completed(query.task_terms, by_task, rowids)
    role = index.completed(query.expansion_terms, by_role, rowids)
    scores = {rowid: (task.get(rowid, 0.0), role.get(rowid, 0.0)) for rowid in rowids}
    return {rowid: score for rowid, score in scores.items() if any(score)}


def task_words(
    corpus: Corpus, query: Query, rowids: Sequence[int], *, facts: bool = False
) -> Evidence:
    """The task's content words in everything that is visible, and which of these chunks have."""
    index = _index(corpus, facts=facts)
    return Evidence(
        frequencies=index.frequencies(map(match_expression, query.content_words)),
        chunks=sum(compartment.chunks for compartment in index.visible),
        matches=matching_words(corpus, query.content_words, rowids),
        wordings=query.wordings,
        rarities=[rarity(word.text) for word, *_ in query.content_words],
    )


def matching_words(
    corpus: Corpus, words: Sequence[Sequence[Term]], rowids: Sequence[int]
) -> dict[int, frozenset[int]]:
    """Rowid → the positions of the words of which the chunk has a term, for each of the chunks."""
    positions: dict[int, set[int]] = {rowid: set() for rowid in rowids}
    matches = [match_expression(terms) for terms in words]
    for compartment, chunks in compartments.chunks_by_compartment(corpus, rowids).items():
        for position, rowid in lexical_index.matching(corpus, compartment, matches, chunks):
            positions[rowid].add(position)
    return {rowid: frozenset(matched) for rowid, matched in positions.items()}


def _literal(term: Term) -> str:
    text = term.text
    if term.form:
        # Imported here: compiling its patterns takes a tenth of a cold start.
        text = index_tokens(text)
    return '"' + text.replace("\x00", " ").replace('"', '""') + '"'


def _index(corpus: Corpus, *, facts: bool = False) -> _Index:
    visible = compartments.searchable_compartments(corpus, facts=facts)
    return _Index(corpus, visible, [part for part in visible if part.has_facts is facts])


class _Index(NamedTuple):
    """The index of everything that is visible.

    Attributes:
        corpus: an open corpus.
        visible: the compartments whose statistics count.
        searched: those of them in which it searches.
    """

    corpus: Corpus
    visible: Sequence[Compartment]
    searched: Sequence[Compartment]

    def best(
        self, terms: Sequence[Term], depth: int, within: Sequence[int] | None = None
    ) -> dict[int, float]:
        """The best chunks for some terms, scored with the statistics of all compartments.

        Args:
            terms: what is searched for.
            depth: how many chunks.
            within: rowids of the documents to search in; ``None`` for all.
        """
        if len(self.visible) == 1 and terms and self.searched:
            return self._best_of(self.visible[0], terms, depth, within)
        terms = self.occurring(terms) if self.searched else ()
        if not terms:
            return {}
        overall = self.statistics(terms)
        estimates: dict[int, float] = {}
        for compartment in self.searched:
            best = self._best_of(compartment, terms, depth, within)
            if best:
                own = _Index(self.corpus, [compartment], [compartment]).statistics(terms)
                scale = overall.total_weight / own.total_weight
                estimates |= {rowid: bm25 * scale for rowid, bm25 in best.items()}
        # Twice as many as needed, since the scores of single compartments are only approximate.
        likely = first_by_score(self.corpus, estimates, 2 * depth)
        return first_by_score(self.corpus, self.scores(terms, list(likely)), depth)

    def _best_of(
        self,
        compartment: Compartment,
        terms: Sequence[Term],
        depth: int,
        within: Sequence[int] | None,
    ) -> dict[int, float]:
        """The best chunks of one compartment, scored with its own statistics."""
        match = match_expression(terms)
        return dict(lexical_index.search(self.corpus, compartment.id, match, depth, within=within))

    def completed(
        self, terms: Sequence[Term], known: Mapping[int, float], rowids: Sequence[int]
    ) -> Mapping[int, float]:
        """The known scores, and those of the other chunks that match."""
        missing = [rowid for rowid in rowids if rowid not in known]
        return {**known, **self.scores(terms, missing)} if terms and missing else known

    def scores(self, terms: Sequence[Term], rowids: Sequence[int]) -> dict[int, float]:
        """The BM25 of those chunks that match, with the statistics of all compartments."""
        if len(self.visible) == 1:
            match = match_expression(terms)
            return lexical_index.score(self.corpus, self.visible[0].id, match, rowids)
        terms = self.occurring(terms)
        if not terms:
            return {}
        overall = self.statistics(terms)
        unweighted = " OR ".join(map(_literal, terms))
        parts = compartments.chunks_by_compartment(self.corpus, rowids)
        return {
            rowid: overall.bm25(tokens, occurrences)
            for compartment, chunks in parts.items()
            for rowid, (tokens, *occurrences) in lexical_index.occurrences(
                self.corpus, compartment, unweighted, chunks
            ).items()
        }

    def occurring(self, terms: Sequence[Term]) -> list[Term]:
        """The terms that occur in at least one chunk."""
        counts = self.frequencies(map(_literal, terms))
        return [term for term, count in zip(terms, counts, strict=True) if count]

    def frequencies(self, matches: Iterable[str]) -> list[int]:
        """For each expression, how many chunks of all compartments match it."""
        matches = list(matches)
        counted = (
            lexical_index.frequencies(self.corpus, part.id, matches) for part in self.visible
        )
        return [sum(counts) for counts in zip(*counted, strict=True)] or [0] * len(matches)

    def statistics(self, terms: Sequence[Term]) -> Statistics:
        """The statistics of all compartments for these terms."""
        extents = [lexical_index.extent(self.corpus, part.id) for part in self.visible]
        return Statistics.of(
            sum(extent.chunks for extent in extents),
            sum(extent.tokens for extent in extents),
            self.frequencies(map(_literal, terms)),
            [term.weight for term in terms],
        )


# -- BM25 ----------------------------------------------------------------------------------------


def inverse_frequency(chunks: int, frequency: int) -> float:
    """The idf of a term that ``frequency`` of so many chunks have; at least FTS5's floor."""
    return max(_MIN_IDF, math.log((chunks - frequency + 0.5) / (frequency + 0.5)))


class Statistics(NamedTuple):
    """The statistics of a collection that BM25 uses, for the terms of one query.

    Attributes:
        weights: for each term, its idf times its weight in the query.
        average: the mean number of tokens of a chunk.
        total_weight: the sum of the weights of those terms that occur in the collection.
    """

    weights: tuple[float, ...]
    average: float
    total_weight: float

    @classmethod
    def of(
        cls, chunks: int, tokens: int, frequencies: Sequence[int], weights: Sequence[int]
    ) -> Self:
        """The statistics of a collection.

        Args:
            chunks: how many it has.
            tokens: how many they have together.
            frequencies: for each term of the query, how many chunks have it.
            weights: how often each term occurs in the query.
        """
        weighted = tuple(
            weight * inverse_frequency(chunks, frequency)
            for frequency, weight in zip(frequencies, weights, strict=True)
        )
        total_weight = sum(idf for idf, count in zip(weighted, frequencies, strict=True) if count)
        return cls(weighted, tokens / chunks if chunks else 0.0, total_weight)

    def bm25(self, tokens: float, occurrences: Sequence[float]) -> float:
        """The score of a chunk.

        Args:
            tokens: how many it has.
            occurrences: for each term, how often the chunk has it, weighted by column.
        """
        length = K1 * (1 - B + B * tokens / self.average)
        return sum(
            weight * count * (K1 + 1) / (count + length)
            for weight, count in zip(self.weights, occurrences, strict=True)
            if count
        )
