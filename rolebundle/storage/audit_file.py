"""The audit's own file beside the corpus: made, recognized, opened (docs/decisions/0009)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, monotonic_ns, sleep
from uuid import uuid4

import apsw

from rolebundle.errors import CorpusBusy, CorpusCorrupt, StorageError, UsageError, WrongFile
from rolebundle.storage.connection import Corpus
from rolebundle.storage.failures import mapped
from rolebundle.storage.location import is_there
from rolebundle.storage.opening import busy_timeout, connect_read_only, harden, stamp_of

APPLICATION_ID = 0x52424155
"""``RBAU`` in the file's header."""
VERSION = 1
"""Of the file and of how rows are hashed."""
LONGEST_WAIT_MS = 5_000
"""A row is written in a moment. Who holds the lock for longer than this is stuck."""
SCHEMA = (
    """CREATE TABLE entry (
    seq INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    role TEXT NOT NULL,
    action TEXT NOT NULL,
    query TEXT NOT NULL,
    bundle_digest TEXT NOT NULL,
    allowed INTEGER NOT NULL,
    blocked TEXT NOT NULL,
    details TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT""",
    """CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    log_id TEXT NOT NULL,
    rows INTEGER NOT NULL,
    hash TEXT NOT NULL,
    mode TEXT NOT NULL,
    query TEXT NOT NULL
) STRICT""",
    "CREATE INDEX entry_of_agent ON entry (agent, seq)",
)


def create(path: Path, fill: Callable[[Corpus], None]) -> bool:
    """Make the file with what it begins with; False where another process was faster.

    It gets its name when it is complete and on the disk: whatever has the name and is not a whole
    log was damaged, and is never taken for one that has just begun.

    Raises:
        StorageError: it cannot be made here.
    """
    partial = path.with_name(f"{path.name}.{uuid4().hex}.partial")
    try:
        # The file's permissions are also those of the log that SQLite keeps beside it.
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with audit_errors(path):
            db = apsw.Connection(str(partial))
            log = Corpus(path, db, writable=True)
            with log:
                db.pragma("synchronous", "extra")
                with log.writing():
                    db.pragma("application_id", APPLICATION_ID)
                    db.pragma("user_version", VERSION)
                    for statement in SCHEMA:
                        db.execute(statement)
                    fill(log)
                db.pragma("journal_mode", "wal")
        return _take_name(partial, path)
    except OSError as error:
        raise StorageError(
            "cannot_create",
            f"{path}: the audit cannot be made ({error.strerror})",
            "give yourself write permission in the corpus's folder",
        ) from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{partial}{suffix}").unlink(missing_ok=True)


def _take_name(partial: Path, path: Path) -> bool:
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    except OSError:
        # Some file systems have no hard links. What remains is a moment between look and move.
        if is_there(path):
            return False
        partial.replace(path)
    with suppress(OSError):  # Not every system opens a folder.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def open_audit_writer(path: Path) -> Corpus:
    """Open the audit for appending. A file that is not one is not changed.

    Raises:
        UsageError: there is none.
        WrongFile, CorpusCorrupt, StorageError: it cannot be appended to.
    """
    _refuse_unusable(path)
    with audit_errors(path):
        found = stamp_of(path)
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            # A foreign file's log is not folded by having been looked at.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.set_busy_handler(_patience(min(busy_timeout(), LONGEST_WAIT_MS)))
            if db.readonly("main"):
                raise StorageError(
                    "read_only",
                    f"{path}: the audit is read-only",
                    "give yourself write permission to the audit's file and folder",
                )
            harden(db)
            _check_identity(db, path)
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            db.pragma("journal_mode", "wal")
            # FULL: a row that was acknowledged survives a power loss.
            db.pragma("synchronous", "full")
        except BaseException:
            db.close()
            raise
    return Corpus(path, db, writable=True, stamp=found)


def _patience(milliseconds: int) -> Callable[[int], bool]:
    """Ask for the lock every few milliseconds.

    SQLite's own waiting grows to a tenth of a second a try. Beside processes that write row after
    row, each of a few milliseconds, some would meet a taken lock until their time is over.
    """
    end = 0.0

    def wait(tries: int) -> bool:
        nonlocal end
        now = monotonic()
        if tries == 0:
            end = now + milliseconds / 1000
        # The clock's last digits, so that those who wait do not ask in step.
        sleep(0.0002 + monotonic_ns() % 1_800 * 1e-6)
        return now < end

    return wait


@contextmanager
def open_audit_reader(path: Path) -> Iterator[Corpus]:
    """The audit, opened for reading: no lock is taken that a writer would wait for.

    Raises:
        UsageError: there is none.
        WrongFile, CorpusCorrupt, StorageError: it cannot be read.
    """
    _refuse_unusable(path)
    with audit_errors(path):
        db, _ = connect_read_only(path)
        try:
            harden(db)
            db.pragma("query_only", True)
            _check_identity(db, path)
            yield Corpus(path, db, writable=False)
        finally:
            db.close()


@contextmanager
def audit_errors(path: Path) -> Iterator[None]:
    """Raise what happens to the file as errors that speak of the audit, and not of the corpus.

    Raises:
        CorpusBusy, StorageError, CorpusCorrupt: with the next step for an audit.
    """
    try:
        with mapped(path):
            yield
    except CorpusBusy as error:
        raise CorpusBusy(
            "audit_busy",
            f"{path}: another process has been writing to the audit for too long",
            "run the same command again; a process that is stuck holds the lock until it is ended",
        ) from error
    except CorpusCorrupt as error:
        if error.code == "audit_tampered":
            raise
        raise damaged(path, error.message) from error


def damaged(path: Path, what: str) -> CorpusCorrupt:
    """The error for an audit that is not what was written."""
    return CorpusCorrupt(
        "audit_tampered",
        f"{path}: the audit is not what was written: {what}",
        "keep this file as evidence, compare it with a backup, and begin a new one: move it away "
        "and run `rolebundle audit set`",
    )


def _check_identity(db: apsw.Connection, path: Path) -> None:
    if db.pragma("application_id") != APPLICATION_ID:
        raise WrongFile(
            "foreign_file",
            f"{path}: is an SQLite file, and no audit; it was not changed",
            "move it away: this name is the audit's",
        )
    version = db.pragma("user_version")
    if version > VERSION:
        raise WrongFile(
            "newer_schema",
            f"{path}: is an audit of version {version}, this rolebundle knows up to {VERSION}; "
            "it was not changed",
            "upgrade rolebundle",
        )
    foreign = db.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name"
    ).fetchone()
    if foreign is not None or version != VERSION:
        raise damaged(path, f"it holds the {foreign[0]} {foreign[1]!r}" if foreign else "version 0")


def _refuse_unusable(path: Path) -> None:
    if not is_there(path):
        raise UsageError(
            "audit_missing",
            f"{path}: there is no audit",
            "run `rolebundle audit set --mode on`",
        )
    try:
        size = path.stat().st_size if path.is_file() else -1
    except OSError as error:
        raise StorageError(
            "no_permission",
            f"{path}: the audit cannot be read ({error.strerror})",
            "give yourself permission to it",
        ) from error
    if size < 0:
        raise WrongFile(
            "foreign_file", f"{path}: is not a file", "move it away: this name is the audit's"
        )
    if size == 0:
        raise damaged(path, "the file has no bytes")
