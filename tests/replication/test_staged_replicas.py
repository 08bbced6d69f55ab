"""The staged replica of a publisher was changed: nothing is signed that was not built there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from rolebundle.contracts.replica import SignedManifest
from rolebundle.errors import RolebundleError
from rolebundle.replication.signatures import PrivateKey, sign
from rolebundle.storage.opening import open_writer
from rolebundle.storage.records.replica import save_manifest, stored_manifest
from rolebundle.storage.replicas import replica_file
from support.replication_site import Site, assert_sound_replica, editions_in


def insert_document(staged: Path) -> None:
    """A document that its agent may see, in a replica that is sealed again."""
    with open_writer(staged, replica=True) as corpus:
        with corpus.writing():
            corpus.run("UPDATE chunk SET content = 'all is well' WHERE id = 1")
        replica_file.prepare_for_readers(corpus)


def other_key(staged: Path) -> None:
    with open_writer(staged, replica=True) as corpus:
        signed = SignedManifest.model_validate_json(stored_manifest(corpus))
        with corpus.writing():
            save_manifest(corpus, sign(signed.manifest, PrivateKey.generate()).model_dump_json())
        replica_file.prepare_for_readers(corpus)


def flip_index(staged: Path) -> None:
    with closing(apsw.Connection(str(staged))) as db:
        [(page,)] = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name LIKE 'sqlite_autoindex_document_%'"
        ).fetchall()[:1]
    content = bytearray(staged.read_bytes())
    content[page * 4096 - 10 : page * 4096] = b"\xff" * 10
    staged.write_bytes(content)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "change",
    [
        insert_document,
        other_key,
        flip_index,
        Path.unlink,
        lambda staged: staged.write_bytes(b"x" * 5000),
        lambda staged: staged.write_bytes(b""),
        lambda staged: os.truncate(staged, 9000),
        lambda staged: shutil.copy(staged.parents[2] / "c.db", staged),
    ],
)
def test_a_changed_staged_replica_is_built_again(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    site = Site(tmp_path / "site")
    site.write()
    site.publish()
    site.pull()
    change(site.staged)
    site.write(2)
    report = site.publish()
    assert report.rebuilt and report.manifest.generation == 2
    assert site.pull().state == "updated"
    assert editions_in(site.replica) == {"edition2"}
    assert_sound_replica(site.replica)


def test_an_older_staged_replica_is_brought_up_to_date(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    site.write()
    site.publish()
    first = site.staged.read_bytes()
    for edition in (2, 3):
        site.write(edition)
        site.publish()
    site.pull()
    site.staged.write_bytes(first)
    report = site.publish(expires=timedelta(days=9))
    assert report.manifest.generation == 3, "nothing changed"
    site.staged.write_bytes(first)
    site.write(4)
    assert site.publish().manifest.generation == 4
    assert site.pull().state == "updated"
    assert editions_in(site.replica) == {"edition4"}


def test_a_folder_in_place_of_the_staged_replica(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    site.write()
    site.publish()
    site.staged.unlink()
    site.staged.mkdir()
    with pytest.raises(RolebundleError) as raised:
        site.publish()
    assert raised.value.exit_code == 6
    site.staged.rmdir()
    assert site.publish().rebuilt


def test_a_replica_is_not_published(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    site.write()
    site.publish()
    site.pull()
    republished = Site(site.replica.parent)
    site.replica.rename(republished.db)
    with pytest.raises(RolebundleError) as raised:
        republished.publish()
    assert raised.value.code == "replica_is_read_only"
