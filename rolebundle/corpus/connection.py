"""Opening the corpus file: who may read it, who may write it, and what is refused unopened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import apsw

from rolebundle.corpus.failures import mapped
from rolebundle.corpus.migrate import (
    APPLICATION_ID,
    apply_migrations,
    check_identity,
    latest_version,
)
from rolebundle.errors import (
    ConfigurationError,
    CorpusCorrupt,
    Interrupted,
    StorageError,
    UsageError,
    WrongFile,
)

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another one, unless the environment says otherwise."""
CACHE_KIB = 32_768
"""What a writer keeps of the file in memory: an ingest comes back to the indexes' pages."""
LOG_PAGES = 16_384
"""How long the write-ahead log grows before it is folded into the file: 64 MB."""
BUSY_TIMEOUT_ENVIRONMENT = "ROLEBUNDLE_BUSY_TIMEOUT_MS"

FREQUENCIES_KEPT = 10_000
_STEPS_BETWEEN_LOOKS = 10_000  # of SQLite's machine: well under a millisecond

Row = tuple[Any, ...]
Binding = str | int | float | bytes | None


@dataclass(slots=True)
class Corpus:
    """One open corpus file. All SQL of the project runs through these few methods."""

    path: Path
    db: apsw.Connection
    writable: bool
    _vectors_loaded: bool = field(default=False, init=False)
    _extras: set[str] = field(default_factory=set, init=False)
    _stopped: bool = field(default=False, init=False)
    _frequencies: tuple[Row, dict[str, int]] = field(default=((), {}), init=False)
    stamp: tuple[int, ...] = ()

    def rows(self, sql: str, bindings: Sequence[Binding] = ()) -> list[Row]:
        """Run one statement and fetch all of its rows."""
        with mapped(self.path):
            return self.db.execute(sql, tuple(bindings)).fetchall()

    def value(self, sql: str, bindings: Sequence[Binding] = ()) -> Any:
        """The first column of the first row, or ``None``."""
        with mapped(self.path):
            return self.db.execute(sql, tuple(bindings)).get

    def run(self, sql: str, bindings: Sequence[Binding] = ()) -> None:
        """Run one statement for its effect."""
        with mapped(self.path):
            self.db.execute(sql, tuple(bindings))

    def run_many(self, sql: str, bindings: Iterable[Sequence[Binding]]) -> None:
        """Run one statement for each set of bindings."""
        with mapped(self.path):
            self.db.executemany(sql, bindings)

    def last_rowid(self) -> int:
        """The rowid of the last insert."""
        return self.db.last_insert_rowid()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One write transaction: everything in it is there afterwards, or nothing.

        ``BEGIN IMMEDIATE``, because the busy timeout is not honoured when a read transaction
        upgrades to a write.
        """
        with mapped(self.path):
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                # A full disk rolls back by itself; a second rollback would hide the cause.
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def interrupt(self) -> None:
        """End what runs inside :meth:`interruptible` now; from any thread."""
        self._stopped = True
        self.db.interrupt()

    @contextmanager
    def interruptible(self, seconds: float | None = None) -> Iterator[None]:
        """A block that ends with ``Interrupted`` when it is told to, or after so many seconds.

        SQLite's own interrupt ends only the statement that runs at that moment; this one also ends
        the block's next one.
        """
        self._stopped = False
        end = perf_counter() + (inf if seconds is None else seconds)

        def over() -> bool:
            return self._stopped or perf_counter() > end

        self.db.set_progress_handler(over, _STEPS_BETWEEN_LOOKS)
        try:
            yield
        finally:
            self.db.set_progress_handler(None)
        # A model works outside of SQLite, and may have used the time up.
        if over():
            raise Interrupted(
                "interrupted",
                f"{self.path}: the search was interrupted before it was done",
                "ask again with a longer deadline_ms, or with lexical_only",
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One consistent snapshot for several statements."""
        with mapped(self.path):
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")

    def frequencies(self) -> dict[str, int]:
        """A place to remember how often terms occur, emptied when the corpus changes."""
        state = tuple(self.rows("SELECT corpus_id, generation FROM corpus_state"))
        if state != self._frequencies[0] or len(self._frequencies[1]) > FREQUENCIES_KEPT:
            self._frequencies = (state, {})
        return self._frequencies[1]

    def load_extra(self, name: str) -> bool:
        """Load an extension that ships inside apsw; False where this build has none such."""
        if name in self._extras:
            return True
        try:
            import apsw.sqlite_extra

            self.db.enable_load_extension(True)
            apsw.sqlite_extra.load(self.db, name)
            self.db.enable_load_extension(False)
        except (ImportError, apsw.Error, ValueError):
            return False
        self._extras.add(name)
        return True

    def load_vectors(self) -> None:
        """Make sqlite-vec's functions and tables available on this connection."""
        if self._vectors_loaded:
            return
        import sqlite_vec

        with mapped(self.path):
            self.db.enable_load_extension(True)
            self.db.load_extension(sqlite_vec.loadable_path())
            self.db.enable_load_extension(False)
        self._vectors_loaded = True

    def is_current(self) -> bool:
        """Whether the path still names the file that is open here.

        SQLite sees what others write into a file, but not that another file took its place.
        """
        return self.stamp == _stamp(self.path, frozen=len(self.stamp) > 2)

    def close(self) -> None:
        """Close the file. A writer that is the last one open folds its log into the file."""
        with mapped(self.path):
            self.db.close()

    def __enter__(self) -> Self:
        """The corpus itself, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_reader(path: Path) -> Corpus:
    """Open a corpus for retrieval. Takes no write lock and works on a read-only file (law 8).

    Raises:
        UsageError: there is no file.
        WrongFile, CorpusCorrupt, StorageError: it is not a corpus that this version reads.
    """
    _refuse_missing_or_empty(path)
    with mapped(path):
        # Taken before: what changes while it is opened is noticed the next time.
        found, content = _stamp(path), _stamp(path, frozen=True)
        db, frozen = _connect_read_only(path)
        try:
            _harden(db)
            db.pragma("query_only", True)
            check_identity(db, path)
            version = db.pragma("user_version")
            if version < latest_version():
                raise WrongFile(
                    "older_schema",
                    f"{path}: has schema {version}, this version reads {latest_version()}",
                    "run `rolebundle ingest` once with this version: it backs the file up "
                    "and migrates it",
                )
        except BaseException:
            db.close()
            raise
    return Corpus(path, db, writable=False, stamp=content if frozen else found)


def open_writer(path: Path) -> Corpus:
    """Open a corpus for writing; create or migrate it where needed.

    The file is looked at read-only first, so that a foreign or newer file is refused before a
    byte of it changes.

    Raises:
        WrongFile, CorpusCorrupt, StorageError, CorpusBusy: it cannot be written.
    """
    if not _is_missing_or_without_bytes(path):
        _refuse_missing_or_empty(path)
        with mapped(path):
            looked_at, _ = _connect_read_only(path)
            try:
                check_identity(looked_at, path)
            finally:
                looked_at.close()
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                "cannot_create",
                f"{path}: its folder cannot be made ({error.strerror})",
                "choose another file with --db",
            ) from error
    with mapped(path):
        db = apsw.Connection(str(path))
        try:
            db.set_busy_timeout(busy_timeout())
            if db.readonly("main"):
                # SQLite falls back in silence; said now, before files are read for nothing.
                raise StorageError(
                    "read_only",
                    f"{path}: the file is read-only",
                    "give yourself write permission, or choose another file with --db",
                )
            _harden(db)
            if db.pragma("user_version") == 0:
                # Kept in the file's header, and readable by a bare `file corpus.db`.
                db.pragma("application_id", APPLICATION_ID)
            # EXTRA while the file leaves its first journal behind: were that journal back after a
            # power loss, it would undo the change to WAL, and with it all that the log holds.
            db.pragma("synchronous", "extra")
            db.pragma("journal_mode", "wal")
            # FULL: what was acknowledged survives a power loss, not only a crash.
            db.pragma("synchronous", "full")
            # Pages that many batches change, such as the lexical index's, are copied once.
            db.pragma("wal_autocheckpoint", LOG_PAGES)
            db.pragma("cache_size", -CACHE_KIB)
            db.pragma("foreign_keys", True)
            db.pragma("secure_delete", True)
            apply_migrations(db, path)
        except BaseException:
            db.close()
            raise
    return Corpus(path, db, writable=True)


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


def _is_missing_or_without_bytes(path: Path) -> bool:
    # A file without bytes is what a kill in the first moment leaves: it is filled.
    try:
        return not path.exists() or (path.is_file() and path.stat().st_size == 0)
    except PermissionError:
        return False  # Looking closer says which permission is missing.


def _refuse_missing_or_empty(path: Path) -> None:
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


def _stamp(path: Path, *, frozen: bool = False) -> tuple[int, ...]:
    # A connection that was told that nobody writes would not look whether somebody does.
    try:
        found = path.stat()
    except OSError:
        return ()
    which = (found.st_dev, found.st_ino)
    return (*which, found.st_mtime_ns, found.st_size) if frozen else which


def _connect_read_only(path: Path) -> tuple[apsw.Connection, bool]:
    """The connection, and whether it takes the file for one that never changes."""
    try:
        return _opened(str(path.absolute())), False
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

        return _opened(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"), True


def _opened(name: str) -> apsw.Connection:
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        db.set_busy_timeout(busy_timeout())
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def _harden(db: apsw.Connection) -> None:
    # A file from elsewhere may carry a hostile schema.
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    db.pragma("trusted_schema", False)
    db.pragma("cell_size_check", True)
