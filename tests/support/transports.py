"""Replicas to move, and places of every transport to move them to."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rolebundle.contracts.replica import SignedManifest
from rolebundle.replication.transports.litestream import litestream
from rolebundle.replication.transports.transport import open_transport
from rolebundle.replication.transports.rsync import RsyncTransport
from rolebundle.replication.transports.transport import Transport
from rolebundle.storage.files.sqlite_programs import sqlite3_rsync
from support.replica_files import manifest
from support.ssh_server import shared_ssh_server
from support.static_host import static_host

_ROW_BYTES = 4_000


def manifest_of(generation: int, corpus_id: str = "corpus") -> bytes:
    """A manifest whose signature nobody verifies."""
    described = manifest(generation=generation, corpus_id=corpus_id)
    return SignedManifest(manifest=described, key_id="", signature="").model_dump_json().encode()


@dataclass
class Replica:
    """A file of 4 kB a row that stands for a replica, and its manifest."""

    path: Path
    rows: int
    generation: int = 1

    @property
    def manifest(self) -> bytes:
        return manifest_of(self.generation)

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    return db


def new_replica(path: Path, rows: int) -> Replica:
    """Create a replica. Its content is always the same."""
    generator = random.Random(1)
    with closing(_opened(path)) as db, db:
        db.execute("CREATE TABLE replica (only_row INTEGER PRIMARY KEY, manifest TEXT NOT NULL)")
        db.execute("CREATE TABLE chunk (id INTEGER PRIMARY KEY, content BLOB NOT NULL)")
        contents = ((generator.randbytes(_ROW_BYTES),) for _ in range(rows))
        db.executemany("INSERT INTO chunk (content) VALUES (?)", contents)
        db.execute("INSERT INTO replica VALUES (1, ?)", (manifest_of(1).decode(),))
    return Replica(path, rows)


def change(replica: Replica, *, rows: int = 1) -> None:
    """Make a new generation in which a few rows have another content."""
    replica.generation += 1
    generator = random.Random(replica.generation)
    with closing(_opened(replica.path)) as db, db:
        for row in generator.sample(range(1, replica.rows + 1), rows):
            content = generator.randbytes(_ROW_BYTES)
            db.execute("UPDATE chunk SET content = ? WHERE id = ?", (content, row))
        db.execute("UPDATE replica SET manifest = ?", (replica.manifest.decode(),))


def shrink(replica: Replica) -> None:
    """Make a new generation of about half the size."""
    with closing(_opened(replica.path)) as db:
        with db:
            db.execute("DELETE FROM chunk WHERE id > ?", (replica.rows // 2,))
        db.execute("VACUUM")
    replica.rows //= 2
    change(replica, rows=0)


def rows_of(path: Path) -> list[tuple[object, ...]]:
    """Every row of a replica."""
    with closing(sqlite3.connect(path)) as db:
        return [
            *db.execute("SELECT * FROM replica"),
            *db.execute("SELECT * FROM chunk ORDER BY id"),
        ]


@dataclass(frozen=True)
class Place:
    """Where replicas are published, and how they are read.

    Attributes:
        publisher: pushes to it.
        reader: fetches from it; the same transport if it can do both.
        content_of: what must be equal of the replica and its copy: all bytes, or ``rows_of`` if the
            engine changes the file.
        reads_all: whether each fetch reads all of the replica.
    """

    publisher: Transport
    reader: Transport
    content_of: Callable[[Path], object] = Path.read_bytes
    reads_all: bool = False


@contextmanager
def _folder(scratch: Path) -> Iterator[Place]:
    transport = open_transport(str(scratch / "share"))
    yield Place(transport, transport)


@contextmanager
def _http(scratch: Path) -> Iterator[Place]:
    with static_host(scratch / "share") as host:
        yield Place(open_transport(str(scratch / "share")), open_transport(host.url))


@contextmanager
def _rsync(scratch: Path) -> Iterator[Place]:
    if (program := sqlite3_rsync()) is None:
        pytest.skip("sqlite3_rsync is not installed")
    server = shared_ssh_server()
    target = f"ssh://{server.address}{scratch}/replica.db?exe={program}"
    transport = RsyncTransport(target, ssh=server.ssh)
    yield Place(transport, transport, rows_of)


@contextmanager
def _litestream(scratch: Path) -> Iterator[Place]:
    if litestream() is None:
        pytest.skip("litestream is not installed")
    transport = open_transport(f"litestream+file://{scratch}/my%20store")
    yield Place(transport, transport, rows_of, reads_all=True)


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "folder": _folder,
    "http": _http,
    "rsync": _rsync,
    "litestream": _litestream,
}
"""A place of each transport, made in an empty folder. It skips the test if its engine is missing."""
