"""The search in an embedding index: the chunks whose vectors are nearest to a query's.

sqlite-vec measures the L2 distance d. All vectors have unit length, so cosine = 1 − d²/2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rolebundle.storage import compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.passages import first_by_score
from rolebundle.storage.sqlite import Row
from rolebundle.storage.vector_index import EmbeddingIndex, IndexPart

MAX_NEIGHBOURS = 4096
"""sqlite-vec's own limit of k."""
MIN_SCANNED = 20_000
"""From so many vectors of a part on, a process that answers again keeps them in memory."""


MARGIN = 32
"""How many results a search asks for in addition, to see where the ties at the edge end."""

GROWTH = 64
"""By how much the limit grows as long as the results tie. A search scores all matches, so that a
larger limit costs less than another search."""


def search_with_ties(
    search: Callable[[int], Mapping[int, float]], number: int, most: int | None = None
) -> Mapping[int, float]:
    """The results of a search, with all that tie with the last one needed.

    Args:
        search: returns the best results for a limit, as rowid → score, best first.
        number: how many are needed.
        most: the largest limit that the search allows; ties beyond it are not seen.
    """
    limit = number + MARGIN
    while True:
        limit = limit if most is None else min(limit, most)
        found = search(limit)
        scores = list(found.values())
        if len(found) < limit or limit == most or scores[number - 1] != scores[-1]:
            return found
        limit *= GROWTH


def search_sql(part: IndexPart, *, within: bool = False) -> str:
    """The nearest chunks. Bindings: vector, k[, documents as JSON]."""
    restricted = (
        " AND rowid IN (SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?)))"
    )
    return (
        f"SELECT rowid, distance FROM {part.table} WHERE embedding MATCH ? AND k = ?"
        f"{restricted if within else ''} ORDER BY distance"
    )


def search(
    corpus: Corpus,
    index: EmbeddingIndex,
    vector: bytes,
    limit: int,
    within: Sequence[int] | None = None,
    *,
    facts: bool = False,
) -> list[tuple[int, float]]:
    """The ``limit`` nearest (rowid, cosine) of documents, or of remembered facts, nearest first.

    Ties at the edge go to the lower chunk id; among more than ``MAX_NEIGHBOURS`` equal vectors of a
    part, to those that sqlite-vec returns.

    For a minority of the documents the distance of each vector is computed one by one: sqlite-vec's
    search goes through all vectors, even if it is restricted.
    """
    corpus.load_vectors()
    k = min(limit, MAX_NEIGHBOURS)
    searchable = compartments.searchable_compartments(corpus, facts=True)
    searched = {place.id for place in searchable if place.has_facts is facts}
    documents = sum(place.documents for place in searchable if not place.has_facts)
    if within is not None and len(within) < _MAX_FEW_SHARE * documents:
        bindings = (vector, index.id, [*within], sorted(searched))
        neighbours = search_with_ties(
            lambda most: _cosines(corpus.rows(NEAREST_OF_FEW_SQL, (*bindings, most))), k
        )
    else:
        neighbours = {
            rowid: cosine
            for part in index.parts
            if part.vectors and part.compartment in searched
            for rowid, cosine in _nearest(corpus, index, part, vector, k, within).items()
        }
    return list(first_by_score(corpus, neighbours, k).items())


NEAREST_OF_FEW_SQL = (
    "SELECT e.chunk, vec_distance_L2(e.vector, ?) AS distance FROM chunk c "
    "CROSS JOIN embedded e ON e.index_id = ? AND e.chunk = c.id "
    "WHERE c.document IN (SELECT d.id FROM document d JOIN json_each(?) chosen "
    "ON d.id = chosen.value WHERE d.compartment IN (SELECT value FROM json_each(?))) "
    "ORDER BY distance, e.chunk LIMIT ?"
)
"""The nearest chunks of some documents in some compartments.

Bindings: vector, index, documents and compartments as JSON, limit."""
_MAX_FEW_SHARE = 0.5
"""Up to this share of the documents their vectors are measured one by one. At 307,849 chunks the
two ways take 8 and 95 ms for 1% of the documents, 45 and 178 ms for 10%, 330 and 235 ms for 90%."""


def _nearest(
    corpus: Corpus,
    index: EmbeddingIndex,
    part: IndexPart,
    vector: bytes,
    k: int,
    within: Sequence[int] | None,
) -> Mapping[int, float]:
    """The nearest of one part, with those that tie with the last of them."""
    if within is None and part.vectors >= MIN_SCANNED:
        found = _nearest_in_memory(corpus, index, part, vector, k)
        if found:
            return found
    sql = search_sql(part, within=within is not None)
    chosen = () if within is None else ([*within],)
    return search_with_ties(
        lambda most: _cosines(corpus.rows(sql, (vector, most, *chosen))), k, MAX_NEIGHBOURS
    )


def _nearest_in_memory(
    corpus: Corpus, index: EmbeddingIndex, part: IndexPart, vector: bytes, k: int
) -> Mapping[int, float]:
    """The same by the vectors in memory, from the second snapshot on in which this reader searches.

    Their reading takes several times as long as one search in vec0. Empty in the first snapshot, or
    if too many may be among the nearest, or if something is damaged: vec0 decides then.
    """
    corpus.searched_first = corpus.searched_first or corpus.snapshot
    if corpus.snapshot in (0, corpus.searched_first):
        return {}
    kept = corpus.kept_scans()
    if part.table not in kept:
        # The door of numpy.
        from rolebundle.storage.vector_scan import scan_of

        kept[part.table] = scan_of(corpus, part)
    known = kept[part.table]
    candidates = known.candidates(vector, k) if known else []
    scored = score(corpus, index, vector, candidates) if len(candidates) <= MAX_NEIGHBOURS else {}
    return scored if len(scored) == len(candidates) else {}


def _cosines(rows: Iterable[Row]) -> dict[int, float]:
    return {rowid: 1.0 - distance * distance / 2.0 for rowid, distance in rows}


def score(
    corpus: Corpus, index: EmbeddingIndex, vector: bytes, rowids: Sequence[int]
) -> dict[int, float]:
    """The cosine of those of ``rowids`` that have a vector."""
    corpus.load_vectors()
    rows = corpus.rows(
        "SELECT chunk, vec_distance_L2(vector, ?) FROM embedded WHERE index_id = ? "
        "AND chunk IN (SELECT value FROM json_each(?))",
        (vector, index.id, [*rowids]),
    )
    return _cosines(rows)
