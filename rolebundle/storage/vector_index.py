"""The embedding indexes: their identities, their vectors, and the search in them.

An index has one part for each compartment: a vec0 table with the vectors of its chunks. Vectors are
little-endian float32 blobs of unit length, so cosine = 1 − d²/2 for the L2 distance d that
sqlite-vec measures. The cache at the end keeps vectors whose chunk is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from rolebundle.contracts.index import IndexIdentity, ModelIdentity, Noise
from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import approximate_index, compartments
from rolebundle.storage.approximate_index import IndexPart
from rolebundle.storage.connection import Corpus
from rolebundle.storage.row_digest import row_digest
from rolebundle.storage.sqlite_file import Row, check_types
from rolebundle.storage.ties import first_by_score, search_with_ties

MAX_NEIGHBOURS = 4096
"""sqlite-vec's own limit of k."""
MAX_CACHE_BYTES = 50 * 1024 * 1024
"""Maximum size of the cache in bytes. The oldest vectors are deleted first."""

_COLUMNS = (
    "id, provider, model, model_digest, dimensions, query_prefix, passage_prefix, chunker, "
    "normalization, active, reach, started_at, noise_floor, related_cosine"
)
_INDEX_TYPES = (int, str, str, str, int, str, str, str, str, int, str, str)
_NOISE_TYPES = (float, float)


@dataclass(frozen=True, slots=True)
class EmbeddingIndex:
    """An embedding index of the corpus, by the number that names its tables.

    ``parts`` are its parts when this was read. ``reach`` is JSON: how to connect to the model
    again. ``noise`` is what the model's cosines mean; ``None`` if it was not measured yet.
    """

    id: int
    identity: IndexIdentity
    # The following fields are not part of the identity of the index.
    parts: tuple[IndexPart, ...] = field(default=(), compare=False)
    active: bool = field(default=False, compare=False)
    reach: str = field(default="{}", compare=False)
    started_at: str = field(default="", compare=False)
    noise: Noise | None = field(default=None, compare=False)

    @property
    def vectors(self) -> int:
        """How many chunks had a vector when this was read."""
        return sum(part.vectors for part in self.parts)


def active_index(corpus: Corpus) -> EmbeddingIndex | None:
    """The index that retrieval uses, or ``None`` if the corpus has no vectors yet."""
    rows = corpus.rows(f"SELECT {_COLUMNS} FROM embedding_index WHERE active = 1")
    return _index(corpus, rows[0]) if rows else None


def all_indexes(corpus: Corpus) -> list[EmbeddingIndex]:
    """Every index of the corpus, the oldest first."""
    rows = corpus.rows(f"SELECT {_COLUMNS} FROM embedding_index ORDER BY id")
    return [_index(corpus, row) for row in rows]


def find_index(corpus: Corpus, identity: IndexIdentity) -> EmbeddingIndex | None:
    """The index of exactly this model and normalization, or ``None``."""
    same = (
        index
        for index in all_indexes(corpus)
        if index.identity.model == identity.model
        and index.identity.normalization == identity.normalization
    )
    return next(same, None)


def _index(corpus: Corpus, row: Row) -> EmbeddingIndex:
    columns, noise = row[: len(_INDEX_TYPES)], row[len(_INDEX_TYPES) :]
    check_types(columns, _INDEX_TYPES, "the embedding index")
    if noise != (None, None):
        check_types(noise, _NOISE_TYPES, "the embedding index")
    index_id, *model, chunker, normalization, active, reach, started_at = columns
    identity = IndexIdentity(ModelIdentity(*model), chunker, normalization)
    return EmbeddingIndex(
        index_id,
        identity,
        _parts(corpus, index_id, identity.model.dimensions),
        bool(active),
        reach,
        started_at,
        None if noise == (None, None) else Noise(*noise),
    )


def _parts(corpus: Corpus, index_id: int, dimensions: int) -> tuple[IndexPart, ...]:
    rows = corpus.rows(
        "SELECT compartment, vectors, fast FROM embedding_share WHERE index_id = ? "
        "ORDER BY compartment",
        (index_id,),
    )
    for row in rows:
        check_types(row, (int, int, str), "the embedding index")
    return tuple(
        IndexPart(index_id, compartment, dimensions, vectors, approximate)
        for compartment, vectors, approximate in rows
    )


def current_parts(corpus: Corpus, index: EmbeddingIndex) -> tuple[IndexPart, ...]:
    """The parts of the index as they are now."""
    return _parts(corpus, index.id, index.identity.model.dimensions)


def create_index(
    corpus: Corpus,
    identity: IndexIdentity,
    *,
    reach: str = "{}",
    started_at: str = "",
    activate: bool = True,
) -> EmbeddingIndex:
    """Create an index, and activate it. Call it inside a write transaction."""
    model = identity.model
    corpus.run(
        "INSERT INTO embedding_index (provider, model, model_digest, dimensions, query_prefix, "
        "passage_prefix, chunker, normalization, active, reach, started_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
        (
            model.provider,
            model.model,
            model.digest,
            model.dimensions,
            model.query_prefix,
            model.passage_prefix,
            identity.chunker,
            identity.normalization,
            reach,
            started_at,
        ),
    )
    index = EmbeddingIndex(
        corpus.last_rowid(), identity, (), activate, reach=reach, started_at=started_at
    )
    if activate:
        activate_index(corpus, index)
    return index


def activate_index(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Let retrieval use this index from now on. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET active = 0 WHERE active = 1")
    corpus.run("UPDATE embedding_index SET active = 1 WHERE id = ?", (index.id,))


def delete_index(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Remove an index with its vectors. Call it inside a write transaction."""
    for part in current_parts(corpus, index):
        _drop_part(corpus, part)
    corpus.run("DELETE FROM embedding_index WHERE id = ?", (index.id,))


def drop_compartment(corpus: Corpus, compartment: int) -> None:
    """Remove the vectors of a compartment from every index."""
    for index in all_indexes(corpus):
        for part in index.parts:
            if part.compartment == compartment:
                _drop_part(corpus, part)


def _drop_part(corpus: Corpus, part: IndexPart) -> None:
    corpus.load_vectors()
    approximate_index.drop(corpus, part)
    corpus.run(f"DROP TABLE {part.table}")
    corpus.run(
        "DELETE FROM embedding_share WHERE index_id = ? AND compartment = ?",
        (part.index_id, part.compartment),
    )


def create_table(corpus: Corpus, part: IndexPart) -> None:
    """Create the empty vec0 table of a part."""
    dimensions = int(part.dimensions)
    corpus.run(f"CREATE VIRTUAL TABLE {part.table} USING vec0 (embedding float[{dimensions}])")


def _part(corpus: Corpus, index: EmbeddingIndex, compartment: int) -> IndexPart:
    """Return the index's part for a compartment. Create it if there is none."""
    for part in current_parts(corpus, index):
        if part.compartment == compartment:
            return part
    part = IndexPart(index.id, compartment, index.identity.model.dimensions, 0, "")
    corpus.load_vectors()
    create_table(corpus, part)
    corpus.run("INSERT INTO embedding_share VALUES (?, ?, 0, '')", (index.id, compartment))
    return part


def stale_reason(corpus: Corpus, index: EmbeddingIndex) -> str:
    """Why an approximate index of these vectors is not used; empty if all of them are."""
    reasons = (approximate_index.stale_reason(corpus, part) for part in index.parts)
    return next(filter(None, reasons), "")


def input_hashes(corpus: Corpus, index: EmbeddingIndex, after: int, limit: int) -> dict[int, str]:
    """Chunk rowid → the hash of the embedded text, for the next ``limit`` rowids over ``after``."""
    rows = corpus.rows(
        "SELECT chunk, input_hash FROM embedded WHERE index_id = ? AND chunk > ? "
        "ORDER BY chunk LIMIT ?",
        (index.id, after, limit),
    )
    return dict(rows)


def set_chunker(corpus: Corpus, index: EmbeddingIndex, chunker: str) -> EmbeddingIndex:
    """Record which chunker made the passages. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET chunker = ? WHERE id = ?", (chunker, index.id))
    return replace(index, identity=replace(index.identity, chunker=chunker))


def set_reach(corpus: Corpus, index: EmbeddingIndex, reach: str) -> None:
    """Record how to reach the index's model. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET reach = ? WHERE id = ?", (reach, index.id))


def set_noise(corpus: Corpus, index: EmbeddingIndex, noise: Noise) -> None:
    """Record what the cosines of the index's model mean. Call it inside a write transaction."""
    corpus.run(
        "UPDATE embedding_index SET noise_floor = ?, related_cosine = ? WHERE id = ?",
        (*noise, index.id),
    )


def vector_hash(input_hash: str, vector: bytes) -> str:
    """The hash that the corpus keeps of a vector and of what it was made of.

    It finds flipped bits.
    """
    return blake2b(input_hash.encode() + vector, digest_size=8).hexdigest()


def rehash(corpus: Corpus) -> None:
    """Replace the hashes of a schema before 7, which are of the vector alone.

    A wrong hash stays, so that the check finds it.
    """
    rows = corpus.each("SELECT index_id, chunk, input_hash, vector_hash, vector FROM embedded")
    changes = [
        (vector_hash(input_hash, vector), index_id, chunk)
        for index_id, chunk, input_hash, stored, vector in rows
        if blake2b(vector, digest_size=8).hexdigest() == stored
    ]
    corpus.run_many("UPDATE embedded SET vector_hash = ? WHERE index_id = ? AND chunk = ?", changes)


def add(corpus: Corpus, index: EmbeddingIndex, vectors: Sequence[tuple[int, str, bytes]]) -> None:
    """Store (chunk rowid, input hash, vector), replacing the vectors that the chunks had."""
    rowids = [rowid for rowid, _, _ in vectors]
    remove(corpus, index, rowids)
    by_rowid = {rowid: vector for rowid, _, vector in vectors}
    for compartment, chunks in compartments.chunks_by_compartment(corpus, rowids).items():
        _insert(corpus, index, compartment, [(chunk, by_rowid[chunk]) for chunk in chunks])
    corpus.run_many(
        "INSERT INTO embedded (index_id, chunk, input_hash, vector_hash, vector) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            (index.id, rowid, input_hash, vector_hash(input_hash, vector), vector)
            for rowid, input_hash, vector in vectors
        ),
    )


def _insert(
    corpus: Corpus, index: EmbeddingIndex, compartment: int, vectors: Sequence[tuple[int, bytes]]
) -> None:
    part = _part(corpus, index, compartment)
    corpus.load_vectors()
    corpus.run_many(f"INSERT INTO {part.table} (rowid, embedding) VALUES (?, ?)", vectors)
    approximate_index.add_vectors(corpus, part, vectors)
    _count(corpus, part, len(vectors))


def _delete(corpus: Corpus, part: IndexPart, rowids: Sequence[int]) -> None:
    corpus.load_vectors()
    corpus.run_many(f"DELETE FROM {part.table} WHERE rowid = ?", ((row,) for row in rowids))
    approximate_index.remove_vectors(corpus, part, rowids)
    _count(corpus, part, -len(rowids))


def remove(corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int]) -> None:
    """Remove the vectors of these chunks from an index, and keep them in the cache."""
    chosen = json.dumps(list(rowids))
    stored = corpus.rows(
        "SELECT chunk, input_hash, vector_hash, vector FROM embedded WHERE index_id = ? "
        "AND chunk IN (SELECT value FROM json_each(?))",
        (index.id, chosen),
    )
    if not stored:
        return
    # Not a damaged one: it would come back with a new hash, as if it were intact.
    intact = [
        (input_hash, vector)
        for _, input_hash, expected, vector in stored
        if vector_hash(input_hash, vector) == expected
    ]
    cache_vectors(corpus, index.identity.model, intact)
    by_compartment = compartments.chunks_by_compartment(corpus, [row[0] for row in stored])
    for compartment, chunks in by_compartment.items():
        _delete(corpus, _part(corpus, index, compartment), chunks)
    corpus.run(
        "DELETE FROM embedded WHERE index_id = ? AND chunk IN (SELECT value FROM json_each(?))",
        (index.id, chosen),
    )


def move(
    corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int], source: int, target: int
) -> None:
    """Move the vectors of these chunks to another compartment; compartment 0 has none."""
    vectors = corpus.rows(
        "SELECT chunk, vector FROM embedded WHERE index_id = ? "
        "AND chunk IN (SELECT value FROM json_each(?)) ORDER BY chunk",
        (index.id, json.dumps(list(rowids))),
    )
    if not vectors:
        return
    if source:
        _delete(corpus, _part(corpus, index, source), [chunk for chunk, _ in vectors])
    # vec0 refuses a vector of another length. It is left out, so that the others can move and the
    # check finds it.
    size = 4 * index.identity.model.dimensions
    whole = [pair for pair in vectors if isinstance(pair[1], bytes) and len(pair[1]) == size]
    _insert(corpus, index, target, whole)


def _count(corpus: Corpus, part: IndexPart, change: int) -> None:
    corpus.run(
        "UPDATE embedding_share SET vectors = vectors + ? WHERE index_id = ? AND compartment = ?",
        (change, part.index_id, part.compartment),
    )


def chunks_without_vector(
    corpus: Corpus, index: EmbeddingIndex, after: int, limit: int
) -> list[int]:
    """Rowids over ``after`` of chunks that have no vector in this index yet, in order."""
    rows = corpus.rows(
        "SELECT id FROM chunk WHERE id > ? AND NOT EXISTS "
        "(SELECT 1 FROM embedded WHERE index_id = ? AND chunk = chunk.id) ORDER BY id LIMIT ?",
        (after, index.id, limit),
    )
    return [rowid for (rowid,) in rows]


def count_vectors(corpus: Corpus, index: EmbeddingIndex) -> int:
    """How many chunks have a vector in this index now."""
    return sum(part.vectors for part in current_parts(corpus, index))


# -- search --------------------------------------------------------------------------------------


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
) -> list[tuple[int, float]]:
    """The ``limit`` nearest (rowid, cosine) of all parts, nearest first.

    Ties at the edge go to the lower chunk id; among more than ``MAX_NEIGHBOURS`` equal vectors of a
    part, to those that sqlite-vec returns.

    For a minority of the documents the distance of each vector is computed one by one: sqlite-vec's
    search goes through all vectors, even if it is restricted.
    """
    corpus.load_vectors()
    k = min(limit, MAX_NEIGHBOURS)
    if within is not None and _are_few(corpus, within):
        chosen = json.dumps(list(within))
        neighbours = search_with_ties(
            lambda most: _cosines(
                corpus.rows(NEAREST_OF_FEW_SQL, (vector, index.id, chosen, most))
            ),
            k,
        )
    else:
        neighbours = {
            rowid: cosine
            for part in index.parts
            if part.vectors
            for rowid, cosine in _nearest(corpus, index, part, vector, k, within).items()
        }
    return list(first_by_score(corpus, neighbours, k).items())


NEAREST_OF_FEW_SQL = (
    "SELECT e.chunk, vec_distance_L2(e.vector, ?) AS distance FROM chunk c "
    "CROSS JOIN embedded e ON e.index_id = ? AND e.chunk = c.id "
    "WHERE c.document IN (SELECT value FROM json_each(?)) ORDER BY distance, e.chunk LIMIT ?"
)
"""The nearest chunks of some documents. Bindings: vector, index, documents as JSON, limit."""
_MAX_FEW_SHARE = 0.5
"""Up to this share of the documents their vectors are measured one by one. At 307,849 chunks the
two ways take 8 and 95 ms for 1% of the documents, 45 and 178 ms for 10%, 330 and 235 ms for 90%."""


def _are_few(corpus: Corpus, documents: Sequence[int]) -> bool:
    total = sum(
        compartment.documents for compartment in compartments.searchable_compartments(corpus)
    )
    return len(documents) < _MAX_FEW_SHARE * total


def _nearest(
    corpus: Corpus,
    index: EmbeddingIndex,
    part: IndexPart,
    vector: bytes,
    k: int,
    within: Sequence[int] | None,
) -> Mapping[int, float]:
    """The nearest of one part, with those that tie with the last of them.

    Exact, unless the part has a usable approximate index. That one proposes twice as many, and
    their cosines are computed from the vectors themselves. If its buckets hold too few, or its
    tables are damaged, the exact search is used after all: fewer neighbours would look as if the
    corpus had no more.
    """
    if within is None and approximate_index.is_usable(corpus, part):
        try:
            proposed = approximate_index.nearest(corpus, part, vector, 2 * k)
        except CorpusCorrupt:
            proposed = []
        scored = score(corpus, index, vector, proposed)
        if len(scored) >= min(k, part.vectors):
            return scored
    sql = search_sql(part, within=within is not None)
    chosen = () if within is None else (json.dumps(list(within)),)
    return search_with_ties(
        lambda most: _cosines(corpus.rows(sql, (vector, most, *chosen))), k, MAX_NEIGHBOURS
    )


def _cosines(rows: Iterable[Row]) -> dict[int, float]:
    return {rowid: _cosine(distance) for rowid, distance in rows}


def exact_neighbours(
    corpus: Corpus, part: IndexPart, vector: bytes, limit: int
) -> list[tuple[int, float]]:
    """The ``limit`` nearest (rowid, cosine) of one part, by its vec0 table alone."""
    return [
        (rowid, _cosine(distance))
        for rowid, distance in corpus.rows(search_sql(part), (vector, limit))
    ]


def sample_vectors(corpus: Corpus, part: IndexPart, count: int) -> list[bytes]:
    """About ``count`` vectors of a part, evenly spread over its rows."""
    rowids = corpus.each(f"SELECT rowid FROM {part.table}")
    sample = list(islice(rowids, 0, None, max(1, part.vectors // count)))[:count]
    return [
        corpus.value(
            "SELECT vector FROM embedded WHERE index_id = ? AND chunk = ?", (part.index_id, rowid)
        )
        for (rowid,) in sample
    ]


def score(
    corpus: Corpus, index: EmbeddingIndex, vector: bytes, rowids: Sequence[int]
) -> dict[int, float]:
    """The cosine of those of ``rowids`` that have a vector."""
    corpus.load_vectors()
    rows = corpus.rows(
        "SELECT chunk, vec_distance_L2(vector, ?) FROM embedded WHERE index_id = ? "
        "AND chunk IN (SELECT value FROM json_each(?))",
        (vector, index.id, json.dumps(list(rowids))),
    )
    return _cosines(rows)


def _cosine(distance: float) -> float:
    return 1.0 - distance * distance / 2.0


# -- comparing scopes ----------------------------------------------------------------------------

_EMBEDDED_CHUNKS = (
    "FROM embedded e CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d "
    "ON d.id = c.document WHERE e.index_id = ?"
)


class OwnedVector(NamedTuple):
    """A vector with the rowids of its chunk and of its document."""

    chunk: int
    document: int
    vector: bytes


def count_vectors_by_scope(corpus: Corpus, index: EmbeddingIndex) -> dict[str, int]:
    """Scope → how many of its chunks have a vector, ordered by the names of the scopes."""
    return dict(
        corpus.rows(
            f"SELECT d.scope, count(*) {_EMBEDDED_CHUNKS} GROUP BY d.scope ORDER BY d.scope",
            (index.id,),
        )
    )


def vector_blocks(
    corpus: Corpus, index: EmbeddingIndex, scopes: Sequence[str], size: int
) -> Iterator[list[OwnedVector]]:
    """All vectors of these scopes, at most ``size`` at a time.

    A vector of another length than the index's is damaged, and left out.
    """
    places = ", ".join("?" * len(scopes))
    after = -1
    while True:
        rows = corpus.rows(
            f"SELECT e.chunk, d.id, e.vector {_EMBEDDED_CHUNKS} AND e.chunk > ? "
            f"AND length(e.vector) = ? AND d.scope IN ({places}) ORDER BY e.chunk LIMIT ?",
            (index.id, after, 4 * index.identity.model.dimensions, *scopes, size),
        )
        if not rows:
            return
        yield [OwnedVector(*row) for row in rows]
        after = rows[-1][0]


# -- cache ---------------------------------------------------------------------------------------


def model_key(model: ModelIdentity) -> str:
    """A digest of everything about a model that changes its vectors."""
    texts = (
        model.provider,
        model.model,
        model.digest,
        str(model.dimensions),
        model.query_prefix,
        model.passage_prefix,
    )
    return blake2b("\0".join(texts).encode(), digest_size=12).hexdigest()


def cache_vectors(
    corpus: Corpus, model: ModelIdentity, vectors: Sequence[tuple[str, bytes]]
) -> None:
    """Keep (input hash, vector) of chunks that left an index; the oldest beyond the limit go.

    If the same text comes back, moved or restored, its vector is found here without a model.
    """
    key = model_key(model)
    corpus.run_many(
        "INSERT OR REPLACE INTO embedding_cache (model, input_hash, vector, digest) "
        "VALUES (?, ?, ?, ?)",
        ((*row, row_digest(row)) for row in ((key, *vector) for vector in vectors)),
    )
    corpus.run(
        "DELETE FROM embedding_cache WHERE id <= (SELECT max(id) - ? FROM embedding_cache)",
        (MAX_CACHE_BYTES // (4 * model.dimensions),),
    )


def cached_vectors(
    corpus: Corpus, model: ModelIdentity, input_hashes: Sequence[str]
) -> dict[str, bytes]:
    """Input hash → vector, for those in the cache that are intact and as long as the model's."""
    key = model_key(model)
    rows = corpus.rows(
        "SELECT input_hash, vector, digest FROM embedding_cache WHERE model = ? "
        "AND length(vector) = ? AND input_hash IN (SELECT value FROM json_each(?))",
        (key, 4 * model.dimensions, json.dumps(list(input_hashes))),
    )
    return {
        input_hash: vector
        for input_hash, vector, digest in rows
        if row_digest((key, input_hash, vector)) == digest
    }


def cache_size(corpus: Corpus) -> tuple[int, int]:
    """How many vectors the cache has, and how many bytes they take."""
    count, total = corpus.rows(
        "SELECT count(*), coalesce(sum(length(vector)), 0) FROM embedding_cache"
    )[0]
    return int(count), int(total)


def clear_cache(corpus: Corpus) -> None:
    """Empty the cache. Call it inside a write transaction."""
    corpus.run("DELETE FROM embedding_cache")
