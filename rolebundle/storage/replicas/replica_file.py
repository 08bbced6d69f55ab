"""The file of a replica: what its publisher signs of it, and what is done before it is moved."""

from __future__ import annotations

from hashlib import blake2b
from itertools import islice

from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.sqlite_file import SqliteFile
from rolebundle.storage.indexes import compartments, lexical_index
from rolebundle.storage.seal import digest_rows, row_digest

_NOT_COVERED = ("replica", "seal", "corpus_state")
"""Tables that depend on the manifest. The manifest has the values of ``corpus_state``."""
_LITESTREAM = ("_litestream_lock", "_litestream_seq")
"""Tables that Litestream adds to a file that it replicates."""
_ROWS_PER_STEP = 16  # a row of vec0 has 1024 vectors


def set_identity(replica: Corpus, corpus_id: str, generation: int) -> None:
    """Give a replica the identity of its corpus, and its generation, inside a write transaction."""
    replica.run("UPDATE corpus_state SET corpus_id = ?, generation = ?", (corpus_id, generation))


def compact(replica: Corpus) -> None:
    """Merge the lexical indexes of a new replica, and leave no free page in its file."""
    with replica.writing():
        for compartment in compartments.visible_compartments(replica):
            while lexical_index.merge(replica, compartment.id):
                pass
    replica.run("VACUUM")


def content_digest(corpus: Corpus) -> str:
    """The digest of every row of every table as it is stored, also of the indexes' own tables.

    With SQLite's own check, which compares its indexes with the tables, it proves a whole file. It
    leaves out what depends on the manifest, and the tables that Litestream adds.
    """
    digest = blake2b(digest_size=16)
    # SQLite makes the indexes of constraints without a statement.
    for kind, name, sql in corpus.rows(
        "SELECT type, name, sql FROM main.sqlite_schema WHERE sql NOT NULL ORDER BY type, name"
    ):
        is_stored = kind == "table" and not str(sql).startswith("CREATE VIRTUAL")
        if is_stored and name in _LITESTREAM:
            continue
        digest.update(row_digest([str(kind), str(name), str(sql)]))
        if is_stored and name not in _NOT_COVERED:
            # Not through an index that has all columns: the order is that of the table.
            quoted = str(name).replace('"', '""')
            rows = corpus.iterate(f'SELECT * FROM main."{quoted}" NOT INDEXED')
            while batch := list(islice(rows, _ROWS_PER_STEP)):
                digest_rows(digest, batch)
    return digest.hexdigest()


def prepare_for_readers(replica: SqliteFile) -> None:
    """Remove the tables that a transport added, and let readers need no log.

    A file that is replaced while others read it must have none.
    """
    for name in _LITESTREAM:
        replica.run(f"DROP TABLE IF EXISTS {name}")
    replica.run("PRAGMA journal_mode = delete")
