"""A connection to a corpus in PostgreSQL: the same statements as for a file.

The storage modules write SQL that both understand; :func:`translated` changes the few words that
differ. Writers wait for each other, as those of a file do: each locks the row of
``schema_version``. A reader's snapshot is a transaction ``REPEATABLE READ, READ ONLY``.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from json import dumps, loads
from math import inf
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, ClassVar
from uuid import uuid4

import psycopg
from psycopg import errors
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from rolebundle.errors import (
    CorpusBusy,
    CorpusCorrupt,
    RolebundleError,
    StorageError,
    corpus_busy,
    with_detail,
)
from rolebundle.resources import data_file
from rolebundle.storage import seal
from rolebundle.storage.address import in_database_error
from rolebundle.storage.corpus import RESTRICTING_VIEWS, Corpus, LexicalIndex, VectorSearch
from rolebundle.storage.file import busy_timeout
from rolebundle.storage.postgres import indexes
from rolebundle.storage.sqlite import SINGLE, Bindings, Row, interrupted_error, stamp_of

_INSIDE = (TransactionStatus.INTRANS, TransactionStatus.ACTIVE, TransactionStatus.INERROR)

SCHEMA = "rolebundle"
VISIBLE = "rolebundle_visible"
"""The schema of the views of a restricted connection."""
_SNAPSHOT_SECONDS, _PAUSE_SECONDS = 2.0, 0.05
"""How long a purge waits for the snapshots of others to end."""
_BATCH = 1_000
_MAX_KNOWN, _MAX_SIZE = 500, 64 * 1024
"""Limits of the cache of results: statements, and bytes of one result."""
_KEYS = data_file(seal.__file__, "tables.toml")["keys"]
"""The tables of which rows are replaced, and the columns that find the row."""

_REWRITTEN = (
    (re.compile(r"\bmain\."), f"{SCHEMA}."),
    (re.compile(r"\bCROSS (JOIN \S+(?: (?!ON\b)\w+)? ON\b)"), r"\1"),
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\bjson_object\("), "json_build_object("),
    (re.compile("%"), "%%"),
)
_PLACE = re.compile(r"(IN \(SELECT value FROM json_each\()?\?(\d*)(?(1)\)\))")


@lru_cache(maxsize=1024)
def translated(sql: str) -> tuple[str, tuple[tuple[int, bool], ...]]:
    """A statement for PostgreSQL, and of each of its places the binding and whether it is a list.

    Bindings are counted from 0. A list that is no list of a condition is bound as JSON.
    """
    for pattern, replacement in _REWRITTEN:
        sql = pattern.sub(replacement, sql)
    places: list[tuple[int, bool]] = []

    def place(match: re.Match[str]) -> str:
        number = int(match[2]) - 1 if match[2] else len(places)
        places.append((number, match[1] is not None))
        return "= ANY(%s)" if match[1] else "%s"

    sql = _PLACE.sub(place, sql)
    return sql if places else sql.replace("%%", "%"), tuple(places)


def _value(value: Any) -> Any:
    """A value that PostgreSQL stores as SQLite does. Its texts have no NUL, nor have our files."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    if not isinstance(value, SINGLE):
        return [_value(item) for item in value]
    return int(value) if isinstance(value, bool) else value


def _values(bindings: Sequence[Any], places: Sequence[tuple[int, bool]]) -> list[Any] | None:
    """The bindings of the places of a statement; ``None`` if it has none."""
    values = []
    for number, is_list in places:
        value = _value(bindings[number])
        if is_list and isinstance(value, str):
            value = loads(value)
        values.append(dumps(value) if isinstance(value, list) and not is_list else value)
    return values or None


def _size(rows: Sequence[Row]) -> int:
    """About how many bytes rows take."""
    values = (value for row in rows for value in row)
    return sum(len(value) if isinstance(value, (str, bytes)) else 8 for value in values)


@dataclass(slots=True)
class PostgresCorpus(Corpus):
    """One connection to a corpus in PostgreSQL. ``path`` is the link on this machine."""

    lexical: ClassVar[LexicalIndex] = indexes
    vectors: ClassVar[VectorSearch] = indexes
    min_vectors_in_memory: ClassVar[int] = 1
    is_shared: ClassVar[bool] = True
    connection: psycopg.Connection[Row] = field(kw_only=True)
    _writes: int = -1
    """How many transactions had written when the last snapshot began."""
    _known: OrderedDict[Hashable, list[Row]] = field(default_factory=OrderedDict)
    """Results since then, by statement. Each saves a round trip."""
    _large: list[Hashable] = field(default_factory=list)
    """Those of this snapshot that are too large to be kept."""
    _pending: dict[Hashable, tuple[str, Bindings]] = field(default_factory=dict)
    """Statements that are sent with the next one."""
    _ending: ExitStack | None = None
    """The pipeline in which the end of a snapshot was sent, as long as nobody read its result."""

    # -- statements --------------------------------------------------------------------------------

    def _execute(self, sql: str, bindings: Bindings) -> psycopg.Cursor[Row]:
        if self._is_stopped or self._end < inf:
            self.raise_if_interrupted()
        self._finish_ending()
        statement, places = translated(sql)
        return self.connection.execute(statement.encode(), _values(bindings, places), binary=True)

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """See :meth:`SqliteFile.rows`. In a snapshot, the same statement is run once."""
        if not self.snapshot:
            with self._mapped_errors():
                return self._execute(sql, bindings).fetchall()
        key = self._key(sql, bindings)
        if key not in self._known:
            self._pending[key] = (sql, bindings)
            self._send_pending()
        self._known.move_to_end(key)
        return [*self._known[key]]

    def _key(self, sql: str, bindings: Bindings) -> Hashable:
        return sql, repr(bindings), repr(self.allowed[1:])

    def prefetch(self, sql: str, bindings: Bindings) -> None:
        """See :meth:`Corpus.prefetch`."""
        key = self._key(sql, bindings)
        if self.snapshot and key not in self._known:
            self._pending[key] = (sql, bindings)

    def _send_pending(self) -> None:
        """Run the pending statements in one round trip."""
        pending, self._pending = self._pending, {}
        is_one = len(pending) < 2
        with self._mapped_errors(), nullcontext() if is_one else self.connection.pipeline():
            sent = {key: self._execute(*statement) for key, statement in pending.items()}
        for key, cursor in sent.items():
            rows = cursor.fetchall()
            self._known[key] = rows
            if _size(rows) > _MAX_SIZE:
                self._large.append(key)

    def iterate(self, sql: str, bindings: Bindings = ()) -> Iterator[Row]:
        """See :meth:`SqliteFile.iterate`."""
        if not self._is_inside():
            yield from self.rows(sql, bindings)
            return
        self._send_pending()
        statement, places = translated(sql)
        values = _values(bindings, places)
        with (
            self._mapped_errors(),
            self.connection.cursor(name=f"rows_{uuid4().hex}", binary=True) as cursor,
        ):
            cursor.itersize = _BATCH
            yield from cursor.execute(statement.encode(), values)

    def run(self, sql: str, bindings: Bindings = ()) -> None:
        """See :meth:`SqliteFile.run`."""
        with self._mapped_errors():
            self._execute(sql, bindings)

    def run_many(self, sql: str, bindings: Iterable[Bindings]) -> None:
        """See :meth:`SqliteFile.run_many`."""
        statement, places = translated(sql)
        values = [_values(row, places) or [] for row in bindings]
        with self._mapped_errors(), self.connection.cursor() as cursor:
            cursor.executemany(statement.encode(), values)

    def insert(self, target: str, rows: Sequence[Row], verb: str = "INSERT") -> None:
        """See :meth:`SqliteFile.insert`."""
        table, _, columns = target.partition(" (")
        into = f"INSERT INTO {target}"
        if verb == "REPLACE":
            names = columns.rstrip(")").split(", ") if columns else self.column_names(table)
            changed = ", ".join(f"{name} = excluded.{name}" for name in names)
            self._insert(into, rows, f" ON CONFLICT ({_KEYS[table]}) DO UPDATE SET {changed}")
        elif table == "embedded":
            self._insert(into, [(*row[:-1], indexes.Vector(row[-1])) for row in rows])
        elif rows:
            with (
                self._mapped_errors(),
                self.connection.cursor() as cursor,
                cursor.copy(f"COPY {target} FROM STDIN".encode()) as copy,
            ):
                for row in rows:
                    copy.write_row([_value(value) for value in row])

    def standby_seconds(self) -> float | None:
        """See :meth:`Corpus.standby_seconds`."""
        if self.connection.info.parameter_status("in_hot_standby") != "on":
            return None
        age = "SELECT extract(epoch FROM now() - pg_last_xact_replay_timestamp())::float"
        with self._mapped_errors():
            row = self._execute(age, ()).fetchone()
        # NULL if the standby has replayed no transaction since its start.
        return round(float(row[0]), 3) if row and row[0] is not None else 0.0

    def column_names(self, table: str) -> list[str]:
        """See :meth:`Corpus.columns`."""
        return self.column(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = CAST(? AS regclass) "
            "AND attnum > 0 ORDER BY attnum",
            (f"{SCHEMA}.{table}",),
        )

    def last_rowid(self) -> int:
        """See :meth:`SqliteFile.last_rowid`."""
        return int(self.value("SELECT lastval()"))

    @property
    def is_closed(self) -> bool:
        """See :attr:`Corpus.is_closed`."""
        return self.connection.closed

    def size_in_bytes(self) -> int:
        """See :meth:`Corpus.size_in_bytes`."""
        sizes = "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' "
        return int(self.value(sizes + "AND relnamespace = CAST(? AS regnamespace)", (SCHEMA,)))

    # -- transactions ------------------------------------------------------------------------------

    def _is_inside(self) -> bool:
        # Not of a connection that was lost.
        return self._ending is None and self.connection.info.transaction_status in _INSIDE

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See :meth:`Corpus.reading`."""
        if self._is_inside():
            yield
            return
        self._snapshots += 1
        self.allowed = (0, [], 0)
        self._pending.clear()
        with self._mapped_errors():
            try:
                with self._pipeline():
                    self.connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    writes = f"SELECT writes FROM {SCHEMA}.schema_version"
                    begun = self.connection.execute(writes.encode())
                row = begun.fetchone()
                if row is None or row[0] != self._writes:
                    self._known.clear()
                    self._writes = row[0] if row else -1
                yield
            finally:
                self._forget()
                if self._is_inside():
                    if not self.writable:
                        self._ending = self._pipeline()
                    self.connection.execute(b"ROLLBACK")

    def _pipeline(self) -> ExitStack:
        """A block whose statements take one round trip, with the end of the last snapshot."""
        ending, self._ending = self._ending, None
        if ending is None:
            ending = ExitStack()
            ending.enter_context(self.connection.pipeline())
        return ending

    def _forget(self) -> None:
        """Forget large results, and those of long ago."""
        for key in self._large:
            self._known.pop(key, None)
        self._large.clear()
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)

    def _finish_ending(self) -> None:
        if self._ending is not None:
            self._pipeline().close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """See :meth:`Corpus.writing`. The database has checksums: nothing is sealed."""
        if self._is_inside():
            yield
            return
        with self._mapped_errors():
            self.connection.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED")
            try:
                # This row is the lock between writers.
                self.connection.execute(
                    f"SET LOCAL lock_timeout = {max(1, busy_timeout())}; "
                    f"UPDATE {SCHEMA}.schema_version SET writes = writes + 1".encode()
                )
                yield
                if self.before_commit is not None:
                    self.before_commit(self)
                # After a statement that failed, COMMIT undoes all.
                if self.connection.execute(b"COMMIT").statusmessage != "COMMIT":
                    problem = f"{self.path}: a statement failed, so nothing was written"
                    step = "run the same command again"
                    raise StorageError("not_committed", problem, step)
            finally:
                if self._is_inside():
                    self.connection.execute(b"ROLLBACK")

    def renumber(self) -> None:
        """See :meth:`Corpus.renumber`."""
        numbered = (
            "SELECT table_name::text, column_name::text FROM information_schema.columns "
            "WHERE table_schema = ? AND is_identity = 'YES'"
        )
        for table, column in self.rows(numbered, (SCHEMA,)):
            last = f"(SELECT coalesce(max({column}), 0) + 1 FROM {table})"
            setting = f"SELECT setval(pg_get_serial_sequence(?, ?), {last}, false)"
            self.rows(setting, (f"{SCHEMA}.{table}", column))

    def rewrite(self) -> bool:
        """See :meth:`Corpus.rewrite`: each table and its indexes get new files."""
        tables = self.column(
            "SELECT relname::text FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = CAST(? AS regnamespace) ORDER BY relname",
            (SCHEMA,),
        )
        deadline = perf_counter() + _SNAPSHOT_SECONDS
        while tables := [table for table in tables if self._keeps_rows(table)]:
            if perf_counter() > deadline:
                return False
            sleep(_PAUSE_SECONDS)  # An answer may just end.
        return True

    def _keeps_rows(self, table: str) -> bool:
        """Write a table anew. Return whether deleted rows stay, because a snapshot has them."""
        kept: list[int] = []

        def count(notice: Diagnostic) -> None:
            # "N dead row versions cannot be removed yet.", in the language of the server.
            if found := re.match(r"\d+", notice.message_detail or ""):
                kept.append(int(found[0]))

        self.connection.add_notice_handler(count)
        try:
            with self._mapped_errors():
                self.connection.execute(f"SET lock_timeout = {max(1, busy_timeout())}".encode())
                self.connection.execute(f"VACUUM (FULL, VERBOSE) {SCHEMA}.{table}".encode())
                self.connection.execute(b"RESET lock_timeout")
        finally:
            self.connection.remove_notice_handler(count)
        return any(kept)

    def empty_log(self) -> bool:
        """True: the log of a server is its operator's; see docs/team.md."""
        return True

    # -- interruption ------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """See :meth:`Corpus.interrupt`."""
        self._is_stopped = True
        self.connection.cancel_safe()

    @contextmanager
    def interruptible(self, seconds: float | None = None) -> Iterator[None]:
        """See :meth:`Corpus.interruptible`: the server ends a statement that takes too long."""
        self._is_stopped = False
        self._end = perf_counter() + (inf if seconds is None else seconds)
        try:
            if seconds is not None:
                self._set("statement_timeout", str(max(1, int(seconds * 1000))))
            yield
            self.raise_if_interrupted()
        finally:
            self._is_stopped, self._end = False, inf
            if seconds is not None:
                self._set("statement_timeout", "0")

    def _set(self, name: str, value: str) -> None:
        """Set a parameter of the server for the rest of the snapshot, with the next statement."""
        self._pending[name] = ("SELECT set_config(?, ?, true)", (name, value))

    # -- restriction -------------------------------------------------------------------------------

    def enable_restriction(self) -> None:
        """See :meth:`Corpus.enable_restriction`."""
        views = re.findall(r"CREATE TEMP VIEW (\w+)", "\n".join(RESTRICTING_VIEWS))
        present = "SELECT count(*) FROM pg_views WHERE schemaname = ? AND viewname IN "
        present += "(SELECT value FROM json_each(?))"
        if self.value(present, (VISIBLE, views)) != len(views):
            # Without a view, its name would mean the whole table.
            raise CorpusCorrupt(
                "views_missing",
                f"{self.path}: the schema {VISIBLE} is not complete, so no agent gets an answer",
                "restore the whole database, not one of its schemas",
            )
        path = self.value("SELECT current_setting('search_path')")
        self.run(f"SET search_path = {VISIBLE}, {path}")
        self.is_restricted = True

    def restrict_to_compartments(self, compartments: Iterable[int], *, generation: int = 0) -> None:
        """See :meth:`Corpus.restrict_to_compartments`."""
        self._check_restriction(sorted(compartments), generation)
        allowed = ",".join(map(str, self.allowed[1]))
        self._set(f"{SCHEMA}.allowed", f"{{{allowed}}}")
        self._set(f"{SCHEMA}.generation", str(generation))

    def load_vector_functions(self) -> None:
        """Make sqlite-vec's functions available, which measure what pgvector finds."""
        indexes.measuring()

    def copy_to(self, copy: Path, name: Path) -> None:
        """See :meth:`SqliteFile.copy_to`."""
        raise in_database_error(self.path)

    def _mapped_errors(self) -> Any:
        return mapped_errors(self.path)

    def is_current(self) -> bool:
        """Whether the connection is open, and the link the same."""
        return not self.connection.closed and self.stamp == stamp_of(self.path, frozen=True)

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error):
            self._finish_ending()
        self.connection.close()


@contextmanager
def mapped_errors(path: Path) -> Iterator[None]:
    """A block that raises the errors of PostgreSQL as those of this package."""
    try:
        yield
    except psycopg.Error as error:
        raise mapped_error(error, path) from error


def mapped_error(error: psycopg.Error, path: Path) -> RolebundleError:
    """Our error for one of PostgreSQL about the corpus of a link."""
    if isinstance(error, errors.QueryCanceled):
        return interrupted_error(path)
    if isinstance(
        error, (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)
    ):
        return corpus_busy(path, "is writing to the database")
    if isinstance(error, errors.DiskFull):
        return StorageError(
            "storage_full",
            f"{path}: the database has no room left",
            "free some space there and run the same command again; what was reported done is safe",
        )
    if isinstance(error, errors.FeatureNotSupported):
        problem = with_detail(f"{path}: the server lacks something that a corpus needs", error)
        step = "install pgvector on the server"
        return StorageError("pgvector_missing", problem, step)
    if isinstance(error, (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)):
        problem = with_detail(f"{path}: the database does not allow it", error)
        step = "connect as a user that may, and to the primary server"
        return StorageError("read_only", problem, step)
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        problem = with_detail(f"{path}: the database cannot be reached", error)
        step = "ask again; see whether the server runs, and whether the password is in ~/.pgpass"
        return CorpusBusy("database_unreachable", problem, step)
    problem = with_detail(f"{path}: {type(error).__name__}", error)
    step = "run `rolebundle corpus doctor`"
    return CorpusCorrupt("corpus_unusable", problem, step)
