"""The audit's file beside the corpus: a chain of rows (docs/decisions/0009).

Each row has the hash of the row before it. The table ``head`` has the end of the chain and
the settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from rolebundle.contracts.base import writable
from rolebundle.contracts.policy import AuditEntry, AuditRow, AuditSettings
from rolebundle.errors import CorpusBusy, CorpusCorrupt, RolebundleError, UsageError, WrongFile
from rolebundle.resources import data_folder
from rolebundle.storage.file import FileFormat, is_there
from rolebundle.storage.sqlite import SqliteFile, closed_on_error, create_file, page_problem
from rolebundle.storage.stored_values import typed

VERSION = 1
"""Of the file and of how rows are hashed."""
MAX_CHARACTERS = 4_000
"""Of each text of a row. A longer text is cut and marked: a query may have a million characters."""
PAGE_ROWS = 500

COLUMNS = ", ".join(AuditRow.model_fields)
_TYPES = (int, *([str] * 7), int, *([str] * 4))


@cache
def _schema() -> list[str]:
    """What creates the tables, statement by statement, as SQLite stores it."""
    return (data_folder("migrations") / "audit.sql").read_text(encoding="utf-8").split(";\n")[:-1]


# -- the file -------------------------------------------------------------------------------------


def create_audit(path: Path, settings: AuditSettings, details: dict[str, Any]) -> bool:
    """Create the audit's file with its head and first row, which records the settings.

    Returns:
        False if something already has this name; it is not changed.

    Raises:
        StorageError: it cannot be created here.
    """

    def fill(log: SqliteFile) -> None:
        for statement in _schema():
            log.run(statement)
        log_id = uuid4().hex
        values = (log_id, genesis_hash(log_id), settings.mode, settings.query)
        log.run("INSERT INTO head VALUES (1, ?, 0, ?, ?, ?)", values)
        configure(log, settings, details)

    return create_file(path, AUDIT_FORMAT, fill)


def open_audit_writer(path: Path) -> SqliteFile:
    """Open the audit for appending. A file that is not an audit is not changed.

    Raises:
        UsageError: there is none.
        WrongFile, CorpusCorrupt, StorageError: it cannot be appended to.
    """
    log = SqliteFile.open_for_writing(path, AUDIT_FORMAT)
    with closed_on_error(log):
        log.run("PRAGMA journal_mode = wal")
        # FULL: a row that was acknowledged survives a power loss.
        log.run("PRAGMA synchronous = full")
    return log


def open_audit_reader(path: Path) -> SqliteFile:
    """Open the audit for reading. It takes no lock that a writer would wait for.

    Raises:
        UsageError: there is none.
        WrongFile, CorpusCorrupt, StorageError: it cannot be read.
    """
    return SqliteFile.open_read_only(path, AUDIT_FORMAT)


def tampered(path: Path, problem: str) -> CorpusCorrupt:
    """The error for an audit that differs from what was written."""
    return CorpusCorrupt(
        "audit_tampered",
        f"{path}: the audit is not what was written: {problem}",
        "keep this file as evidence, compare it with a backup, and begin a new audit: move it away "
        "and run `rolebundle policy audit set`",
    )


def _audit_error(path: Path, error: RolebundleError) -> RolebundleError:
    """The error with the next step for an audit, and not for a corpus."""
    if isinstance(error, CorpusBusy):
        return CorpusBusy(
            "audit_busy",
            f"{path}: another process has been writing to the audit for too long",
            "run the same command again; a process that is stuck holds the lock until it is ended",
        )
    return tampered(path, error.message) if isinstance(error, CorpusCorrupt) else error


def _no_audit(path: Path) -> RolebundleError:
    if is_there(path):
        return WrongFile(
            "foreign_file", f"{path}: is not a file", "move it away: this name is the audit's"
        )
    return UsageError(
        "audit_missing", f"{path}: there is no audit", "run `rolebundle policy audit set on`"
    )


AUDIT_FORMAT = FileFormat(
    name="an audit",
    application_id=0x52424155,  # ``RBAU``
    oldest=VERSION,
    newest=VERSION,
    foreign_hint="move it away: this name is the audit's",
    missing_error=_no_audit,
    own_error=_audit_error,
)


# -- the chain ------------------------------------------------------------------------------------


class Head(NamedTuple):
    """Where the chain ends, and the settings for the next row."""

    log_id: str
    rows: int
    hash: str
    mode: str
    query: str


def canonical(value: object) -> str:
    """The JSON text of a value that is hashed: sorted keys, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def genesis_hash(log_id: str) -> str:
    """The previous hash of the first row. It depends on the log, so rows of another do not fit."""
    return _sha256(f"rolebundle-audit:{VERSION}:{log_id}")


def row_hash(row: AuditRow) -> str:
    """SHA-256 of the canonical JSON of all fields but the hash itself."""
    return _sha256(canonical(row.model_dump(exclude={"hash"})))


def query_digest(log_id: str, text: str) -> str:
    """A query's digest, salted with the log's id.

    Because of the salt, precomputed tables and digests of other logs are useless. Whoever has the
    file can still test guesses.
    """
    return f"sha256:{_sha256(f'{log_id}:{writable(text)}')}"


def bounded_text(text: str) -> str:
    """A text of at most about ``MAX_CHARACTERS``. Different long texts stay different."""
    text = writable(text)
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}… [{len(text)} characters, sha256:{_sha256(text)}]"


def chained_row(entry: AuditEntry, head: Head) -> AuditRow:
    """The row for an entry, chained to the head.

    Raises:
        ValueError, TypeError: its details are not JSON.
    """
    query = ""
    if entry.query and head.query != "off":
        is_text = head.query == "text"
        query = bounded_text(entry.query) if is_text else query_digest(head.log_id, entry.query)
    values: dict[str, Any] = entry.model_dump() | {
        **{name: bounded_text(getattr(entry, name)) for name in ("agent", "role", "action")},
        "seq": head.rows + 1,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "query": query,
        "details": bounded_details(entry.details),
        "previous": head.hash,
        "hash": "",
    }
    # Through JSON and back, so that the hashed values are those that will be read.
    row = AuditRow(**json.loads(canonical(values)))
    return row.model_copy(update={"hash": row_hash(row)})


def bounded_details(
    details: dict[str, Any], max_characters: int = MAX_CHARACTERS
) -> dict[str, Any]:
    """Details of at most so many characters of JSON; longer ones are replaced by their digest."""
    text = canonical(details)
    if len(text) <= max_characters:
        return details
    return {"cut": True, "characters": len(text), "sha256": _sha256(text)}


# -- writing --------------------------------------------------------------------------------------


def append(log: SqliteFile, entry: AuditEntry) -> tuple[AuditRow, bool]:
    """Record an entry as the next row of the chain.

    It is chained to the head. If the rows do not fit the head, the new row is written all the same,
    and verification still finds what happened to the others.

    Returns:
        The row, which is on the disk, and whether the end of the chain before it was intact.

    Raises:
        CorpusBusy, StorageError, CorpusCorrupt: nothing was written.
    """
    # The head is read inside the transaction, so that no two processes use the same one.
    with log.writing():
        head = read_head(log)
        last = log.rows("SELECT seq, hash FROM entry ORDER BY seq DESC LIMIT 1")
        row = _add(log, entry, head)
    return row, last == [(head.rows, head.hash)]


def _add(log: SqliteFile, entry: AuditEntry, head: Head) -> AuditRow:
    """Write the next row of the chain, and the new head."""
    row = chained_row(entry, head)
    values = row.model_dump()
    values |= {name: canonical(values[name]) for name in ("blocked", "details")}
    log.insert(f"entry ({COLUMNS})", [tuple(values.values())])
    log.run("UPDATE head SET rows = ?, hash = ?", (row.seq, row.hash))
    return row


def configure(log: SqliteFile, settings: AuditSettings, details: dict[str, Any]) -> None:
    """Change the settings, and record it as a row. Call it inside a write transaction."""
    log.run("UPDATE head SET mode = ?, query = ?", (settings.mode, settings.query))
    # The details are cut without the settings, which verification compares.
    bounded = bounded_details(details, MAX_CHARACTERS // 2)
    _add(log, AuditEntry(kind="settings", details=bounded | settings.model_dump()), read_head(log))


# -- reading -----------------------------------------------------------------------------------


def read_head(log: SqliteFile) -> Head:
    """The chain's head.

    Raises:
        CorpusCorrupt: there is not exactly one, or it is not what was written.
    """
    try:
        [head] = log.select(Head, "head")
    except (CorpusCorrupt, ValueError) as error:
        raise tampered(log.path, "it has no head") from error
    return head


def reaches(log: SqliteFile, log_id: str, rows: int, last_hash: str) -> bool:
    """Whether the audit is the one with this id and still has its row of this number and hash."""
    if read_head(log).log_id != log_id:
        return False
    return not rows or log.rows("SELECT hash FROM entry WHERE seq = ?", (rows,)) == [(last_hash,)]


def read_rows(
    log: SqliteFile, *, by: str | None = None, newest: bool = False
) -> Iterator[AuditRow]:
    """Rows one by one. Each page is its own short read, unless the caller opened a longer one.

    Raises:
        CorpusCorrupt: a row is not what was written.
    """
    beyond, order = ("<", "DESC") if newest else (">", "ASC")
    chosen, agents = ("", ()) if by is None else (" AND agent = ?", (by,))
    sql = f"SELECT {COLUMNS} FROM entry WHERE seq {beyond} ?{chosen} ORDER BY seq {order} LIMIT ?"
    last = 2**63 - 1 if newest else -(2**63)
    while rows := log.rows(sql, (last, *agents, PAGE_ROWS)):
        for values in rows:
            yield _row(log, values)
        last = int(rows[-1][0])


def count_rows(log: SqliteFile, agent: str | None = None) -> int:
    """The number of rows in the file, or of those of an agent."""
    return int(log.value("SELECT count(*) FROM entry WHERE ?1 IS NULL OR agent = ?1", (agent,)))


def file_problem(log: SqliteFile) -> str:
    """What is wrong with the file's pages, indexes and schema, or an empty text."""
    if problem := page_problem(log):
        return problem
    stored = {sql for (sql,) in log.rows("SELECT sql FROM sqlite_schema")}
    return "" if stored == set(_schema()) else "its tables are not those that were created"


def _row(log: SqliteFile, values: tuple[Any, ...]) -> AuditRow:
    try:
        typed([values], *_TYPES)
        fields = dict(zip(AuditRow.model_fields, values, strict=True))
        for name in ("blocked", "details"):
            stored, fields[name] = fields[name], json.loads(fields[name])
            # The stored text must be exactly the text that is hashed.
            if not isinstance(fields[name], dict) or canonical(fields[name]) != stored:
                raise ValueError(name)
        return AuditRow(**fields)
    except (CorpusCorrupt, ValueError, RecursionError) as error:
        raise tampered(log.path, f"row {values[0]} cannot have been written") from error
