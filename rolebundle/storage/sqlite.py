"""One SQLite file: how it is opened, read, written and extended, and what its errors mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import quote

import apsw

from rolebundle import errors
from rolebundle.storage import stored_values
from rolebundle.storage.file import (
    FileFormat,
    busy_timeout,
    check_identity,
    check_path,
    partial_file,
    rename_if_free,
    sync_file,
)

_CORRUPT = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)
_IO = (apsw.IOError, apsw.CantOpenError, apsw.PermissionsError, apsw.NoLFSError)

UNUSABLE = "corpus_unusable"
"""The code of an error for which SQLite gives no reason."""


def load_vectors_library(db: apsw.Connection) -> None:
    """Load sqlite-vec. Its module would import numpy's types and Python's own SQLite.

    Raises:
        EmbedderError: it is missing, or cannot be loaded.
    """
    spec = find_spec("sqlite_vec")
    try:
        if spec is None or spec.origin is None:
            raise apsw.ExtensionLoadingError("it is not installed")
        db.enable_load_extension(True)
        db.load_extension(str(Path(spec.origin).with_name("vec0")))
    except apsw.Error as error:
        problem = f"sqlite-vec, which compares vectors, cannot be loaded: {error}"
        hint = "run `pip install --force-reinstall sqlite-vec`"
        raise errors.EmbedderError("sqlite_vec_missing", problem, hint) from error
    finally:
        # While it is enabled, SQL can load any library of this machine.
        db.enable_load_extension(False)


@dataclass(slots=True)
class MappedErrors:
    """A block that raises SQLite's errors as errors of this package.

    A class, because a generator takes longer than a small statement.

    Args:
        path: the file.
        file_format: what it is.
        db: the connection, which knows the system's reason for an error.

    Raises:
        StorageError, CorpusBusy, CorpusCorrupt, Interrupted: see :func:`mapped_error`.
    """

    path: Path
    file_format: FileFormat
    db: apsw.Connection | None = None

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, apsw.Error):
            reason = 0
            with suppress(apsw.ConnectionClosedError):  # Closing failed.
                if self.db is not None and _is_kind(error, _IO):
                    reason = self.db.system_errno
            own = mapped_error(error, self.path, reason)
            raise self.file_format.own_error(self.path, own) from error
        if isinstance(error, UnicodeDecodeError):
            # Only text was stored. If something else comes back, the file was damaged.
            damage = errors.CorpusCorrupt(
                "corpus_corrupt",
                f"{self.path}: the file is damaged (a text in it is no longer UTF-8)",
                stored_values.DAMAGE_HINT,
            )
            raise self.file_format.own_error(self.path, damage) from error


def mapped_error(error: apsw.Error, path: Path, reason: int = 0) -> errors.RolebundleError:
    """Our error for an error of SQLite about the file at ``path``.

    Args:
        error: the error.
        path: the file.
        reason: the system's error number, if there is one.
    """
    # The memory that readers and writers share.
    no_shared_room = error_detail(error) == apsw.SQLITE_IOERR_SHMSIZE
    if _is_kind(error, apsw.FullError) or reason in errors.FULL_ERRNOS or no_shared_room:
        step = "free some disk space and run the same command again; what was reported done is safe"
        return errors.StorageError("storage_full", f"{path}: no room left to write ({error})", step)
    if _is_kind(error, apsw.InterruptError):
        return interrupted_error(path)
    if _is_kind(error, (apsw.BusyError, apsw.LockedError)):
        return errors.corpus_busy(path, "is writing to it")
    if _is_kind(error, apsw.NotADBError):
        problem = f"{path}: is no corpus, or its beginning is damaged ({error})"
        hint = f"check the path; if it was a corpus, {stored_values.DAMAGE_HINT}"
        return errors.CorpusCorrupt("corpus_corrupt", problem, hint)
    if _is_kind(error, _CORRUPT):
        return errors.CorpusCorrupt(
            "corpus_corrupt", f"{path}: the file is damaged ({error})", stored_values.DAMAGE_HINT
        )
    if _is_kind(error, apsw.ReadOnlyError):
        problem = f"{path}: the file or its folder is read-only"
        hint = "give yourself write permission, or choose another file with --db"
        return errors.StorageError("read_only", problem, hint)
    if _is_kind(error, _IO):
        step = "check the disk and the permissions, then run the same command again"
        return errors.StorageError("io_error", f"{path}: reading or writing failed ({error})", step)
    return errors.CorpusCorrupt(
        UNUSABLE, f"{path}: {type(error).__name__}: {error}", "run `rolebundle corpus doctor`"
    )


def interrupted_error(path: Path) -> errors.Interrupted:
    """The error of a search that was cancelled, or that is past its deadline."""
    problem = f"{path}: the search was interrupted before it was done"
    step = "ask again with a longer deadline_ms, or with lexical_only"
    return errors.Interrupted("interrupted", problem, step)


def error_detail(error: apsw.Error) -> int:
    """SQLite's extended result code, or 0."""
    return getattr(error, "extendedresult", 0)


def _is_kind(error: BaseException | None, kinds: type | tuple[type, ...]) -> bool:
    # A FullError inside a transaction can surface as "cannot rollback", with the cause as context.
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__context__
    return False


_READER_CACHE_KIB = 16_384
"""The size of a reader's cache of pages, in KiB."""

Row = tuple[Any, ...]
Binding = str | int | float | bytes | Iterable[Any] | None
"""Several values are bound as a JSON array, for :data:`IN_SET`."""
Bindings = Sequence[Binding]
SINGLE = (str, int, float, bytes, type(None))
"""The types of bindings that are a single value."""
IN_SET = "IN (SELECT value FROM json_each(?))"
"""The condition that a value is in a list that is bound."""
NO_LIMIT = 1 << 62
"""A LIMIT that bounds nothing."""

_NO_SHARED_MEMORY = (
    apsw.SQLITE_IOERR_SHMOPEN,
    apsw.SQLITE_IOERR_SHMSIZE,
    apsw.SQLITE_IOERR_SHMMAP,
    apsw.SQLITE_IOERR_SHMLOCK,
)
_WITHOUT_LOCKS = "unix-none"
"""SQLite's file system that takes no lock and needs no shared memory."""


class Closable:
    """What a ``with`` block closes at its end."""

    __slots__ = ()

    def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """The thing itself."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class SqliteFile(Closable):
    """One open SQLite file: statements, snapshots and transactions.

    Each method raises SQLite's errors as those of the file's format.
    """

    path: Path
    db: apsw.Connection
    writable: bool
    file_format: FileFormat
    stamp: tuple[int, ...] = ()
    on_close: Callable[[], None] | None = None

    @classmethod
    def open_read_only(cls, path: Path, file_format: FileFormat) -> Self:
        """Open a file for reading. It takes no write lock and works on a read-only file.

        Args:
            path: the file.
            file_format: what the file must be.

        Raises:
            UsageError: there is no file.
            WrongFile, CorpusCorrupt, CorpusBusy, StorageError: it cannot be read.
        """
        check_path(path, file_format)
        with MappedErrors(path, file_format):
            # The stamp is taken first: a change during opening is noticed the next time.
            identity, content = stamp_of(path), stamp_of(path, frozen=True)
            db, is_frozen = _connect_read_only(path)
            with closed_on_error(db):
                harden(db)
                # Temporary tables of this connection are never written to a file.
                db.pragma("temp_store", "memory")
                db.pragma("cache_size", -_READER_CACHE_KIB)  # Negative: KiB, not pages.
                db.pragma("query_only", True)
                check_identity(db, path, file_format)
        return cls(path, db, False, file_format, content if is_frozen else identity)

    @classmethod
    def open_for_writing(cls, path: Path, file_format: FileFormat, *, create: bool = False) -> Self:
        """Open a file for writing. A file of another format is not changed.

        Args:
            path: the file.
            file_format: what the file must be.
            create: also accept a missing or empty file, and leave the check of its identity to
                the caller.

        Raises:
            UsageError: there is no file.
            WrongFile, CorpusCorrupt, CorpusBusy, StorageError: it cannot be written.
        """
        if not create:
            check_path(path, file_format)
        with MappedErrors(path, file_format):
            identity = stamp_of(path)
            flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
            db = apsw.Connection(str(path), flags=flags)
            with closed_on_error(db):
                # Closing must not fold the log of a file that is of another application.
                db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                db.set_busy_timeout(busy_timeout())
                if db.readonly("main"):
                    # SQLite opens it read-only without an error, and fails at the first write.
                    raise errors.StorageError(
                        "read_only",
                        f"{path}: the file is read-only",
                        "give yourself write permission to the file and its folder, or choose "
                        "another file with --db",
                    )
                harden(db)
                if not create:
                    check_identity(db, path, file_format)
                db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        return cls(path, db, True, file_format, identity)

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """Run one statement and fetch all of its rows."""
        with self._mapped_errors():
            return self.db.execute(sql, _bound(bindings)).fetchall()

    def column(self, sql: str, bindings: Bindings = ()) -> list[Any]:
        """The only column of all rows of one statement."""
        return [value for (value,) in self.rows(sql, bindings)]

    def iterate(self, sql: str, bindings: Bindings = ()) -> Iterator[Row]:
        """Run one statement and yield its rows one by one, if they may not fit into memory."""
        with self._mapped_errors():
            yield from self.db.execute(sql, _bound(bindings))

    def value(self, sql: str, bindings: Bindings = ()) -> Any:
        """The first column of the first row, or ``None``."""
        rows = self.rows(sql, bindings)
        return rows[0][0] if rows else None

    def run(self, sql: str, bindings: Bindings = ()) -> None:
        """Run one statement for its effect."""
        with self._mapped_errors():
            self.db.execute(sql, _bound(bindings))

    def run_many(self, sql: str, bindings: Iterable[Bindings]) -> None:
        """Run one statement for each set of bindings."""
        with self._mapped_errors():
            self.db.executemany(sql, bindings)

    def select(
        self,
        kind: type[stored_values.R],
        source: str,
        bindings: Bindings = (),
        columns: Mapping[str, str] = MappingProxyType({}),
    ) -> list[stored_values.R]:
        """Rows as values of a NamedTuple; see :func:`rows_as`.

        Args:
            kind: its fields name the columns.
            source: what follows FROM.
            bindings: of ``source``.
            columns: SQL of those columns that are not named like the field.
        """
        return stored_values.rows_as(
            kind, self.rows(stored_values.selection(kind, source, columns), bindings)
        )

    def put(self, table: str, record: tuple[Any, ...], **more: Binding) -> None:
        """Insert a NamedTuple, or replace the row with its key.

        Args:
            table: has columns that are named like its fields.
            record: the NamedTuple.
            more: values of further columns.
        """
        fields = (name.rpartition(".")[2] for name in stored_values.fields_of(type(record)))
        target = f"{table} ({', '.join((*fields, *more))})"
        self.insert(target, [(*stored_values.values_of(record), *more.values())], "REPLACE")

    def insert(self, target: str, rows: Sequence[Row], verb: str = "INSERT") -> None:
        """Insert rows into ``target``: a table and, if they are not all, its columns."""
        self._insert(f"{verb} INTO {target}", rows)

    def _insert(self, into: str, rows: Sequence[Row], conflict: str = "") -> None:
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self.run_many(f"{into} VALUES ({places}){conflict}", rows)

    def last_rowid(self) -> int:
        """The rowid of the last insert."""
        return self.db.last_insert_rowid()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One write transaction: all of it is committed, or nothing.

        ``BEGIN IMMEDIATE``, because the busy timeout is not honoured when a read transaction
        upgrades to a write.
        """
        with self._mapped_errors():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                # A full disk rolls back by itself; a second rollback would hide the cause.
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One consistent snapshot for several statements. Inside another block: the same one."""
        if self._is_inside():
            yield
            return
        with self._mapped_errors():
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                if self._is_inside():
                    self.db.execute("ROLLBACK")

    def _is_inside(self) -> bool:
        return self.db.in_transaction

    def _mapped_errors(self) -> MappedErrors:
        return MappedErrors(self.path, self.file_format, self.db)

    def is_current(self) -> bool:
        """Whether the path still names the file that is open here.

        SQLite notices what others write into a file, but not that another file took its place.
        """
        return self.stamp == stamp_of(self.path, frozen=len(self.stamp) > 2)

    def copy_to(self, copy: Path, name: Path) -> None:
        """Copy the present content into an empty file, ``name`` in messages, and sync it.

        Raises:
            OSError: it could not be synced.
            StorageError, CorpusCorrupt, CorpusBusy, UsageError: it could not be copied.
        """
        query_only = self.value("PRAGMA query_only")
        self.run("PRAGMA query_only = 0")
        try:
            self.db.execute("VACUUM INTO ?", (str(copy),))
        except apsw.Error as error:
            # Of the two files only the copy is written.
            at_fault = self.path if isinstance(error, apsw.CorruptError) else name
            raise self.file_format.own_error(at_fault, mapped_error(error, at_fault)) from error
        finally:
            self.run(f"PRAGMA query_only = {int(query_only)}")
        sync_file(copy)

    def close(self) -> None:
        """Close the file. The last writer to close folds the write-ahead log into the file."""
        try:
            with self._mapped_errors():
                self.db.close()
        finally:
            if self.on_close is not None:
                self.on_close()


def _bound(bindings: Bindings) -> tuple[Any, ...]:
    return tuple(value if isinstance(value, SINGLE) else json.dumps([*value]) for value in bindings)


# -- before and while a file is opened ---------------------------------------------------------


def is_missing_or_empty(path: Path) -> bool:
    """Whether a new file may be created here."""
    # A process that was killed in its first moment leaves an empty file. It is filled.
    try:
        return not path.exists() or (path.is_file() and path.stat().st_size == 0)
    except PermissionError:
        return False  # Opening it reports which permission is missing.


def create_file(path: Path, file_format: FileFormat, fill: Callable[[SqliteFile], None]) -> bool:
    """Create a file that only its owner can read, complete with its first content.

    It gets its name when it is complete and on the disk. So a file with this name that is not
    whole was damaged later.

    Args:
        path: the file.
        file_format: what it will be; its newest version.
        fill: creates the tables and writes the first rows, inside the first transaction.

    Returns:
        False if something already has this name; it is not changed.

    Raises:
        StorageError: it cannot be created here.
    """
    with (
        errors.storage_errors(
            "cannot_create",
            f"{path}: the file cannot be created",
            "give yourself write permission in the corpus's folder",
        ),
        partial_file(path) as partial,
    ):
        with (
            MappedErrors(path, file_format),
            SqliteFile(path, apsw.Connection(str(partial)), True, file_format) as file,
        ):
            file.db.pragma("synchronous", "extra")
            with file.writing():
                file.db.pragma("application_id", file_format.application_id)
                file.db.pragma("user_version", file_format.newest)
                fill(file)
            file.db.pragma("journal_mode", "wal")
        return rename_if_free(partial, path)


def sqlite_version() -> str:
    """The version of the SQLite library."""
    return str(apsw.sqlite_lib_version())


def page_problem(file: SqliteFile) -> str:
    """What SQLite's own check finds wrong with the file, or an empty text."""
    result = str(file.value("PRAGMA integrity_check(1)"))
    return "" if result == "ok" else result


def stamp_of(path: Path, *, frozen: bool = False) -> tuple[int, ...]:
    """What distinguishes the file at a path from another one that takes its place.

    Args:
        path: the file.
        frozen: also sizes and times of change of the file and its log, for a connection that was
            opened without locks and so would not notice a change.
    """
    try:
        status = path.stat()
    except OSError:
        return ()
    identity = (status.st_dev, status.st_ino)
    if not frozen:
        return identity
    log = (0, 0)
    with suppress(OSError):
        log_status = _log_of(path).stat()
        log = (log_status.st_mtime_ns, log_status.st_size)
    return (*identity, status.st_mtime_ns, status.st_size, *log)


def _log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def _connect_read_only(path: Path) -> tuple[apsw.Connection, bool]:
    """The connection, and whether it assumes that the file never changes."""
    try:
        return _connect(str(path.absolute())), False
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
        # A file in WAL mode needs a shared-memory file beside it, which a read-only folder or a
        # full disk does not allow. Whoever writes has one, so nobody writes.
        if isinstance(error, apsw.IOError) and error_detail(error) not in _NO_SHARED_MEMORY:
            raise
        # From here on a connection that takes no lock and creates no file.
        name, log = f"file:{quote(str(path.absolute()))}?mode=ro", _log_of(path)
        if not log.exists() or log.stat().st_size == 0:
            # Without a log the file alone is complete.
            return _connect(f"{name}&immutable=1"), True
        # The index of the log is then in this process's memory.
        return _connect(f"{name}&vfs={_WITHOUT_LOCKS}", exclusive=True), True


def _connect(name: str, *, exclusive: bool = False) -> apsw.Connection:
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    with closed_on_error(db):
        if exclusive:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.pragma("locking_mode", "exclusive")
        db.set_busy_timeout(busy_timeout())
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return db


@contextmanager
def closed_on_error(file: apsw.Connection | SqliteFile) -> Iterator[None]:
    """A block that sets a file up. If it fails, the file is closed."""
    try:
        yield
    except BaseException:
        file.close()
        raise


def harden(db: apsw.Connection) -> None:
    """Let a hostile schema in the file do nothing: no triggers, no views, no unsafe functions."""
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    db.pragma("trusted_schema", False)
    db.pragma("cell_size_check", True)
