"""The folder: what it may replace, files that do not belong together, and what is left in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.replication.transports import blocks
from rolebundle.replication.transports.blocks import (
    BLOCK_BYTES,
    DIGEST_BYTES,
    Source,
    Span,
    digests_of,
    make_equal,
    open_file,
)
from rolebundle.replication.transports.files import FolderTransport
from support.transports import Replica, change, manifest_of, shrink

FILES = ("replica.db", "replica.blocks", "manifest.json")
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs the permissions of POSIX")


@pytest.fixture
def share(tmp_path: Path) -> Path:
    return tmp_path / "share"


@pytest.fixture
def transport(share: Path) -> FolderTransport:
    return FolderTransport(str(share))


def code_of(raised: pytest.ExceptionInfo[RolebundleError]) -> str:
    return raised.value.code


def push(transport: FolderTransport, replica: Replica) -> int:
    return transport.push(replica.path, replica.manifest)


# -- what push may replace -----------------------------------------------------------------------


@posix
def test_the_folder_is_created_for_its_owner(
    transport: FolderTransport, replica: Replica, share: Path
) -> None:
    push(transport, replica)
    assert share.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in share.iterdir()) == sorted(FILES)
    assert all((share / name).stat().st_mode & 0o777 == 0o600 for name in FILES)
    for name in FILES:
        (share / name).chmod(0o640)
    change(replica)
    push(transport, replica)
    assert all((share / name).stat().st_mode & 0o777 == 0o640 for name in FILES)


def test_the_parents_of_the_folder_are_not_created(tmp_path: Path, replica: Replica) -> None:
    with pytest.raises(UsageError) as raised:
        push(FolderTransport(str(tmp_path / "not mounted" / "share")), replica)
    assert code_of(raised) == "target_missing"
    assert not (tmp_path / "not mounted").exists()


def test_a_file_is_no_target(transport: FolderTransport, replica: Replica, share: Path) -> None:
    share.write_text("mine")
    with pytest.raises(UsageError) as raised:
        push(transport, replica)
    assert code_of(raised) == "target_is_file"
    with pytest.raises(UsageError) as raised:
        transport.manifest()
    assert code_of(raised) == "nothing_published"
    assert share.read_text() == "mine"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"{}", manifest_of(1, "another corpus")])
def test_files_of_others_are_not_replaced(
    transport: FolderTransport, replica: Replica, share: Path, name: str, content: bytes
) -> None:
    share.mkdir()
    (share / name).write_bytes(content)
    with pytest.raises(UsageError) as raised:
        push(transport, replica)
    assert code_of(raised) == "foreign_folder"
    assert [path.name for path in share.iterdir()] == [name]
    assert (share / name).read_bytes() == content


def test_files_of_others_are_not_replaced_without_a_manifest(
    transport: FolderTransport, replica: Replica, share: Path
) -> None:
    share.mkdir()
    (share / "replica.db").write_bytes(b"mine")
    with pytest.raises(UsageError) as raised:
        transport.push(replica.path, b"no manifest")
    assert code_of(raised) == "foreign_folder"


def test_other_files_of_the_folder_are_left_alone(
    transport: FolderTransport, replica: Replica, share: Path
) -> None:
    share.mkdir()
    (share / "notes.md").write_text("mine")
    push(transport, replica)
    assert (share / "notes.md").read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(
    transport: FolderTransport, replica: Replica, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(transport, replica)
    before = {name: (share / name).read_bytes() for name in FILES}
    change(replica)

    def full(descriptor: int) -> None:
        os.write(os.open("/dev/full", os.O_WRONLY), b"x")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError) as raised:
        push(transport, replica)
    assert code_of(raised) == "storage_full"
    assert {path.name: path.read_bytes() for path in share.iterdir()} == before


# -- what a reader finds ---------------------------------------------------------------------------


@pytest.mark.parametrize("smaller", [False, True])
def test_files_that_do_not_belong_together(
    transport: FolderTransport, small_replica: Replica, share: Path, copy: Path, smaller: bool
) -> None:
    """Whichever of the files are old, and whatever the copy is: the old replica or the new one."""
    replica = small_replica
    push(transport, replica)
    old = [(share / name).read_bytes() for name in FILES]
    shrink(replica) if smaller else change(replica, rows=20)
    push(transport, replica)
    new = [(share / name).read_bytes() for name in FILES]
    for files in product(*zip(old, new, strict=True)):
        for name, content in zip(FILES, files, strict=True):
            (share / name).write_bytes(content)
        for start in (b"", old[0], new[0], old[0][:100_000], new[0] + old[0]):
            copy.write_bytes(start)
            transport.fetch(copy)
            assert copy.read_bytes() in (old[0], new[0])


@pytest.mark.parametrize("listed", [None, b"", b"\0" * 16, b"\0" * 15, "wrong", "long"])
def test_digests_that_are_no_use(
    transport: FolderTransport,
    replica: Replica,
    share: Path,
    copy: Path,
    listed: bytes | str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    push(transport, replica)
    digests = share / "replica.blocks"
    size = digests.stat().st_size
    digests.unlink()
    if listed is not None:
        names = {"wrong": b"\1" * size, "long": b"\1" * (size + DIGEST_BYTES)}
        digests.write_bytes(listed if isinstance(listed, bytes) else names[listed])
    monkeypatch.setattr(blocks, "MAX_BLOCKS_BYTES", size)
    for start in (b"", b"\xff" * 3_000_000):
        copy.write_bytes(start)
        transport.fetch(copy)
        assert copy.read_bytes() == replica.path.read_bytes()


def test_only_what_differs_is_read(
    transport: FolderTransport, replica: Replica, share: Path, copy: Path
) -> None:
    push(transport, replica)
    transport.fetch(copy)
    digests = (share / "replica.blocks").stat().st_size
    assert transport.fetch(copy) == digests
    content = bytearray(copy.read_bytes())
    content[5 * BLOCK_BYTES] ^= 1
    copy.write_bytes(content)
    assert transport.fetch(copy) == digests + BLOCK_BYTES
    copy.write_bytes(replica.path.read_bytes()[: 10 * BLOCK_BYTES])
    assert transport.fetch(copy) == digests + replica.size - 10 * BLOCK_BYTES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_the_place_of_a_file(
    transport: FolderTransport, replica: Replica, share: Path, copy: Path, name: str
) -> None:
    push(transport, replica)
    (share / name).unlink()
    os.mkfifo(share / name)
    with pytest.raises(StorageError) as raised:
        transport.manifest() if name == "manifest.json" else transport.fetch(copy)
    assert code_of(raised) == "io_error"


def test_a_manifest_that_is_missing_or_too_large(
    transport: FolderTransport, replica: Replica, share: Path
) -> None:
    push(transport, replica)
    (share / "manifest.json").unlink()
    assert transport.manifest() is None
    (share / "manifest.json").write_bytes(b" " * 1_048_577)
    with pytest.raises(StorageError) as raised:
        transport.manifest()
    assert code_of(raised) == "manifest_too_large"


@pytest.mark.parametrize("change_of_size", [-300_000, 300_000])
def test_a_file_that_changes_while_it_is_read(
    replica: Replica, copy: Path, change_of_size: int
) -> None:
    """A file that shrinks is an error. What is added to a file is not read."""
    digests = digests_of(replica.path)
    size = replica.size

    @contextmanager
    def opened() -> Iterator[Source]:
        with open_file(replica.path, digests) as source:
            os.truncate(replica.path, size + change_of_size)
            yield source._replace(size=size)

    if change_of_size > 0:
        make_equal(copy, opened, "it")
        assert digests_of(copy) == digests
        return
    with pytest.raises(StorageError) as raised:
        make_equal(copy, opened, "it")
    assert code_of(raised) == "replica_changed"


def test_a_replica_that_is_too_large(copy: Path) -> None:
    @contextmanager
    def opened() -> Iterator[Source]:
        yield Source(1 << 60, b"", lambda start, end: pytest.fail("it is read"))

    with pytest.raises(StorageError) as raised:
        make_equal(copy, opened, "it")
    assert code_of(raised) == "replica_too_large"


def test_blocks_that_are_given_in_any_pieces(replica: Replica, copy: Path) -> None:
    content = replica.path.read_bytes()

    @contextmanager
    def read(start: int, end: int) -> Iterator[Span]:
        answer = content[start:end] + b"more than was asked for" * 10_000
        yield Span(start, end, (answer[n : n + 99_991] for n in range(0, len(answer), 99_991)))

    @contextmanager
    def opened() -> Iterator[Source]:
        yield Source(len(content), digests_of(replica.path), read)

    assert make_equal(copy, opened, "it") == len(content)
    assert copy.read_bytes() == content


# -- what is left in the folder ----------------------------------------------------------------------


def test_leftovers_are_listed_and_removed(
    transport: FolderTransport, replica: Replica, tmp_path: Path, share: Path
) -> None:
    push(transport, replica)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    unpublished = [
        share / "replica.sync-notes.db",
        share / "my-replica.sync-conflict-20261101-093000-ABCDEFG.db",
        share / ".stversions" / "notes~20261101-093000.db",
        share / f"replica.db.{os.getpid()}-{'0' * 32}.partial",
        tmp_path / ".stversions" / "other" / "replica~20261101-093000.db",
    ]
    states = [
        share / f"replica.db.{ended.pid}-{'0' * 32}.partial",
        share / f"manifest.json.{ended.pid}-{'0' * 32}.partial",
        share / "replica.sync-conflict-20261101-093000-ABCDEFG.db",
        share / ".stversions" / "replica~20261101-093000.db",
        share / ".stversions" / f"replica.db.7-{'0' * 32}~20261101-093000.partial",
        tmp_path / ".stversions" / "share" / "replica~20261101-093000.db",
    ]
    for path in [*unpublished, *states]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"old")
    history = transport.history()
    assert sorted(history) == sorted(map(str, states))
    transport.erase_history()
    assert not transport.history()
    assert not any(path.exists() for path in states)
    assert all(path.exists() for path in unpublished)
    assert all((share / name).exists() for name in FILES)


def test_the_history_of_a_folder_that_is_missing(transport: FolderTransport) -> None:
    assert not transport.history()
    transport.erase_history()
