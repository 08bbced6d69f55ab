"""A layer between SQLite and the file system that logs all operations and fails on demand.

apsw's files have no shared memory, so connections are made to hold the file exclusively: SQLite
then keeps the index of its log on the heap, and the log itself is written as always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw


@dataclass(frozen=True)
class Operation:
    """An operation on a file, which is named by the last part of its path."""

    kind: str  # write, truncate, sync, delete
    file: str
    offset: int = 0
    data: bytes = b""
    durable: bool = False  # a delete that SQLite has synced into the folder


@dataclass
class Disk:
    """The log of all operations, and a hook that can make an operation fail."""

    log: list[Operation] = field(default_factory=list)
    fail: Callable[[Operation], type[apsw.Error] | None] | None = None

    def note(self, operation: Operation) -> None:
        if self.fail is not None:
            error = self.fail(operation)
            if error is not None:
                raise error("injected fault")
        self.log.append(operation)

    def fail_at(self, kind: str, nth: int, error: type[apsw.Error]) -> None:
        """Make the ``nth`` operation of a kind from now on fail, and all later ones."""
        count = 0

        def judge(operation: Operation) -> type[apsw.Error] | None:
            nonlocal count
            count += operation.kind == kind
            return error if operation.kind == kind and count >= nth else None

        self.fail = judge


def replay(log: list[Operation], until: int, folder: Path, torn: Callable[[], bool]) -> None:
    """Write the files as a power loss after ``until`` operations may leave them.

    Synced data is there. Each later write is there if ``torn()`` is true.
    """
    last_sync = {
        name: max(
            (
                n
                for n, logged in enumerate(log[:until])
                if logged.kind == "sync" and logged.file == name
            ),
            default=-1,
        )
        for name in {operation.file for operation in log}
    }
    files: dict[str, bytearray] = {}
    for number, logged in enumerate(log[:until]):
        certain = number <= last_sync[logged.file] or logged.durable
        if logged.kind == "sync" or not (certain or torn()):
            continue
        if logged.kind == "delete":
            files.pop(logged.file, None)
            continue
        content = files.setdefault(logged.file, bytearray())
        if logged.kind == "truncate":
            del content[logged.offset :]
            continue
        if len(content) < logged.offset:
            content.extend(bytes(logged.offset - len(content)))
        content[logged.offset : logged.offset + len(logged.data)] = logged.data
    for name, content in files.items():
        (folder / name).write_bytes(content)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, base: str, name: str, filename: Any, flags: list[int]) -> None:
        self.disk, self.name = disk, name
        super().__init__(base, filename, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.note(Operation("write", self.name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.note(Operation("truncate", self.name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.note(Operation("sync", self.name))
        super().xSync(flags)


class _Shim(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.base = apsw.vfs_names()[0]
        super().__init__("rolebundle-shim", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        filename = name if isinstance(name, str) or name is None else name.filename()
        short = Path(filename).name if filename else "temporary"
        return _File(self.disk, self.base, short, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.disk.note(Operation("delete", Path(filename).name, durable=syncdir))
        super().xDelete(filename, syncdir)


def _hold(db: apsw.Connection) -> None:
    if not db.readonly("main"):
        db.pragma("locking_mode", "exclusive")


@contextmanager
def shimmed_disk() -> Iterator[Disk]:
    """Send every file that SQLite opens inside the block through the shim."""
    disk = Disk()
    vfs = _Shim(disk)
    apsw.connection_hooks.append(_hold)
    try:
        yield disk
    finally:
        disk.fail = None
        apsw.connection_hooks.remove(_hold)
        vfs.unregister()
