"""The audit's rows: appended to the chain, and read back (docs/decisions/0009)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from rolebundle.contracts.audit import AuditEntry, AuditRow, AuditSettings
from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.audit_chain import (
    MOST_CHARACTERS,
    Head,
    canonical,
    genesis,
    sealed,
    small,
)
from rolebundle.storage.audit_file import SCHEMA, damaged
from rolebundle.storage.sqlite_file import SqliteFile, check_types

PAGE = 500

_COLUMNS = (
    "seq, time, kind, agent, role, action, query, bundle_digest, allowed, blocked, details, "
    "previous, hash"
)
_KINDS = (int, *([str] * 7), int, *([str] * 4))

Clock = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Appended:
    """A row that is on the disk, and whether the chain's end was as it should be before it."""

    row: AuditRow
    intact: bool


# -- writing -----------------------------------------------------------------------------------


def begin(log: SqliteFile, settings: AuditSettings, clock: Clock, details: dict[str, Any]) -> None:
    """The head and the first row of a new log, inside of its first transaction."""
    log_id = uuid4().hex
    log.run(
        "INSERT INTO head VALUES (1, ?, 0, ?, ?, ?)",
        (log_id, genesis(log_id), settings.mode, settings.query),
    )
    _configure(log, settings, clock, details)


def append(log: SqliteFile, entry: AuditEntry, clock: Clock) -> Appended:
    """Put an entry on record, as the next row of the chain.

    It is chained to what the head says. Where the rows say something else the new row is written
    all the same: what was done to the others stays to be found.

    Raises:
        CorpusBusy, StorageError, CorpusCorrupt: nothing was written.
    """
    # The head is read inside of the transaction: no two processes see the same one.
    with log.writing():
        head = read_head(log)
        last = log.rows("SELECT seq, hash FROM entry ORDER BY seq DESC LIMIT 1")
        row = sealed(entry, head, clock())
        _insert(log, row)
    return Appended(row, last == [(head.rows, head.hash)])


def configure(
    log: SqliteFile, settings: AuditSettings, clock: Clock, details: dict[str, Any]
) -> AuditRow:
    """Change the settings, and put on record that and how they were changed.

    Raises:
        CorpusBusy, StorageError, CorpusCorrupt: nothing was changed.
    """
    with log.writing():
        return _configure(log, settings, clock, details)


def _configure(
    log: SqliteFile, settings: AuditSettings, clock: Clock, details: dict[str, Any]
) -> AuditRow:
    log.run("UPDATE head SET mode = ?, query = ?", (settings.mode, settings.query))
    # Cut apart from the settings, which a check compares.
    more = small(details, MOST_CHARACTERS // 2)
    entry = AuditEntry(kind="settings", details=more | settings.model_dump())
    row = sealed(entry, read_head(log), clock())
    _insert(log, row)
    return row


def _insert(log: SqliteFile, row: AuditRow) -> None:
    values = row.model_dump()
    values |= {name: canonical(values[name]) for name in ("blocked", "details")}
    log.run(
        f"INSERT INTO entry ({_COLUMNS}) VALUES ({', '.join('?' * len(_KINDS))})",
        tuple(values[name] for name in _COLUMNS.split(", ")),
    )
    log.run("UPDATE head SET rows = ?, hash = ?", (row.seq, row.hash))


# -- reading -----------------------------------------------------------------------------------


def read_head(log: SqliteFile) -> Head:
    """The chain's head.

    Raises:
        CorpusCorrupt: there is not exactly one, or it is not what was written.
    """
    found = log.rows("SELECT log_id, rows, hash, mode, query FROM head")
    if len(found) != 1 or tuple(map(type, found[0])) != (str, int, str, str, str):
        raise damaged(log.path, "it has no head")
    return Head(*found[0])


def rows_sql(*, by: bool, since: bool, kind: bool, newest: bool) -> str:
    """One page of rows, oldest or newest first."""
    conditions = [f"seq {'<' if newest else '>'} ?"]
    conditions += ["agent = ?"] if by else []
    conditions += ["time >= ?"] if since else []
    conditions += ["kind = ?"] if kind else []
    order = "DESC" if newest else "ASC"
    where = " AND ".join(conditions)
    return f"SELECT {_COLUMNS} FROM entry WHERE {where} ORDER BY seq {order} LIMIT ?"


def pages(
    log: SqliteFile,
    *,
    by: str | None = None,
    since: str = "",
    kind: str = "",
    newest: bool = False,
) -> Iterator[AuditRow]:
    """Rows one by one; each page is a short read of its own, unless the caller opened a longer one.

    Raises:
        CorpusCorrupt: a row is not what was written.
    """
    sql = rows_sql(by=by is not None, since=bool(since), kind=bool(kind), newest=newest)
    given = [one for one in (by, since or None, kind or None) if one is not None]
    place = 2**63 - 1 if newest else -(2**63)
    while found := log.rows(sql, (place, *given, PAGE)):
        for values in found:
            yield _row(log, values)
        place = int(found[-1][0])


def one_row(log: SqliteFile, seq: int) -> AuditRow | None:
    """The row of this number, where there is one."""
    found = log.rows(f"SELECT {_COLUMNS} FROM entry WHERE seq = ?", (seq,))
    return _row(log, found[0]) if found else None


def nth_row_of(log: SqliteFile, agent: str, number: int) -> AuditRow | None:
    """An agent's row by its place among the agent's own, from 1."""
    found = log.rows(
        f"SELECT {_COLUMNS} FROM entry WHERE agent = ? ORDER BY seq LIMIT 1 OFFSET ?",
        (agent, number - 1),
    )
    return _row(log, found[0]) if found and number > 0 else None


def count_of(log: SqliteFile, agent: str, after: int, until: int) -> int:
    """How many rows an agent has with numbers in ``(after, until]``."""
    return int(
        log.value(
            "SELECT count(*) FROM entry WHERE agent = ? AND seq > ? AND seq <= ?",
            (agent, after, until),
        )
    )


def integrity(log: SqliteFile) -> str:
    """What is wrong with the file's pages, indexes and schema, or an empty text."""
    found = str(log.value("PRAGMA integrity_check(1)"))
    if found != "ok":
        return found
    stored = {sql for (sql,) in log.rows("SELECT sql FROM sqlite_schema")}
    return "" if stored == set(SCHEMA) else "its tables are not those that were made"


def _row(log: SqliteFile, values: tuple[Any, ...]) -> AuditRow:
    try:
        check_types(values, _KINDS, "a row of the audit")
        named = dict(zip(_COLUMNS.split(", "), values, strict=True))
        for name in ("blocked", "details"):
            stored, named[name] = named[name], json.loads(named[name])
            # Another text for the same value is another text: what is stored is what is hashed.
            if not isinstance(named[name], dict) or canonical(named[name]) != stored:
                raise ValueError(name)
    except (CorpusCorrupt, ValueError, RecursionError) as error:
        raise damaged(log.path, f"row {values[0]} cannot have been written") from error
    return AuditRow(**named)
