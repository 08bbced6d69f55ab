"""Saving what can be trusted of a damaged corpus into a new one.

Every row that SQLite can still read is copied. Then a document stays if its digest, its file, its
findings and all of its chunks are what was stored. All else is derived from the documents that
stay. Rows of the small tables decide who may see what: they stay only if their seal is intact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from rolebundle.errors import CorpusCorrupt, RolebundleError, WrongFile
from rolebundle.storage import digests, seal
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import facts
from rolebundle.storage.files.sqlite_file import Row, SqliteFile, harden
from rolebundle.storage.indexes import partition, vector_index
from rolebundle.storage.indexes.partition import DeniedPatterns
from rolebundle.storage.indexes.vector_index import EmbeddingIndex
from rolebundle.storage.location import audit_path, is_there
from rolebundle.storage.opening import APPLICATION_ID, corpus_format
from rolebundle.storage.records import stored_policy
from rolebundle.storage.records.stored_policy import policy_digest

_BY_NUMBER = {
    "source": "id",
    "file": "id",
    "document": "id",
    "chunk": "id",
    "scanned": "document",
    "embedding_cache": "id",
    "remembered": "document",
}
"""Tables whose rows are proven by digests, each with the number of its rows."""
_SEALED_BY_NUMBER = {"embedding_index": "id", "embedded": "rowid", "policy": "only_row"}
_SEALED_BY_NAME = ("purge", "approved_manifest", "path_flags", "root", "publication")
_OWN_TABLES = {"corpus_state", "compartment", "document", "chunk", "file"}
_TRACE = b"CREATE TABLE corpus_state ("
_TRACE_OF_REPLICA = b'{"manifest":{"version":1,"publisher":'
_HEADER_BYTES = 100
_BLOCK_BYTES = 1 << 20
_MAX_GAP = 10_000
"""How many numbers after a row are tried to find the next one that can be read."""
_TABLES = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
_MAX_ROWS_BY_NAME = 1_000_000
_CORPUS_ID = re.compile(r"[0-9a-f]{32}")
UNTRUSTED_POLICY = "the policy could not be read from a damaged corpus"


class LostDocument(NamedTuple):
    """A document that was not saved. Damage may have changed its names; ``""`` if unknown."""

    document_id: str
    path: str


class Salvaged(NamedTuple):
    """What was saved.

    Attributes:
        lost: documents that were not saved, as far as their names are known.
        unnamed: how many more documents the damaged corpus had; 0 also if that is unknown.
        is_sealed: whether the small tables were what was stored. If not, policy, approvals,
            flags of paths, receipts and embedding indexes were not taken over.
        had_policy: whether the policy table had a row, or could not be read.
        indexes: ``provider:model`` of the embedding indexes that were lost.
        is_required: whether records in the audit are required, as far as that can be read.
    """

    lost: list[LostDocument]
    unnamed: int
    is_sealed: bool
    had_policy: bool
    indexes: list[str]
    is_required: bool


def open_damaged(path: Path) -> SqliteFile | None:
    """Open a file for reading, however damaged it is; ``None`` if nothing can be read from it.

    Raises:
        WrongFile: it is of another application.
    """
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return None
    try:
        harden(db)
        # Also a schema that is not complete. The connection cannot write.
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.pragma("writable_schema", True)
        is_corpus = db.pragma("application_id") == APPLICATION_ID
        tables = _tables(db)
    except (apsw.Error, UnicodeDecodeError):
        db.close()
        return None
    if not (is_corpus or tables >= _OWN_TABLES):
        db.close()
        raise WrongFile(
            "foreign_file",
            f"{path}: is an SQLite file, but not a corpus; it was not changed",
            "name another file with --db",
        )
    return SqliteFile(path, db, False, corpus_format())


def _tables(db: apsw.Connection) -> set[str]:
    """The names of the tables, up to the first damage of the schema."""
    names = set()
    with suppress(apsw.CorruptError, UnicodeDecodeError):
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
            names.add(str(name))
    return names


def shows_a_corpus(path: Path) -> bool:
    """Whether anything in a file, or beside it, shows that it was a corpus.

    Raises:
        OSError: it cannot be read.
    """
    if is_there(audit_path(path)):
        return True
    with path.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    return header[68:72] == APPLICATION_ID.to_bytes(4, "big") or _contains(path, _TRACE)


def is_replica(path: Path) -> bool:
    """Whether a file is a replica, however damaged it is: its record or a trace of it is there.

    Raises:
        OSError: it cannot be read.
    """
    with suppress(RolebundleError):
        old = open_damaged(path)
        if old is not None:
            with old:
                return bool(old.rows("SELECT 1 FROM main.replica"))
    return _contains(path, _TRACE_OF_REPLICA)


def _contains(path: Path, trace: bytes) -> bool:
    with path.open("rb") as stream:
        end = b""
        while block := stream.read(_BLOCK_BYTES):
            if trace in end + block:
                return True
            end = block[-len(trace) :]
    return False


def has_own_schema(path: Path, new: Corpus) -> bool:
    """Whether a file has exactly the tables of a new corpus, whatever its header says.

    Raises:
        WrongFile: it is of another application.
    """
    old = open_damaged(path)
    if old is None:
        return False
    with old:
        try:
            return set(new.rows(_TABLES)) <= set(old.rows(_TABLES))
        except CorpusCorrupt:
            return False


@contextmanager
def copying(new: Corpus) -> Iterator[None]:
    """A write transaction in which rows may refer to rows that are lost, until its end."""
    new.run("PRAGMA foreign_keys = 0")
    with new.writing():
        yield


def copy_rows(old: SqliteFile, new: Corpus) -> bool:
    """Copy the rows that can be read into an empty corpus, inside a write transaction.

    Returns:
        Whether the small tables were sealed, and so copied, too.
    """
    is_sealed = _is_sealed(old)
    by_number = _BY_NUMBER | (_SEALED_BY_NUMBER if is_sealed else {})
    for table, key in by_number.items():
        _copy(new, table, _columns(old, new, table), _rows_by_number(old, table, key, new))
    for table in ("supersession", *(_SEALED_BY_NAME if is_sealed else ())):
        columns = _columns(old, new, table)
        for order in ("ASC", "DESC"):
            _copy(new, table, columns, _rows_by_name(old, table, columns, order))
    return is_sealed


def _is_sealed(old: SqliteFile) -> bool:
    try:
        seal.verify(old)
    except (RolebundleError, TypeError, ValueError):
        return False
    return True


def _columns(old: SqliteFile, new: Corpus, table: str) -> str:
    """The columns that both have. An older schema has fewer."""
    new_columns = [name for _, name, *_ in new.rows(f"PRAGMA table_info({table})")]
    try:
        old_columns = {name for _, name, *_ in old.db.execute(f"PRAGMA table_info({table})")}
    except (apsw.Error, UnicodeDecodeError):
        return ""
    return ", ".join(name for name in new_columns if name in old_columns)


def _rows_by_number(old: SqliteFile, table: str, key: str, new: Corpus) -> Iterator[Row]:
    """The rows of a table, by their number. Damaged places are skipped."""
    columns = _columns(old, new, table)
    if not columns:
        return
    select = f"SELECT {key}, {columns} FROM main.{table} WHERE {key}"
    last = -(2**63)
    while True:
        try:
            for number, *row in old.db.execute(f"{select} > ? ORDER BY {key}", (last,)):
                if not isinstance(number, int) or number <= last:
                    raise apsw.CorruptError  # A damaged tree may lead back to where it came from.
                yield tuple(row)
                last = number
        except apsw.SQLError:
            return
        except (apsw.Error, UnicodeDecodeError):
            readable = _next_readable(old, select, table, key, max(last, 0))
            if readable is None:
                return
            last = readable[0]
            yield readable[1:]
        else:
            return


def _next_readable(old: SqliteFile, select: str, table: str, key: str, last: int) -> Row | None:
    """The next row after ``last`` that can be read alone, with its number before it."""
    end = last + _MAX_GAP
    with suppress(apsw.Error):
        highest = old.db.execute(f"SELECT max({key}) FROM main.{table}").get
        end = min(highest, end) if isinstance(highest, int) else end
    for number in range(last + 1, end + 1):
        with suppress(apsw.Error, UnicodeDecodeError):
            rows = old.db.execute(f"{select} = ?", (number,)).fetchall()
            if rows and rows[0][0] == number:
                return tuple(rows[0])
    return None


def _rows_by_name(old: SqliteFile, table: str, columns: str, order: str) -> Iterator[Row]:
    """The rows of a table without numbers, from one end up to the first damage."""
    if not columns:
        return
    first = columns.split(", ", maxsplit=1)[0]
    # A damaged tree may lead back to where it came from; no such table is large.
    sql = f"SELECT {columns} FROM main.{table} ORDER BY {first} {order} LIMIT {_MAX_ROWS_BY_NAME}"
    with suppress(apsw.Error, UnicodeDecodeError):
        yield from old.db.execute(sql)


def _copy(new: Corpus, table: str, columns: str, rows: Iterator[Row]) -> None:
    places = ", ".join("?" * len(columns.split(", ")))
    sql = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({places})"
    for row in rows:
        # A damaged row may have a value that its column does not allow.
        with suppress(apsw.ConstraintError, apsw.MismatchError, UnicodeEncodeError):
            new.db.execute(sql, row)


# -- what stays ------------------------------------------------------------------------------------


def keep_proven_rows(old: SqliteFile | None, new: Corpus, is_sealed: bool) -> Salvaged:
    """Remove what is not what was stored from copied rows, inside a write transaction."""
    recorded, corpus_id, generation = _state(old)
    lost = _remove_unproven(new)
    documents = int(new.value("SELECT count(*) FROM document"))
    chunks = int(new.value("SELECT count(*) FROM chunk"))
    new.run(
        "UPDATE corpus_state SET documents = ?, chunks = ?, generation = ?",
        (documents, chunks, generation + 1),
    )
    if corpus_id:
        new.run("UPDATE corpus_state SET corpus_id = ?", (corpus_id,))
    unnamed = max(0, recorded - documents - len(lost))
    if unnamed:
        # One of them may be of a file that has no other document.
        lost += [
            LostDocument("", path)
            for (path,) in new.rows(
                "SELECT path FROM file WHERE id NOT IN (SELECT file FROM document) ORDER BY path"
            )
        ]
    return Salvaged(
        lost,
        max(0, recorded - documents - len(lost)),
        is_sealed,
        (is_sealed and stored_policy.has_policy(new)) or (not is_sealed and _had_policy(old)),
        [] if is_sealed else _names_of_indexes(old),
        _is_audit_required(old),
    )


def _remove_unproven(new: Corpus) -> list[LostDocument]:
    """Remove documents that are not what was stored, and what belongs to no document."""
    paths: dict[int, str] = dict(new.rows("SELECT id, path FROM file"))
    bad_files = {row.rowid for row in digests.checked_rows(new, "file") if not row.is_intact}
    bad = {row.rowid for row in digests.checked_documents(new) if not row.is_intact}
    for table in ("scanned", "remembered"):
        bad |= {row.rowid for row in digests.checked_rows(new, table) if not row.is_intact}
    bad |= facts.without_record(new)
    damaged = [row.rowid for row in digests.checked_chunks(new) if not row.is_intact]
    owners: dict[int, int] = dict(new.rows("SELECT id, document FROM chunk"))
    bad |= {owners[row] for row in damaged}
    documents = new.rows("SELECT id, document_id, file FROM document ORDER BY document_id")
    bad |= {row for row, _, file in documents if file in bad_files or file not in paths}
    lost = [
        LostDocument(name, str(paths.get(file, ""))) for row, name, file in documents if row in bad
    ]
    new.run_many("DELETE FROM document WHERE id = ?", ((row,) for row in sorted(bad)))
    new.run_many("DELETE FROM file WHERE id = ?", ((row,) for row in sorted(bad_files)))
    for table, column in (
        ("chunk", "document"),
        ("scanned", "document"),
        ("remembered", "document"),
        ("supersession", "newer"),
    ):
        new.run(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM document)")
    new.run("DELETE FROM source WHERE id NOT IN (SELECT source FROM document)")
    new.run(
        "DELETE FROM embedded WHERE chunk NOT IN (SELECT id FROM chunk) "
        "OR length(vector) IS NOT "
        "(SELECT 4 * dimensions FROM embedding_index i WHERE i.id = embedded.index_id)"
    )
    vectors = new.iterate("SELECT rowid, input_hash, vector_hash, vector FROM embedded")
    bad_rows = [
        rowid
        for rowid, input_hash, expected, vector in vectors
        if vector_index.vector_hash(input_hash, vector) != expected
    ]
    new.run_many("DELETE FROM embedded WHERE rowid = ?", ((row,) for row in bad_rows))
    bad_cached = [
        row.rowid for row in digests.checked_rows(new, "embedding_cache") if not row.is_intact
    ]
    new.run_many("DELETE FROM embedding_cache WHERE id = ?", ((row,) for row in bad_cached))
    return lost


def remove_vectors(new: Corpus, index: EmbeddingIndex, chunks: Sequence[int]) -> None:
    """Remove the vectors of these chunks from an index that has no tables yet."""
    new.run_many(
        "DELETE FROM embedded WHERE index_id = ? AND chunk = ?",
        ((index.id, chunk) for chunk in chunks),
    )


def derive(new: Corpus, denied: DeniedPatterns) -> None:
    """Build compartments and indexes, and let the next ingest read every file again.

    Call it inside a write transaction.
    """
    new.run("UPDATE document SET compartment = 0")
    partition.assign_compartments(new, denied)
    # A file's row does not tell how many documents it had.
    new.run("UPDATE file SET recipe = ''")
    digests.write_all(new)


def deny_everyone(new: Corpus, set_at: str) -> None:
    """Store a policy that denies every agent until another one is set."""
    stored_policy.save_policy(new, UNTRUSTED_POLICY, "toml", "", set_at)
    new.run("UPDATE policy SET digest = ''")


# -- the small tables of a damaged file ------------------------------------------------------------


def _state(old: SqliteFile | None) -> tuple[int, str, int]:
    """The recorded number of documents, the corpus's id and the generation; 0 and "" if unknown."""
    row = _first_row(old, "SELECT documents, corpus_id, generation FROM main.corpus_state")
    documents, corpus_id, generation = row or (0, "", 0)
    return (
        documents if isinstance(documents, int) else 0,
        corpus_id if _CORPUS_ID.fullmatch(str(corpus_id)) else "",
        generation if isinstance(generation, int) and 0 <= generation < 2**53 else 0,
    )


def policy_of(old: SqliteFile) -> Row | None:
    """Content, format, location and time of a policy whose text is what was stored."""
    row = _first_row(old, "SELECT content, format, location, set_at, digest FROM main.policy")
    if row is None or not all(isinstance(value, str) for value in row):
        return None
    return row[:4] if policy_digest(row[0]) == row[4] else None


def _had_policy(old: SqliteFile | None) -> bool:
    if old is None:
        return True
    try:
        is_sound = old.value("PRAGMA integrity_check(policy)") == "ok"
        return not is_sound or bool(old.value("SELECT count(*) FROM main.policy"))
    except RolebundleError:
        return True


def _names_of_indexes(old: SqliteFile | None) -> list[str]:
    if old is None:
        return []
    try:
        rows = old.rows("SELECT provider, model FROM main.embedding_index ORDER BY id")
    except RolebundleError:
        return []
    return [f"{provider}:{model}" for provider, model in rows]


def _is_audit_required(old: SqliteFile | None) -> bool:
    row = _first_row(old, "SELECT required FROM main.audit_state")
    return row is not None and row[0] != 0


def _first_row(old: SqliteFile | None, sql: str) -> Row | None:
    if old is None:
        return None
    try:
        rows = old.rows(sql)
    except RolebundleError:
        return None
    return rows[0] if rows else None
