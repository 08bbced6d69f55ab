"""What an attacker has who changes a published replica, and what a reader then has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from rolebundle.contracts.replica import SignedManifest
from rolebundle.replication.signatures import PrivateKey, sign
from rolebundle.replication.transports.blocks import BLOCKS, DATABASE, MANIFEST, digests_of
from rolebundle.replication.transports.files import FolderTransport
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.opening import open_writer
from rolebundle.storage.records.replica import save_manifest, stored_manifest
from rolebundle.storage.replicas import replica_file
from support.fake_embedder import HashingProvider
from support.replication_site import Site

Files = dict[str, bytes]


class Bare(FolderTransport):
    """A folder that has no manifest beside the replica."""

    def manifest(self) -> bytes | None:
        super().manifest()
        return None


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
        for name, content in files.items():
            (self.share / name).write_bytes(content)
        if at_hand is not None:
            shutil.rmtree(self.site.replica.parent, ignore_errors=True)
            self.site.replica.parent.mkdir()
            self.site.replica.write_bytes(at_hand[DATABASE])

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
                fields = {"stored_digest": replica_file.stored_digest(corpus)}
                signed = sign(signed.manifest.model_copy(update=fields), key)
                with corpus.writing():
                    save_manifest(corpus, signed.model_dump_json())
            replica_file.prepare_for_readers(corpus)
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

    def stored(self, text: Callable[[str], str]) -> Files:
        """The new replica with another text as the manifest inside it, and an honest one beside."""
        return self.forged(lambda corpus: save_manifest(corpus, text(stored_manifest(corpus))))


def files_of(file: Path, signed: SignedManifest, key: PrivateKey | None) -> Files:
    """The three files of a replica; the manifest has the digest of the file if there is a key."""
    beside = signed
    if key is not None:
        beside = sign(signed.manifest.model_copy(update={"file_digest": sha256_of(file)}), key)
    return {
        DATABASE: file.read_bytes(),
        BLOCKS: digests_of(file),
        MANIFEST: beside.model_dump_json(indent=2).encode(),
    }


def read(folder: Path) -> Files:
    return {name: (folder / name).read_bytes() for name in (DATABASE, BLOCKS, MANIFEST)}


def new_world(folder: Path) -> World:
    """Publish two generations, and two other replicas."""
    site = Site(folder / "site", provider=HashingProvider())
    site.write()
    site.publish()
    old = read(site.share)
    site.write(2)
    site.publish()
    new = read(site.share)
    elsewhere = site.copy(site.folder.parent / "elsewhere")
    for edition in (3, 4):
        elsewhere.write(edition)
        elsewhere.publish()
    other_site = Site(site.folder.parent / "other", site.key)
    other_site.write(1)
    with open_writer(other_site.db) as corpus, corpus.writing():
        corpus.run("UPDATE corpus_state SET corpus_id = 'other'")
    other_site.publish()
    return World(site, old, new, read(elsewhere.share), read(other_site.share))


def other_application(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE TABLE replica (only_row, manifest)")
