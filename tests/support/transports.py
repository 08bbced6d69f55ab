"""Places of every transport to which replicas are published."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rolebundle.replication.transports import Transport, open_transport
from support.local_server import static_host


@dataclass(frozen=True)
class Place:
    """Where replicas are published, and how they are read.

    Attributes:
        publisher: pushes to it.
        reader: fetches from it; the same transport if it can do both.
    """

    publisher: Transport
    reader: Transport


@contextmanager
def _folder(scratch: Path) -> Iterator[Place]:
    transport = open_transport(str(scratch / "share"))
    yield Place(transport, transport)


@contextmanager
def _http(scratch: Path) -> Iterator[Place]:
    with static_host(scratch / "share") as address:
        yield Place(open_transport(str(scratch / "share")), open_transport(address))


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "folder": _folder,
    "http": _http,
}
"""A place of each transport, made in an empty folder."""
