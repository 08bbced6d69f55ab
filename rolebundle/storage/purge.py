"""Erasing documents so that no byte of them is left in any file of the corpus.

Deleting is not erasing. ``secure_delete`` overwrites rows that are deleted, and misses the copies
that a page keeps of rows that moved to its neighbour when it was split. FTS5 keeps the words of a
deleted chunk in its segments until they are merged, and its 'optimize' merges them without dropping
those words once a table had more levels than it has segments. So a purge deletes, builds every
lexical index anew from the chunks, then has the whole file written anew (VACUUM) and the log
emptied.

A row of the table ``purge`` is added with the deletion, in one transaction: a run that is killed
has either done nothing, or has left a row that says what remains to be done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from rolebundle.contracts.receipt import Obstacle, Receipt
from rolebundle.errors import ConfigurationError, CorpusBusy, StorageError
from rolebundle.storage import (
    compartments,
    fast_index,
    lexical_index,
    rerank_cache,
    store,
    vector_cache,
    vector_remains,
)
from rolebundle.storage.chunk_rows import json_array
from rolebundle.storage.connection import Corpus
from rolebundle.storage.fast_index import FastState, Share
from rolebundle.storage.vector_index import all_indexes

_THESE = "IN (SELECT value FROM json_each(?))"


class Extent(NamedTuple):
    """How much there is to purge."""

    documents: int
    chunks: int
    vectors: int


class Candidate(NamedTuple):
    """A document that could be purged, and the file that it came from."""

    row: int
    document_id: str
    source_id: str
    path: str
    location: str


def candidates(corpus: Corpus) -> list[Candidate]:
    """Every document, with what it can be named by."""
    found = corpus.rows(
        "SELECT d.id, d.document_id, s.source_id, f.path, f.location FROM document d "
        "JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file ORDER BY d.document_id"
    )
    return [Candidate(*row) for row in found]


def extent(corpus: Corpus, documents: Sequence[int]) -> Extent:
    """How much goes with these documents; vectors of all embedding indexes count."""
    chosen = (json.dumps(list(documents)),)
    chunks = corpus.value(f"SELECT count(*) FROM chunk WHERE document {_THESE}", chosen)
    vectors = corpus.value(
        f"SELECT count(*) FROM embedded e JOIN chunk c ON c.id = e.chunk WHERE c.document {_THESE}",
        chosen,
    )
    return Extent(len(documents), int(chunks), int(vectors))


def erase(corpus: Corpus, documents: Sequence[Candidate], purged_at: str) -> str:
    """Delete documents with all that derives from them; the id of the receipt.

    Call it inside a write transaction, and :func:`finish` after it.

    Raises:
        ConfigurationError: a fast index holds vectors that cannot be got at here.
    """
    rows = [one.row for one in documents]
    gone = extent(corpus, rows)
    _drop_companions(corpus, _compartments_of(corpus, rows))
    store.remove_documents(corpus, rows)
    # What is kept of a text is kept by its hash alone, so that an earlier wording of a document
    # cannot be told from another document's text.
    vector_cache.clear(corpus)
    _forget_files(corpus, documents)
    _forget_claims(corpus, documents)
    store.drop_unused(corpus)
    for one in compartments.all_compartments(corpus):
        # All of them: documents that were moved or changed left words behind where they were.
        lexical_index.rebuild(corpus, one.id)
    for index in all_indexes(corpus):
        for share in index.shares:
            vector_remains.overwrite(corpus, share)
    store.note_change(corpus)
    receipt = uuid4().hex
    corpus.run(
        "INSERT INTO purge (id, purged_at, documents, chunks, vectors, state) "
        "VALUES (?, ?, ?, ?, ?, 'erased')",
        (receipt, purged_at, *gone),
    )
    return receipt


def _compartments_of(corpus: Corpus, documents: Sequence[int]) -> set[int]:
    found = corpus.rows(
        f"SELECT DISTINCT compartment FROM document WHERE id {_THESE}",
        (json.dumps(list(documents)),),
    )
    return {compartment for (compartment,) in found}


def _drop_companions(corpus: Corpus, changing: set[int]) -> None:
    """Drop the fast indexes that hold, or once held, more than the vectors that stay.

    Their buckets are made of the vectors that they were trained on, and a bucket of one vector is
    that vector.
    """
    shares = [share for index in all_indexes(corpus) for share in index.shares]
    kept = {
        share.fast_table
        for share in shares
        if share.compartment not in changing and _unchanged(share)
    }
    tables = {
        str(name)
        for (name,) in corpus.rows(
            "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE fast!_%' "
            "ESCAPE '!'"
        )
    }
    doomed = sorted(tables - kept)
    if doomed and not fast_index.available(corpus):
        raise ConfigurationError(
            "fast_index_out_of_reach",
            f"{corpus.path}: has a fast index, whose extension is missing here; "
            "the vectors in it cannot be erased, and nothing was purged",
            "install the wheel of apsw that carries vec1, or ingest into a new file with --db",
        )
    for share in shares:
        if share.fast_table not in kept:
            fast_index.remove(corpus, share)
    for table in doomed:
        # Also those that no record speaks of, such as one that an older schema left behind.
        corpus.run(f"DROP TABLE IF EXISTS {table}")


def _unchanged(share: Share) -> bool:
    state = FastState.read(share.fast)
    return state is not None and state.changed == 0


def _forget_files(corpus: Corpus, documents: Sequence[Candidate]) -> None:
    corpus.run(
        f"DELETE FROM file WHERE location {_THESE} AND id NOT IN (SELECT file FROM document)",
        (json.dumps(sorted({one.location for one in documents})),),
    )


def _forget_claims(corpus: Corpus, documents: Sequence[Candidate]) -> None:
    """Take what is gone out of what other documents say that they replace."""
    names = {one.document_id for one in documents} | {one.path for one in documents}
    names -= {path for (path,) in corpus.rows("SELECT path FROM file")}
    chosen = (json.dumps(sorted(names)),)
    claims = corpus.rows(
        "SELECT DISTINCT d.id, d.supersedes FROM supersession s JOIN document d ON d.id = s.newer "
        f"WHERE s.superseded {_THESE}",
        chosen,
    )
    for row, claimed in claims:
        left = tuple(name for name in json.loads(claimed) if name not in names)
        corpus.run("UPDATE document SET supersedes = ? WHERE id = ?", (json_array(left), row))
    corpus.run(f"DELETE FROM supersession WHERE superseded {_THESE}", chosen)


def unfinished(corpus: Corpus) -> list[Receipt]:
    """The purges of which bytes may still be there, the oldest first."""
    return [one for one in receipts(corpus) if one.state != "done"]


def receipts(corpus: Corpus) -> list[Receipt]:
    """Every purge that there was, the oldest first."""
    found = corpus.rows(
        "SELECT id, purged_at, documents, chunks, vectors, state FROM purge ORDER BY purged_at, id"
    )
    return [
        Receipt(
            id=receipt,
            purged_at=purged_at,
            documents=documents,
            chunks=chunks,
            vectors=vectors,
            state="done" if state == "done" else "pending",
        )
        for receipt, purged_at, documents, chunks, vectors, state in found
    ]


def finish(corpus: Corpus, patience_ms: int | None = None) -> Obstacle:
    """Do what remains of every purge: write the file anew, and empty its log.

    Call it outside of any transaction.

    Args:
        corpus: a corpus open for writing.
        patience_ms: how long to wait for other processes; as always, where nothing is said.

    Returns:
        What stood in the way, so that it has to be called again; empty where all is done.
    """
    if not _in_state(corpus, "erased", "rewritten"):
        return ""
    with _waiting(corpus, patience_ms):
        try:
            return _finish(corpus)
        except CorpusBusy:
            return "writer"
        except StorageError:
            return "disk"


def _finish(corpus: Corpus) -> Obstacle:
    # Each step vouches for the purges that it knew of: another process may add one meanwhile.
    erased = _in_state(corpus, "erased")
    if erased:
        corpus.run("VACUUM")
        _advance(corpus, erased, "rewritten")
    rewritten = _in_state(corpus, "rewritten")
    if not _log_emptied(corpus):
        return "reader"
    try:
        # Now: nobody reads the old state any more, and so nobody adds to the cache out of it.
        rerank_cache.erase(corpus.path)
    except StorageError:
        return "cache"
    _advance(corpus, rewritten, "done")
    return ""


def _log_emptied(corpus: Corpus) -> bool:
    """Fold the log into the file and cut it off; False while somebody still reads from it."""
    [(busy, *_)] = corpus.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    return not busy


def _in_state(corpus: Corpus, *states: str) -> list[str]:
    found = corpus.rows(f"SELECT id FROM purge WHERE state {_THESE}", (json.dumps(states),))
    return [receipt for (receipt,) in found]


def _advance(corpus: Corpus, purges: Sequence[str], state: str) -> None:
    with corpus.writing():
        corpus.run(
            f"UPDATE purge SET state = ? WHERE id {_THESE}", (state, json.dumps(list(purges)))
        )


@contextmanager
def _waiting(corpus: Corpus, milliseconds: int | None) -> Iterator[None]:
    if milliseconds is None:
        yield
        return
    before = corpus.value("PRAGMA busy_timeout")
    corpus.db.set_busy_timeout(milliseconds)
    try:
        yield
    finally:
        corpus.db.set_busy_timeout(before)


def backups(path: Path) -> list[Path]:
    """The copies that migrations left beside a corpus, whole or cut off: each holds it all."""
    prefix = f"{path.name}.schema-"
    try:
        beside = sorted(path.absolute().parent.iterdir())
    except OSError:
        return []
    return [
        entry
        for entry in beside
        if entry.name.startswith(prefix) and ".bak" in entry.name[len(prefix) :]
    ]


def delete_backups(path: Path) -> int:
    """Delete these copies; how many there were.

    Raises:
        StorageError: one of them could not be deleted.
    """
    found = backups(path)
    for entry in found:
        try:
            entry.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                "backup_stays",
                f"{entry}: this copy of the corpus could not be deleted ({error.strerror})",
                "delete it yourself; what was purged from the corpus is still in it",
            ) from error
    return len(found)
