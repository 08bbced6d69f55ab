"""Rerank models for tests, registered as ``fake:NAME`` inside a block, and answers with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.index import ModelIdentity
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding import registry
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.workspace import Workspace
from support.corpora import NOW, document
from support.fake_embedder import IDENTITY, HashingProvider

FAKE = "fake:contextual"
CONTEXTUAL = replace(IDENTITY, model="contextual", digest="c0ffee")
TASK = "token rotation audit"
DOCUMENTS = [
    document("plan", ["token rotation plan", "a moon over the audit"]),
    document("notes", ["notes on token audits", "rotation of crops"]),
    document("rivals", ["token rotation by rivals"], source_id="rivals"),
    document("secret", ["the token audit of salaries"], scope="hr", source_id="hr"),
]


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


def retrieve_reranked(
    db: Path, overlay: ResolvedOverlay | None = None, **fields: Any
) -> RetrievalBundle:
    with Engine(Workspace(db, HashingProvider())) as engine:
        request = RetrievalRequest(**{"task": TASK, "rerank": FAKE, "now": NOW} | fields)
        return engine.retrieve(request, overlay)


def rerank_warnings(bundle: RetrievalBundle) -> dict[str, str]:
    return {
        warning.code: warning.message
        for warning in bundle.warnings
        if warning.code.startswith("RERANK")
    }


def cosines_of(bundle: RetrievalBundle) -> dict[str, float | None]:
    return {chunk.chunk_id: chunk.raw.contextual for chunk in bundle.selected if chunk.raw}


class Silent(RecordingProvider):
    """Has an identity, and no answer."""

    def embed_queries(self, texts: Any) -> np.ndarray:
        raise EmbedderError("model_server_unreachable", "nobody answers", "start it")
