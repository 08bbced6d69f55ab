"""Corpus files of older schema versions."""

from collections.abc import Iterable
from pathlib import Path

import apsw
import sqlite_vec

from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.storage.documents import StoredDocument
from support.commands import CHECKOUT
from support.corpora import build

_COPIED = (
    "corpus_state", "source", "file", "document", "supersession", "chunk", "embedding_index",
    "embedded",
)  # fmt: skip
_LEXICAL = "id, title, headings, content, tags, hints"


def build_schema_1(
    folder: Path,
    documents: Iterable[StoredDocument],
    provider: EmbeddingProvider | None = None,
    *,
    waiting: int = 0,
) -> tuple[Path, Path]:
    """Make a corpus of schema 1, and one of the newest schema with the same rows.

    Its tables are made by the first migration alone, and its indexes are filled as they were then:
    one FTS5 table, and one vec0 table an embedding index.
    """
    new = build(folder, documents, provider, waiting=waiting, name="new-old.db")
    old = folder / "old.db"
    db = apsw.Connection(str(old))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.pragma("journal_mode", "wal")
    db.execute((CHECKOUT / "migrations" / "0001_initial.sql").read_text(encoding="utf-8"))
    db.pragma("application_id", 0x52424E44)
    db.pragma("user_version", 1)
    db.execute("ATTACH ? AS newer", (str(new),))
    with db:
        for table in _COPIED:
            _copy(db, table)
        db.execute(f"INSERT INTO lexical (rowid, {_LEXICAL[4:]}) SELECT {_LEXICAL} FROM chunk")
        for index_id, dimensions in db.execute(
            "SELECT id, dimensions FROM embedding_index"
        ).fetchall():
            _vectors(db, index_id, dimensions)
    db.execute("DETACH newer")
    db.close()
    return old, new


def _copy(db: apsw.Connection, table: str) -> None:
    then = [row[1] for row in db.execute(f"PRAGMA main.table_info({table})")]
    now = {row[1] for row in db.execute(f"PRAGMA newer.table_info({table})")}
    values = [column if column in now else _AT_FIRST[column] for column in then]
    db.execute(
        f"INSERT INTO main.{table} ({', '.join(then)}) "
        f"SELECT {', '.join(values)} FROM newer.{table}"
    )


_AT_FIRST = {"vectors": "0", "fast": "''"}


def _vectors(db: apsw.Connection, index_id: int, dimensions: int) -> None:
    table = f"vectors_{index_id}"
    chosen = (index_id,)
    db.execute(f"CREATE VIRTUAL TABLE {table} USING vec0 (embedding float[{dimensions}])")
    db.execute(
        f"INSERT INTO {table} (rowid, embedding) SELECT chunk, vector FROM embedded "
        "WHERE index_id = ?",
        chosen,
    )
    db.execute(
        "UPDATE embedding_index SET vectors = "
        "(SELECT count(*) FROM embedded WHERE index_id = id) WHERE id = ?",
        chosen,
    )
