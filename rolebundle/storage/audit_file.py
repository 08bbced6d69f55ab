"""The audit's own file beside the corpus: created, recognized, opened (docs/decisions/0009)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic, monotonic_ns, sleep

from rolebundle.errors import CorpusBusy, CorpusCorrupt, RolebundleError, UsageError, WrongFile
from rolebundle.storage.location import is_there
from rolebundle.storage.sqlite_file import FileFormat, SqliteFile, busy_timeout, create_file

VERSION = 1
"""Of the file and of how rows are hashed."""
MAX_WAIT_MS = 5_000
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


def create(path: Path, fill: Callable[[SqliteFile], None]) -> bool:
    """Create the audit's file with its tables and what ``fill`` writes.

    Returns:
        False if something already has this name; it is not changed.

    Raises:
        StorageError: it cannot be created here.
    """

    def fill_tables(log: SqliteFile) -> None:
        for statement in SCHEMA:
            log.run(statement)
        fill(log)

    return create_file(path, AUDIT_FORMAT, fill_tables)


def open_audit_writer(path: Path) -> SqliteFile:
    """Open the audit for appending. A file that is not an audit is not changed.

    Raises:
        UsageError: there is none.
        WrongFile, CorpusCorrupt, StorageError: it cannot be appended to.
    """
    wait = _busy_handler(min(busy_timeout(), MAX_WAIT_MS))
    log = SqliteFile.open_for_writing(path, AUDIT_FORMAT, wait=wait)
    try:
        log.run("PRAGMA journal_mode = wal")
        # FULL: a row that was acknowledged survives a power loss.
        log.run("PRAGMA synchronous = full")
    except BaseException:
        log.close()
        raise
    return log


def _busy_handler(milliseconds: int) -> Callable[[int], bool]:
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


def open_audit_reader(path: Path) -> SqliteFile:
    """Open the audit for reading. It takes no lock that a writer would wait for.

    Raises:
        UsageError: there is none.
        WrongFile, CorpusCorrupt, StorageError: it cannot be read.
    """
    return SqliteFile.open_read_only(path, AUDIT_FORMAT)


def damaged(path: Path, what: str) -> CorpusCorrupt:
    """The error for an audit that is not what was written."""
    return CorpusCorrupt(
        "audit_tampered",
        f"{path}: the audit is not what was written: {what}",
        "keep this file as evidence, compare it with a backup, and begin a new one: move it away "
        "and run `rolebundle audit set`",
    )


def _audit_error(path: Path, error: RolebundleError) -> RolebundleError:
    """The error with the next step for an audit, and not for a corpus."""
    if isinstance(error, CorpusBusy):
        return CorpusBusy(
            "audit_busy",
            f"{path}: another process has been writing to the audit for too long",
            "run the same command again; a process that is stuck holds the lock until it is ended",
        )
    return damaged(path, error.message) if isinstance(error, CorpusCorrupt) else error


def _no_audit(path: Path) -> RolebundleError:
    if is_there(path):
        return WrongFile(
            "foreign_file", f"{path}: is not a file", "move it away: this name is the audit's"
        )
    return UsageError(
        "audit_missing", f"{path}: there is no audit", "run `rolebundle audit set --mode on`"
    )


AUDIT_FORMAT = FileFormat(
    name="an audit",
    application_id=0x52424155,  # ``RBAU``
    oldest=VERSION,
    newest=VERSION,
    foreign_hint="move it away: this name is the audit's",
    newer_hint="upgrade rolebundle",
    missing=_no_audit,
    translate=_audit_error,
)
