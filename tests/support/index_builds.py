"""Embedding indexes that are built beside the active one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding.noise import noise_of
from rolebundle.ingest.indexes import EmbeddingReport, build_index
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.storage.writing import open_writer
from support.commands import invoke
from support.embedding_server import MODEL, EmbeddingServer
from support.fake_embedder import HashingProvider
from support.vectors import TextByText

NEW = ModelIdentity("fake", "newer", "2222", 12)
FILES = 20
BATCH = 4


@dataclass
class Watched(TextByText):
    """Tells how many texts it embedded, and calls back before each batch."""

    before: Callable[[int], None] = lambda _call: None
    batches: list[int] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.before(len(self.batches))
        self.batches.append(len(texts))
        return super().embed_passages(texts)


def write(folder: Path, name: str) -> None:
    """Write a note about its name."""
    (folder / f"{name}.md").write_text(f"# {name}\n\nAbout {name} tokens.\n", encoding="utf-8")


def build(db: Path, provider: HashingProvider) -> EmbeddingReport:
    """Build an index of this model, and activate it if it is complete."""
    # Measured before, so that a watched model is only asked for the chunks.
    noise_of(HashingProvider(provider.identity))
    with open_writer(db) as corpus:
        return build_index(corpus, provider, lambda *_: None)


def active_in(corpus: Corpus) -> EmbeddingIndex:
    return vector_index.active_index(corpus)


def active(db: Path) -> EmbeddingIndex:
    with open_reader(db) as corpus:
        return active_in(corpus)


def codes(bundle: Any) -> set[str]:
    """The codes of the warnings."""
    return {warning.code for warning in bundle.warnings}


def embed_with(server: EmbeddingServer, db: Path, kind: str = "ollama") -> None:
    outcome = invoke(
        "corpus", "embed", "--model", f"{kind}:{MODEL}", "--db", db, embed_url=server.url
    )
    assert outcome.code == 0, outcome.err
