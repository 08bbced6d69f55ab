"""Vectors that left an index with their chunk, kept for the text's return.

Keyed by the model's identity and by the hash of what was embedded: moving a file, or putting a
paragraph back, finds its vector here and asks no model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

from rolebundle.contracts.index import ModelIdentity
from rolebundle.storage.connection import Corpus

LIMIT_BYTES = 50 * 1024 * 1024
"""What the vectors of a model may take, and so the more of them the fewer dimensions they have;
the oldest go first, whichever model they are of."""
_BYTES_A_DIMENSION = 4


def model_key(model: ModelIdentity) -> str:
    """One text for everything about a model that changes its vectors."""
    parts = (
        model.provider,
        model.model,
        model.digest,
        str(model.dimensions),
        model.query_prefix,
        model.passage_prefix,
    )
    return blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()


def keep(corpus: Corpus, model: ModelIdentity, vectors: Sequence[tuple[str, bytes]]) -> None:
    """Keep (input hash, vector); the oldest beyond the limit are forgotten."""
    key = model_key(model)
    corpus.run_many(
        "INSERT OR REPLACE INTO embedding_cache (model, input_hash, vector) VALUES (?, ?, ?)",
        ((key, input_hash, vector) for input_hash, vector in vectors),
    )
    corpus.run(
        "DELETE FROM embedding_cache WHERE id <= (SELECT max(id) - ? FROM embedding_cache)",
        (LIMIT_BYTES // (_BYTES_A_DIMENSION * model.dimensions),),
    )


def recall(corpus: Corpus, model: ModelIdentity, input_hashes: Sequence[str]) -> dict[str, bytes]:
    """Input hash → vector, for those that are kept, and are as long as the model's vectors are."""
    return dict(
        corpus.rows(
            "SELECT input_hash, vector FROM embedding_cache WHERE model = ? "
            "AND length(vector) = ? AND input_hash IN (SELECT value FROM json_each(?))",
            (
                model_key(model),
                _BYTES_A_DIMENSION * model.dimensions,
                json.dumps(list(input_hashes)),
            ),
        )
    )


def size(corpus: Corpus) -> tuple[int, int]:
    """How many vectors are kept, and in how many bytes."""
    count, total = corpus.rows(
        "SELECT count(*), coalesce(sum(length(vector)), 0) FROM embedding_cache"
    )[0]
    return int(count), int(total)


def clear(corpus: Corpus) -> None:
    """Forget all of them. Call it inside a write transaction."""
    corpus.run("DELETE FROM embedding_cache")
