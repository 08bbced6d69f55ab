"""Copying what a restricted connection shows into a new corpus, the file of a replica.

Nothing is copied that the connection does not show, so a replica cannot depend on anything else,
and no page of it ever held anything else. Rows get numbers of the replica's own. What would tell
of the publisher's machine or policy, the locations of files and the deny patterns of compartments,
is replaced by pseudonyms. A row of a file keeps only its path: its hash covers all of its
documents, also those that are not visible.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from rolebundle.storage import digests
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.chunks import insert_chunks
from rolebundle.storage.digests import INDEXED_COLUMNS, OWN_COLUMNS, UNINDEXED_COLUMNS
from rolebundle.storage.files.sqlite_file import Row
from rolebundle.storage.indexes import compartments, partition, vector_index
from rolebundle.storage.indexes.compartments import FACTS
from rolebundle.storage.indexes.vector_index import EmbeddingIndex
from rolebundle.storage.records import decisions
from rolebundle.storage.records.replica import PUBLISHED

Pseudonym = Callable[[str], str]
"""Replaces a text that a replica must not show; equal texts get equal pseudonyms."""

# What agents are shown. The other columns have the text that the scan took out of a document: as a
# whole, in notes, and as a hash, against which guesses of a secret could be tested.
_SCANNED_COLUMNS = "verdict, kinds"
_REMEMBERED_COLUMNS = (
    "fact_hash, source_document, remembered_by, count, first_at, last_at, promoted_by"
)
_MARK_COLUMNS = "kind, target, text_hash, state, marked_by, authority, reason, marked_at"
_CHUNK_COLUMNS = f"chunk_id, {INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}"
_IN_LIST = "IN (SELECT value FROM json_each(?))"
_DOCUMENTS = (
    "SELECT d.id, d.document_id, s.source_id, f.path, f.location, k.scope, k.sensitivity, "
    f"k.denied, d.{OWN_COLUMNS.replace(', ', ', d.')}, "
    "(SELECT json_group_array(json_array(superseded, reach)) FROM "
    "(SELECT superseded, reach FROM supersession WHERE newer = d.id ORDER BY superseded)), "
    f"(SELECT json_array({_SCANNED_COLUMNS}) FROM scanned WHERE document = d.id), "
    f"(SELECT json_array({_REMEMBERED_COLUMNS}) FROM remembered WHERE document = d.id) "
    "FROM document d JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file "
    f"JOIN compartment k ON k.id = d.compartment WHERE d.id {_IN_LIST} ORDER BY d.document_id"
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
    source: Corpus,
    replica: Corpus,
    pseudonym: Pseudonym,
    decision_scopes: Sequence[str] | None,
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
    for index in sorted(
        vector_index.all_indexes(source),
        # The numbers of the source tell of indexes that were deleted.
        key=lambda index: str((index.identity, index.started_at)),
    ):
        _copy_index(source, replica, index)
    marks = source.rows(f"SELECT {_MARK_COLUMNS} FROM mark ORDER BY kind, target")
    replica.insert(f"mark ({_MARK_COLUMNS})", marks)
    scopes = (None if decision_scopes is None else sorted(decision_scopes),)
    for table, select in (
        ("decision", decisions.ROWS_OF_SCOPES),
        ("decision_end", decisions.ENDS_OF_SCOPES),
    ):
        replica.insert(table, source.rows(f"{select} ORDER BY scope, number", scopes))
    # That of a document covers those of its findings.
    for table in ("file", "scanned", "remembered", "document"):
        digests.write(replica, table)


def _copy_documents(
    source: Corpus, replica: Corpus, pseudonym: Pseudonym, rows: Sequence[int]
) -> None:
    """Copy these documents of the source with their chunks."""
    listed = ([*rows],)
    chunks: dict[int, list[Row]] = {}
    for document, *columns in source.iterate(
        f"SELECT document, {_CHUNK_COLUMNS} FROM chunk WHERE document {_IN_LIST} "
        "ORDER BY document, ordinal, chunk_id",
        listed,
    ):
        chunks.setdefault(document, []).append(tuple(columns))
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
    labels = {pseudonym(denied)} if patterns - {FACTS} else set()
    labels |= patterns & {FACTS}
    compartment = partition.find_or_create(replica, scope, sensitivity, sorted(labels))
    location = pseudonym(location)
    # One file may have several documents.
    replica.run(
        "INSERT OR IGNORE INTO file (location, path, content_hash, recipe) VALUES (?, ?, '', '')",
        (location, path),
    )
    replica.run("INSERT OR IGNORE INTO source (source_id) VALUES (?)", (source_id,))
    replica.run(
        f"INSERT INTO document (document_id, file, source, compartment, {OWN_COLUMNS}) "
        "VALUES (?, (SELECT id FROM file WHERE location = ?), "
        f"(SELECT id FROM source WHERE source_id = ?), ?, {', '.join('?' * len(own))})",
        (document_id, location, source_id, compartment, *own),
    )
    row = replica.last_rowid()
    compartments.add_to_counts(replica, compartment, documents=1)
    claimed = [(row, *claim) for claim in json.loads(claims)]
    replica.insert("supersession (newer, superseded, reach)", claimed)
    if scanned:
        columns = f"document, {_SCANNED_COLUMNS}, content_hash, findings, original"
        replica.insert(f"scanned ({columns})", [(row, *json.loads(scanned), "", "[]", "")])
    if remembered:
        columns = f"document, {_REMEMBERED_COLUMNS}, digest"
        replica.insert(f"remembered ({columns})", [(row, *json.loads(remembered), b"")])
    return row


def _copy_index(source: Corpus, replica: Corpus, index: EmbeddingIndex) -> None:
    """Copy an embedding index with its vectors."""
    own = vector_index.create_index(
        replica,
        index.identity,
        connection=index.connection,
        started_at=index.started_at,
        activate=index.active,
    )
    if index.noise is not None:
        vector_index.set_noise(replica, own, index.noise)
    chunks: dict[str, int] = dict(replica.rows("SELECT chunk_id, id FROM chunk"))
    vectors = source.iterate(
        "SELECT c.chunk_id, e.input_hash, e.vector FROM document d "
        "JOIN chunk c ON c.document = d.id JOIN embedded e ON e.chunk = c.id "
        "WHERE e.index_id = ? ORDER BY d.document_id, c.ordinal, c.chunk_id",
        (index.id,),
    )
    while batch := list(islice(vectors, _VECTORS_PER_STEP)):
        vector_index.add(replica, own, [(chunks[name], *vector) for name, *vector in batch])
