"""Searches through an embedding index: what is nearest to a vector, and how near given chunks are.

Vectors are of unit length, so cosine = 1 − d²/2 for the L2 distance that sqlite-vec measures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import compartments, fast_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.fast_index import Share
from rolebundle.storage.vector_index import EmbeddingIndex

MAX_NEIGHBOURS = 4096
"""sqlite-vec's own limit of k."""


def search_sql(share: Share, *, within: bool = False) -> str:
    """The nearest chunks; bindings: vector, k[, documents as JSON]."""
    restricted = (
        " AND rowid IN (SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?)))"
    )
    return (
        f"SELECT rowid, distance FROM {share.table} WHERE embedding MATCH ? AND k = ?"
        f"{restricted if within else ''} ORDER BY distance"
    )


def search(
    corpus: Corpus,
    index: EmbeddingIndex,
    vector: bytes,
    limit: int,
    within: Sequence[int] | None = None,
) -> list[tuple[int, float]]:
    """The ``limit`` nearest (rowid, cosine) of all shares, nearest first.

    Among a minority of the documents each vector is measured by itself: sqlite-vec's search goes
    through all vectors, whatever it is restricted to.
    """
    corpus.load_vectors()
    k = min(limit, MAX_NEIGHBOURS)
    if within is not None and _are_few(corpus, within):
        found = corpus.rows(NEAREST_OF_FEW, (vector, index.id, json.dumps(list(within)), k))
        return [(rowid, _cosine(distance)) for rowid, distance in found]
    found = [
        pair
        for share in index.shares
        if share.vectors
        for pair in _nearest(corpus, index, share, vector, k, within)
    ]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


NEAREST_OF_FEW = (
    "SELECT e.chunk, vec_distance_L2(e.vector, ?) AS distance FROM chunk c "
    "CROSS JOIN embedded e ON e.index_id = ? AND e.chunk = c.id "
    "WHERE c.document IN (SELECT value FROM json_each(?)) ORDER BY distance, e.chunk LIMIT ?"
)
"""The nearest chunks of some documents; bindings: vector, index, documents as JSON, limit."""
_FEW = 0.5
"""Share of the documents under which their vectors are measured one by one. At 307,849 chunks the
two ways take 8 and 95 ms for 1% of them, 45 and 178 ms for 10%, 330 and 235 ms for 90%."""


def _are_few(corpus: Corpus, documents: Sequence[int]) -> bool:
    total = sum(place.documents for place in compartments.filled(corpus))
    return len(documents) < _FEW * total


def _nearest(
    corpus: Corpus,
    index: EmbeddingIndex,
    share: Share,
    vector: bytes,
    k: int,
    within: Sequence[int] | None,
) -> list[tuple[int, float]]:
    """The nearest of one share.

    Exact, unless the share has a fast companion that may answer: that one proposes twice as many,
    and they are measured again with the vectors themselves. Where its buckets hold fewer than are
    wanted, or its tables are damaged, the exact search answers after all: fewer would look as if
    the corpus had no more.
    """
    if within is None and fast_index.may_answer(corpus, share):
        try:
            proposed = fast_index.nearest(corpus, share, vector, 2 * k)
        except CorpusCorrupt:
            proposed = []
        measured = score(corpus, index, vector, proposed)
        if len(measured) >= min(k, share.vectors):
            return list(measured.items())
    bindings = (vector, k) if within is None else (vector, k, json.dumps(list(within)))
    found = corpus.rows(search_sql(share, within=within is not None), bindings)
    return [(rowid, _cosine(distance)) for rowid, distance in found]


def score(
    corpus: Corpus, index: EmbeddingIndex, vector: bytes, rowids: Sequence[int]
) -> dict[int, float]:
    """The cosine of those of ``rowids`` that have a vector."""
    corpus.load_vectors()
    found = corpus.rows(
        "SELECT chunk, vec_distance_L2(vector, ?) FROM embedded WHERE index_id = ? "
        "AND chunk IN (SELECT value FROM json_each(?))",
        (vector, index.id, json.dumps(list(rowids))),
    )
    return {rowid: _cosine(distance) for rowid, distance in found}


def _cosine(distance: float) -> float:
    return 1.0 - distance * distance / 2.0
