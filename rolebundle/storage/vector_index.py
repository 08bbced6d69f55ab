"""The embedding indexes of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from rolebundle.contracts.documents import IndexIdentity, Noise
from rolebundle.storage import compartments
from rolebundle.storage.corpus import (
    ALL_CHUNKS,
    Corpus,
    once_in_snapshot,
    record_changed_ranges,
    record_changes,
    true_generation,
)
from rolebundle.storage.sqlite import IN_SET
from rolebundle.storage.stored_values import typed

_INDEX_COLUMNS = (
    "provider, model, model_digest, dimensions, query_prefix, passage_prefix, chunker, "
    "normalization, active, reach, started_at"
)
_COLUMNS = {"digest": "model_digest", "connection": "reach"}


class EmbeddingIndex(NamedTuple):
    """An embedding index of the corpus, by its number.

    ``connection`` is JSON: how to connect to the model again. ``noise`` is what the model's cosines
    mean; ``None`` if it was not measured yet.
    """

    id: int
    identity: IndexIdentity
    active: bool = True
    connection: str = "{}"
    started_at: str = ""
    noise_floor: float | None = None
    related_cosine: float | None = None

    @property
    def noise(self) -> Noise | None:
        """What the model's cosines mean."""
        floor, related = self.noise_floor, self.related_cosine
        return None if floor is None or related is None else Noise(floor, related)


@once_in_snapshot
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
    return corpus.select(EmbeddingIndex, f"embedding_index {condition}", (), _COLUMNS)


@once_in_snapshot
def current_counts(corpus: Corpus, index_id: int) -> Mapping[int, int]:
    """Compartment → how many vectors an index has of its chunks now."""
    counts = "SELECT compartment, vectors FROM embedding_share WHERE index_id = ?"
    return dict(typed(corpus.rows(counts, (index_id,)), int, int))


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
    corpus.insert(f"embedding_index ({_INDEX_COLUMNS})", [row])
    index = EmbeddingIndex(corpus.last_rowid(), identity, activate, connection, started_at)
    if activate:
        activate_index(corpus, index)
    return index


def activate_index(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Let retrieval use this index from now on. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET active = 0 WHERE active = 1")
    corpus.run("UPDATE embedding_index SET active = 1 WHERE id = ?", (index.id,))


def delete_index(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Remove an index with its vectors. Call it inside a write transaction."""
    ends = "SELECT min(chunk), max(chunk) FROM embedded WHERE index_id = ? HAVING count(*) > 0"
    # The next index may have the same number.
    record_changed_ranges(corpus, corpus.rows(ends, (index.id,)))
    for table, column in (("embedded", "index_id"), ("embedding_index", "id")):
        corpus.run(f"DELETE FROM {table} WHERE {column} = ?", (index.id,))


def input_hashes(corpus: Corpus, index: EmbeddingIndex, after: int, limit: int) -> dict[int, str]:
    """Chunk rowid → the hash of the embedded text, for the next ``limit`` rowids over ``after``."""
    following = "WHERE index_id = ? AND chunk > ? ORDER BY chunk LIMIT ?"
    hashes = f"SELECT chunk, input_hash FROM embedded {following}"
    return dict(corpus.rows(hashes, (index.id, after, limit)))


_OF_CHUNKS = f"FROM embedded WHERE index_id = ? AND chunk {IN_SET}"


def set_chunker(corpus: Corpus, index: EmbeddingIndex, chunker: str) -> EmbeddingIndex:
    """Record which chunker made the passages. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET chunker = ? WHERE id = ?", (chunker, index.id))
    return index._replace(identity=index.identity._replace(chunker=chunker))


def set_connection(corpus: Corpus, index: EmbeddingIndex, connection: str) -> None:
    """Record how to connect to the index's model. Call it inside a write transaction."""
    corpus.run("UPDATE embedding_index SET reach = ? WHERE id = ?", (connection, index.id))


def set_noise(corpus: Corpus, index: EmbeddingIndex, noise: Noise) -> None:
    """Record what the cosines of the index's model mean. Call it inside a write transaction."""
    update = "UPDATE embedding_index SET noise_floor = ?, related_cosine = ? WHERE id = ?"
    corpus.run(update, (*noise, index.id))


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


def add(corpus: Corpus, index: EmbeddingIndex, vectors: Sequence[tuple[int, str, bytes]]) -> None:
    """Store (chunk rowid, input hash, vector), replacing the vectors that the chunks had."""
    rowids = [rowid for rowid, *_ in vectors]
    remove(corpus, index, rowids)
    by_compartment = compartments.chunks_by_compartment(corpus, rowids)
    part_of = {chunk: part for part, chunks in by_compartment.items() for chunk in chunks}
    rows = [
        (index.id, rowid, part_of[rowid], input_hash, vector_hash(input_hash, vector), vector)
        for rowid, input_hash, vector in vectors
    ]
    corpus.insert("embedded (index_id, chunk, compartment, input_hash, vector_hash, vector)", rows)
    for compartment, chunks in by_compartment.items():
        _count(corpus, index, compartment, len(chunks))
    record_changes(corpus, rowids)


def remove(corpus: Corpus, index: EmbeddingIndex, rowids: Sequence[int]) -> None:
    """Remove the vectors of these chunks from an index."""
    chosen = (index.id, rowids)
    numbers = corpus.rows(f"SELECT compartment, count(*) {_OF_CHUNKS} GROUP BY compartment", chosen)
    if not numbers:
        return
    for compartment, number in numbers:
        _count(corpus, index, compartment, -number)
    corpus.run(f"DELETE {_OF_CHUNKS}", chosen)
    record_changes(corpus, rowids)


def recount(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Record how many vectors there are, whatever was recorded. Call it in a write transaction."""
    corpus.run("DELETE FROM embedding_share WHERE index_id = ?", (index.id,))
    corpus.run(
        "INSERT INTO embedding_share (index_id, compartment, vectors) SELECT index_id, "
        "compartment, count(*) FROM embedded WHERE index_id = ? GROUP BY index_id, compartment",
        (index.id,),
    )
    record_changed_ranges(corpus, ALL_CHUNKS)


def move(corpus: Corpus, rowids: Sequence[int], target: int) -> None:
    """Move the vectors of these chunks, in every index, to another compartment."""
    of_chunks = f"FROM embedded WHERE chunk {IN_SET}"
    for index in all_indexes(corpus):
        numbers = f"SELECT compartment, count(*) {of_chunks} AND index_id = ? GROUP BY compartment"
        for source, number in corpus.rows(numbers, (rowids, index.id)):
            _count(corpus, index, source, -number)
            _count(corpus, index, target, number)
    corpus.run(f"UPDATE embedded SET compartment = ? WHERE chunk {IN_SET}", (target, rowids))
    record_changes(corpus, rowids)


def _count(corpus: Corpus, index: EmbeddingIndex, compartment: int, change: int) -> None:
    """Add to the recorded number of vectors.

    Compartment 0 has none: it stands for documents that are in no compartment yet.
    """
    if compartment:
        corpus.run(
            "INSERT INTO embedding_share (index_id, compartment, vectors) VALUES (?, ?, ?) "
            "ON CONFLICT (index_id, compartment) "
            "DO UPDATE SET vectors = embedding_share.vectors + excluded.vectors",
            (index.id, compartment, change),
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
    return sum(current_counts(corpus, index.id).values())


def vectors_problem(corpus: Corpus, index: EmbeddingIndex) -> str:
    """What is wrong with the sizes of an embedding index; empty if nothing is."""
    stored = "SELECT count(*) FROM embedded WHERE index_id = ? AND compartment = ?"
    for compartment, vectors in current_counts(corpus, index.id).items():
        name = f"vectors_{index.id}_{compartment}"
        if corpus.verified.get(name) != true_generation(corpus):
            if corpus.value(stored, (index.id, compartment)) != vectors:
                return "the embedding index is damaged: it does not have what was stored"
            corpus.verified[name] = true_generation(corpus)
    return ""
