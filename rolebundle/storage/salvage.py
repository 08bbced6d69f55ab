"""Saving what can be trusted of a damaged corpus into a new one.

A document stays if its digest, its file, its findings and all of its chunks are what was stored.
The small tables decide who may see what, and have what people added: each stays if its seal is
intact. All else is derived from the documents that stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path

import apsw

from rolebundle.errors import RolebundleError
from rolebundle.storage import digests, facts, partition, records, seal
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import APPLICATION_ID, corpus_format, latest_version
from rolebundle.storage.partition import DeniedPatterns
from rolebundle.storage.sqlite import Row, SqliteFile, harden, is_missing_or_empty

_CONTENT = ("source", "supersession", *digests.DIGESTED)
"""What belongs to documents; their digests prove it."""
_DERIVED = {"corpus_state", "compartment", "embedding_share", "replica", "chunk_change"}
_TRACE_OF_REPLICA = b'{"manifest":{"version":1,"publisher":'
_MAX_ROWS = 10_000_000
"""Of a table. A damaged tree may lead back to where it came from."""
UNTRUSTED_POLICY = "the policy could not be read from a damaged corpus"


def open_damaged(path: Path) -> SqliteFile | None:
    """Open a corpus for reading, however damaged it is; ``None`` if nothing can be read from it."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return None
    try:
        harden(db)
        # Also a schema that is not complete. The connection cannot write.
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.pragma("writable_schema", True)
        identity = (db.pragma("application_id"), db.pragma("user_version"))
        if identity == (APPLICATION_ID, latest_version()):
            return SqliteFile(path, db, False, corpus_format())
    except apsw.Error:
        pass
    db.close()
    return None


def _readable_rows(old: SqliteFile, select: str) -> Iterator[Row]:
    """The rows from the first one up to a damage, and then those from the last one back to it."""
    for order in ("ASC", "DESC"):
        with suppress(apsw.Error, UnicodeDecodeError):
            yield from old.db.execute(f"{select} ORDER BY 1 {order} LIMIT {_MAX_ROWS}")
            break


def is_replica(path: Path) -> bool:
    """Whether a file is a replica, however damaged it is: its record or a trace of it is there.

    Raises:
        OSError: it cannot be read.
    """
    if is_missing_or_empty(path):
        return False
    with suppress(RolebundleError):
        old = open_damaged(path)
        if old is not None:
            with old:
                return bool(old.rows("SELECT 1 FROM main.replica"))
    with path.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(_TRACE_OF_REPLICA) >= 0


@contextmanager
def copying(new: Corpus) -> Iterator[None]:
    """A write transaction in which rows may refer to rows that are lost, until its end."""
    new.run("PRAGMA foreign_keys = 0")
    with new.writing():
        yield


def copy_rows(old: SqliteFile, new: Corpus) -> set[str]:
    """Copy what can be read and trusted into an empty corpus, inside a write transaction.

    Rows of documents are copied as they are; :func:`remove_unproven` then looks at them.

    Returns:
        The small tables that were not copied, because they are not what was stored.
    """
    distrusted = {name for name in seal.TABLES if not _is_intact(old, name)}
    if "decision" in distrusted:
        distrusted.add("decision_end")
    for table in (*_CONTENT, *sorted({*seal.TABLES} - distrusted - _DERIVED)):
        for row in _readable_rows(old, f"SELECT * FROM main.{table}"):
            # A damaged row may have a value that its column does not allow, or more values.
            with suppress(
                apsw.ConstraintError, apsw.MismatchError, apsw.SQLError, UnicodeEncodeError
            ):
                places = ", ".join("?" * len(row))
                new.db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", row)
    if "corpus_state" not in distrusted:
        [state] = old.rows("SELECT corpus_id, generation + 1 FROM main.corpus_state")
        new.run("UPDATE corpus_state SET corpus_id = ?, generation = ?", state)
    return distrusted - (_DERIVED - {"corpus_state"})


def _is_intact(old: SqliteFile, table: str) -> bool:
    try:
        return seal.is_intact(old, table)
    except (RolebundleError, TypeError, ValueError):
        return False


def remove_unproven(new: Corpus) -> list[tuple[str, str]]:
    """Remove the documents that are not what was stored, and what belongs to no document.

    Returns:
        The id of each such document and the path of its file; ``""`` if that is unknown.
    """
    select = "SELECT d.id, d.document_id, f.path FROM document d LEFT JOIN file f ON f.id = d.file"
    before = new.rows(f"{select} ORDER BY d.document_id")
    # The documents come last: their digests also cover that they have all that belongs to them.
    for table in digests.DIGESTED:
        digests.remove_damaged(new, table)
    new.run_many("DELETE FROM document WHERE id = ?", ((row,) for row in facts.without_record(new)))
    for table, column in (
        ("chunk", "document"),
        ("scanned", "document"),
        ("remembered", "document"),
        ("supersession", "newer"),
    ):
        new.run(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM document)")
    new.run("DELETE FROM source WHERE id NOT IN (SELECT source FROM document)")
    new.run(
        "UPDATE corpus_state SET documents = (SELECT count(*) FROM document), "
        "chunks = (SELECT count(*) FROM chunk)"
    )
    kept = {row for (row,) in new.rows("SELECT id FROM document")}
    return [(name, path or "") for row, name, path in before if row not in kept]


def derive(new: Corpus, denied: DeniedPatterns) -> None:
    """Build compartments and lexical indexes, and let the next ingest read every file again.

    Call it inside a write transaction.
    """
    new.run("UPDATE document SET compartment = 0")
    partition.assign_compartments(new, denied)
    # A file's row does not tell how many documents it had.
    new.run("UPDATE file SET recipe = ''")
    digests.write_all(new)


def deny_everyone(new: Corpus, set_at: str) -> None:
    """Store a policy that denies every agent until another one is set."""
    records.save_policy(new, UNTRUSTED_POLICY, "toml", "", set_at)
    new.run("UPDATE policy SET digest = ''")


def required_records(old: SqliteFile) -> bool:
    """Whether records in the audit were required, as far as that can be read."""
    with suppress(RolebundleError):
        return bool(old.value("SELECT required FROM main.audit_state"))
    return False
