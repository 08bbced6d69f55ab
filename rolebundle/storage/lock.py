"""Locks between processes. The one on a corpus's folder: many write, or one replaces the file.

SQLite's locks belong to the file that is open. They do not keep a writer from continuing with a
file that another one has replaced, and what it writes then is lost. Readers take no lock: they
finish with the file that they have open.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from rolebundle.errors import CorpusBusy
from rolebundle.storage.sqlite import busy_timeout

_PAUSE_SECONDS = 0.02


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Whether no other process, and nothing else in this one, is in such a block for a path.

    If there are no locks, or if no such file can be made, it is always true.

    Args:
        path: the file of the lock; it is created if it is missing, and stays.
    """
    with _opened(path, os.O_RDWR | os.O_CREAT) as descriptor:
        yield _is_locked(descriptor, exclusive=True)


@contextmanager
def folder_lock(corpus: Path, *, exclusive: bool, patience_ms: int | None = None) -> Iterator[None]:
    """A block with the lock of a corpus's folder.

    Some file systems have no locks; there it does nothing.

    Args:
        corpus: the corpus file; its folder must exist.
        exclusive: wait until nobody writes, and keep writers out. Otherwise other writers may have
            the lock, too.
        patience_ms: how long to wait for another process; ``None`` means the usual time.

    Raises:
        CorpusBusy: another process kept it for that time.
    """
    deadline = monotonic() + (busy_timeout() if patience_ms is None else patience_ms) / 1000
    with _opened(Path(os.path.realpath(corpus)).parent, os.O_RDONLY) as descriptor:
        while not _is_locked(descriptor, exclusive=exclusive):
            if monotonic() >= deadline:
                raise CorpusBusy(
                    "corpus_busy",
                    f"{corpus}: another process "
                    + ("has it open for writing" if exclusive else "is replacing the file"),
                    "wait for it to end and run the same command again",
                )
            sleep(_PAUSE_SECONDS)
        yield


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """The descriptor of a file or folder during the block; -1 if it cannot be opened."""
    descriptor = -1
    with suppress(OSError):
        descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _is_locked(descriptor: int, *, exclusive: bool) -> bool:
    """Try to lock an open file. True also if there are no locks here."""
    # Windows lets nobody replace an open file.
    if descriptor < 0 or sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
