"""Seals: a digest of all rows of each small table, which decide who may see what.

The schema and the small records of the indexes' own tables have seals, too. Each write transaction
ends with writing those that changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial
from hashlib import blake2b

from rolebundle.resources import data_file
from rolebundle.storage.sqlite import Row, SqliteFile
from rolebundle.storage.stored_values import damage_error

SEALED, COPIED, HIDDEN = (
    [name for name, words in data_file(__file__, "tables.toml")["tables"].items() if word in words]
    for word in ("sealed", "copied", "hidden")
)
"""The tables with a seal, those that a copy gets, and those that a restricted connection lacks."""
_HAVE_ROWS = "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM main.{name})" for name in SEALED)
"""One statement instead of one for each table, because most of them are empty."""
# Former versions needed sqlite_sequence, and VACUUM drops it if it is empty.
_SCHEMA = (
    "SELECT type, name, tbl_name, sql FROM main.sqlite_schema WHERE name <> 'sqlite_sequence' "
    "ORDER BY type, name"
)


_JSON = partial(json.JSONEncoder, ensure_ascii=False, separators=(",", ":"), check_circular=False)
_encode = _JSON(default=bytes.hex).encode


def row_digest(values: Sequence[object]) -> bytes:
    """BLAKE2b, 16 bytes, of the values as a JSON array; bytes as hexadecimal.

    Raises:
        TypeError: a value is no text, number, bytes, list or ``None``.
    """
    return blake2b(_encode(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def digest_rows(digest: blake2b, rows: Sequence[Row]) -> None:
    """Add rows to a digest: as one JSON array with the lengths of bytes, and then these bytes.

    Bytes as hexadecimal would take most of the time for rows with large ones.
    """
    blobs: list[bytes] = []

    def length(blob: bytes) -> dict[str, int]:
        blobs.append(blob)
        return {"bytes": len(blob)}

    digest.update(_JSON(default=length).encode(rows).encode("utf-8", "surrogatepass"))
    for blob in blobs:
        digest.update(blob)


def broken(file: SqliteFile) -> set[str]:
    """The names of all that is not what was sealed."""
    return _differences(_stored(file), _tables(file) | _indexes(file))


def verify(file: SqliteFile) -> None:
    """Check the small tables.

    Raises:
        CorpusCorrupt: they are not what was stored.
    """
    with file.reading():
        different = sorted(_differences(_stored(file), _tables(file)) & {*SEALED})
    if different:
        raise damage_error(", ".join(different), "seal_broken", file.path)


def write(file: SqliteFile, broken_before: Collection[str] = ()) -> None:
    """Seal what is stored now. Call it at the end of a write transaction.

    Args:
        file: the corpus.
        broken_before: what was broken when the transaction began. It keeps its seal, so that the
            damage is still found.
    """
    actual = _tables(file) | _indexes(file)
    for name in _differences(_stored(file), actual).difference(broken_before):
        if name in actual:
            file.run("REPLACE INTO seal (name, digest) VALUES (?, ?)", (name, actual[name]))
        else:
            file.run("DELETE FROM seal WHERE name = ?", (name,))


def _stored(file: SqliteFile) -> dict[str, bytes]:
    return dict(file.rows("SELECT name, digest FROM main.seal"))


def _differences(stored: dict[str, bytes], actual: dict[str, bytes]) -> set[str]:
    return {name for name in stored.keys() | actual if stored.get(name) != actual.get(name)}


def _rows(file: SqliteFile, table: str) -> list[Row]:
    return file.rows(f"SELECT * FROM main.{table} ORDER BY 1, 2")


def _tables(file: SqliteFile) -> dict[str, bytes]:
    """The digests of the small tables that have rows."""
    [have_rows] = file.rows(_HAVE_ROWS)
    pairs = zip(SEALED, have_rows, strict=True)
    return {name: row_digest(_rows(file, name)) for name, has_rows in pairs if has_rows}


def _indexes(file: SqliteFile) -> dict[str, bytes]:
    """The digests of the schema, and of the tables in which the indexes have their settings."""
    schema = file.rows(_SCHEMA)
    digests = {"sqlite_schema": row_digest(schema)}
    for _, name, _, sql in schema:
        if str(sql).startswith(f"CREATE VIRTUAL TABLE {name} USING fts5"):
            digests[f"{name}_config"] = row_digest(_rows(file, f"{name}_config"))
    return digests
