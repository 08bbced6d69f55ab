"""The search in an embedding index: the chunks whose vectors are nearest to a query's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rolebundle.storage import compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.passages import first_by_score
from rolebundle.storage.sqlite import IN_SET, Binding, Row
from rolebundle.storage.stored_values import damage_error
from rolebundle.storage.vector_index import EmbeddingIndex, current_counts

Cosines = dict[int, float]
"""Rowid → cosine."""

MAX_SHORTLIST = 4_096
"""If more may be among the nearest, all vectors are measured."""
MARGIN = 32
"""How many results a search asks for in addition, to see how many tie with the last one."""
GROWTH = 64
"""By how much the limit grows as long as the results tie. A search measures all vectors, so that a
larger limit costs less than another search."""


def search(
    corpus: Corpus,
    index: EmbeddingIndex,
    vector: bytes,
    limit: int,
    within: Sequence[int] | None = None,
    *,
    only_facts: bool = False,
    shortlist: Sequence[int] | None = None,
) -> Cosines:
    """The ``limit`` nearest chunks of documents, or of remembered facts, nearest first.

    All that tie with the last one are among them; see :func:`first_by_score`.

    Args:
        corpus: an open corpus.
        index: the embedding index.
        vector: the query's unit vector.
        limit: how many.
        within: rowids of the documents to search in; ``None`` for all.
        only_facts: search remembered facts.
        shortlist: the result of :func:`shortlist_in_memory`, if it is known.

    Raises:
        CorpusCorrupt: ``vectors_damaged``: a vector among them is not what was stored.
    """
    if within is None and shortlist is None:
        shortlist = shortlist_in_memory(corpus, index, vector, limit, only_facts=only_facts)
    if within is None and shortlist:
        found: Mapping[int, float] = corpus.vectors.cosines(corpus, index.id, vector, shortlist)
    else:
        ids = _searched_ids(corpus, only_facts=only_facts)
        found = search_with_ties(
            lambda most: corpus.vectors.nearest(corpus, index.id, vector, most, ids, within), limit
        )
    return first_by_score(corpus, found, limit)


def _searched_ids(corpus: Corpus, *, only_facts: bool) -> list[int]:
    searchable = compartments.searchable_compartments(corpus, with_facts=True)
    return sorted(one.id for one in searchable if one.is_of_facts is only_facts)


def search_with_ties(
    search: Callable[[int], Mapping[int, float]], number: int
) -> Mapping[int, float]:
    """The results of a search, with all that tie with the last one needed.

    Args:
        search: returns the best results for a limit, as rowid → score, best first.
        number: how many are needed.
    """
    limit = number + MARGIN
    while True:
        found = search(limit)
        scores = list(found.values())
        if len(found) < limit or scores[number - 1] != scores[-1]:
            return found
        limit *= GROWTH


def shortlist_in_memory(
    corpus: Corpus, index: EmbeddingIndex, vector: bytes, limit: int, *, only_facts: bool = False
) -> list[int] | None:
    """The rowids of all chunks that may be among the nearest, by the vectors in memory.

    ``None`` means that all vectors must be measured, for one of three reasons:

    - There are few.
    - This is the first snapshot that this reader searches: loading takes as long as measuring.
    - More than ``MAX_SHORTLIST`` may be among the nearest.
    """
    searched_ids = _searched_ids(corpus, only_facts=only_facts)
    counts = current_counts(corpus, index.id)
    vectors = sum(counts.get(compartment, 0) for compartment in searched_ids)
    if vectors < corpus.min_vectors_in_memory:
        return None
    corpus.first_snapshot_searched = corpus.first_snapshot_searched or corpus.snapshot
    if corpus.snapshot in (0, corpus.first_snapshot_searched):
        return None
    # Imported here, because numpy takes time.
    from rolebundle.storage.vectors_in_memory import vectors_in_memory

    shortlist = vectors_in_memory(corpus, index).shortlist(searched_ids, vector, limit)
    return shortlist if len(shortlist) <= MAX_SHORTLIST else None


# -- distances that sqlite-vec measures in the file -----------------------------------------------
#
# It measures the L2 distance d. All vectors have unit length, so cosine = 1 − d²/2.

# The distance of a damaged vector is NULL, which SQLite sorts first. sqlite-vec fails if lengths
# differ, so they are compared before.
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
    compartment_ids: Sequence[int],
    document_rowids: Sequence[int] | None,
) -> Cosines:
    """The nearest chunks of compartments, or of documents in them: rowid → cosine.

    Raises:
        CorpusCorrupt: ``vectors_damaged``: a vector among them is not what was stored.
    """
    corpus.load_vector_functions()
    bindings: list[Binding] = [vector, index_id, compartment_ids, limit]
    if document_rowids is None:
        return cosines_from_rows(corpus.rows(NEAREST_SQL, bindings))
    return cosines_from_rows(corpus.rows(NEAREST_WITHIN_SQL, [*bindings, document_rowids]))


def prefetch(corpus: Corpus, index_id: int, rowids: Sequence[int]) -> None:
    """Do nothing, because a file is read without round trips."""


def cosines(corpus: Corpus, index_id: int, vector: bytes, rowids: Sequence[int]) -> Cosines:
    """Rowid → cosine, for the chunks that have a vector.

    Raises:
        CorpusCorrupt: ``vectors_damaged``.
    """
    corpus.load_vector_functions()
    chosen = f"SELECT {_DISTANCE} FROM embedded e WHERE e.index_id = ?2 AND e.chunk {IN_SET}"
    return cosines_from_rows(corpus.rows(chosen, (vector, index_id, rowids)))


def cosines_from_rows(rows: Iterable[Row]) -> Cosines:
    """Rowid → cosine, from rowids and distances; ``None`` for one that cannot be measured."""
    found = {}
    for rowid, distance in rows:
        if distance is None:
            raise damage_error("a vector", "vectors_damaged")
        found[rowid] = 1.0 - distance * distance / 2.0
    return found
