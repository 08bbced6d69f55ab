"""The file of a replica: the visible part of a corpus, where it is made, and what it records."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from rolebundle.errors import CorpusBusy, storage_errors
from rolebundle.storage import decisions, digests, partition, vector_index
from rolebundle.storage.compartments import FACTS_PATTERN, add_to_counts, visible_compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import folder_lock, is_there, published_folder, sync_folder
from rolebundle.storage.publications import PUBLISHED
from rolebundle.storage.seal import digest_rows, row_digest
from rolebundle.storage.sqlite import IN_SET, Row, SqliteFile
from rolebundle.storage.store import insert_chunks
from rolebundle.storage.stored_values import grouped
from rolebundle.storage.vector_index import EmbeddingIndex

_NOT_COVERED = ("replica", "seal", "corpus_state")
"""Tables that depend on the manifest. The manifest has the values of ``corpus_state``."""
_ROWS_PER_STEP = 1_000


def set_identity(replica: Corpus, corpus_id: str, generation: int) -> None:
    """Give a replica the identity of its corpus, and its generation, inside a write transaction."""
    replica.run("UPDATE corpus_state SET corpus_id = ?, generation = ?", (corpus_id, generation))


def compact(replica: Corpus) -> None:
    """Merge the lexical indexes of a new replica, and leave no free page in its file."""
    with replica.writing():
        for compartment in visible_compartments(replica):
            while replica.lexical.merge(replica, compartment.id):
                pass
    replica.run("VACUUM")


def content_digest(corpus: Corpus) -> str:
    """The digest of every row of every table as it is stored, also of the indexes' own tables.

    With SQLite's own check, which compares its indexes with the tables, it proves a whole file. It
    leaves out what depends on the manifest.
    """
    digest = blake2b(digest_size=16)
    # SQLite makes the indexes of constraints without a statement.
    for kind, name, sql in corpus.rows(
        "SELECT type, name, sql FROM main.sqlite_schema WHERE sql NOT NULL ORDER BY type, name"
    ):
        is_stored = kind == "table" and not str(sql).startswith("CREATE VIRTUAL")
        digest.update(row_digest([str(kind), str(name), str(sql)]))
        if is_stored and name not in _NOT_COVERED:
            # Not through an index that has all columns: the order is that of the table.
            quoted = str(name).replace('"', '""')
            rows = corpus.iterate(f'SELECT * FROM main."{quoted}" NOT INDEXED')
            while batch := list(islice(rows, _ROWS_PER_STEP)):
                digest_rows(digest, batch)
    return digest.hexdigest()


def prepare_for_readers(replica: SqliteFile) -> None:
    """Let readers need no log: a file that is replaced while others read it must have none."""
    replica.run("PRAGMA journal_mode = delete")


@contextmanager
def staging(corpus: Path) -> Iterator[Path]:
    """A block in which this process alone has the folder in which replicas are made.

    What a killed process left in it is deleted first. Begin it before the corpus is read for a
    replica. Then no purge ends while what it erased is written or sent.

    Raises:
        CorpusBusy: another process publishes, or purges.
        StorageError: the folder cannot be created or emptied.
    """
    folder = published_folder(corpus)
    with storage_errors(
        "staging_unwritable",
        f"{folder}: the folder in which replicas are made cannot be created",
        "let the owner of the corpus write in its folder",
    ):
        folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as locks:
        # The lock is on the folder of the path that it is given.
        lock = folder_lock(folder / "replica.db", exclusive=True)
        try:
            locks.enter_context(lock)
        except CorpusBusy as error:
            problem = f"{corpus}: another process publishes it"
            step = "wait for it to end and run the same command again"
            raise CorpusBusy("publish_busy", problem, step) from error
        with storage_errors(
            "staged_replica_stays",
            f"{folder}: a replica in it could not be deleted",
            "delete it yourself; it may have what was purged from the corpus",
        ):
            _empty(folder)
        yield folder


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            # Earlier versions kept the last replica of each target in a folder.
            shutil.rmtree(path)
        else:
            path.unlink()
    sync_folder(folder)


def erase_staged(corpus: Path) -> None:
    """Delete the replicas that killed processes left, because they may hold what was purged.

    Raises:
        CorpusBusy: another process publishes.
        StorageError: one of them cannot be deleted.
    """
    if is_there(published_folder(corpus)):
        with staging(corpus):
            pass


Pseudonym = Callable[[str], str]
"""Replaces a text that a replica must not show; equal texts get equal pseudonyms."""

# Only these columns are copied. The others have the text that the scan removed, notes of it, or its
# hash, with which someone could test guesses of a secret.
_SCANNED_COLUMNS = "verdict, kinds"
_MARK_COLUMNS = "kind, target, text_hash, state, marked_by, authority, reason, marked_at"
_CHUNK_COLUMNS = f"chunk_id, {digests.INDEXED_COLUMNS}, {digests.UNINDEXED_COLUMNS}"
_DOCUMENTS = (
    "SELECT d.id, d.document_id, s.source_id, f.path, f.location, k.scope, k.sensitivity, "
    f"k.denied, d.{digests.OWN_COLUMNS.replace(', ', ', d.')}, "
    "(SELECT json_group_array(json_array(superseded, reach)) FROM "
    "(SELECT superseded, reach FROM supersession WHERE newer = d.id ORDER BY superseded)), "
    f"(SELECT json_array({_SCANNED_COLUMNS}) FROM scanned WHERE document = d.id), "
    f"(SELECT json_array({digests.REMEMBERED_COLUMNS}) FROM remembered WHERE document = d.id) "
    "FROM document d JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file "
    f"JOIN compartment k ON k.id = d.compartment WHERE d.id {IN_SET} ORDER BY d.document_id"
)
_DOCUMENTS_PER_STEP = 500
_VECTORS_PER_STEP = 5_000


def keyed_pseudonym(key: bytes) -> Pseudonym:
    """Pseudonyms that nobody can test guesses against without the key."""

    def pseudonym(text: str) -> str:
        content = text.encode("utf-8", "surrogatepass")
        return PUBLISHED + blake2b(content, key=key, digest_size=12).hexdigest()

    return pseudonym


def copy_visible(
    source: Corpus, replica: Corpus, pseudonym: Pseudonym, decision_scopes: Sequence[str] | None
) -> None:
    """Copy all that a restricted connection shows. The same content gives the same rows.

    Call it inside a write transaction of the replica and a read transaction of the source.

    Args:
        source: a restricted connection.
        replica: a new corpus.
        pseudonym: replaces locations and deny patterns.
        decision_scopes: the scopes whose decisions are copied; ``None`` for every scope.
    """
    rows = source.column("SELECT id FROM document ORDER BY document_id")
    for start in range(0, len(rows), _DOCUMENTS_PER_STEP):
        _copy_documents(source, replica, pseudonym, rows[start : start + _DOCUMENTS_PER_STEP])
    replica.run("UPDATE corpus_state SET documents = ?", (len(rows),))
    indexes = vector_index.all_indexes(source)
    # The numbers of the source tell of indexes that were deleted.
    for index in sorted(indexes, key=lambda index: str((index.identity, index.started_at))):
        _copy_index(source, replica, index)
    marks = source.rows(f"SELECT {_MARK_COLUMNS} FROM mark ORDER BY kind, target")
    replica.insert(f"mark ({_MARK_COLUMNS})", marks)
    scopes = (None if decision_scopes is None else sorted(decision_scopes),)
    selects = {"decision": decisions.ROWS_OF_SCOPES, "decision_end": decisions.ENDS_OF_SCOPES}
    for table, select in selects.items():
        replica.insert(table, source.rows(f"{select} ORDER BY scope, number", scopes))
    # That of a document covers those of its findings.
    for table in ("file", "scanned", "remembered", "document"):
        digests.write(replica, table)


def _copy_documents(
    source: Corpus, replica: Corpus, pseudonym: Pseudonym, rows: Sequence[int]
) -> None:
    """Copy these documents of the source with their chunks."""
    listed = (rows,)
    chosen = f"SELECT document, {_CHUNK_COLUMNS} FROM chunk WHERE document {IN_SET}"
    found = source.iterate(f"{chosen} ORDER BY document, ordinal, chunk_id", listed)
    chunks = grouped((document, columns) for document, *columns in found)
    copied: list[Row] = []
    for source_row, *columns in source.iterate(_DOCUMENTS, listed):
        row = _copy_document(replica, pseudonym, columns)
        copied += [(row, *chunk) for chunk in chunks.get(source_row, ())]
    insert_chunks(replica, copied)


def _copy_document(replica: Corpus, pseudonym: Pseudonym, values: Sequence[Any]) -> int:
    """Write a row of ``_DOCUMENTS`` without its number. Return its number in the replica."""
    document_id, source_id, path, location, scope, sensitivity, denied, *own = values
    *own, claims, scanned, remembered = own
    patterns = set(json.loads(denied))
    shown = {pseudonym(denied)} if patterns - {FACTS_PATTERN} else set()
    shown |= patterns & {FACTS_PATTERN}
    compartment = partition.find_or_create(replica, scope, sensitivity, sorted(shown))
    location = pseudonym(location)
    # One file may have several documents.
    replica.run(
        "INSERT OR IGNORE INTO file (location, path, content_hash, recipe) VALUES (?, ?, '', '')",
        (location, path),
    )
    replica.run("INSERT OR IGNORE INTO source (source_id) VALUES (?)", (source_id,))
    replica.run(
        f"INSERT INTO document (document_id, file, source, compartment, {digests.OWN_COLUMNS}) "
        "VALUES (?, (SELECT id FROM file WHERE location = ?), "
        f"(SELECT id FROM source WHERE source_id = ?), ?, {', '.join('?' * len(own))})",
        (document_id, location, source_id, compartment, *own),
    )
    row = replica.last_rowid()
    add_to_counts(replica, compartment, documents=1)
    claimed = [(row, *claim) for claim in json.loads(claims)]
    replica.insert("supersession (newer, superseded, reach)", claimed)
    if scanned:
        columns = f"document, {_SCANNED_COLUMNS}, content_hash, findings, original"
        replica.insert(f"scanned ({columns})", [(row, *json.loads(scanned), "", "[]", "")])
    if remembered:
        columns = f"document, {digests.REMEMBERED_COLUMNS}, digest"
        replica.insert(f"remembered ({columns})", [(row, *json.loads(remembered), b"")])
    return row


def _copy_index(source: Corpus, replica: Corpus, index: EmbeddingIndex) -> None:
    """Copy an embedding index with its vectors."""
    new_index = vector_index.create_index(
        replica,
        index.identity,
        connection=index.connection,
        started_at=index.started_at,
        activate=index.active,
    )
    if index.noise is not None:
        vector_index.set_noise(replica, new_index, index.noise)
    chunks: dict[str, int] = dict(replica.rows("SELECT chunk_id, id FROM chunk"))
    vectors = source.iterate(
        "SELECT c.chunk_id, e.input_hash, e.vector FROM document d "
        "JOIN chunk c ON c.document = d.id JOIN embedded e ON e.chunk = c.id "
        "WHERE e.index_id = ? ORDER BY d.document_id, c.ordinal, c.chunk_id",
        (index.id,),
    )
    while batch := list(islice(vectors, _VECTORS_PER_STEP)):
        vector_index.add(replica, new_index, [(chunks[name], *vector) for name, *vector in batch])
