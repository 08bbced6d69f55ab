"""A layer between SQLite and the file system that logs all operations and fails on demand.

Links, renames, deletions and syncs that Python itself makes are logged too; what Python writes is
logged when it is synced. ``test_power_loss`` builds from the log what a power loss may leave.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw

TEMPORARY = "temporary"
"""The name of a file of SQLite's that has none. It is not in the folder."""
_SYNCS_ITS_FOLDER = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
"""SQLite syncs the folder with the first sync of such a file (``UNIXFILE_DIRSYNC``)."""


@dataclass(frozen=True)
class Operation:
    """An operation on a file, which is named by the last part of its path."""

    kind: str
    """create, write, truncate, sync, delete, link, rename, sync_folder, acknowledge"""
    file: str = ""
    offset: int = 0
    data: bytes = b""
    to: str = ""  # the new name of a link or rename, or what was acknowledged
    inode: int = 0  # of what is written, truncated, synced, created


@dataclass
class Disk:
    """The log of all operations, and a hook that can make an operation fail.

    Attributes:
        log: what was done, in this order.
        fail: called before each operation; the error to raise instead, if any.
        names: file name → number of the file behind it, as they are now.
        base: file name → content, as they were before the first operation.
    """

    log: list[Operation] = field(default_factory=list)
    fail: Callable[[Operation], type[Exception] | None] | None = None
    names: dict[str, int] = field(default_factory=dict)
    base: dict[str, bytes] = field(default_factory=dict)
    _inodes: int = 0

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

    def acknowledge(self, event: str) -> None:
        """Log that the user was told that something is done."""
        self.log.append(Operation("acknowledge", to=event))

    def opened(self, name: str) -> int:
        """The number of the file with a name, which is created if there is none."""
        if name not in self.names:
            self._inodes += 1
            self.note(Operation("create", name, inode=self._inodes))
            self.names[name] = self._inodes
        return self.names[name]


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, base: str, name: str, filename: Any, flags: list[int]) -> None:
        self.disk, self.name = disk, name
        created = flags[0] & apsw.SQLITE_OPEN_CREATE
        self.syncs_folder = bool(created and flags[0] & _SYNCS_ITS_FOLDER)
        super().__init__(base, filename, flags)
        self.inode = disk.opened(name) if name != TEMPORARY else 0

    def xLock(self, level: int) -> None:
        try:
            super().xLock(level)
        except apsw.IOError as error:
            # A reader that closes tries to lock its read-only file. SQLite goes on without the
            # lock, but apsw would raise the error.
            raise apsw.BusyError from error

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.note(Operation("write", self.name, offset, bytes(data), inode=self.inode))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.note(Operation("truncate", self.name, newsize, inode=self.inode))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.note(Operation("sync", self.name, inode=self.inode))
        super().xSync(flags)
        if self.syncs_folder:
            self.disk.note(Operation("sync_folder"))
            self.syncs_folder = False


class _Shim(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.base = apsw.vfs_names()[0]
        super().__init__("rolebundle-shim", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        filename = name if isinstance(name, str) or name is None else name.filename()
        short = Path(filename).name if filename else TEMPORARY
        return _File(self.disk, self.base, short, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        name = Path(filename).name
        self.disk.note(Operation("delete", name))
        self.disk.names.pop(name, None)
        super().xDelete(filename, syncdir)
        if syncdir:
            self.disk.note(Operation("sync_folder"))


@contextmanager
def shimmed_disk(folder: Path | None = None) -> Iterator[Disk]:
    """Send every file that SQLite opens inside the block through the layer.

    Args:
        folder: also log what Python does to the names of files in this folder.
    """
    disk = Disk()
    if folder is not None:
        # These were there, and are durable.
        disk.base = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        for name in disk.base:
            disk.opened(name)
        disk.log.clear()
    vfs = _Shim(disk)
    try:
        with _python_calls(disk, folder):
            yield disk
    finally:
        disk.fail = None
        vfs.unregister()


@contextmanager
def _python_calls(disk: Disk, folder: Path | None) -> Iterator[None]:
    """Log links, renames, deletions and syncs of files directly in a folder."""
    link, replace, unlink, open_, fsync = os.link, os.replace, os.unlink, os.open, os.fsync

    def name_of(path: Any) -> str:
        path = Path(os.fsdecode(path)) if isinstance(path, (str, bytes)) else Path(path)
        return path.name if path.absolute().parent == folder else ""

    def logged_link(source: Any, target: Any, **settings: Any) -> None:
        old, new = name_of(source), name_of(target)
        link(source, target, **settings)
        if new:
            disk.note(Operation("link", old, to=new))
            disk.names[new] = disk.names[old]

    def logged_replace(source: Any, target: Any, **settings: Any) -> None:
        old, new = name_of(source), name_of(target)
        if new:
            disk.note(Operation("rename", old, to=new))
            inode = disk.names.pop(old, None)
            if inode is not None:  # A file such as the shared memory is not logged.
                disk.names[new] = inode
        replace(source, target, **settings)

    def logged_unlink(path: Any, **settings: Any) -> None:
        name = name_of(path) if settings.get("dir_fd") is None else ""
        unlink(path, **settings)
        if name:
            disk.note(Operation("delete", name))
            disk.names.pop(name, None)

    def logged_open(path: Any, flags: int, *settings: Any, **more: Any) -> int:
        descriptor = open_(path, flags, *settings, **more)
        if flags & os.O_CREAT and (name := name_of(path)):
            disk.opened(name)
        return descriptor

    def logged_fsync(descriptor: Any) -> None:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        if stat.S_ISDIR(os.fstat(number).st_mode):
            disk.note(Operation("sync_folder"))
        else:
            # /proc names the file that a descriptor belongs to.
            path = Path(f"/proc/self/fd/{number}").readlink()
            name = name_of(path)
            if name:
                # What Python wrote into it is not logged before this.
                inode = disk.opened(name)
                disk.note(Operation("write", name, 0, path.read_bytes(), inode=inode))
                disk.note(Operation("sync", name, inode=inode))
        fsync(descriptor)

    if folder is None:
        yield
        return
    with (
        patch.object(os, "link", logged_link),
        patch.object(os, "replace", logged_replace),
        patch.object(os, "rename", logged_replace),
        patch.object(os, "unlink", logged_unlink),
        patch.object(os, "remove", logged_unlink),
        patch.object(os, "open", logged_open),
        patch.object(os, "fsync", logged_fsync),
    ):
        yield
