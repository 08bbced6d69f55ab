"""Stores of Litestream, beyond what holds for every transport."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from rolebundle.contracts.document import iso_utc
from rolebundle.errors import ConfigurationError, CorpusCorrupt, StorageError, UsageError
from rolebundle.replication.publish import publish
from rolebundle.replication.pull import pull
from rolebundle.replication.signatures import PrivateKey
from rolebundle.replication.transports import litestream
from rolebundle.replication.transports.litestream import LitestreamTransport
from rolebundle.replication.transports.transport import open_transport
from support.killing import killing_at, run_child
from support.replication_site import OPTIONS, Site, editions_in
from support.ssh_server import shared_ssh_server
from support.transports import Replica, change, rows_of

CANARY = b"CANARY-3b1f"


@pytest.fixture(autouse=True)
def engine() -> None:
    if litestream.litestream() is None:
        pytest.skip("litestream is not installed")


@pytest.fixture
def store(tmp_path: Path) -> LitestreamTransport:
    return LitestreamTransport(f"litestream+file://{tmp_path}/store")


def push(store: LitestreamTransport, replica: Replica) -> int:
    return store.push(replica.path, replica.manifest)


def fetched(store: LitestreamTransport, copy: Path) -> list[tuple[object, ...]]:
    store.fetch(copy)
    return rows_of(copy)


def put_canary(replica: Replica, canary: bytes) -> None:
    """Make a new generation with a text that no compression hides."""
    with closing(sqlite3.connect(replica.path)) as db, db:
        content = canary + os.urandom(4000)
        db.execute("UPDATE chunk SET content = ? WHERE id = 7", (content,))
    change(replica, rows=0)


def files_with(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.mark.parametrize(
    "target",
    [
        "litestream+file://",
        "litestream+file:///",
        "litestream+file://host/path",
        "litestream+file:///path?x=1",
        "litestream+s3://bucket",
        "litestream+s3:///path",
        "litestream+gs://bucket/path",
        "litestream+sftp://user@host",
        "litestream+sftp://user@host/path\n",
        "litestream+webdav://[host/path",
    ],
)
def test_a_target_without_a_store(target: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_transport(target)
    assert raised.value.code == "bad_target"


def test_a_password_in_a_target_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError) as raised:
        LitestreamTransport("litestream+webdavs://user:hunter2@host/path")
    assert "hunter2" not in str(raised.value)


def test_the_program_is_missing(
    store: LitestreamTransport, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litestream, "litestream", lambda: None)
    with pytest.raises(ConfigurationError) as raised:
        store.fetch(copy)
    assert raised.value.code == "engine_missing"


def test_a_fetched_replica_is_private_and_has_no_log(
    store: LitestreamTransport, replica: Replica, copy: Path
) -> None:
    push(store, replica)
    store.fetch(copy)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not copy.with_name(f"{copy.name}-wal").exists()
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not copy.with_name(f"{copy.name}-shm").exists()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["behind", "lost", "damaged", "half", "without log"])
def test_a_working_copy_is_made_again(
    store: LitestreamTransport, replica: Replica, copy: Path, case: str
) -> None:
    push(store, replica)
    working = replica.path.parent / "litestream"
    former = working.with_name("former")
    shutil.copytree(working, former)
    change(replica)
    push(store, replica)
    database = working / "replica.db"
    match case:
        case "lost":
            shutil.rmtree(working)
        case "damaged":
            database.write_bytes(b"\xff" * 50_000)
        case "half":
            database.write_bytes(database.read_bytes()[:50_000])
        case "without log":
            working.joinpath("replica.db-wal").unlink()
        case "behind":
            shutil.rmtree(working)
            former.rename(working)
    for _ in range(2):
        change(replica)
        push(store, replica)
        assert fetched(store, copy) == rows_of(replica.path)


@pytest.mark.slow
def test_a_store_that_was_removed(
    store: LitestreamTransport, replica: Replica, copy: Path, tmp_path: Path
) -> None:
    put_canary(replica, CANARY)
    push(store, replica)
    put_canary(replica, b"")
    push(store, replica)
    shutil.rmtree(tmp_path / "store")
    push(store, replica)
    assert fetched(store, copy) == rows_of(replica.path)
    assert not files_with(tmp_path, CANARY)


def test_the_manifest_tells_whether_the_working_copy_is_up_to_date(
    store: LitestreamTransport,
    replica: Replica,
    copy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that does nothing and ends with code 0."""
    push(store, replica)
    program = tmp_path / "sqlite3_rsync"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.setattr(litestream, "sqlite3_rsync", lambda: str(program))
    change(replica)
    push(store, replica)
    assert fetched(store, copy) == rows_of(replica.path)


@pytest.mark.slow
def test_a_long_chain_gets_a_link_with_all_pages(
    store: LitestreamTransport, replica: Replica, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litestream, "MAX_LINKS", 2)
    for _ in range(4):
        change(replica)
        push(store, replica)
    assert store.fetch(copy) < 2 * replica.size
    change(replica, rows=replica.rows * 4 // 5)
    sent = push(store, replica)
    assert 0.7 * replica.size < sent < replica.size, "only what has changed"
    change(replica)
    push(store, replica)
    change(replica)
    push(store, replica)
    assert store.fetch(copy) < 1.1 * replica.size
    assert rows_of(copy) == rows_of(replica.path)


@pytest.mark.sample(2)
@pytest.mark.parametrize("has_pushed", [True, False])
def test_no_old_bytes_stay(
    store: LitestreamTransport, replica: Replica, copy: Path, tmp_path: Path, has_pushed: bool
) -> None:
    put_canary(replica, CANARY)
    push(store, replica)
    put_canary(replica, b"")
    push(store, replica)
    assert len(files_with(tmp_path / "store", CANARY)) == 1
    assert len(store.history()) == 1
    eraser = store if has_pushed else LitestreamTransport(store.target)
    eraser.erase_history()
    assert not store.history()
    assert not files_with(tmp_path / ("" if has_pushed else "store"), CANARY)
    assert fetched(store, copy) == rows_of(replica.path)
    change(replica)
    sent = push(store, replica)
    assert sent < replica.size / 5 or not has_pushed
    assert fetched(store, copy) == rows_of(replica.path)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(1, 10))
def test_erasing_is_killed(
    store: LitestreamTransport, replica: Replica, copy: Path, tmp_path: Path, moment: int
) -> None:
    """Before each program and each deletion: the published replica stays."""
    put_canary(replica, CANARY)
    push(store, replica)
    for _ in range(2):
        put_canary(replica, b"")
        push(store, replica)

    def erase(_: object) -> None:
        killing = killing_at(moment)
        subprocess.Popen = killing(subprocess.Popen)  # type: ignore[assignment,misc]
        os.unlink = killing(os.unlink)
        store.erase_history()

    run_child(erase)
    assert fetched(store, copy) == rows_of(replica.path)
    change(replica)
    push(store, replica)
    store.erase_history()
    assert fetched(store, copy) == rows_of(replica.path)
    assert not files_with(tmp_path, CANARY)


# -- storage elsewhere -----------------------------------------------------------------------------


def moves(store: LitestreamTransport, replica: Replica, copy: Path) -> None:
    """What must hold wherever the store is."""
    with pytest.raises(UsageError, match="no replica"):
        store.fetch(copy)
    assert push(store, replica) > replica.size / 2
    change(replica)
    assert 0 < push(store, replica) < replica.size / 5
    assert fetched(store, copy) == rows_of(replica.path)
    history = store.history()
    assert len(history) == 1
    store.erase_history()
    assert len(store.history()) == 1


@pytest.mark.slow
def test_sftp(
    replica: Replica, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = shared_ssh_server()
    monkeypatch.setenv("LITESTREAM_SFTP_KEY_PATH", str(server.key))
    store = LitestreamTransport(f"litestream+sftp://{server.address}{tmp_path}/store")
    with pytest.raises(ConfigurationError) as raised:
        push(store, replica)
    assert raised.value.code == "no_host_key"
    other_key = server.key.with_suffix(".pub").read_text()
    monkeypatch.setenv("LITESTREAM_SFTP_HOST_KEY", other_key)
    with pytest.raises(StorageError, match="host key mismatch"):
        push(store, replica)
    assert not (tmp_path / "store").exists()
    monkeypatch.setenv("LITESTREAM_SFTP_HOST_KEY", server.host_key)
    moves(store, replica, copy)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an S3-compatible server with an empty bucket."""
    program = shutil.which("moto_server") or shutil.which(
        str(Path(sys.executable).with_name("moto_server"))
    )
    if program is None:
        pytest.skip("moto_server is not installed (pip install 'moto[server]')")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert any("Running on" in line for line in server.stderr)
            address = f"http://127.0.0.1:{port}"
            assert httpx.put(f"{address}/bucket").is_success
            # Litestream cannot use it with a server of its own address.
            monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            yield address
        finally:
            server.terminate()


@pytest.mark.slow
def test_s3(s3: str, replica: Replica, copy: Path) -> None:
    query = f"endpoint={s3}&region=us-east-1&forcePathStyle=true"
    moves(LitestreamTransport(f"litestream+s3://bucket/replica?{query}"), replica, copy)


def test_a_pull_reads_the_store_only_if_it_changed(
    tmp_path: Path, store: LitestreamTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "site")
    fetches: list[Path] = []
    fetch = LitestreamTransport.fetch
    monkeypatch.setattr(
        LitestreamTransport,
        "fetch",
        lambda self, copy: (fetches.append(copy), fetch(self, copy))[1],
    )

    def publish_edition(edition: int) -> None:
        site.write(edition)
        publish(site.db, site.audience, store, site.key, OPTIONS)

    def pulled() -> tuple[str, int]:
        before = len(fetches)
        return site.pull(store).state, len(fetches) - before

    publish_edition(1)
    assert [pulled(), pulled()] == [("updated", 1), ("current", 0)]
    publish_edition(2)
    assert pulled() == ("updated", 1)
    # A replica at hand that is damaged or of another key is not taken for the published one.
    site.replica.write_bytes(site.replica.read_bytes().replace(b"edition2", b"edition3", 1))
    assert pulled()[1] == 1
    with pytest.raises(CorpusCorrupt) as refused:
        pull(store, site.replica, PrivateKey.generate().public_key())
    assert refused.value.code == "bad_signature"
    assert editions_in(site.replica) == {"edition2"}
    # An offer that has expired is refused, also if nothing is fetched.
    later = iso_utc(datetime.now(UTC) + timedelta(days=30))
    monkeypatch.setattr("rolebundle.replication.manifest.iso_utc", lambda _: later)
    with pytest.raises(CorpusCorrupt) as refused:
        pulled()
    assert refused.value.code == "offer_expired"
