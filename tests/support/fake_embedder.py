"""Embedding providers for tests: one that works, deterministic and tiny, and ones that fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b

import numpy as np

from rolebundle.contracts.documents import ModelIdentity

DIMENSIONS = 8
IDENTITY = ModelIdentity("fake", "hashed-words", "0000", DIMENSIONS)


@cache
def _word_vector(word: str) -> np.ndarray:
    digest = blake2b(word.encode("utf-8", "replace"), digest_size=DIMENSIONS).digest()
    return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) / 127.5 - 1


def vector_of(text: str) -> np.ndarray:
    """Return the sum of the words' vectors. It is never zero, not even without words."""
    vector = np.full(DIMENSIONS, 0.01, dtype=np.float32)
    for word in text.casefold().split():
        vector = vector + _word_vector(word)
    return vector


@dataclass
class HashingProvider:
    """Embed texts so that texts with the same words are close. Deterministic, without weights."""

    identity: ModelIdentity = IDENTITY
    query_count: int = 0
    parallel_batches: int = 1
    batch_size: int = 512

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.query_count += 1
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = [vector_of(text) for text in texts]
        matrix = np.array(rows, dtype=np.float32).reshape(len(texts), DIMENSIONS)
        if self.identity.dimensions == DIMENSIONS:
            return matrix
        return np.resize(matrix, (len(texts), self.identity.dimensions))


@dataclass
class BrokenProvider:
    """Return or raise whatever ``answer`` does."""

    answer: Callable[[Sequence[str]], np.ndarray]
    identity: ModelIdentity = field(default=IDENTITY)
    parallel_batches: int = 1
    batch_size: int = 512

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return self.answer(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.answer(texts)
