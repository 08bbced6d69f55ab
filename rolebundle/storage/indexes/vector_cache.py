"""The cache of vectors whose chunk is gone; if the same text comes back, no model is needed."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from rolebundle.contracts.index import ModelIdentity
from rolebundle.storage.connection import Corpus
from rolebundle.storage.seal import row_digest

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
