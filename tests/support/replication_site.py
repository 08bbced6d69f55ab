"""A publisher with a small corpus, and a reader of its replica."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from rolebundle.contracts.policy import AgentRule
from rolebundle.contracts.upkeep import PublishReport, PullReport, SignedManifest
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.policy.access import Audience
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import PublishOptions, publish
from rolebundle.replication.pull import pull
from rolebundle.replication.signatures import PrivateKey
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.file import PUBLISHED_MANIFEST, published_folder
from rolebundle.storage.opening import open_reader
from rolebundle.storage.publications import Publication, find_publication, stored_manifest
from rolebundle.storage.writing import open_writer
from support.corpora import build, document, fill, scratch_folder
from support.sound import assert_sound

EVERYONE = Audience("", AgentRule(scopes=("*",), access_level="internal"))


def options_with(key: PrivateKey, **options: timedelta) -> PublishOptions:
    times = {"expires": timedelta(days=7), "grace": timedelta(days=7)} | options
    return PublishOptions(key, "head office", **times)


def edition_documents(edition: int, count: int = 4, texts: int = 2) -> list[StoredDocument]:
    """Documents that all name an edition, which is what their readers must agree on."""
    return [
        document(
            f"d{number}",
            [f"token rotation {number}.{part} of edition{edition}" for part in range(texts)],
        )
        for number in range(count)
    ]


@dataclass
class Site:
    """A publisher, the target, and a machine that pulls from it, in one folder.

    Attributes:
        key: the publisher's.
        audience: for whom it publishes.
        provider: makes the vectors; none without one.
    """

    folder: Path
    key: PrivateKey = field(default_factory=PrivateKey.generate)
    audience: Audience = EVERYONE
    provider: EmbeddingProvider | None = None

    @property
    def db(self) -> Path:
        return self.folder / "c.db"

    @property
    def share(self) -> Path:
        return self.folder / "share"

    @property
    def replica(self) -> Path:
        return self.folder / "reader" / "r.db"

    @property
    def left_over(self) -> list[str]:
        """What publishing left in its own folder."""
        return names_in(published_folder(self.db))

    @property
    def transport(self) -> PublishedFolder:
        return PublishedFolder(str(self.share))

    def write(self, edition: int = 1, count: int = 4) -> None:
        """Create the corpus, or replace the texts of all documents."""
        self.folder.mkdir(exist_ok=True)
        if not self.db.exists():
            build(self.folder, edition_documents(edition, count), self.provider, name=self.db.name)
            return
        with open_writer(self.db) as corpus:
            fill(corpus, edition_documents(edition, count), self.provider)

    def publish(self, **options: timedelta) -> PublishReport:
        signed = options_with(self.key, **options)
        return publish(self.db, self.audience, self.transport, signed)

    def pull(self, transport: PublishedFolder | None = None) -> PullReport:
        return pull(transport or self.transport, self.replica, self.key.public_key())

    def publication(self) -> Publication:
        with open_reader(self.db) as corpus:
            return find_publication(corpus, self.transport.target)

    def copy(self, folder: Path) -> Site:
        """The same site in another folder. It is published to another target."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder)


def assert_renewed(site: Site, edition: int = 2) -> int:
    """Assert that the present state is published and can be pulled, and that nothing is left over.

    Returns:
        Its generation.
    """
    site.pull()
    assert editions_in(site.replica) == {f"edition{edition}"}
    assert_sound_replica(site.replica)
    pulled, known = manifest_in(site.replica).manifest, site.publication()
    assert known.generation == pulled.generation
    assert known.content_digest == pulled.content_digest and not known.purge_pending
    assert site.left_over == []
    published_file(site.share)
    assert names_in(site.replica.parent) == ["r.db"]
    return pulled.generation


def manifest_in(file: Path) -> SignedManifest:
    """The signed manifest in a replica."""
    with open_reader(file) as corpus:
        return SignedManifest.model_validate_json(stored_manifest(corpus))


def editions_in(file: Path) -> set[str]:
    """The editions that the passages of a corpus name."""
    with open_reader(file) as corpus:
        return {text.split()[-1] for (text,) in corpus.rows("SELECT content FROM chunk")}


def assert_sound_replica(file: Path) -> None:
    """Assert that all parts of a replica agree. It is not changed: a copy is looked at."""
    with scratch_folder() as folder:
        copy = Path(shutil.copy(file, folder))
        with open_writer(copy, replica=True) as corpus, corpus.writing():
            corpus.run("DELETE FROM replica")
        assert_sound(copy)


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def published_file(share: Path) -> bytes:
    """The only replica in a folder, unpacked."""
    [packed] = share.glob("replica-*.db.gz")
    assert names_in(share) == sorted([packed.name, PUBLISHED_MANIFEST])
    return gzip.decompress(packed.read_bytes())
