"""What statements that write rows have in common."""

from __future__ import annotations

from collections.abc import Sequence

from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.sqlite_file import Row


def next_row(corpus: Corpus, table: str) -> int:
    """The first rowid after all rows of the table."""
    return 1 + int(corpus.value(f"SELECT coalesce(max(id), 0) FROM {table}"))


def insert(corpus: Corpus, target: str, rows: Sequence[Row]) -> None:
    """Insert rows into ``target``: a table and its columns."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        corpus.run_many(f"INSERT INTO {target} VALUES ({places})", rows)


def assignments(columns: str) -> str:
    """The SET part of an UPDATE of these columns."""
    return ", ".join(f"{name} = ?" for name in columns.split(", "))
