"""Replicas without a publisher: a corpus with a signed manifest in it."""

from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.contracts.upkeep import ReplicaManifest
from rolebundle.replication.signatures import sign
from rolebundle.storage import digests
from rolebundle.storage.corpus import corpus_counts
from rolebundle.storage.opening import latest_version
from rolebundle.storage.publications import PUBLISHED, save_manifest
from rolebundle.storage.writing import open_writer

PUBLISHER = "docs-team"
PUBLISHED_AT = "2026-11-01T00:00:00Z"
EXPIRES_AT = "2026-11-08T00:00:00Z"
NEVER = "9999-01-01T00:00:00Z"
LONG_AGO = "2026-11-09T00:00:00Z"


def manifest(**changes: Any) -> ReplicaManifest:
    """A manifest for tests. ``changes`` are some of its fields."""
    fields: dict[str, Any] = {
        "publisher": PUBLISHER,
        "agent": "",
        "corpus_id": "corpus",
        "generation": 12,
        "purge_generation": 2,
        "content_digest": "c",
        "schema_version": latest_version(),
        "documents": 1,
        "chunks": 1,
        "quarantined": 0,
        "indexes": [],
        "overlays": {},
        "policy_digest": "",
        "published_at": PUBLISHED_AT,
        "expires_at": EXPIRES_AT,
        "refuses_at": NEVER,
    }
    return ReplicaManifest(**fields | changes)


def make_replica(path: Path, **changes: Any) -> None:
    """Make a replica of a corpus, in one file. ``changes`` are fields of its manifest."""
    with open_writer(path, replica=True) as corpus:
        counts = corpus_counts(corpus)
        fields = {
            "corpus_id": counts.corpus_id,
            "documents": counts.documents,
            "chunks": counts.chunks,
        }
        signed = sign(manifest(**fields | changes), Ed25519PrivateKey.generate())
        with corpus.writing():
            corpus.run("DELETE FROM root")
            corpus.run(f"UPDATE file SET location = '{PUBLISHED}' || path")
            digests.write_all(corpus)
            save_manifest(corpus, signed.model_dump_json())
        corpus.run("PRAGMA journal_mode = delete")
