"""Opening an SQLite file with care: what is looked at before a connection is trusted."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from rolebundle.errors import ConfigurationError, CorpusCorrupt, StorageError, UsageError

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another one, unless the environment says otherwise."""
BUSY_TIMEOUT_ENVIRONMENT = "ROLEBUNDLE_BUSY_TIMEOUT_MS"


def busy_timeout() -> int:
    """Milliseconds to wait for another process's lock.

    Raises:
        ConfigurationError: the environment names no number of milliseconds.
    """
    named = os.environ.get(BUSY_TIMEOUT_ENVIRONMENT)
    if not named:
        return BUSY_TIMEOUT_MS
    if not (named.isascii() and named.isdigit() and len(named) <= 9):
        raise ConfigurationError(
            "bad_busy_timeout",
            f"{BUSY_TIMEOUT_ENVIRONMENT}={named[:40]!r} is not a number of milliseconds",
            f"set it to a whole number such as {BUSY_TIMEOUT_MS}, or unset it",
        )
    return int(named)


def is_missing_or_without_bytes(path: Path) -> bool:
    """Whether a corpus may be made here."""
    # A file without bytes is what a kill in the first moment leaves: it is filled.
    try:
        return not path.exists() or (path.is_file() and path.stat().st_size == 0)
    except PermissionError:
        return False  # Looking closer says which permission is missing.


def refuse_missing_or_empty(path: Path) -> None:
    """See that there is a file with something in it.

    Raises:
        UsageError, StorageError, CorpusCorrupt: there is none.
    """
    try:
        if not path.is_file():
            raise UsageError(
                "corpus_missing",
                f"{path}: there is no corpus here" + (", but a folder" if path.is_dir() else ""),
                "run `rolebundle ingest PATH` first, or name another file with --db",
            )
        size = path.stat().st_size
    except PermissionError as error:
        raise StorageError(
            "no_permission",
            f"{path}: no permission to read it",
            "give yourself read permission, or name another file with --db",
        ) from error
    if size == 0:
        raise CorpusCorrupt(
            "corpus_empty_file",
            f"{path}: the file has no bytes, so it was cut off or never filled",
            "delete it to start anew, or restore a backup",
        )


def stamp_of(path: Path, *, frozen: bool = False) -> tuple[int, ...]:
    """What tells the file at a path from another one that takes its place."""
    # A connection that was told that nobody writes would not look whether somebody does.
    try:
        found = path.stat()
    except OSError:
        return ()
    which = (found.st_dev, found.st_ino)
    return (*which, found.st_mtime_ns, found.st_size) if frozen else which


def connect_read_only(path: Path, patience_ms: int | None = None) -> tuple[apsw.Connection, bool]:
    """The connection, and whether it takes the file for one that never changes.

    Args:
        path: an SQLite file.
        patience_ms: how long to wait for a lock; as always, where nothing is said.
    """
    try:
        return _opened(str(path.absolute()), patience_ms), False
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        # A file in WAL mode needs a shared-memory file beside it. In a folder that cannot be
        # written there is none; with no log to read, the file alone is the whole truth.
        log = Path(f"{path}-wal")
        if log.exists() and log.stat().st_size > 0:
            raise StorageError(
                "log_unreadable",
                f"{path}: has an unmerged log beside it in a read-only folder",
                "open it once where the folder can be written, for example with "
                "`rolebundle status`, or copy both files",
            ) from error
        from urllib.parse import quote

        name = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        return _opened(name, patience_ms), True


def _opened(name: str, patience_ms: int | None = None) -> apsw.Connection:
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        db.set_busy_timeout(busy_timeout() if patience_ms is None else patience_ms)
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def harden(db: apsw.Connection) -> None:
    """Take no orders from the file."""
    # A file from elsewhere may carry a hostile schema.
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    db.pragma("trusted_schema", False)
    db.pragma("cell_size_check", True)
