"""Rerank models for tests, registered as ``fake:NAME`` inside a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding import registry
from rolebundle.embedding.provider import EmbeddingProvider
from support.fake_embedder import IDENTITY, HashingProvider

FAKE = "fake:contextual"
CONTEXTUAL = replace(IDENTITY, model="contextual", digest="c0ffee")


@dataclass
class RecordingProvider(HashingProvider):
    """Record every batch of passages."""

    identity: ModelIdentity = CONTEXTUAL
    batches: list[list[str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    refuse: Callable[[str], Exception | None] = lambda _text: None

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.batches.append(list(texts))
        for text in texts:
            if (error := self.refuse(text)) is not None:
                raise error
        return super().embed_passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.queries += texts
        return super().embed_queries(texts)

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


@contextmanager
def known(provider: EmbeddingProvider | None = None) -> Iterator[Any]:
    """Register this model as ``fake:…``."""
    model = provider or RecordingProvider()
    with patch.dict(registry._FACTORIES, {"fake": lambda _spec: model}):
        yield model
