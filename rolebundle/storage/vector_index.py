"""The embedding indexes: a vec0 table a compartment each, and what each vector was made of.

Vectors are little-endian float32 blobs of unit length; `vector_search.py` searches through them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from rolebundle.contracts.index import IndexIdentity, ModelIdentity
from rolebundle.storage import compartments, fast_index, vector_cache
from rolebundle.storage.connection import Corpus
from rolebundle.storage.fast_index import Share
from rolebundle.storage.sqlite_file import Row, check_types

_COLUMNS = (
    "id, provider, model, model_digest, dimensions, query_prefix, passage_prefix, chunker, "
    "normalization, active, reach, started_at"
)
_INDEX_TYPES = (int, str, str, str, int, str, str, str, str, int, str, str)


@dataclass(frozen=True, slots=True)
class EmbeddingIndex:
    """An embedding index of the corpus, by the number that names its tables.

    ``shares`` are what it had of each compartment when this was read; ``reach`` is how to reach
    the model again, as JSON.
    """

    id: int
    identity: IndexIdentity
    # What changes while an index stays the same one.
    shares: tuple[Share, ...] = field(default=(), compare=False)
    active: bool = field(default=False, compare=False)
    reach: str = field(default="{}", compare=False)
    started_at: str = field(default="", compare=False)

    @property
    def vectors(self) -> int:
        """How many chunks had a vector when this was read."""
        return sum(share.vectors for share in self.shares)


def active_index(corpus: Corpus) -> EmbeddingIndex | None:
    """The index that answers, or ``None`` where the corpus has no vectors yet."""
    found = corpus.rows(f"SELECT {_COLUMNS} FROM embedding_index WHERE active = 1")
    return _index(corpus, found[0]) if found else None


def all_indexes(corpus: Corpus) -> list[EmbeddingIndex]:
    """Every index that the corpus keeps, the oldest first."""
    found = corpus.rows(f"SELECT {_COLUMNS} FROM embedding_index ORDER BY id")
    return [_index(corpus, row) for row in found]


def find_index(corpus: Corpus, identity: IndexIdentity) -> EmbeddingIndex | None:
    """The index of this very model and normalization, or ``None``."""
    same = (
        index
        for index in all_indexes(corpus)
        if index.identity.model == identity.model
        and index.identity.normalization == identity.normalization
    )
    return next(same, None)


def _index(corpus: Corpus, row: Row) -> EmbeddingIndex:
    check_types(row, _INDEX_TYPES, "the embedding index")
    index_id, *model, chunker, normalization, active, reach, started_at = row
    identity = IndexIdentity(ModelIdentity(*model), chunker, normalization)
    shares = _shares(corpus, index_id, identity.model.dimensions)
    return EmbeddingIndex(index_id, identity, shares, bool(active), reach, started_at)


def _shares(corpus: Corpus, index_id: int, dimensions: int) -> tuple[Share, ...]:
    found = corpus.rows(
        "SELECT compartment, vectors, fast FROM embedding_share WHERE index_id = ? "
        "ORDER BY compartment",
        (index_id,),
    )
    for row in found:
        check_types(row, (int, int, str), "the embedding index")
    return tuple(Share(index_id, one, dimensions, vectors, fast) for one, vectors, fast in found)


def shares_of(corpus: Corpus, index: EmbeddingIndex) -> tuple[Share, ...]:
    """What the index has of each compartment now."""
    return _shares(corpus, index.id, index.identity.model.dimensions)


def create_index(
    corpus: Corpus,
    identity: IndexIdentity,
    *,
    reach: str = "{}",
    started_at: str = "",
    activate: bool = True,
) -> EmbeddingIndex:
    """Create an index, and make it the one that answers. Call it inside a write transaction."""
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
        use(corpus, index)
    return index


def use(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Make this index the one that answers. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET active = 0 WHERE active = 1")
    corpus.run("UPDATE embedding_index SET active = 1 WHERE id = ?", (index.id,))


def discard(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Remove an index with its vectors. Call it inside a write transaction."""
    for share in shares_of(corpus, index):
        _drop_share(corpus, share)
    corpus.run("DELETE FROM embedding_index WHERE id = ?", (index.id,))


def drop_compartment(corpus: Corpus, compartment: int) -> None:
    """Remove what every index has of a compartment."""
    for index in all_indexes(corpus):
        for share in index.shares:
            if share.compartment == compartment:
                _drop_share(corpus, share)


def _drop_share(corpus: Corpus, share: Share) -> None:
    corpus.load_vectors()
    fast_index.remove(corpus, share)
    corpus.run(f"DROP TABLE {share.table}")
    corpus.run(
        "DELETE FROM embedding_share WHERE index_id = ? AND compartment = ?",
        (share.index_id, share.compartment),
    )


def create_table(corpus: Corpus, share: Share) -> None:
    """Make the empty vec0 table of a share."""
    dimensions = int(share.dimensions)
    corpus.run(f"CREATE VIRTUAL TABLE {share.table} USING vec0 (embedding float[{dimensions}])")


def _share(corpus: Corpus, index: EmbeddingIndex, compartment: int) -> Share:
    """The index's share of a compartment, made where it has none."""
    for share in shares_of(corpus, index):
        if share.compartment == compartment:
            return share
    share = Share(index.id, compartment, index.identity.model.dimensions, 0, "")
    corpus.load_vectors()
    create_table(corpus, share)
    corpus.run("INSERT INTO embedding_share VALUES (?, ?, 0, '')", (index.id, compartment))
    return share


def doubt(corpus: Corpus, index: EmbeddingIndex) -> str:
    """Why a fast companion of the index does not answer; empty where none has to be doubted."""
    doubts = (fast_index.doubt(corpus, share) for share in index.shares if share.fast)
    return next(filter(None, doubts), "")


def input_hashes(corpus: Corpus, index: EmbeddingIndex, after: int, limit: int) -> dict[int, str]:
    """Chunk rowid → the hash of what its vector is of; the next ``limit`` rowids after one."""
    found = corpus.rows(
        "SELECT chunk, input_hash FROM embedded WHERE index_id = ? AND chunk > ? "
        "ORDER BY chunk LIMIT ?",
        (index.id, after, limit),
    )
    return dict(found)


def set_chunker(corpus: Corpus, index: EmbeddingIndex, chunker: str) -> EmbeddingIndex:
    """Note whose passages the index has from now on. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET chunker = ? WHERE id = ?", (chunker, index.id))
    return replace(index, identity=replace(index.identity, chunker=chunker))


def set_reach(corpus: Corpus, index: EmbeddingIndex, reach: str) -> None:
    """Note how to reach the index's model from now on. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET reach = ? WHERE id = ?", (reach, index.id))


def vector_hash(vector: bytes) -> str:
    """What the corpus remembers of a vector, to find flipped bits."""
    return blake2b(vector, digest_size=8).hexdigest()


def add(corpus: Corpus, index: EmbeddingIndex, vectors: Sequence[tuple[int, str, bytes]]) -> None:
    """Store (chunk rowid, input hash, vector), replacing what a chunk had."""
    rowids = [rowid for rowid, _, _ in vectors]
    remove(corpus, index, rowids)
    by_rowid = {rowid: vector for rowid, _, vector in vectors}
    for compartment, chunks in compartments.of_chunks(corpus, rowids).items():
        _insert(corpus, index, compartment, [(chunk, by_rowid[chunk]) for chunk in chunks])
    corpus.run_many(
        "INSERT INTO embedded (index_id, chunk, input_hash, vector_hash, vector) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            (index.id, rowid, input_hash, vector_hash(vector), vector)
            for rowid, input_hash, vector in vectors
        ),
    )


def _insert(
    corpus: Corpus, index: EmbeddingIndex, compartment: int, vectors: Sequence[tuple[int, bytes]]
) -> None:
    share = _share(corpus, index, compartment)
    corpus.load_vectors()
    corpus.run_many(f"INSERT INTO {share.table} (rowid, embedding) VALUES (?, ?)", vectors)
    fast_index.add(corpus, share, vectors)
    _count(corpus, share, len(vectors))


def _take_out(corpus: Corpus, share: Share, rowids: Sequence[int]) -> None:
    corpus.load_vectors()
    corpus.run_many(f"DELETE FROM {share.table} WHERE rowid = ?", ((row,) for row in rowids))
    fast_index.take_out(corpus, share, rowids)
    _count(corpus, share, -len(rowids))


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
    # Not a damaged one: it would come back with a hash of its own, as if it were sound.
    left = [
        (input_hash, vector)
        for _, input_hash, expected, vector in stored
        if vector_hash(vector) == expected
    ]
    vector_cache.keep(corpus, index.identity.model, left)
    gone = compartments.of_chunks(corpus, [row[0] for row in stored])
    for compartment, chunks in gone.items():
        _take_out(corpus, _share(corpus, index, compartment), chunks)
    corpus.run(
        "DELETE FROM embedded WHERE index_id = ? AND chunk IN (SELECT value FROM json_each(?))",
        (index.id, chosen),
    )


def move(
    corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int], here: int, there: int
) -> None:
    """Move the vectors of these chunks to another compartment; 0 is where there are none yet."""
    vectors = corpus.rows(
        "SELECT chunk, vector FROM embedded WHERE index_id = ? "
        "AND chunk IN (SELECT value FROM json_each(?)) ORDER BY chunk",
        (index.id, json.dumps(list(rowids))),
    )
    if not vectors:
        return
    if here:
        _take_out(corpus, _share(corpus, index, here), [chunk for chunk, _ in vectors])
    # vec0 refuses one of another shape. It is left out, so that the check finds it and nothing is
    # kept from moving.
    size = 4 * index.identity.model.dimensions
    whole = [pair for pair in vectors if isinstance(pair[1], bytes) and len(pair[1]) == size]
    _insert(corpus, index, there, whole)


def _count(corpus: Corpus, share: Share, change: int) -> None:
    corpus.run(
        "UPDATE embedding_share SET vectors = vectors + ? WHERE index_id = ? AND compartment = ?",
        (change, share.index_id, share.compartment),
    )


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
    return sum(share.vectors for share in shares_of(corpus, index))
