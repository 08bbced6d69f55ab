"""Opens the SQLite files of this package, and runs their statements.

The corpus and the audit are such files. Each kind has a `FileFormat`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import quote

import apsw

from rolebundle.errors import ConfigurationError, StorageError
from rolebundle.storage.files.file_format import FileFormat, check_identity, check_path
from rolebundle.storage.files.partial import partial_file, rename_if_free
from rolebundle.storage.files.sqlite_errors import MappedErrors, error_detail
from rolebundle.storage.files.stored_values import R, columns_of, records, values_of

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for a lock, unless the environment variable sets another time."""
BUSY_TIMEOUT_ENVIRONMENT = "ROLEBUNDLE_BUSY_TIMEOUT_MS"

_READER_CACHE_KIB = 16_384
"""Pages that a reader caches: an OR query reads the same ones several times."""

Row = tuple[Any, ...]
Binding = str | int | float | bytes | list[Any] | None
"""A list is bound as a JSON array, for ``IN (SELECT value FROM json_each(?))``."""

_NO_SHARED_MEMORY = (
    apsw.SQLITE_IOERR_SHMOPEN,
    apsw.SQLITE_IOERR_SHMSIZE,
    apsw.SQLITE_IOERR_SHMMAP,
    apsw.SQLITE_IOERR_SHMLOCK,
)
_WITHOUT_LOCKS = "unix-none"
"""SQLite's file system that takes no lock and needs no shared memory."""


@dataclass(slots=True)
class SqliteFile:
    """One open SQLite file. All SQL of the project runs through these methods.

    Each method raises SQLite's errors as those of the file's format.
    """

    path: Path
    db: apsw.Connection
    writable: bool
    file_format: FileFormat
    stamp: tuple[int, ...] = ()
    on_close: Callable[[], None] | None = field(default=None, kw_only=True)

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
            try:
                harden(db)
                # Temporary tables of this connection are never written to a file.
                db.pragma("temp_store", "memory")
                db.pragma("cache_size", -_READER_CACHE_KIB)  # Negative: KiB, not pages.
                db.pragma("query_only", True)
                check_identity(db, path, file_format)
            except BaseException:
                db.close()
                raise
        return cls(path, db, False, file_format, content if is_frozen else identity)

    @classmethod
    def open_for_writing(
        cls,
        path: Path,
        file_format: FileFormat,
        *,
        wait: int | Callable[[int], bool] | None = None,
        create: bool = False,
    ) -> Self:
        """Open a file for writing. A file of another format is not changed.

        Args:
            path: the file.
            file_format: what the file must be.
            wait: milliseconds to wait for a lock, or a busy handler; ``None`` means the usual time.
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
            try:
                # Closing must not fold the log of a file that is of another application.
                db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                if callable(wait):
                    db.set_busy_handler(wait)
                else:
                    db.set_busy_timeout(busy_timeout() if wait is None else wait)
                if db.readonly("main"):
                    # SQLite opens it read-only without an error, and fails at the first write.
                    raise StorageError(
                        "read_only",
                        f"{path}: the file is read-only",
                        "give yourself write permission to the file and its folder, or choose "
                        "another file with --db",
                    )
                harden(db)
                if not create:
                    check_identity(db, path, file_format)
                db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            except BaseException:
                db.close()
                raise
        return cls(path, db, True, file_format, identity)

    def rows(self, sql: str, bindings: Sequence[Binding] = ()) -> list[Row]:
        """Run one statement and fetch all of its rows."""
        with self._mapped_errors():
            return self.db.execute(sql, _bound(bindings)).fetchall()

    def column(self, sql: str, bindings: Sequence[Binding] = ()) -> list[Any]:
        """The only column of all rows of one statement."""
        return [value for (value,) in self.rows(sql, bindings)]

    def iterate(self, sql: str, bindings: Sequence[Binding] = ()) -> Iterator[Row]:
        """Run one statement and yield its rows one by one, if they may not fit into memory."""
        with self._mapped_errors():
            yield from self.db.execute(sql, _bound(bindings))

    def value(self, sql: str, bindings: Sequence[Binding] = ()) -> Any:
        """The first column of the first row, or ``None``."""
        with self._mapped_errors():
            return self.db.execute(sql, _bound(bindings)).get

    def run(self, sql: str, bindings: Sequence[Binding] = ()) -> None:
        """Run one statement for its effect."""
        with self._mapped_errors():
            self.db.execute(sql, _bound(bindings))

    def run_many(self, sql: str, bindings: Iterable[Sequence[Binding]]) -> None:
        """Run one statement for each set of bindings."""
        with self._mapped_errors():
            self.db.executemany(sql, bindings)

    def select(
        self,
        kind: type[R],
        source: str,
        bindings: Sequence[Binding] = (),
        columns: Mapping[str, str] = MappingProxyType({}),
    ) -> list[R]:
        """Rows as values of a NamedTuple; see :func:`records`.

        Args:
            kind: its fields name the columns.
            source: what follows FROM.
            bindings: of ``source``.
            columns: SQL of those columns that are not named like the field.
        """
        fields = ((name, name.rpartition(".")[2]) for name in columns_of(kind))
        names = (columns.get(name) or columns.get(field, field) for name, field in fields)
        return records(kind, self.rows(f"SELECT {', '.join(names)} FROM {source}", bindings))

    def put(self, table: str, record: tuple[Any, ...], **more: Binding) -> None:
        """Insert a NamedTuple, or replace the row with its key.

        Args:
            table: has columns that are named like its fields.
            record: the NamedTuple.
            more: values of further columns.
        """
        fields = (name.rpartition(".")[2] for name in columns_of(type(record)))
        target = f"{table} ({', '.join((*fields, *more))})"
        self.insert(target, [(*values_of(record), *more.values())], "REPLACE")

    def insert(self, target: str, rows: Sequence[Row], verb: str = "INSERT") -> None:
        """Insert rows into ``target``: a table and, if they are not all, its columns."""
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self.run_many(f"{verb} INTO {target} VALUES ({places})", rows)

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

    def close(self) -> None:
        """Close the file. The last writer to close folds the write-ahead log into the file."""
        try:
            with self._mapped_errors():
                self.db.close()
        finally:
            if self.on_close is not None:
                self.on_close()

    def __enter__(self) -> Self:
        """The file itself, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound(bindings: Sequence[Binding]) -> tuple[Any, ...]:
    if list not in map(type, bindings):
        return tuple(bindings)
    return tuple(json.dumps(value) if type(value) is list else value for value in bindings)


# -- before and while a file is opened ---------------------------------------------------------


def busy_timeout() -> int:
    """Milliseconds to wait for another process's lock.

    Raises:
        ConfigurationError: the environment variable is not a number of milliseconds.
    """
    text = os.environ.get(BUSY_TIMEOUT_ENVIRONMENT)
    if not text:
        return BUSY_TIMEOUT_MS
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ConfigurationError(
            "bad_busy_timeout",
            f"{BUSY_TIMEOUT_ENVIRONMENT}={text[:40]!r} is not a number of milliseconds",
            f"set it to a whole number such as {BUSY_TIMEOUT_MS}, or unset it",
        )
    return int(text)


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
    try:
        with partial_file(path) as partial:
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
    except OSError as error:
        raise StorageError(
            "cannot_create",
            f"{path}: the file cannot be created ({error.strerror})",
            "give yourself write permission in the corpus's folder",
        ) from error


def sqlite_version() -> str:
    """The version of the SQLite library."""
    return str(apsw.sqlite_lib_version())


def stamp_of(path: Path, *, frozen: bool = False) -> tuple[int, ...]:
    """What distinguishes the file at a path from another one that takes its place.

    Args:
        path: the file.
        frozen: include sizes and times of change of the file and its log. A connection that
            assumes that nobody writes does not notice a change by itself.
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
        return _connect_frozen(path), True


def _connect_frozen(path: Path) -> apsw.Connection:
    """A connection that takes no lock and creates no file, for a file that nobody writes."""
    name = f"file:{quote(str(path.absolute()))}?mode=ro"
    log = _log_of(path)
    if not log.exists() or log.stat().st_size == 0:
        # Without a log the file alone is complete.
        return _connect(f"{name}&immutable=1")
    if _WITHOUT_LOCKS not in apsw.vfs_names():
        raise StorageError(
            "log_unreadable",
            f"{path}: has an unmerged log beside it, and no shared memory for reading it",
            "make room, or open it once where the folder can be written, for example with "
            "`rolebundle status`",
        )
    # The index of the log is then in this process's memory.
    return _connect(f"{name}&vfs={_WITHOUT_LOCKS}", exclusive=True)


def _connect(name: str, *, exclusive: bool = False) -> apsw.Connection:
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        if exclusive:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.pragma("locking_mode", "exclusive")
        db.set_busy_timeout(busy_timeout())
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def harden(db: apsw.Connection) -> None:
    """Let a hostile schema in the file do nothing: no triggers, no views, no unsafe functions."""
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    db.pragma("trusted_schema", False)
    db.pragma("cell_size_check", True)
