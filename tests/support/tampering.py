"""What an attacker has who changes a published replica, and what a reader then has."""

import gzip
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import apsw

from rolebundle.contracts.upkeep import SignedManifest
from rolebundle.replication.signatures import PrivateKey, sign
from rolebundle.storage import replicas
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import PUBLISHED_MANIFEST as MANIFEST
from rolebundle.storage.publications import save_manifest, stored_manifest
from rolebundle.storage.writing import open_writer
from support.fake_embedder import HashingProvider
from support.replication_site import Site, published_file

Files = dict[str, bytes]
DATABASE, PACKED, AT_HAND = "replica.db", "replica.db.gz", "at hand"
"""The published file, unpacked; what is there in its place, if it is given; and what was pulled."""


@dataclass
class World:
    """What is published, and what an attacker has.

    Attributes:
        site: the publisher and the reader.
        old, new: two generations of the replica. ``new`` is published.
        elsewhere: the same corpus with the same key, published to another target.
        other_corpus: another corpus with the same key.
    """

    site: Site
    old: Files
    new: Files
    elsewhere: Files
    other_corpus: Files

    @property
    def share(self) -> Path:
        return self.site.share

    def publish(self, files: Files, at_hand: Files | None = None) -> None:
        """Put these files where replicas are published, and perhaps a replica at hand."""
        shutil.rmtree(self.share, ignore_errors=True)
        self.share.mkdir()
        packed = files.get(PACKED) or gzip.compress(files[DATABASE], mtime=0)
        try:
            digest = json.loads(files[MANIFEST])["manifest"]["packed_digest"][:32]
        except (ValueError, KeyError, TypeError, RecursionError):
            digest = sha256(packed).hexdigest()[:32]
        (self.share / f"replica-{digest}.db.gz").write_bytes(packed)
        (self.share / MANIFEST).write_bytes(files[MANIFEST])
        if at_hand is not None:
            shutil.rmtree(self.site.replica.parent, ignore_errors=True)
            self.site.replica.parent.mkdir()
            self.site.replica.write_bytes(at_hand[AT_HAND])

    def forged(self, change: Callable[[Corpus], None], key: PrivateKey | None = None) -> Files:
        """The new replica with a change, sealed again; with a key, its digests signed again."""
        file = self.site.folder / "forged.db"
        file.write_bytes(self.new[DATABASE])
        with open_writer(file, replica=True) as corpus:
            signed = SignedManifest.model_validate_json(stored_manifest(corpus))
            with corpus.writing():
                change(corpus)
            if key is not None:
                signed = SignedManifest.model_validate_json(stored_manifest(corpus))
                fields = {"content_digest": replicas.content_digest(corpus)}
                signed = sign(signed.manifest.model_copy(update=fields), key)
                with corpus.writing():
                    save_manifest(corpus, signed.model_dump_json())
            replicas.prepare_for_readers(corpus)
        return files_of(file, signed, key)

    def signed_again(self, key: PrivateKey, **fields: object) -> Files:
        """The new replica with other fields in its manifest."""

        def change(corpus: Corpus) -> None:
            signed = SignedManifest.model_validate_json(stored_manifest(corpus))
            manifest = signed.manifest.model_copy(update=fields)
            save_manifest(corpus, sign(manifest, key).model_dump_json())

        return self.forged(change, key)

    def written(self, manifest: str | bytes) -> Files:
        """The new replica with another manifest beside it."""
        text = manifest if isinstance(manifest, bytes) else manifest.encode()
        return {**self.new, MANIFEST: text}

    def edited(self, **fields: object) -> Files:
        """The new replica with other fields in the manifest beside it, and the old signature."""
        signed = json.loads(self.new[MANIFEST])
        signed["manifest"].update(fields)
        return self.written(json.dumps(signed))


def files_of(file: Path, signed: SignedManifest, key: PrivateKey | None) -> Files:
    """The files of a replica; the manifest has the digest of the packed one if there is a key."""
    content = file.read_bytes()
    if key is not None:
        packed = {
            "packed_digest": sha256(gzip.compress(content, mtime=0)).hexdigest(),
            "unpacked_bytes": len(content),
        }
        signed = sign(signed.manifest.model_copy(update=packed), key)
    return {DATABASE: content, MANIFEST: signed.model_dump_json(indent=2).encode()}


def read(site: Site) -> Files:
    """What is published, and what a reader without a replica gets of it."""
    shutil.rmtree(site.replica.parent, ignore_errors=True)
    site.pull()
    [packed] = site.share.glob("replica-*.db.gz")
    return {
        DATABASE: published_file(site.share),
        PACKED: packed.read_bytes(),
        MANIFEST: (site.share / MANIFEST).read_bytes(),
        AT_HAND: site.replica.read_bytes(),
    }


def new_world(folder: Path) -> World:
    """Publish two generations, and two other replicas."""
    site = Site(folder / "site", provider=HashingProvider())
    site.write()
    site.publish()
    old = read(site)
    site.write(2)
    site.publish()
    new = read(site)
    elsewhere = site.copy(site.folder.parent / "elsewhere")
    for edition in (3, 4):
        elsewhere.write(edition)
        elsewhere.publish()
    other_site = Site(site.folder.parent / "other", site.key)
    other_site.write(1)
    with open_writer(other_site.db) as corpus, corpus.writing():
        corpus.run("UPDATE corpus_state SET corpus_id = 'other'")
    other_site.publish()
    return World(site, old, new, read(elsewhere), read(other_site))


def other_application(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE TABLE replica (only_row, manifest)")
