"""Places of every transport to which replicas are published."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rolebundle.replication.transports import RsyncTransport, Transport, litestream, open_transport
from rolebundle.storage.sqlite import sqlite3_rsync
from support.local_server import static_host
from support.ssh_server import shared_ssh_server


@dataclass(frozen=True)
class Place:
    """Where replicas are published, and how they are read.

    Attributes:
        publisher: pushes to it.
        reader: fetches from it; the same transport if it can do both.
        reads_all: whether each fetch reads all of the replica.
    """

    publisher: Transport
    reader: Transport
    reads_all: bool = False


@contextmanager
def _folder(scratch: Path) -> Iterator[Place]:
    transport = open_transport(str(scratch / "share"))
    yield Place(transport, transport)


@contextmanager
def _http(scratch: Path) -> Iterator[Place]:
    with static_host(scratch / "share") as address:
        yield Place(open_transport(str(scratch / "share")), open_transport(address))


@contextmanager
def _rsync(scratch: Path) -> Iterator[Place]:
    if (program := sqlite3_rsync()) is None:
        pytest.skip("sqlite3_rsync is not installed")
    server = shared_ssh_server()
    target = f"ssh://{server.address}{scratch}/replica.db?exe={program}"
    transport = RsyncTransport(target, ssh=server.ssh)
    yield Place(transport, transport)


@contextmanager
def _litestream(scratch: Path) -> Iterator[Place]:
    if litestream() is None:
        pytest.skip("litestream is not installed")
    transport = open_transport(f"litestream+file://{scratch}/my%20store")
    yield Place(transport, transport, reads_all=True)


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "folder": _folder,
    "http": _http,
    "rsync": _rsync,
    "litestream": _litestream,
}
"""A place of each transport, made in an empty folder. It skips the test if its engine is missing."""
