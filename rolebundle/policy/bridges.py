"""Bridges: passages in different scopes that say nearly the same.

For whoever runs the corpus and for no agent: a bridge names what stands on both of its sides. It
may mean "these could be linked", and just as well "this should not be in that scope".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rolebundle.errors import UsageError
from rolebundle.storage import documents, vector_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import OwnedVector, active_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rolebundle.contracts.document import Passage

THRESHOLD = 0.78
LIMIT = 50
MOST = 10_000
"""The largest limit; the best pairs kept in memory are a few times as many."""

_BLOCK = 4_096
_STRIP = 512  # of a block, against another one: the product of the two takes 8 MB
_KEPT = 4 * MOST

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Side:
    """One end of a bridge."""

    scope: str
    document_id: str
    title: str
    chunk_id: str
    locator: str


@dataclass(frozen=True, slots=True)
class Bridge:
    """The nearest two passages of two documents in different scopes."""

    cosine: float
    left: Side
    right: Side


@dataclass(frozen=True, slots=True)
class Bridges:
    """The nearest pairs first. ``more`` says that there are others over the threshold."""

    threshold: float
    vectors: int
    scopes: int
    bridges: tuple[Bridge, ...]
    more: bool


@dataclass(slots=True)
class _Best:
    """The best pair of chunks for each pair of documents, as many as are wanted and some more."""

    floor: float
    pairs: dict[tuple[int, int], tuple[float, int, int]] = field(default_factory=dict)
    cut: bool = False

    def take(self, documents: tuple[int, int], cosine: float, left: int, right: int) -> None:
        # The lower rowids win a tie, so that the order of reading does not show.
        found = (cosine, -left, -right)
        if found > self.pairs.get(documents, (-2.0, 0, 0)):
            self.pairs[documents] = found
        if len(self.pairs) > 2 * _KEPT:
            self._cut()

    def _cut(self) -> None:
        # What is under the floor from here on could no longer be among the best.
        best = sorted(self.pairs.items(), key=lambda item: item[1], reverse=True)[:_KEPT]
        self.pairs = dict(best)
        self.floor = best[-1][1][0]
        self.cut = True


def find_bridges(
    corpus: Corpus,
    threshold: float = THRESHOLD,
    limit: int = LIMIT,
    progress: Progress | None = None,
) -> Bridges:
    """Pairs of passages in different scopes whose cosine is over the threshold.

    Exact: every vector is compared with all of the other scopes, block by block, so that memory
    does not grow with the corpus and time grows with its square.

    Args:
        corpus: as its owner sees it.
        threshold: the least cosine.
        limit: how many pairs of documents, at most :data:`MOST`.
        progress: told how many vectors of how many were compared.

    Raises:
        UsageError: a number makes no sense, or nothing is embedded.
    """
    if not 0 < threshold < 1 or not 0 < limit <= MOST:
        raise UsageError(
            "bad_bridges",
            f"a threshold of {threshold} or a limit of {limit} makes no sense",
            f"choose a threshold between 0 and 1 and a limit up to {MOST:,}",
        )
    if corpus.is_restricted:
        raise AssertionError("bridges are for whoever owns the corpus")
    with corpus.reading():
        index = active_index(corpus)
        if index is None:
            raise UsageError(
                "no_index", f"{corpus.path}: has no embedding index", "run `rolebundle embed`"
            )
        counts = vector_index.count_vectors_by_scope(corpus, index)
        scopes, total = list(counts), sum(counts.values())
        best = _Best(threshold)
        done = 0
        # The last scope has been compared with all others when its turn would come.
        for place, scope in enumerate(scopes[:-1]):
            for rows in vector_index.vector_blocks(corpus, index, [scope], _BLOCK):
                here = _block(rows)
                for others in vector_index.vector_blocks(
                    corpus, index, scopes[place + 1 :], _BLOCK
                ):
                    _compare(here, _block(others), best)
                done += len(rows)
                if progress:
                    progress("comparing", done, total - counts[scopes[-1]])
        return _described(corpus, best, Bridges(threshold, total, len(scopes), (), False), limit)


@dataclass(frozen=True, slots=True)
class _Block:
    chunks: NDArray[np.int64]
    documents: NDArray[np.int64]
    vectors: NDArray[np.float32]


def _block(rows: list[OwnedVector]) -> _Block:
    chunks, owners, vectors = zip(*rows, strict=True)
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(rows), -1)
    return _Block(np.array(chunks), np.array(owners), matrix)


def _compare(here: _Block, there: _Block, best: _Best) -> None:
    for start in range(0, len(here.chunks), _STRIP):
        cosines = here.vectors[start : start + _STRIP] @ there.vectors.T
        lefts, rights = np.nonzero(cosines > best.floor)
        if not len(lefts):
            continue
        found = cosines[lefts, rights]
        lefts += start
        owners = np.stack((here.documents[lefts], there.documents[rights]))
        # The best of each pair of documents, before anything is looked at one by one.
        order = np.lexsort((there.chunks[rights], here.chunks[lefts], -found, owners[1], owners[0]))
        ordered = owners[:, order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
        for one in order[first]:
            best.take(
                (int(owners[0, one]), int(owners[1, one])),
                float(found[one]),
                int(here.chunks[lefts[one]]),
                int(there.chunks[rights[one]]),
            )


def _described(corpus: Corpus, best: _Best, found: Bridges, limit: int) -> Bridges:
    ranked = sorted(best.pairs.values(), reverse=True)
    chosen = [(cosine, -left, -right) for cosine, left, right in ranked[:limit]]
    passages = documents.passages(corpus, [row for _, *rows in chosen for row in rows])
    return Bridges(
        found.threshold,
        found.vectors,
        found.scopes,
        tuple(
            Bridge(round(cosine, 4), _side(passages[left]), _side(passages[right]))
            for cosine, left, right in chosen
        ),
        best.cut or len(ranked) > limit,
    )


def _side(passage: Passage) -> Side:
    document = passage.document
    return Side(
        document.scope, document.document_id, document.title, passage.chunk_id, passage.locator
    )
