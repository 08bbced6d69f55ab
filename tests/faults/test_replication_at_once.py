"""Publish and pull beside each other, beside ingest and purge, and where nothing can be written."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Thread
from typing import Any
from unittest.mock import patch

import pytest

from rolebundle.admin.purges import PurgeSelection, finish_purges, purge
from rolebundle.errors import CorpusBusy, RolebundleError, StorageError
from rolebundle.replication import publish as publishing
from rolebundle.replication.transports.files import FolderTransport
from rolebundle.storage.files.lock import FolderLock
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.storage.records.publications import carrying, publications
from rolebundle.storage.replicas import replica_file
from support.commands import invoke_as_a_common_user
from support.corpora import document, fill
from support.full_disk import FILLER, fill_up, on_own_file_system
from support.replication_site import (
    Site,
    assert_sound_replica,
    editions_in,
    manifest_in,
    names_in,
    published_file,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs, and permissions of Linux")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Edition 1 is published and pulled, edition 2 is not published yet."""
    site = Site(tmp_path_factory.mktemp("saved") / "site")
    site.write()
    site.publish()
    site.pull()
    site.write(2)
    shutil.copytree(site.folder, site.folder.with_name("copy"))
    return site


@pytest.fixture
def site(saved: Site) -> Site:
    """What was saved, at the same path: its target is known by it."""
    shutil.rmtree(saved.folder)
    shutil.copytree(saved.folder.with_name("copy"), saved.folder)
    return saved


def at_once(*works: Callable[[], object]) -> list[Exception]:
    """Do all of this at the same time, and return the errors."""
    start, errors = Barrier(len(works)), list[Exception]()

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@contextmanager
def inside(owner: object, name: str, action: Callable[[], object]) -> Iterator[None]:
    """Do something once, just before a function of the code is called."""
    function, calls = getattr(owner, name), []

    def call(*args: Any, **options: Any) -> Any:
        if not calls:
            calls.append(True)
            action()
        return function(*args, **options)

    with patch.object(owner, name, call):
        yield
    assert calls


def assert_renewed(site: Site, edition: int = 2) -> None:
    """The present state is published, and can be pulled; nothing is left over."""
    site.pull()
    assert editions_in(site.replica) == {f"edition{edition}"}
    assert_sound_replica(site.replica)
    known = site.publication()
    assert known.generation == manifest_in(site.replica).manifest.generation
    assert names_in(site.staged.parent) == ["replica.db"]
    published_file(site.share)
    assert names_in(site.replica.parent) == ["r.db"]


# -- at once ----------------------------------------------------------------------------------------


def test_two_pulls(site: Site) -> None:
    site.publish()
    assert at_once(site.pull, site.pull) == []
    assert_renewed(site)


def test_two_publishes_to_one_target(site: Site) -> None:
    assert at_once(site.publish, site.publish) == []
    assert_renewed(site)
    assert site.publication().generation == 2, "one change is counted once"


def test_a_publish_and_a_pull(site: Site) -> None:
    """The reader finds the old replica or the new one."""
    assert at_once(site.publish, site.pull) == []
    assert editions_in(site.replica) in ({"edition1"}, {"edition2"})
    assert_renewed(site)


def test_a_publish_during_an_ingest(site: Site) -> None:
    """It publishes what was committed when it began."""

    def ingest() -> None:
        with open_writer(site.db) as corpus:
            fill(corpus, [document("d0", ["token of edition3"])])

    with inside(replica_file, "content_digest", ingest):
        site.publish()
    assert_renewed(site)
    with open_writer(site.db) as corpus, corpus.writing():
        # Readers of a log do not wait for a writer.
        corpus.run("UPDATE corpus_state SET generation = generation")
        site_reader = at_once(site.pull)
    assert site_reader == []


def test_a_busy_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "30")
    site.publish()
    lock = FolderLock(site.replica, exclusive=False)
    try:
        with pytest.raises(CorpusBusy):
            site.pull()
    finally:
        lock.release()
    assert editions_in(site.replica) == {"edition1"}
    staged = FolderLock(site.staged.parent, exclusive=True)
    try:
        with pytest.raises(CorpusBusy):
            site.publish()
    finally:
        staged.release()
    assert_renewed(site)


# -- a purge during a publish ------------------------------------------------------------------------

CANARY = "albatross"


def holding(folder: Path) -> list[str]:
    """The files that have the secret word."""
    return [
        str(file.relative_to(folder))
        for file in sorted(folder.rglob("*"))
        if file.is_file() and CANARY.encode() in unpacked(file)
    ]


def unpacked(file: Path) -> bytes:
    content = file.read_bytes()
    return gzip.decompress(content) if file.suffix == ".gz" else content


def purged_at(site: Site, owner: object, name: str) -> None:
    """Publish a document with a secret word, which is purged meanwhile."""
    with open_writer(site.db) as corpus:
        fill(corpus, [document("secret", [f"token {CANARY} of edition2"])])

    def erase() -> None:
        with open_writer(site.db) as corpus:
            purge(corpus, PurgeSelection(["secret"]))

    with (
        patch.dict(os.environ, {"ROLEBUNDLE_BUSY_TIMEOUT_MS": "30"}),
        inside(owner, name, erase),
    ):
        site.publish()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (publishing, "_stage"),
        (publishing, "copy_visible"),
        (replica_file, "content_digest"),
        (publishing, "_record_before_push"),
    ],
)
def test_a_purge_before_the_replica_is_recorded(owner: object, name: str, site: Site) -> None:
    """The replica is built again, without it."""
    purged_at(site, owner, name)
    assert not site.publication().is_outdated
    assert holding(site.share) == []
    with open_writer(site.db) as corpus:
        finish_purges(corpus)
        assert carrying(corpus, ["secret"]) == []
    assert holding(site.folder) == []
    assert_renewed(site)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(FolderTransport, "push"), (publishing, "_record_after_push")],
)
def test_a_purge_after_the_replica_is_recorded(owner: object, name: str, site: Site) -> None:
    """It may be out there. So the publication is outdated, until it is published again."""
    purged_at(site, owner, name)
    assert CANARY.encode() in published_file(site.share), "this is what the record must know"
    assert site.publication().is_outdated
    site.pull()
    with open_writer(site.db) as corpus:
        assert [receipt.state for receipt in finish_purges(corpus)] == ["done"]
    assert not site.staged.exists()
    site.publish()
    assert not site.publication().is_outdated
    assert_renewed(site)
    assert holding(site.folder) == []


# -- nothing can be written --------------------------------------------------------------------------

NO_ROOM = OSError(errno.ENOSPC, "No space left on device")
FAILED = OSError(errno.EIO, "Input/output error")


@pytest.mark.sample(3)
@pytest.mark.parametrize("error", [NO_ROOM, FAILED], ids=["full", "failed"])
@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_each_sync_and_rename_fails(name: str, error: OSError, site: Site) -> None:
    """One after another: exit code 6, the old replica stays, and the next run completes it."""
    failures = 0
    for step in (site.publish, site.pull):
        for nth in range(1, 30):
            before = site.replica.read_bytes()
            if not fails(step, name, nth, error):
                break
            failures += 1
            assert site.replica.read_bytes() == before
    assert failures >= 4
    assert_renewed(site)
    assert site.publication().generation == 2


def fails(step: Callable[[], object], name: str, nth: int, error: OSError) -> bool:
    function, calls = getattr(os, name), 0

    def call(*args: Any, **options: Any) -> Any:
        nonlocal calls
        # That of a folder may fail: not every system syncs one.
        is_folder = name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode)
        calls += not is_folder
        if calls == nth and not is_folder:
            raise error
        return function(*args, **options)

    with patch.object(os, name, call):
        try:
            step()
        except StorageError as raised:
            assert raised.exit_code == 6
            return True
    return False


def folders_of(site: Site) -> dict[str, Path]:
    return {"corpus": site.folder, "share": site.share, "reader": site.replica.parent}


@linux
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["share", "corpus", "reader"])
def test_a_folder_that_cannot_be_written(name: str, site: Site) -> None:
    key = site.folder / "team.key"
    write_keys(site, key)
    if name == "corpus":
        shutil.rmtree(site.staged.parents[1])
    if name == "reader":
        site.publish()
    folder = folders_of(site)[name]
    before = site.replica.read_bytes()
    folder.chmod(0o555)
    command = (
        ("replica", "pull", site.share, "--key", key.with_suffix(".pub"), "--db", site.replica)
        if name == "reader"
        else (
            "replica",
            "publish",
            site.share,
            "--level",
            "internal",
            "--key",
            key,
            "--db",
            site.db,
        )
    )
    try:
        outcome = invoke_as_a_common_user(*command)
    finally:
        folder.chmod(0o755)
    assert outcome.code == 6 and "Traceback" not in outcome.err, outcome.err
    assert site.replica.read_bytes() == before
    site.publish()
    assert_renewed(site)


def write_keys(site: Site, path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    path.write_bytes(
        site.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    path.with_suffix(".pub").write_bytes(
        site.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


@linux
def test_a_full_disk_at_each_step(tmp_path: Path) -> None:
    """With a little more room each time: an error, until there is enough. The old one stays."""
    place = tmp_path / "place"
    place.mkdir()

    def work() -> list[list[Any]]:
        site = Site(place / "site")
        site.write(1, 30)
        site.publish()
        site.pull()
        site.write(2, 30)
        found = []
        for name, step in (("publish", site.publish), ("pull", site.pull)):
            fill_up(place)
            room, code = 0, 6
            while code == 6:
                before = site.replica.read_bytes()
                code = code_of(step)
                has_good_replica = code == 0 or (
                    site.replica.read_bytes() == before and editions_in(site.replica)
                )
                found.append([name, room, code, bool(has_good_replica)])
                room += 64 << 10
                os.truncate(place / FILLER, (place / FILLER).stat().st_size - (64 << 10))
        with open_reader(site.db) as corpus:
            [known] = publications(corpus)
        assert known.generation == 2, "counted once"
        assert_renewed(site)
        return found

    found = on_own_file_system(place, 12, work)
    if found is None:
        pytest.skip("this machine does not allow to mount")
    assert {(code, has_good_replica) for _, _, code, has_good_replica in found} == {
        (6, True),
        (0, True),
    }, found
    assert sum(code == 6 for _, _, code, _ in found) >= 4


def code_of(step: Callable[[], object]) -> int:
    try:
        step()
    except RolebundleError as error:
        return error.exit_code
    return 0
