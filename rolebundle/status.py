"""What `status` reports of a corpus: its content, its indexes, its rules, and what may be wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from rolebundle.contracts import upkeep
from rolebundle.ingest.authority import as_arguments
from rolebundle.ingest.indexes import building_note, contextual_model
from rolebundle.retrieval.pipeline import corpus_state
from rolebundle.storage import documents, records
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import heartbeat_path, is_held
from rolebundle.storage.publications import load_manifest, publications
from rolebundle.storage.vector_index import EmbeddingIndex, active_index, all_indexes, count_vectors


def corpus_status(corpus: Corpus) -> upkeep.CorpusStatus:
    """Describe what the corpus contains."""
    now = datetime.now(UTC)
    with corpus.reading():
        state = corpus_state(corpus, now)
        replica = load_manifest(corpus)
        active = active_index(corpus)
        embedded = count_vectors(corpus, active) if active else 0
        sizes = documents.source_sizes(corpus)
        indexes = [
            _index_status(index, count_vectors(corpus, index), state.chunks)
            for index in all_indexes(corpus)
        ]
    by_source: dict[str, upkeep.SourceStatus] = {}
    for name, tier, count, chunks in sizes:
        former = by_source.get(name)
        tiers = former.trust_tiers if former else {}
        by_source[name] = upkeep.SourceStatus(
            source_id=name,
            documents=count + (former.documents if former else 0),
            chunks=chunks + (former.chunks if former else 0),
            trust_tiers={**tiers, tier: count},
        )
    return upkeep.CorpusStatus(
        location=str(corpus.path),
        bytes=corpus.size_in_bytes(),
        corpus=state,
        sources=[*by_source.values()],
        waiting=state.chunks - embedded,
        indexes=indexes,
        replica=_replica_status(replica, now) if replica else None,
    )


def _replica_status(signed: upkeep.SignedManifest, now: datetime) -> upkeep.ReplicaStatus:
    manifest = signed.manifest
    return upkeep.ReplicaStatus(
        **manifest.model_dump(include={*upkeep.ReplicaStatus.model_fields}),
        key_id=signed.key_id,
        expired=manifest.is_expired(now),
        refusing=manifest.is_refusing(now),
    )


def _index_status(index: EmbeddingIndex, vectors: int, chunks: int) -> upkeep.IndexStatus:
    return upkeep.IndexStatus(
        id=index.id,
        **index.identity.model._asdict(),
        normalization=index.identity.normalization,
        chunker=index.identity.chunker,
        active=index.active,
        vectors=vectors,
        waiting=chunks - vectors,
        since=index.started_at,
        noise_floor=index.noise_floor,
        related_cosine=index.related_cosine,
    )


def owner_status(corpus: Corpus) -> upkeep.CorpusStatus:
    """What :func:`corpus_status` says, and what only the owner may know."""
    status = corpus_status(corpus)
    has_index = status.corpus.index is not None
    return status.model_copy(
        update={
            "model_reason": contextual_model(corpus)[1] if has_index else "",
            "building": building_note(corpus) if has_index else "",
            "dominating": documents.dominating(corpus),
            "self_declared": documents.self_declared(corpus),
            "partly_read": documents.count_partly_read(corpus),
            "path_flags": [
                upkeep.PathFlags(location=location, flags=as_arguments(flags))
                for location, flags in records.load_path_flags(corpus).items()
            ],
            "publications": [
                upkeep.PublicationStatus.model_validate(publication, from_attributes=True)
                for publication in publications(corpus)
            ],
            "watch": watch_status(corpus.path),
        }
    )


def watch_status(corpus: Path) -> upkeep.WatchStatus | None:
    """The last status of `watch`; ``None`` if it never ran, or if its file cannot be read."""
    path = heartbeat_path(corpus)
    try:
        status = upkeep.WatchStatus.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    # A watch has it locked as long as it runs.
    return status.model_copy(update={"running": is_held(path)})
