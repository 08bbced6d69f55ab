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

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.policy import BridgeEnd, BridgePair, BridgeReport
from rolebundle.errors import UsageError
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.passages import passages_by_rowid
from rolebundle.storage.vector_index import OwnedVector, active_index

DEFAULT_THRESHOLD = 0.6
DEFAULT_LIMIT = 50
MIN_NAMED = 5
"""If fewer pairs are over the threshold, the closest under it are named, up to so many together."""
MAX_LIMIT = 10_000

_BLOCK_ROWS = 4_096
_STRIP_ROWS = 512
"""The rows of a block that are multiplied with another block at once: the product takes 8 MB."""
Progress = Callable[[str, int, int], None]


_Pairs = tuple[NDArray[Any], ...]
"""Pairs of chunks as columns: rowids of the two documents, cosines, rowids of the two chunks."""


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
        # With one more than are listed, it is known whether there are more.
        most, compared = max(limit + 1, MIN_NAMED), 0
        best: _Pairs = tuple(np.empty(0, kind) for kind in (int, int, float, int, int))
        # Each scope is compared with those after it, so nothing remains for the last one.
        for position, scope in enumerate(scopes[:-1]):
            others = scopes[position + 1 :]
            for rows in vector_index.vector_blocks(corpus, index, [scope], _BLOCK_ROWS):
                for other_rows in vector_index.vector_blocks(corpus, index, others, _BLOCK_ROWS):
                    for start in range(0, len(rows), _STRIP_ROWS):
                        least = float(best[2][-1]) if len(best[2]) == most else floor
                        close = _close(rows[start : start + _STRIP_ROWS], other_rows, least)
                        best = _best(best, close, most)
                compared += len(rows)
                if progress:
                    progress("comparing", compared, total - counts[scopes[-1]])
        over = int((best[2] > least_cosine).sum())
        return BridgeReport(
            threshold=threshold,
            noise_floor=floor,
            vectors=total,
            scopes=len(scopes),
            bridges=_described(corpus, best, slice(min(over, limit)), floor),
            below=_described(corpus, best, slice(over, MIN_NAMED), floor),
            more=over > limit,
        )


def _close(rows: list[OwnedVector], others: list[OwnedVector], least: float) -> _Pairs:
    """The pairs of a row and another one whose cosine is at least so high, and not noise."""
    (lefts, left_owners, left), (rights, right_owners, right) = map(_columns, (rows, others))
    products = left @ right.T
    places, other_places = np.nonzero(products >= least)
    cosines = products[places, other_places]
    chunks = lefts[places], rights[other_places]
    return left_owners[places], right_owners[other_places], cosines, *chunks


def _columns(rows: list[OwnedVector]) -> _Pairs:
    """The rowids of chunks, those of their documents, and their vectors as a matrix."""
    chunks, owners, vectors = zip(*rows, strict=True)
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(rows), -1)
    return np.array(chunks), np.array(owners), matrix


def _best(best: _Pairs, more: _Pairs, most: int) -> _Pairs:
    """The best pair of chunks for each pair of documents, for so many of them, the best first.

    Of equal cosines the lowest rowids win, so that the order of reading does not matter.
    """
    columns = tuple(map(np.concatenate, zip(best, more, strict=True)))
    documents, others, cosines, lefts, rights = columns
    order = np.lexsort((rights, lefts, -cosines, others, documents))
    is_first = np.ones(len(order), dtype=bool)
    for of_document in (documents[order], others[order]):
        is_first[1:] &= of_document[1:] == of_document[:-1]
    is_first[1:] = ~is_first[1:]
    firsts = order[is_first]
    ranked = firsts[np.lexsort((rights[firsts], lefts[firsts], -cosines[firsts]))][:most]
    return tuple(column[ranked] for column in columns)


def _described(corpus: Corpus, pairs: _Pairs, part: slice, floor: float) -> tuple[BridgePair, ...]:
    _, _, cosines, lefts, rights = (column[part].tolist() for column in pairs)
    passages = passages_by_rowid(corpus, [*lefts, *rights])
    return tuple(
        BridgePair(
            similarity=round((cosine - floor) / (1 - floor), 4),
            cosine=round(cosine, 4),
            left=_end(passages[left]),
            right=_end(passages[right]),
        )
        for cosine, left, right in zip(cosines, lefts, rights, strict=True)
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
