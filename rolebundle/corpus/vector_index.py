"""The embedding indexes: one vec0 table each, and the record of what each vector was made of.

Vectors are little-endian float32 blobs of unit length, so cosine = 1 − d²/2 for the L2 distance
that sqlite-vec measures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from rolebundle.contracts.index import IndexIdentity, ModelIdentity
from rolebundle.corpus import fast_index, vector_cache
from rolebundle.corpus.connection import Corpus, Row
from rolebundle.corpus.failures import sound
from rolebundle.errors import CorpusCorrupt

MAX_NEIGHBOURS = 4096
"""sqlite-vec's own limit of k."""

_COLUMNS = (
    "id, provider, model, model_digest, dimensions, query_prefix, passage_prefix, chunker, "
    "normalization, vectors, active, reach, started_at, fast"
)
_INDEX_TYPES = (int, str, str, str, int, str, str, str, str, int, int, str, str, str)


@dataclass(frozen=True, slots=True)
class EmbeddingIndex:
    """An embedding index of the corpus, by the number that names its tables.

    ``vectors`` is how many chunks had one when this was read; ``reach`` is how to reach the model
    again, as JSON; ``fast`` describes the fast companion, as JSON, or is empty.
    """

    id: int
    identity: IndexIdentity
    # What changes while an index stays the same one.
    vectors: int = field(default=0, compare=False)
    active: bool = field(default=False, compare=False)
    reach: str = field(default="{}", compare=False)
    started_at: str = field(default="", compare=False)
    fast: str = field(default="", compare=False)

    @property
    def table(self) -> str:
        """The vec0 table of its vectors."""
        return f"vectors_{self.id}"


def active_index(corpus: Corpus) -> EmbeddingIndex | None:
    """The index that answers, or ``None`` where the corpus has no vectors yet."""
    found = corpus.rows(f"SELECT {_COLUMNS} FROM embedding_index WHERE active = 1")
    return _index(found[0]) if found else None


def all_indexes(corpus: Corpus) -> list[EmbeddingIndex]:
    """Every index that the corpus keeps, the oldest first."""
    return [
        _index(row) for row in corpus.rows(f"SELECT {_COLUMNS} FROM embedding_index ORDER BY id")
    ]


def find_index(corpus: Corpus, identity: IndexIdentity) -> EmbeddingIndex | None:
    """The index of this very model and normalization, or ``None``."""
    same = (
        index
        for index in all_indexes(corpus)
        if index.identity.model == identity.model
        and index.identity.normalization == identity.normalization
    )
    return next(same, None)


def _index(row: Row) -> EmbeddingIndex:
    sound(row, _INDEX_TYPES, "the embedding index")
    index_id, *model, chunker, normalization, vectors, active, reach, started_at, fast = row
    identity = IndexIdentity(ModelIdentity(*model), chunker, normalization)
    return EmbeddingIndex(index_id, identity, vectors, bool(active), reach, started_at, fast)


def create_index(
    corpus: Corpus,
    identity: IndexIdentity,
    *,
    reach: str = "{}",
    started_at: str = "",
    activate: bool = True,
) -> EmbeddingIndex:
    """Create an index, and make it the one that answers. Call it inside a write transaction."""
    corpus.load_vectors()
    model = identity.model
    corpus.run(
        "INSERT INTO embedding_index (provider, model, model_digest, dimensions, query_prefix, "
        "passage_prefix, chunker, normalization, vectors, active, reach, started_at, fast) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, '')",
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
        corpus.last_rowid(), identity, 0, activate, reach=reach, started_at=started_at
    )
    _create_table(corpus, index)
    if activate:
        use(corpus, index)
    return index


def use(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Make this index the one that answers. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET active = 0 WHERE active = 1")
    corpus.run("UPDATE embedding_index SET active = 1 WHERE id = ?", (index.id,))


def discard(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Remove an index with its vectors. Call it inside a write transaction."""
    corpus.load_vectors()
    fast_index.remove(corpus, index.id)
    corpus.run(f"DROP TABLE {index.table}")
    corpus.run("DELETE FROM embedding_index WHERE id = ?", (index.id,))


def _create_table(corpus: Corpus, index: EmbeddingIndex) -> None:
    dimensions = int(index.identity.model.dimensions)
    corpus.run(f"CREATE VIRTUAL TABLE {index.table} USING vec0 (embedding float[{dimensions}])")


def search_sql(index: EmbeddingIndex, *, within: bool = False) -> str:
    """The nearest chunks; bindings: vector, k[, documents as JSON]."""
    restricted = (
        " AND rowid IN (SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?)))"
    )
    return (
        f"SELECT rowid, distance FROM {index.table} WHERE embedding MATCH ? AND k = ?"
        f"{restricted if within else ''} ORDER BY distance"
    )


def search(
    corpus: Corpus,
    index: EmbeddingIndex,
    vector: bytes,
    limit: int,
    within: Sequence[int] | None = None,
) -> list[tuple[int, float]]:
    """The ``limit`` nearest (rowid, cosine), nearest first.

    Exact, unless the index has a fast companion that may answer: that one proposes twice as many,
    and they are measured again with the vectors themselves. Where its buckets hold fewer than are
    wanted, or its tables are damaged, the exact search answers after all: fewer would look as if
    the corpus had no more.
    """
    corpus.load_vectors()
    k = min(limit, MAX_NEIGHBOURS)
    if within is None and fast_index.may_answer(corpus, index.id, index.fast, index.vectors):
        try:
            proposed = fast_index.nearest(corpus, index.id, index.fast, vector, 2 * k)
        except CorpusCorrupt:
            proposed = []
        measured = score(corpus, index, vector, proposed)
        if len(measured) >= min(k, index.vectors):
            return sorted(measured.items(), key=lambda found: (-found[1], found[0]))[:k]
    bindings = (vector, k) if within is None else (vector, k, json.dumps(list(within)))
    found = corpus.rows(search_sql(index, within=within is not None), bindings)
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


def set_reach(corpus: Corpus, index: EmbeddingIndex, reach: str) -> None:
    """Note how to reach the index's model from now on. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET reach = ? WHERE id = ?", (reach, index.id))


def vector_hash(vector: bytes) -> str:
    """What the corpus remembers of a vector, to find flipped bits."""
    return blake2b(vector, digest_size=8).hexdigest()


def add(corpus: Corpus, index: EmbeddingIndex, vectors: Sequence[tuple[int, str, bytes]]) -> None:
    """Store (chunk rowid, input hash, vector), replacing what a chunk had."""
    corpus.load_vectors()
    rowids = [rowid for rowid, _, _ in vectors]
    remove(corpus, index, rowids)
    corpus.run_many(
        f"INSERT INTO {index.table} (rowid, embedding) VALUES (?, ?)",
        ((rowid, vector) for rowid, _, vector in vectors),
    )
    fast_index.add(corpus, index.id, [(rowid, vector) for rowid, _, vector in vectors])
    corpus.run_many(
        "INSERT INTO embedded (index_id, chunk, input_hash, vector_hash, vector) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            (index.id, rowid, input_hash, vector_hash(vector), vector)
            for rowid, input_hash, vector in vectors
        ),
    )
    _count(corpus, index, len(vectors))


def remove(corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int]) -> None:
    """Take the vectors of these chunks out of one index, into the cache."""
    chosen = json.dumps(list(rowids))
    stored = corpus.rows(
        "SELECT chunk, input_hash, vector_hash, vector FROM embedded WHERE index_id = ? "
        "AND chunk IN (SELECT value FROM json_each(?))",
        (index.id, chosen),
    )
    if not stored:
        return
    corpus.load_vectors()
    # Not a damaged one: it would come back with a hash of its own, as if it were sound.
    left = [
        (input_hash, vector)
        for _, input_hash, expected, vector in stored
        if vector_hash(vector) == expected
    ]
    vector_cache.keep(corpus, index.identity.model, left)
    gone = [(row[0],) for row in stored]
    corpus.run_many(f"DELETE FROM {index.table} WHERE rowid = ?", gone)
    fast_index.take_out(corpus, index.id, [row[0] for row in stored])
    corpus.run(
        "DELETE FROM embedded WHERE index_id = ? AND chunk IN (SELECT value FROM json_each(?))",
        (index.id, chosen),
    )
    _count(corpus, index, -len(stored))


def is_misshapen(corpus: Corpus, index: EmbeddingIndex) -> bool:
    """Whether vec0's own tables are not of the shape that it takes for granted.

    sqlite-vec 0.1.9 reads them unchecked, and a full scan of damaged ones can end the process.
    """
    table, dimensions = index.table, index.identity.model.dimensions
    flaws = (
        f"SELECT count(*) FROM {table}_chunks WHERE typeof(size) <> 'integer' OR size <= 0 "
        "OR typeof(validity) <> 'blob' OR length(validity) * 8 <> size "
        "OR typeof(rowids) <> 'blob' OR length(rowids) <> size * 8",
        f"SELECT count(*) FROM {table}_rowids r LEFT JOIN {table}_chunks c "
        "ON c.chunk_id = r.chunk_id WHERE typeof(r.chunk_id) <> 'integer' OR c.chunk_id IS NULL "
        "OR typeof(r.chunk_offset) <> 'integer' OR r.chunk_offset NOT BETWEEN 0 AND c.size - 1",
        f"SELECT count(*) FROM {table}_chunks c LEFT JOIN {table}_vector_chunks00 v "
        "ON v.rowid = c.chunk_id WHERE typeof(v.vectors) <> 'blob' "
        f"OR length(v.vectors) <> c.size * {int(dimensions) * 4}",
    )
    return any(corpus.value(flaw) for flaw in flaws)


def clear(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Make the index anew, empty, so that every chunk waits for its vector again."""
    corpus.load_vectors()
    fast_index.remove(corpus, index.id)
    corpus.run(f"DROP TABLE {index.table}")
    _create_table(corpus, index)
    corpus.run("DELETE FROM embedded WHERE index_id = ?", (index.id,))
    corpus.run("UPDATE embedding_index SET vectors = 0 WHERE id = ?", (index.id,))


def drop(corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int]) -> int:
    """Take damaged vectors out, and records that have no vector; how many there were.

    Unlike :func:`remove` it trusts neither the records nor the count.
    """
    corpus.load_vectors()
    fast_index.remove(corpus, index.id)
    gone = [(row,) for row in rowids]
    corpus.run_many(f"DELETE FROM {index.table} WHERE rowid = ?", gone)
    before = corpus.value("SELECT count(*) FROM embedded WHERE index_id = ?", (index.id,))
    corpus.run(
        "DELETE FROM embedded WHERE index_id = ? "
        f"AND chunk NOT IN (SELECT rowid FROM {index.table})",
        (index.id,),
    )
    after = corpus.value("SELECT count(*) FROM embedded WHERE index_id = ?", (index.id,))
    corpus.run("UPDATE embedding_index SET vectors = ? WHERE id = ?", (after, index.id))
    return max(len(rowids), int(before - after))


def _count(corpus: Corpus, index: EmbeddingIndex, change: int) -> None:
    corpus.run("UPDATE embedding_index SET vectors = vectors + ? WHERE id = ?", (change, index.id))


def waiting(corpus: Corpus, index: EmbeddingIndex, after: int, limit: int) -> list[int]:
    """Rowids over ``after`` of chunks that have no vector in this index yet, in order."""
    found = corpus.rows(
        "SELECT id FROM chunk WHERE id > ? AND NOT EXISTS "
        "(SELECT 1 FROM embedded WHERE index_id = ? AND chunk = chunk.id) ORDER BY id LIMIT ?",
        (after, index.id, limit),
    )
    return [rowid for (rowid,) in found]


def count_embedded(corpus: Corpus, index: EmbeddingIndex) -> int:
    """How many chunks have a vector in this index."""
    counted = corpus.value("SELECT vectors FROM embedding_index WHERE id = ?", (index.id,))
    sound((counted,), (int,), "the embedding index")
    return int(counted)
