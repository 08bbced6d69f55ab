"""The embedding indexes of a corpus, and the cache of vectors whose chunk is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from rolebundle.contracts.upkeep import IndexIdentity, ModelIdentity, Noise
from rolebundle.storage import compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.seal import row_digest
from rolebundle.storage.stored_values import damaged, typed

MAX_CACHE_BYTES = 50 * 1024 * 1024
"""Maximum size of the cache in bytes. The oldest vectors are deleted first."""


def model_key(model: ModelIdentity) -> str:
    """A digest of everything about a model that changes its vectors."""
    return blake2b("\0".join(map(str, model)).encode(), digest_size=12).hexdigest()


def cache_vectors(
    corpus: Corpus, model: ModelIdentity, vectors: Sequence[tuple[str, bytes]]
) -> None:
    """Keep (input hash, vector) of chunks that left an index; the oldest beyond the limit go.

    If the same text comes back, moved or restored, its vector is found here without a model.
    """
    rows = [(model_key(model), *vector) for vector in vectors]
    target = "embedding_cache (model, input_hash, vector, digest)"
    corpus.insert(target, [(*row, row_digest(row)) for row in rows], "REPLACE")
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
        (key, 4 * model.dimensions, [*input_hashes]),
    )
    return {
        input_hash: vector
        for input_hash, vector, digest in rows
        if row_digest((key, input_hash, vector)) == digest
    }


def cache_size(corpus: Corpus) -> tuple[int, int]:
    """How many vectors the cache has, and how many bytes they take."""
    sizes = "SELECT count(*), coalesce(sum(length(vector)), 0) FROM embedding_cache"
    [(count, total)] = corpus.rows(sizes)
    return count, total


def clear_cache(corpus: Corpus) -> None:
    """Empty the cache. Call it inside a write transaction."""
    corpus.run("DELETE FROM embedding_cache")


_CREATED = (
    "provider, model, model_digest, dimensions, query_prefix, passage_prefix, chunker, "
    "normalization, active, reach, started_at"
)
_TYPES = (int, str, str, str, int, str, str, str, str, bool, str, str, float | None, float | None)


class IndexPart(NamedTuple):
    """The part of an embedding index that has the vectors of one compartment: so many of them."""

    index_id: int
    compartment: int
    dimensions: int
    vectors: int

    @property
    def table(self) -> str:
        """The vec0 table of its vectors."""
        return f"vectors_{self.index_id}_{self.compartment}"


@dataclass(frozen=True, slots=True)
class EmbeddingIndex:
    """An embedding index of the corpus, by the number that names its tables.

    ``parts`` are its parts when this was read. ``connection`` is JSON: how to connect to the
    model again; its column is called ``reach``. ``noise`` is what the model's cosines mean;
    ``None`` if it was not measured yet.
    """

    id: int
    identity: IndexIdentity
    # The following fields are not part of the identity of the index.
    parts: tuple[IndexPart, ...] = field(default=(), compare=False)
    active: bool = field(default=False, compare=False)
    connection: str = field(default="{}", compare=False)
    started_at: str = field(default="", compare=False)
    noise: Noise | None = field(default=None, compare=False)

    @property
    def vectors(self) -> int:
        """How many chunks had a vector when this was read."""
        return sum(part.vectors for part in self.parts)


def active_index(corpus: Corpus) -> EmbeddingIndex | None:
    """The index that retrieval uses, or ``None`` if the corpus has no vectors yet."""
    return next(iter(_indexes(corpus, "WHERE active = 1")), None)


def all_indexes(corpus: Corpus) -> list[EmbeddingIndex]:
    """Every index of the corpus, the oldest first."""
    return _indexes(corpus, "ORDER BY id")


def find_index(corpus: Corpus, identity: IndexIdentity) -> EmbeddingIndex | None:
    """The index of exactly this model and normalization, or ``None``."""
    indexes = all_indexes(corpus)
    # The chunker may be another one.
    same = (i for i in indexes if i.identity._replace(chunker=identity.chunker) == identity)
    return next(same, None)


def _indexes(corpus: Corpus, condition: str) -> list[EmbeddingIndex]:
    rows = corpus.rows(
        f"SELECT id, {_CREATED}, noise_floor, related_cosine FROM embedding_index {condition}"
    )
    indexes = []
    for number, *columns in typed(rows, *_TYPES):
        *model, chunker, normalization, active, connection, started_at, floor, related = columns
        identity = IndexIdentity(ModelIdentity(*model), chunker, normalization)
        parts = _parts(corpus, number, identity.model.dimensions)
        if (floor is None) != (related is None):
            raise damaged("the noise floor of an embedding index")
        noise = None if floor is None else Noise(floor, related)
        indexes.append(
            EmbeddingIndex(number, identity, parts, active, connection, started_at, noise)
        )
    return indexes


def _parts(corpus: Corpus, index_id: int, dimensions: int) -> tuple[IndexPart, ...]:
    source = "embedding_share WHERE index_id = ? ORDER BY compartment"
    return tuple(corpus.select(IndexPart, source, (index_id,), {"dimensions": str(dimensions)}))


def current_parts(corpus: Corpus, index: EmbeddingIndex) -> tuple[IndexPart, ...]:
    """The parts of the index as they are now."""
    return _parts(corpus, index.id, index.identity.model.dimensions)


def create_index(
    corpus: Corpus,
    identity: IndexIdentity,
    *,
    connection: str = "{}",
    started_at: str = "",
    activate: bool = True,
) -> EmbeddingIndex:
    """Create an index, and activate it. Call it inside a write transaction."""
    model, chunker, normalization = identity
    row = (*model, chunker, normalization, 0, connection, started_at)
    corpus.insert(f"embedding_index ({_CREATED})", [row])
    index = EmbeddingIndex(corpus.last_rowid(), identity, (), activate, connection, started_at)
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
    for part in (part for index in all_indexes(corpus) for part in index.parts):
        if part.compartment == compartment:
            _drop_part(corpus, part)


def _drop_part(corpus: Corpus, part: IndexPart) -> None:
    corpus.load_vectors()
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
    part = IndexPart(index.id, compartment, index.identity.model.dimensions, 0)
    corpus.load_vectors()
    create_table(corpus, part)
    corpus.insert(
        "embedding_share (index_id, compartment, vectors, fast)", [(index.id, compartment, 0, "")]
    )
    return part


def input_hashes(corpus: Corpus, index: EmbeddingIndex, after: int, limit: int) -> dict[int, str]:
    """Chunk rowid → the hash of the embedded text, for the next ``limit`` rowids over ``after``."""
    following = "WHERE index_id = ? AND chunk > ? ORDER BY chunk LIMIT ?"
    hashes = f"SELECT chunk, input_hash FROM embedded {following}"
    return dict(corpus.rows(hashes, (index.id, after, limit)))


_OF_CHUNKS = "FROM embedded WHERE index_id = ? AND chunk IN (SELECT value FROM json_each(?))"


def vectors_of(corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int]) -> dict[int, bytes]:
    """Rowid → unit vector as float32 bytes, for those of the chunks that have one."""
    rows = corpus.rows(f"SELECT chunk, vector {_OF_CHUNKS}", (index.id, [*rowids]))
    return dict(typed(rows, int, bytes))


def set_chunker(corpus: Corpus, index: EmbeddingIndex, chunker: str) -> EmbeddingIndex:
    """Record which chunker made the passages. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET chunker = ? WHERE id = ?", (chunker, index.id))
    return replace(index, identity=index.identity._replace(chunker=chunker))


def set_connection(corpus: Corpus, index: EmbeddingIndex, connection: str) -> None:
    """Record how to connect to the index's model. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET reach = ? WHERE id = ?", (connection, index.id))


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
    rows = corpus.iterate("SELECT index_id, chunk, input_hash, vector_hash, vector FROM embedded")
    changes = [
        (vector_hash(input_hash, vector), index_id, chunk)
        for index_id, chunk, input_hash, stored, vector in rows
        if blake2b(vector, digest_size=8).hexdigest() == stored
    ]
    corpus.run_many("UPDATE embedded SET vector_hash = ? WHERE index_id = ? AND chunk = ?", changes)


_EMBEDDED_CHUNKS = (
    "FROM embedded e CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d "
    "ON d.id = c.document WHERE e.index_id = ?"
)


def rebuild(corpus: Corpus) -> None:
    """Make every vec0 table again: before 0.1.9, sqlite-vec left the bytes of deleted vectors."""
    for part in (part for index in all_indexes(corpus) for part in index.parts):
        corpus.load_vectors()
        corpus.run(f"DROP TABLE {part.table}")
        create_table(corpus, part)
        corpus.run(
            f"INSERT INTO {part.table} (rowid, embedding) SELECT e.chunk, e.vector "
            f"{_EMBEDDED_CHUNKS} AND d.compartment = ? AND length(e.vector) = ? ORDER BY e.chunk",
            (part.index_id, part.compartment, 4 * part.dimensions),
        )


def add(corpus: Corpus, index: EmbeddingIndex, vectors: Sequence[tuple[int, str, bytes]]) -> None:
    """Store (chunk rowid, input hash, vector), replacing the vectors that the chunks had."""
    by_rowid = {rowid: vector for rowid, _, vector in vectors}
    remove(corpus, index, [*by_rowid])
    for compartment, chunks in compartments.chunks_by_compartment(corpus, [*by_rowid]).items():
        _insert(corpus, index, compartment, [(chunk, by_rowid[chunk]) for chunk in chunks])
    rows = [
        (index.id, rowid, made_of, vector_hash(made_of, vector), vector)
        for rowid, made_of, vector in vectors
    ]
    corpus.insert("embedded (index_id, chunk, input_hash, vector_hash, vector)", rows)


def _insert(
    corpus: Corpus, index: EmbeddingIndex, compartment: int, vectors: Sequence[tuple[int, bytes]]
) -> None:
    part = _part(corpus, index, compartment)
    corpus.load_vectors()
    corpus.insert(f"{part.table} (rowid, embedding)", vectors)
    _count(corpus, part, len(vectors))


def _delete(corpus: Corpus, part: IndexPart, rowids: Sequence[int]) -> None:
    corpus.load_vectors()
    corpus.run_many(f"DELETE FROM {part.table} WHERE rowid = ?", ((row,) for row in rowids))
    _count(corpus, part, -len(rowids))


def remove(corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int]) -> None:
    """Remove the vectors of these chunks from an index, and keep them in the cache."""
    chosen = (index.id, [*rowids])
    stored = corpus.rows(f"SELECT chunk, input_hash, vector_hash, vector {_OF_CHUNKS}", chosen)
    if not stored:
        return
    # Not a damaged one: it would come back with a new hash, as if it were intact.
    intact = [
        (made_of, vector)
        for _, made_of, expected, vector in stored
        if vector_hash(made_of, vector) == expected
    ]
    cache_vectors(corpus, index.identity.model, intact)
    by_compartment = compartments.chunks_by_compartment(corpus, [row[0] for row in stored])
    for compartment, chunks in by_compartment.items():
        _delete(corpus, _part(corpus, index, compartment), chunks)
    corpus.run(f"DELETE {_OF_CHUNKS}", chosen)


def move(
    corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int], source: int, target: int
) -> None:
    """Move the vectors of these chunks to another compartment; compartment 0 has none."""
    chosen = (index.id, [*rowids])
    vectors = corpus.rows(f"SELECT chunk, vector {_OF_CHUNKS} ORDER BY chunk", chosen)
    if not vectors:
        return
    if source:
        _delete(corpus, _part(corpus, index, source), [chunk for chunk, _ in vectors])
    # vec0 refuses a vector of another length. It is left out, so that the others can move and the
    # check finds it.
    size = 4 * index.identity.model.dimensions
    complete = [pair for pair in vectors if isinstance(pair[1], bytes) and len(pair[1]) == size]
    _insert(corpus, index, target, complete)


def _count(corpus: Corpus, part: IndexPart, change: int) -> None:
    corpus.run(
        "UPDATE embedding_share SET vectors = vectors + ? WHERE index_id = ? AND compartment = ?",
        (change, part.index_id, part.compartment),
    )


def chunks_without_vector(
    corpus: Corpus, index: EmbeddingIndex, after: int, limit: int
) -> list[int]:
    """Rowids over ``after`` of chunks that have no vector in this index yet, in order."""
    return corpus.column(
        "SELECT id FROM chunk WHERE id > ? AND NOT EXISTS "
        "(SELECT 1 FROM embedded WHERE index_id = ? AND chunk = chunk.id) ORDER BY id LIMIT ?",
        (after, index.id, limit),
    )


def count_vectors(corpus: Corpus, index: EmbeddingIndex) -> int:
    """How many chunks have a vector in this index now."""
    return sum(part.vectors for part in current_parts(corpus, index))
