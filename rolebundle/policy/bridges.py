"""Bridges: pairs of similar passages in different scopes.

A bridge may mean that two documents could be linked, or that one of them is in the wrong scope. It
names documents of both scopes, so it is for the owner of the corpus and not for agents.

Cosines of two models cannot be compared. So the threshold is on a scale that does not depend on
the model: *similarity* is ``(cosine − floor) / (1 − floor)``, where the floor is the model's noise
floor, which 95 of 100 pairs of unrelated texts do not exceed. 0 is noise, and 1 is the same text.
It is not the closeness of a passage to a task: two passages of one subject have far more than a
question and its answer, where closeness ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING

import numpy as np

from rolebundle.contracts.scopes import BridgeEnd, BridgePair, BridgeReport
from rolebundle.errors import UsageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.passages import passages_by_rowid
from rolebundle.storage.indexes import vector_index
from rolebundle.storage.indexes.vector_index import OwnedVector, active_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rolebundle.contracts.document import Passage

DEFAULT_THRESHOLD = 0.6
DEFAULT_LIMIT = 50
MIN_NAMED = 5
"""If fewer pairs are over the threshold, the closest under it are named, up to so many together."""
MAX_LIMIT = 10_000

_BLOCK_ROWS = 4_096
_STRIP_ROWS = 512
"""The rows of a block that are multiplied with another block at once: the product takes 8 MB."""
_MAX_PAIRS = 4 * MAX_LIMIT
"""The pairs of documents to which :class:`_BestPairs` is reduced when it has twice as many."""

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class _BestPairs:
    """The best pair of chunks for each pair of documents, for a bounded number of pairs.

    Attributes:
        threshold: the cosine that a bridge exceeds.
        least: the cosine that a pair must exceed to be added. It rises with the best pairs.
        has_dropped: whether pairs were dropped.
    """

    threshold: float
    least: float
    pairs: dict[tuple[int, int], tuple[float, int, int]] = field(default_factory=dict)
    """Rowids of two documents → cosine, and the negative rowids of their chunks."""
    has_dropped: bool = False

    def add(self, documents: tuple[int, int], cosine: float, left: int, right: int) -> None:
        # Of equal cosines the lowest rowids win, so that the order of reading does not matter.
        pair = (cosine, -left, -right)
        if pair > self.pairs.get(documents, (-2.0, 0, 0)):
            self.pairs[documents] = pair
        if len(self.pairs) > 2 * _MAX_PAIRS:
            self._drop_worst()

    def raise_least(self) -> None:
        """Add no more pairs that are neither bridges nor among the best :data:`MIN_NAMED`."""
        if self.least < self.threshold and len(self.pairs) >= MIN_NAMED:
            best = nlargest(MIN_NAMED, (cosine for cosine, _, _ in self.pairs.values()))
            # A little lower, so that the order of reading does not decide between equal cosines.
            self.least = max(self.least, min(self.threshold, best[-1] - 1e-6))

    def _drop_worst(self) -> None:
        best = sorted(self.pairs.items(), key=lambda item: item[1], reverse=True)[:_MAX_PAIRS]
        self.pairs = dict(best)
        # A pair below the worst of these could no longer be among the best.
        self.least = max(self.least, best[-1][1][0])
        self.has_dropped = True


def find_bridges(
    corpus: Corpus,
    threshold: float = DEFAULT_THRESHOLD,
    limit: int = DEFAULT_LIMIT,
    progress: Progress | None = None,
) -> BridgeReport:
    """Find the pairs of documents in different scopes with passages over a similarity.

    The search is exact. It compares every vector with every vector of the other scopes, block by
    block: memory does not grow with the corpus, time grows with its square.

    Args:
        corpus: the corpus as its owner sees it.
        threshold: the lowest similarity, between 0 and 1.
        limit: how many pairs of documents, at most :data:`MAX_LIMIT`.
        progress: called with how many vectors were compared, of how many.

    Raises:
        UsageError: an argument is out of range, nothing is embedded, or the index is from a version
            that did not measure the noise floor.
    """
    if not 0 < threshold < 1 or not 0 < limit <= MAX_LIMIT:
        raise UsageError(
            "bad_bridges",
            f"the threshold {threshold} or the limit {limit} is out of range",
            f"choose a threshold between 0 and 1 and a limit up to {MAX_LIMIT:,}",
        )
    if corpus.is_restricted:
        raise AssertionError("bridges are for the owner of the corpus")
    with corpus.reading():
        index = active_index(corpus)
        if index is None:
            raise UsageError(
                "no_index",
                f"{corpus.path}: has no embedding index",
                "run `rolebundle corpus embed`",
            )
        if index.noise is None:
            raise UsageError(
                "no_noise_floor",
                f"{corpus.path}: the index does not have the noise floor of its model",
                "run `rolebundle corpus embed`",
            )
        floor = index.noise.floor
        least_cosine = floor + threshold * (1 - floor)
        counts = vector_index.count_vectors_by_scope(corpus, index)
        scopes, total = list(counts), sum(counts.values())
        best = _BestPairs(threshold=least_cosine, least=floor)
        compared = 0
        # Each scope is compared with those after it, so nothing remains for the last one.
        for position, scope in enumerate(scopes[:-1]):
            other_scopes = scopes[position + 1 :]
            for rows in vector_index.vector_blocks(corpus, index, [scope], _BLOCK_ROWS):
                block = _block(rows)
                for other_rows in vector_index.vector_blocks(
                    corpus, index, other_scopes, _BLOCK_ROWS
                ):
                    _compare(block, _block(other_rows), best)
                compared += len(rows)
                if progress:
                    progress("comparing", compared, total - counts[scopes[-1]])
        ranked = sorted(best.pairs.values(), reverse=True)
        over = sum(cosine > least_cosine for cosine, _, _ in ranked)
        return BridgeReport(
            threshold=threshold,
            noise_floor=floor,
            vectors=total,
            scopes=len(scopes),
            bridges=_described(corpus, ranked[: min(over, limit)], floor),
            below=_described(corpus, ranked[over:MIN_NAMED], floor),
            more=over > limit or (best.has_dropped and over == len(ranked)),
        )


def _similarity(cosine: float, floor: float) -> float:
    return (cosine - floor) / (1 - floor)


@dataclass(frozen=True, slots=True)
class _Block:
    chunks: NDArray[np.int64]
    documents: NDArray[np.int64]
    vectors: NDArray[np.float32]


def _block(rows: list[OwnedVector]) -> _Block:
    chunks, owners, vectors = zip(*rows, strict=True)
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(rows), -1)
    return _Block(np.array(chunks), np.array(owners), matrix)


def _compare(left: _Block, right: _Block, best: _BestPairs) -> None:
    for start in range(0, len(left.chunks), _STRIP_ROWS):
        products = left.vectors[start : start + _STRIP_ROWS] @ right.vectors.T
        lefts, rights = np.nonzero(products > best.least)
        if not len(lefts):
            continue
        cosines = products[lefts, rights]
        lefts += start
        owners = np.stack((left.documents[lefts], right.documents[rights]))
        # Reduce to the best of each pair of documents before the loop in Python.
        order = np.lexsort(
            (right.chunks[rights], left.chunks[lefts], -cosines, owners[1], owners[0])
        )
        ordered = owners[:, order]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
        for position in order[is_first]:
            best.add(
                (int(owners[0, position]), int(owners[1, position])),
                float(cosines[position]),
                int(left.chunks[lefts[position]]),
                int(right.chunks[rights[position]]),
            )
        best.raise_least()


def _described(
    corpus: Corpus, pairs: Sequence[tuple[float, int, int]], floor: float
) -> tuple[BridgePair, ...]:
    rows = [-row for _, *negative in pairs for row in negative]
    passages = passages_by_rowid(corpus, rows)
    return tuple(
        BridgePair(
            similarity=round(_similarity(cosine, floor), 4),
            cosine=round(cosine, 4),
            left=_end(passages[-left]),
            right=_end(passages[-right]),
        )
        for cosine, left, right in pairs
    )


def _end(passage: Passage) -> BridgeEnd:
    document = passage.document
    return BridgeEnd(
        scope=document.scope,
        document_id=document.document_id,
        title=document.title,
        chunk_id=passage.chunk_id,
        locator=passage.locator,
    )
