"""What an answer says of the corpus: which one it is, and in what state."""

from __future__ import annotations

from datetime import datetime

from rolebundle.contracts.bundle import CorpusState, IndexState, ReplicaState
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.opening import latest_version
from rolebundle.storage.publications import load_manifest
from rolebundle.storage.vector_index import EmbeddingIndex


def corpus_state(corpus: Corpus, now: datetime, index: EmbeddingIndex | None = None) -> CorpusState:
    """Which corpus this is, and in what state.

    Args:
        corpus: an open corpus.
        now: the time by which the age of a replica is measured.
        index: the index that answers. Default: the active one.
    """
    counts = corpus_counts(corpus)
    index = index or vector_index.active_index(corpus)
    return CorpusState.model_construct(
        file=corpus.path.name,
        corpus_id=counts.corpus_id,
        schema_version=latest_version(),
        generation=counts.generation,
        documents=counts.documents,
        chunks=counts.chunks,
        index=_index_state(index) if index else None,
        replica=_replica_state(corpus, now),
        in_place_of=corpus.in_place_of,
        standby_seconds=corpus.standby_seconds(),
    )


def _replica_state(corpus: Corpus, now: datetime) -> ReplicaState | None:
    signed = load_manifest(corpus)
    if signed is None:
        return None
    manifest = signed.manifest
    return ReplicaState.model_construct(
        publisher=manifest.publisher,
        generation=manifest.generation,
        published_at=manifest.published_at,
        expires_at=manifest.expires_at,
        age_hours=manifest.age_hours(now),
    )


def _index_state(index: EmbeddingIndex) -> IndexState:
    model = index.identity.model
    return IndexState.model_construct(
        provider=model.provider,
        model=model.model,
        dimensions=model.dimensions,
        chunker=index.identity.chunker,
    )
