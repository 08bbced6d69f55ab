"""Records of publications and staged replicas, without a transport."""

from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.contracts.upkeep import PublishReport
from rolebundle.errors import UsageError
from rolebundle.policy.access import Audience
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import publish
from rolebundle.storage.corpus import corpus_counts
from rolebundle.storage.file import staged_replica
from rolebundle.storage.publications import Publication, save_publication, with_carried
from rolebundle.storage.writing import open_writer
from support.replication_site import OPTIONS


def publication_of(target: str, agent: str = "ana") -> Publication:
    """The record of a publication that carried nothing yet."""
    return Publication(
        target=target,
        agent=agent,
        visibility="{}",
        publisher="head office",
        key_id="0123456789abcdef",
        generation=3,
        purge_generation=1,
        content_digest="digest",
        published_at="2026-11-01T00:00:00Z",
        refuses_at="2026-12-01T00:00:00Z",
        published_purges=1,
        carried=b"",
    )


def stage(db: Path, target: str, names: Iterable[str]) -> Path:
    """Record a publication that carried these names, with a staged replica that has all of a corpus.

    Return the folder of the staged replica.
    """
    with open_writer(db) as corpus, corpus.writing():
        corpus_id = corpus_counts(corpus).corpus_id
        save_publication(corpus, with_carried(publication_of(target), corpus_id, names))
    staged = staged_replica(db, target)
    staged.parent.mkdir(parents=True)
    staged.write_bytes(db.read_bytes())
    return staged.parent


class Nowhere(PublishedFolder):
    """A transport that moves nothing: the staged replica is looked at."""

    def __init__(self, target: str) -> None:
        self.target = target

    def push(self, *_: object) -> int:
        return 0

    def manifest(self) -> bytes:
        raise UsageError("nothing_published", "", "")


def published(db: Path, audience: Audience, target: str, key: Ed25519PrivateKey) -> PublishReport:
    """Publish to the folder of staged replicas only."""
    return publish(db, audience, Nowhere(target), key, OPTIONS)
