"""The interface that a remote lane would have, and lanes that use it: for ``remote_lane.py``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Protocol, Self

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.terms import Lane
from rolebundle.retrieval.candidate import Hit, Pool, Term
from rolebundle.retrieval.lanes import Lanes
from rolebundle.retrieval.lexical import inverse_frequency
from rolebundle.storage.lexical_index import tokens
from rolebundle.storage.postings import K1, B
from rolebundle.text.forms import index_tokens

Phrase = tuple[str, ...]
"""The tokens of a term, as the lexical index has them; most terms have one."""


class Extent(NamedTuple):
    """How many chunks and tokens are visible, and the generation of the snapshot."""

    chunks: int
    tokens: int
    generation: int


class CandidateSource(Protocol):
    """The source of the candidates of the lanes, opened for one request.

    It sees one snapshot and the compartments that the agent may see. No number and no order that it
    returns may depend on other compartments. It proposes chunks; their scores are computed from
    :meth:`occurrences` and :meth:`cosines`, by the same code for every source. If it fails or is
    late, it raises an error, which the answer reports as degraded.
    """

    def extent(self) -> Extent:
        """What is visible."""

    def frequencies(self, phrases: Sequence[Phrase]) -> list[int]:
        """How many visible chunks have each phrase."""

    def matching(
        self,
        weights: Mapping[Phrase, float],
        average: float,
        depth: int,
        documents: Sequence[int] | None = None,
    ) -> list[int]:
        """Rowids of the chunks that match best, best first; ties in the order of chunk ids.

        Args:
            weights: of each phrase, its idf times its weight in the query.
            average: the mean number of tokens of a visible chunk.
            depth: how many.
            documents: rowids of the documents to search in; ``None`` for all.
        """

    def occurrences(
        self, phrases: Sequence[Phrase], rowids: Sequence[int]
    ) -> dict[int, tuple[float, ...]]:
        """Rowid → its tokens, then how often it has each phrase, weighted by column.

        Only of chunks that have one of the phrases.
        """

    def nearest(
        self, vector: bytes, depth: int, documents: Sequence[int] | None = None
    ) -> list[int]:
        """Rowids of the chunks whose vectors are nearest, nearest first."""

    def cosines(self, vector: bytes, rowids: Sequence[int]) -> dict[int, float]:
        """Rowid → cosine, for those of the chunks that have a vector."""

    def passages(self, rowids: Sequence[int]) -> dict[int, Passage]:
        """The chunks with the metadata of their documents."""


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


class Ranked(NamedTuple):
    """What matches some terms best.

    Attributes:
        phrases: those that occur.
        statistics: of everything visible, for these phrases.
        rowids: of the best chunks, best first.
    """

    phrases: Sequence[Phrase]
    statistics: Statistics
    rowids: Sequence[int]

    def bm25(self, occurrences: Mapping[Phrase, float], chunk_tokens: float) -> float:
        """The score of a chunk."""
        return self.statistics.bm25(chunk_tokens, [occurrences[phrase] for phrase in self.phrases])


def rank(
    source: CandidateSource,
    terms: Sequence[Term],
    depth: int,
    documents: Sequence[int] | None = None,
) -> Ranked:
    """The chunks that match the terms best, by the statistics of everything visible."""
    weights: dict[Phrase, int] = {}
    for term in terms:
        text = index_tokens(term.text) if term.form else term.text
        if phrase := tuple(token for _, _, token in tokens(text)):
            weights[phrase] = weights.get(phrase, 0) + term.weight
    counted = zip(weights, source.frequencies([*weights]) if weights else (), strict=True)
    frequencies = {phrase: frequency for phrase, frequency in counted if frequency}
    extent = source.extent()
    statistics = Statistics.of(
        extent.chunks,
        extent.tokens,
        [*frequencies.values()],
        [weights[phrase] for phrase in frequencies],
    )
    if not frequencies:
        return Ranked((), statistics, ())
    by_phrase = dict(zip(frequencies, statistics.weights, strict=True))
    rowids = source.matching(by_phrase, statistics.average, depth, documents)
    return Ranked([*frequencies], statistics, rowids)


@dataclass(frozen=True, slots=True)
class RemoteLanes(Lanes):
    """Lanes whose candidates come from a source. The other reads are still of the file."""

    source: CandidateSource = field(kw_only=True)

    def propose(self, pool: Pool, depth: int, document_ids: Sequence[int] | None = None) -> Pool:
        """As :meth:`Lanes.propose`."""
        nearest = self.source.nearest(self.vector, depth, document_ids)
        task = rank(self.source, self.query.task_terms, depth, document_ids)
        role = rank(self.source, self.query.expansion_terms, depth, document_ids)
        phrases = [*dict.fromkeys((*task.phrases, *role.phrases))]
        proposed = {*task.rowids, *role.rowids}
        # What an earlier search found keeps its hit, so that it keeps its score.
        rowids = sorted({*nearest, *proposed} - pool.hits.keys())
        scores: dict[int, tuple[float, float]] = {}
        for rowid, (length, *counts) in self.source.occurrences(phrases, rowids).items():
            occurrences = dict(zip(phrases, counts, strict=True))
            scores[rowid] = task.bm25(occurrences, length), role.bm25(occurrences, length)
        cosines = self.source.cosines(self.vector, rowids)
        refills = pool.refills + (pool.depth > 0)
        lanes: tuple[tuple[Lane, Collection[int]], ...] = (
            ("lexical", proposed),
            ("semantic", nearest),
        )
        hits = {
            rowid: Hit(
                passage,
                tuple(lane for lane, found in lanes if rowid in found),
                refills,
                bm25,
                bm25_expansion,
                cosines.get(rowid),
            )
            for rowid, passage in self.source.passages(rowids).items()
            for bm25, bm25_expansion in [scores.get(rowid, (None, None))]
        }
        found = {**pool.hits, **hits}
        return Pool(
            hits=found,
            by_task={**pool.by_task, **{rowid: found[rowid].bm25 or 0.0 for rowid in task.rowids}},
            by_role={
                **pool.by_role,
                **{rowid: found[rowid].bm25_expansion or 0.0 for rowid in role.rowids},
            },
            confidence=self.confidence,
            depth=depth,
            yielded=max(len(task.rowids), len(role.rowids), len(nearest)),
            refills=refills,
        )


def with_source(lanes: Lanes, source: CandidateSource) -> RemoteLanes:
    """The lanes with another source of candidates."""
    return RemoteLanes(**{of.name: getattr(lanes, of.name) for of in fields(Lanes)}, source=source)
