"""Seals: a digest of all rows of each small table, which decide who may see what.

The schema and the small records of the indexes' own tables have seals, too. Each write transaction
ends with writing those that changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.files.sqlite_file import SqliteFile
from rolebundle.storage.files.stored_values import DAMAGE_HINT
from rolebundle.storage.row_digest import row_digest

TABLES = (
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
_HAVE_ROWS = "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM main.{name})" for name in TABLES)
"""One statement instead of one for each table, because most of them are empty."""
# SQLite makes sqlite_sequence with the first vec0 table, and VACUUM drops it if it is empty.
_SCHEMA = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema WHERE name <> 'sqlite_sequence'"
_VIRTUAL = re.compile(r"CREATE VIRTUAL TABLE (\w+) USING (fts5|vec0|vec1)\b")
_RECORDS = {"fts5": ("config",), "vec0": ("info",), "vec1": ("config", "model", "meta")}


def broken(file: SqliteFile) -> set[str]:
    """The names of all that is not what was sealed."""
    return _differences(file, _selections(file))


def verify(file: SqliteFile) -> None:
    """Check the small tables.

    Raises:
        CorpusCorrupt: they are not what was stored.
    """
    damaged = sorted(_differences(file, _tables_with_rows(file)) & {*TABLES})
    if damaged:
        raise CorpusCorrupt(
            "seal_broken",
            f"{file.path}: the corpus is damaged: {', '.join(damaged)} is not what was stored",
            DAMAGE_HINT,
        )


def is_intact(file: SqliteFile, table: str) -> bool:
    """Whether one of the small tables is what was sealed."""
    rows = file.rows(f"SELECT * FROM main.{table} ORDER BY 1, 2")
    stored = file.value("SELECT digest FROM main.seal WHERE name = ?", (table,))
    return stored == row_digest(rows) if rows else stored is None


def write(file: SqliteFile, damaged: Collection[str] = ()) -> None:
    """Seal what is stored now. Call it at the end of a write transaction.

    Args:
        file: the corpus.
        damaged: what was broken when the transaction began. It keeps its seal, so that the damage
            is still found.
    """
    selections = _selections(file)
    for name in _differences(file, selections).difference(damaged):
        if name in selections:
            digest = _digest(file, selections[name])
            file.run("INSERT OR REPLACE INTO seal (name, digest) VALUES (?, ?)", (name, digest))
        else:
            file.run("DELETE FROM seal WHERE name = ?", (name,))


def _differences(file: SqliteFile, selections: dict[str, str]) -> set[str]:
    stored: dict[str, object] = dict(file.rows("SELECT name, digest FROM main.seal"))
    actual = {name: _digest(file, select) for name, select in selections.items()}
    return {name for name in stored.keys() | actual if stored.get(name) != actual.get(name)}


def _digest(file: SqliteFile, select: str) -> bytes:
    return row_digest(file.rows(f"{select} ORDER BY 1, 2"))


def _tables_with_rows(file: SqliteFile) -> dict[str, str]:
    [have_rows] = file.rows(_HAVE_ROWS)
    pairs = zip(TABLES, have_rows, strict=True)
    return {name: f"SELECT * FROM main.{name}" for name, has_rows in pairs if has_rows}


def _selections(file: SqliteFile) -> dict[str, str]:
    """The name of all that is sealed now, and the statement for its rows."""
    records = {name: f"SELECT * FROM main.{name}" for name in _records(file)}
    return {"sqlite_schema": _SCHEMA} | _tables_with_rows(file) | records


def _records(file: SqliteFile) -> Iterator[str]:
    """The small tables in which the indexes have their settings."""
    for _, name, _, sql in file.rows(_SCHEMA):
        match = _VIRTUAL.match(str(sql))
        if match:
            yield from (f"{name}_{record}" for record in _RECORDS[match[2]])
