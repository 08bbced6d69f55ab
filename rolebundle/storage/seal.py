"""The seal: digests of all rows of the small tables, which decide who may see what.

It also covers the small records of the indexes' own tables that no other check compares. Each
write transaction ends with writing it.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.files.sqlite_file import SqliteFile
from rolebundle.storage.files.stored_values import DAMAGE_HINT
from rolebundle.storage.row_digest import row_digest

_TABLES = (
    "corpus_state",
    "compartment",
    "policy",
    "embedding_index",
    "embedding_share",
    "purge",
    "approved_manifest",
    "path_flags",
    "audit_state",
    "mark",
    "decision",
    "decision_end",
    "gate_baseline",
    "root",
    "publication",
    "replica",
)
_HAVE_ROWS = "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM main.{name})" for name in _TABLES)
"""One statement instead of one for each table, because most of them are empty."""
_VIRTUAL = re.compile(r"CREATE VIRTUAL TABLE (\w+) USING (fts5|vec0|vec1)\b")
# FTS5's record of its averages is row 1, that of its segments row 10; all other rows are compared
# with the chunks by FTS5's own check.
_RECORDS = {
    "fts5": ("{}_config", "{}_data WHERE id <= 10"),
    "vec0": ("{}_info",),
    "vec1": ("{}_config", "{}_model", "{}_meta"),
}


class Intact(NamedTuple):
    """Whether the two parts of what is sealed are what was stored."""

    tables: bool
    indexes: bool


_SOUND = Intact(True, True)


def compare(file: SqliteFile) -> Intact:
    """Compare what is sealed with the seal."""
    tables, indexes = _stored(file)
    return Intact(tables == _digest_of_tables(file), indexes == _digest_of_indexes(file))


def verify(file: SqliteFile) -> None:
    """Check the small tables.

    Raises:
        CorpusCorrupt: they are not what was stored.
    """
    if _stored(file)[0] != _digest_of_tables(file):
        raise CorpusCorrupt(
            "seal_broken",
            f"{file.path}: the corpus is damaged: its own records are not what was stored",
            DAMAGE_HINT,
        )


def write(file: SqliteFile, before: Intact = _SOUND) -> None:
    """Seal what is stored now. Call it at the end of a write transaction.

    Args:
        file: the corpus.
        before: the comparison when the transaction began. A part that was damaged then keeps its
            seal, so that the damage is still found.
    """
    for name, module in _virtual_tables(file):
        if module == "fts5":
            # FTS5 would write its records only when the transaction is committed.
            file.run(f"INSERT INTO {name} ({name}) VALUES ('flush')")
    if before.tables:
        _store(file, "tables", _digest_of_tables(file))
    if before.indexes:
        _store(file, "indexes", _digest_of_indexes(file))


def _store(file: SqliteFile, part: str, digest: bytes) -> None:
    file.run(
        f"INSERT INTO seal (only_row, {part}) VALUES (1, ?) "
        f"ON CONFLICT DO UPDATE SET {part} = excluded.{part}",
        (digest,),
    )


def _stored(file: SqliteFile) -> tuple[object, object]:
    rows = file.rows("SELECT tables, indexes FROM main.seal")
    return rows[0] if rows else (None, None)


def _digest_of_tables(file: SqliteFile) -> bytes:
    [have_rows] = file.rows(_HAVE_ROWS)
    return row_digest(
        [
            _sorted_rows(file, table) if has_rows else []
            for table, has_rows in zip(_TABLES, have_rows, strict=True)
        ]
    )


def _digest_of_indexes(file: SqliteFile) -> bytes:
    tables = [
        record.format(name) for name, module in _virtual_tables(file) for record in _RECORDS[module]
    ]
    # SQLite's own table: made with the first AUTOINCREMENT, and dropped by VACUUM if it is empty.
    if file.rows("SELECT 1 FROM main.sqlite_schema WHERE name = 'sqlite_sequence'"):
        tables.append("sqlite_sequence")
    records = ([table, _sorted_rows(file, table)] for table in tables)
    return row_digest([record for record in records if record[1]])


def _sorted_rows(file: SqliteFile, table: str) -> list[tuple[object, ...]]:
    rows = file.rows(f"SELECT * FROM main.{table} ORDER BY 1, 2")
    if table == "publication":
        # What it carried may have megabytes, and every reader compares the seal.
        return [tuple(map(_shortened, row)) for row in rows]
    return rows


def _shortened(value: object) -> object:
    return blake2b(value, digest_size=16).digest() if isinstance(value, bytes) else value


def _virtual_tables(file: SqliteFile) -> list[tuple[str, str]]:
    """The name and the module of each virtual table, ordered by name."""
    statements = file.rows(
        "SELECT sql FROM main.sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE %' ORDER BY name"
    )
    matches = (_VIRTUAL.match(str(sql)) for (sql,) in statements)
    return [(match[1], match[2]) for match in matches if match]
