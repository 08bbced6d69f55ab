"""The collection of the replicas' audits: the file ``CORPUS.audits`` beside the publisher's corpus.

It has each collected row as the replica's audit had it, hashes included. Rows are only added.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rolebundle.contracts.audit import AuditRow
from rolebundle.errors import CorpusBusy, CorpusCorrupt, RolebundleError, UsageError, WrongFile
from rolebundle.storage.audits.audit import COLUMNS, SCHEMA, file_problem, stored_values
from rolebundle.storage.files.file_format import FileFormat
from rolebundle.storage.files.sqlite_file import SqliteFile, create_file
from rolebundle.storage.files.stored_values import records
from rolebundle.storage.location import is_there

VERSION = 1
_ROW = SCHEMA[0].split("\n", 2)[2].removesuffix("\n) STRICT")
"""The columns of a row after its number, as in the table of the audit."""
COLLECTION_SCHEMA = (
    """CREATE TABLE log (
    log_id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    collected_at TEXT NOT NULL,
    state TEXT NOT NULL,
    problem TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE collected (
    log_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
{_ROW},
    PRIMARY KEY (log_id, seq)
) STRICT, WITHOUT ROWID""",
)


class StoredLog(NamedTuple):
    """A collected log. ``problem`` is an ``AuditProblem`` as JSON; empty if the state is ``ok``."""

    log_id: str
    source: str
    collected_at: str
    state: str
    problem: str


class Extent(NamedTuple):
    """How many rows of a log are collected, the number of the last, and the ends' times."""

    rows: int = 0
    last: int = 0
    first_time: str = ""
    last_time: str = ""


class Neighbour(NamedTuple):
    """The hashes of a collected row."""

    hash: str
    previous: str


# -- the file -------------------------------------------------------------------------------------


def open_collection_for_writing(path: Path) -> SqliteFile:
    """Open the collection, and create it if it is missing.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: it cannot be written.
    """

    def fill(collection: SqliteFile) -> None:
        for statement in COLLECTION_SCHEMA:
            collection.run(statement)

    if not is_there(path):
        create_file(path, COLLECTION_FORMAT, fill)
    return SqliteFile.open_for_writing(path, COLLECTION_FORMAT)


def open_collection(path: Path) -> SqliteFile:
    """Open the collection for reading.

    Raises:
        UsageError: there is none.
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: it cannot be read.
    """
    return SqliteFile.open_read_only(path, COLLECTION_FORMAT)


def open_collected_log(path: Path, log_id: str) -> SqliteFile:
    """Open the collection so that what reads the rows of an audit reads those of one log.

    Raises:
        UsageError: there is no collection.
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: it cannot be read.
    """
    collection = open_collection(path)
    # A view has no parameters.
    quoted = log_id.replace("'", "''")
    try:
        # query_only also forbids temporary views. The file itself is open for reading only.
        collection.run("PRAGMA query_only = 0")
        collection.run(
            f"CREATE TEMP VIEW entry AS SELECT {COLUMNS} FROM main.collected "
            f"WHERE log_id = '{quoted}'"
        )
        collection.run("PRAGMA query_only = 1")
    except BaseException:
        collection.close()
        raise
    return collection


def collection_problem(collection: SqliteFile) -> str:
    """What is wrong with the file's pages, indexes and schema, or an empty text."""
    return file_problem(collection, COLLECTION_SCHEMA)


def _no_collection(path: Path) -> RolebundleError:
    if is_there(path):
        return WrongFile(
            "foreign_file", f"{path}: is not a file", "move it away: this name is the collection's"
        )
    return UsageError(
        "no_collection",
        f"{path}: no audit was collected",
        "run `rolebundle policy audit collect SOURCE`",
    )


def _collection_error(path: Path, error: RolebundleError) -> RolebundleError:
    if isinstance(error, CorpusBusy):
        return CorpusBusy(
            "collection_busy",
            f"{path}: another process is collecting audits",
            "run the same command again",
        )
    if isinstance(error, CorpusCorrupt):
        return CorpusCorrupt(
            "collection_damaged",
            error.message,
            "keep this file as evidence; put a backup of it back, or move it away and collect "
            "again",
        )
    return error


COLLECTION_FORMAT = FileFormat(
    name="a collection of audits",
    application_id=0x52424143,  # ``RBAC``
    oldest=VERSION,
    newest=VERSION,
    foreign_hint="move it away: this name is the collection's",
    newer_hint="upgrade rolebundle",
    missing=_no_collection,
    translate=_collection_error,
)


# -- logs and rows --------------------------------------------------------------------------------


def logs(collection: SqliteFile) -> list[StoredLog]:
    """Every collected log, ordered by id."""
    rows = collection.rows(f"SELECT {', '.join(StoredLog._fields)} FROM log ORDER BY log_id")
    return records(StoredLog, rows)


def save_log(collection: SqliteFile, log: StoredLog) -> None:
    """Store the last source and the last state of a log. Call it inside a write transaction."""
    names = ", ".join(StoredLog._fields)
    collection.run(f"INSERT OR REPLACE INTO log ({names}) VALUES (?, ?, ?, ?, ?)", log)


def extent(collection: SqliteFile, log_id: str) -> Extent:
    """How much of a log is collected."""
    rows, first, last = collection.rows(
        "SELECT count(*), min(seq), max(seq) FROM collected WHERE log_id = ?", (log_id,)
    )[0]
    if not rows:
        return Extent()
    time = "SELECT time FROM collected WHERE log_id = ? AND seq = ?"
    times = (str(collection.value(time, (log_id, seq))) for seq in (first, last))
    return Extent(rows, last, *times)


def first_missing(collection: SqliteFile, log_id: str) -> int:
    """The number of the first row of a log that is not collected, from 1."""
    return int(
        collection.value(
            "SELECT min(seq) FROM (SELECT 1 AS seq UNION ALL "
            "SELECT seq + 1 FROM collected WHERE log_id = ?1) AS next WHERE NOT EXISTS "
            "(SELECT 1 FROM collected WHERE log_id = ?1 AND seq = next.seq)",
            (log_id,),
        )
    )


def neighbours(collection: SqliteFile, log_id: str, seq: int) -> dict[int, Neighbour]:
    """The collected rows among ``seq - 1``, ``seq`` and ``seq + 1``, by number."""
    rows = collection.rows(
        "SELECT seq, hash, previous FROM collected "
        "WHERE log_id = ?1 AND seq BETWEEN ?2 - 1 AND ?2 + 1",
        (log_id, seq),
    )
    return {number: Neighbour(*hashes) for number, *hashes in rows}


def add_row(collection: SqliteFile, log_id: str, row: AuditRow) -> None:
    """Store a row that is not collected yet. Call it inside a write transaction."""
    values = (log_id, *stored_values(row))
    places = ", ".join("?" * len(values))
    collection.run(f"INSERT INTO collected (log_id, {COLUMNS}) VALUES ({places})", values)
