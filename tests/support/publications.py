"""Records of publications and replicas, without a transport."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.contracts.upkeep import PublishReport
from rolebundle.errors import UsageError
from rolebundle.policy.access import Audience
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import publish
from rolebundle.storage.corpus import corpus_counts
from rolebundle.storage.file import published_folder
from rolebundle.storage.publications import Publication, save_publication, with_carried
from rolebundle.storage.writing import open_writer
from support.replication_site import options_with


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
    """Record a publication that carried these names, with what a killed publish left of it.

    Return that file, which has all of the corpus.
    """
    with open_writer(db) as corpus, corpus.writing():
        corpus_id = corpus_counts(corpus).corpus_id
        save_publication(corpus, with_carried(publication_of(target), corpus_id, names))
    published_folder(db).mkdir(exist_ok=True)
    staged = published_folder(db) / f"replica.db.{len(target)}-{'0' * 32}.partial"
    staged.write_bytes(db.read_bytes())
    return staged


def replica_of(db: Path, target: str) -> Path:
    """The replica that :func:`published` left."""
    return db.with_name(f"{db.stem}-for-{target}.db")


class Nowhere(PublishedFolder):
    """A transport that moves nothing: the replica is copied to a file, to be looked at."""

    def __init__(self, target: str, copy: Path) -> None:
        self.target, self.copy = target, copy

    def push(self, replica: Path, *_: object) -> int:
        shutil.copyfile(replica, self.copy)
        return 0

    def manifest(self) -> bytes:
        raise UsageError("nothing_published", "", "")


def published(db: Path, audience: Audience, target: str, key: Ed25519PrivateKey) -> PublishReport:
    """Publish to the file :func:`replica_of` only."""
    return publish(db, audience, Nowhere(target, replica_of(db, target)), options_with(key))
