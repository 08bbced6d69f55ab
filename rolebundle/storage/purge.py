"""Erasing documents so that no byte of them is left in any file of the corpus.

Deleting is not erasing. ``secure_delete`` overwrites deleted rows, but not the copies that stay in
a page when it is split and some of its rows move to a new page. FTS5 keeps the words of a deleted
chunk until it merges its segments, and even its 'optimize' may leave some. So a purge deletes,
rebuilds every lexical index from the chunks, then rewrites the whole file (VACUUM) and empties the
log.

The deletion, the raised purge generations of publications and a row in the table ``purge`` are one
transaction. A run that is killed has either done nothing, or left a row with what remains to be
done. What a killed publish left is deleted, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from rolebundle.contracts.upkeep import Obstacle, Receipt
from rolebundle.errors import CorpusBusy, StorageError, storage_errors
from rolebundle.storage import compartments, digests, marks, replicas, roots, store
from rolebundle.storage.backup import KEPT_FILE_NAME
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.decisions import DecisionKey, erase_decisions
from rolebundle.storage.documents import DocumentName
from rolebundle.storage.file import files_beside
from rolebundle.storage.publications import decision_name, raise_purge_generations
from rolebundle.storage.sqlite import IN_SET
from rolebundle.storage.stored_values import json_array

_CLAIMS = ("supersedes", "contradicts", "refused_claims")
_NAMING_KEYS = ("supersedes", "contradicts", "document_id")
_COPY = re.compile(rf"\.schema-.*\.bak.*|{KEPT_FILE_NAME}(?:-journal|-wal|-shm)?")


def purge_counts(corpus: Corpus, documents: Sequence[int]) -> dict[str, Any]:
    """How many documents, chunks and vectors are purged with these documents.

    Vectors of all embedding indexes count.
    """
    chunks = corpus.column(f"SELECT id FROM chunk WHERE document {IN_SET}", (documents,))
    vectors = corpus.value(f"SELECT count(*) FROM embedded WHERE chunk {IN_SET}", (chunks,))
    return {"documents": len(documents), "chunks": len(chunks), "vectors": vectors}


def erase(
    corpus: Corpus,
    documents: Sequence[DocumentName],
    purged_at: str,
    decided: Sequence[DecisionKey] = (),
) -> Receipt:
    """Delete documents with all that derives from them, and the words of decisions.

    Call it inside a write transaction, and :func:`finish` after it.

    Returns:
        The receipt, which is pending.
    """
    rowids = [document.rowid for document in documents]
    erased = purge_counts(corpus, rowids)
    marks.forget_marks(corpus, [document.document_id for document in documents])
    store.remove_documents(corpus, rowids)
    # Earlier versions kept vectors here; nothing reads them.
    corpus.run("DELETE FROM embedding_cache")
    _forget_files(corpus, documents)
    _forget_claims(corpus, documents)
    erase_decisions(corpus, decided, purged_at)
    store.drop_unused(corpus)
    for compartment in compartments.visible_compartments(corpus):
        # All of them: documents that moved or changed left words in other compartments.
        corpus.lexical.rebuild(corpus, compartment.id)
    increment_generation(corpus)
    raise_purge_generations(corpus, names_of(documents, decided))
    receipt = Receipt(id=uuid4().hex, purged_at=purged_at, **erased, state="pending")
    target = "purge (id, purged_at, documents, chunks, vectors, state)"
    corpus.insert(target, [(receipt.id, purged_at, *erased.values(), "erased")])
    return receipt


def names_of(documents: Sequence[DocumentName], decided: Sequence[DecisionKey]) -> list[str]:
    """The names of documents and decisions among what publications carried."""
    return [*(document.document_id for document in documents), *map(decision_name, decided)]


def _forget_files(corpus: Corpus, documents: Sequence[DocumentName]) -> None:
    chosen = sorted({document.location for document in documents})
    unused = "id NOT IN (SELECT file FROM document)"
    corpus.run(f"DELETE FROM file WHERE location {IN_SET} AND {unused}", (chosen,))
    # The location of a root may be that of a purged file.
    roots.forget_empty(corpus, chosen)


def _forget_claims(corpus: Corpus, documents: Sequence[DocumentName]) -> None:
    """Remove purged documents from what other documents claim to replace or to contradict."""
    names = {document.document_id for document in documents}
    names |= {document.path for document in documents}
    names -= set(corpus.column("SELECT path FROM file"))
    # A refused claim has its key before its value.
    names |= {f"{key}: {name}" for key in _NAMING_KEYS for name in names}
    chosen = (sorted(names),)
    changes: list[tuple[str, str, int]] = []
    for column in _CLAIMS:
        claiming = (
            f"SELECT id, {column} FROM document WHERE "
            f"EXISTS (SELECT 1 FROM json_each({column}) AS claim WHERE claim.value {IN_SET})"
        )
        for row, claimed in corpus.rows(claiming, chosen):
            remaining = tuple(name for name in json.loads(claimed) if name not in names)
            changes.append((column, json_array(remaining), row))
    newer = corpus.column(f"SELECT newer FROM supersession WHERE superseded {IN_SET}", chosen)
    with digests.renewing(corpus, sorted({*newer, *(row for *_, row in changes)})):
        for column, claims, row in changes:
            corpus.run(f"UPDATE document SET {column} = ? WHERE id = ?", (claims, row))
        corpus.run(f"DELETE FROM supersession WHERE superseded {IN_SET}", chosen)


def unfinished(corpus: Corpus) -> list[Receipt]:
    """The purges that may have left bytes in a file, the oldest first."""
    return [receipt for receipt in receipts(corpus) if receipt.state != "done"]


def receipts(corpus: Corpus) -> list[Receipt]:
    """Every purge, the oldest first."""
    names = ("id", "purged_at", "documents", "chunks", "vectors", "state")
    rows = corpus.rows(
        "SELECT id, purged_at, documents, chunks, vectors, "
        "CASE state WHEN 'done' THEN 'done' ELSE 'pending' END "
        "FROM purge ORDER BY purged_at, id"
    )
    return [Receipt(**dict(zip(names, row, strict=True))) for row in rows]


def purge_ids(corpus: Corpus) -> set[str]:
    """The ids of all purges."""
    return set(corpus.column("SELECT id FROM purge"))


def finish(corpus: Corpus) -> Obstacle:
    """Do what remains of every purge: rewrite the file, empty its log, delete what a publish left.

    Call it outside of any transaction.

    Returns:
        What prevented it, so that it must be called again; empty if all is done.
    """
    if not _in_state(corpus, "erased", "rewritten"):
        return ""
    # Each step only counts for the purges read before it: another process may add one meanwhile.
    try:
        erased = _in_state(corpus, "erased")
        if erased:
            if not corpus.rewrite():
                return "reader"
            _advance(corpus, erased, "rewritten")
        rewritten = _in_state(corpus, "rewritten")
        if not corpus.empty_log():
            return "reader"
        try:
            replicas.erase_staged(corpus.path)
        except CorpusBusy:
            return "publisher"
        except StorageError:
            return "staging"
        _advance(corpus, rewritten, "done")
    except CorpusBusy:
        return "writer"
    except StorageError:
        return "disk"
    return ""


def _in_state(corpus: Corpus, *states: str) -> list[str]:
    return corpus.column(f"SELECT id FROM purge WHERE state {IN_SET}", (states,))


def _advance(corpus: Corpus, purges: Sequence[str], state: str) -> None:
    with corpus.writing():
        corpus.run(f"UPDATE purge SET state = ? WHERE id {IN_SET}", (state, purges))


def backups(path: Path) -> list[Path]:
    """The copies of a corpus beside it: backups of migrations, and files that were set aside."""
    return [file for file, _ in files_beside(path, _COPY)]


def delete_backups(path: Path) -> int:
    """Delete these backups. Return how many there were.

    Raises:
        StorageError: one of them could not be deleted.
    """
    entries = backups(path)
    for entry in entries:
        with storage_errors(
            "backup_stays",
            f"{entry}: this backup of the corpus could not be deleted",
            "delete it yourself; what was purged from the corpus is still in it",
        ):
            entry.unlink(missing_ok=True)
    return len(entries)
