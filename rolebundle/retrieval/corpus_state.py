"""Which corpus answers, and in what state: what every answer says of it."""

from __future__ import annotations

from rolebundle.contracts.bundle import CorpusState, IndexState
from rolebundle.storage import documents, vector_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.opening import latest_version
from rolebundle.storage.vector_index import EmbeddingIndex


def corpus_state(corpus: Corpus) -> CorpusState:
    """Which corpus this is and in what state."""
    counts = documents.counts(corpus)
    index = vector_index.active_index(corpus)
    return CorpusState(
        file=corpus.path.name,
        corpus_id=counts.corpus_id,
        schema_version=latest_version(),
        generation=counts.generation,
        documents=counts.documents,
        chunks=counts.chunks,
        index=_index_state(index) if index else None,
    )


def _index_state(index: EmbeddingIndex) -> IndexState:
    known = index.identity.model
    name, chunker = known.model, index.identity.chunker
    return IndexState(
        provider=known.provider, model=name, dimensions=known.dimensions, chunker=chunker
    )
