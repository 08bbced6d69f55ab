"""Distances that sqlite-vec measures in the file.

It measures the L2 distance d. All vectors have unit length, so cosine = 1 − d²/2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rolebundle.storage.corpus import Corpus
from rolebundle.storage.sqlite import AMONG, Binding, Row
from rolebundle.storage.stored_values import damaged

# A damaged vector has no distance, and so comes first. To compare another length is an error.
_DISTANCE = (
    "e.chunk, CASE length(e.vector) WHEN length(?1) "
    "THEN nullif(vec_distance_L2(e.vector, ?1), 9e999) END AS distance"
)
_NEAREST = (
    "WHERE e.index_id = ?2 AND e.compartment IN (SELECT value FROM json_each(?3)) "
    "ORDER BY distance, e.chunk LIMIT ?4"
)
NEAREST_SQL = f"SELECT {_DISTANCE} FROM embedded e {_NEAREST}"
"""The nearest chunks. Bindings: vector, index, compartments as JSON, limit."""
NEAREST_WITHIN_SQL = (
    f"SELECT {_DISTANCE} FROM json_each(?5) chosen CROSS JOIN chunk c ON c.document = chosen.value "
    f"CROSS JOIN embedded e ON e.chunk = c.id {_NEAREST}"
)
"""The same, of some documents. Bindings: as above, and the documents as JSON."""


def nearest(
    corpus: Corpus,
    index_id: int,
    vector: bytes,
    limit: int,
    compartments: Sequence[int],
    documents: Sequence[int] | None,
) -> dict[int, float]:
    """The nearest chunks of compartments, or of documents in them: rowid → cosine.

    Raises:
        CorpusCorrupt: ``vectors_damaged``: a vector among them is not what was stored.
    """
    corpus.load_vectors()
    bindings: list[Binding] = [vector, index_id, [*compartments], limit]
    if documents is None:
        return cosines_of(corpus.rows(NEAREST_SQL, bindings))
    return cosines_of(corpus.rows(NEAREST_WITHIN_SQL, [*bindings, [*documents]]))


def prefetch(corpus: Corpus, index_id: int, rowids: Sequence[int]) -> None:
    """Do nothing, because a file is read without round trips."""


def cosines(
    corpus: Corpus, index_id: int, vector: bytes, rowids: Sequence[int]
) -> dict[int, float]:
    """Rowid → cosine, of those chunks that have a vector.

    Raises:
        CorpusCorrupt: ``vectors_damaged``.
    """
    corpus.load_vectors()
    rows = corpus.rows(
        f"SELECT {_DISTANCE} FROM embedded e WHERE e.index_id = ?2 AND e.chunk {AMONG}",
        (vector, index_id, [*rowids]),
    )
    return cosines_of(rows)


def cosines_of(rows: Iterable[Row]) -> dict[int, float]:
    """Rowid → cosine, from rowids and distances; ``None`` for one that cannot be measured."""
    found = {}
    for rowid, distance in rows:
        if distance is None:
            raise damaged("a vector", "vectors_damaged")
        found[rowid] = 1.0 - distance * distance / 2.0
    return found
