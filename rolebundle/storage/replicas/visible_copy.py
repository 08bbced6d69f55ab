"""Copying what a restricted connection shows into a replica, and bringing a replica up to date.

Nothing is copied that the connection does not show, so a replica cannot depend on anything else.
Rows get numbers of the replica's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from rolebundle.storage import digests
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import store
from rolebundle.storage.content.chunks import insert_chunks, remove_chunks, update_chunks
from rolebundle.storage.content.rows import assignments
from rolebundle.storage.digests import OWN_COLUMNS
from rolebundle.storage.files.sqlite_file import Row
from rolebundle.storage.indexes import compartments, partition, vector_cache, vector_index
from rolebundle.storage.indexes.vector_index import EmbeddingIndex
from rolebundle.storage.replicas.visible_content import (
    CHUNK_COLUMNS,
    IN_LIST,
    MARK_COLUMNS,
    REMEMBERED_COLUMNS,
    SCANNED_COLUMNS,
    Pseudonym,
    VisibleDocument,
    document_states,
    model_of,
    unchanged,
    visible_decisions,
    visible_documents,
    visible_indexes,
    visible_marks,
)

_DOCUMENTS_PER_STEP = 500


class Difference(NamedTuple):
    """How many documents of a replica were added, updated and removed."""

    added: int
    updated: int
    removed: int
    has_other_changes: bool
    """Whether marks, decisions or embedding indexes changed."""


def synchronize(
    source: Corpus,
    replica: Corpus,
    pseudonym: Pseudonym,
    decision_scopes: Sequence[str] | None,
) -> Difference:
    """Make a replica hold exactly what a restricted connection shows.

    Call it inside a write transaction of the replica and a read transaction of the source. What did
    not change is not written again.

    Args:
        source: a restricted connection.
        replica: a corpus without documents, or an earlier replica.
        pseudonym: replaces locations and deny patterns.
        decision_scopes: the scopes whose decisions are copied; ``None`` for every scope.
    """
    indexes, has_other_changes = _synchronize_indexes(source, replica)
    now, before = document_states(source, pseudonym), document_states(replica, unchanged)
    removed = [state.row for name, state in before.items() if name not in now]
    store.remove_documents(replica, removed)
    changed = sorted(
        name
        for name, state in now.items()
        if name not in before or before[name].digest != state.digest
    )
    _remove_stale_chunks(
        source,
        replica,
        [now[name].row for name in changed if name in before],
        [before[name].row for name in changed if name in before],
    )
    for start in range(0, len(changed), _DOCUMENTS_PER_STEP):
        names = changed[start : start + _DOCUMENTS_PER_STEP]
        rows = {name: before[name].row for name in names if name in before}
        _put_documents(source, replica, pseudonym, [now[name].row for name in names], rows, indexes)
    replica.run("DELETE FROM file WHERE id NOT IN (SELECT file FROM document)")
    store.drop_unused(replica)
    has_other_changes |= _replace(
        replica, "mark", MARK_COLUMNS, visible_marks(source), visible_marks(replica)
    )
    for table, wanted, present in zip(
        ("decision", "decision_end"),
        visible_decisions(source, decision_scopes),
        visible_decisions(replica, None),
        strict=True,
    ):
        has_other_changes |= _replace(replica, table, "", wanted, present)
    vector_cache.clear_cache(replica)
    updated = sum(name in before for name in changed)
    return Difference(len(changed) - updated, updated, len(removed), has_other_changes)


def _replace(
    replica: Corpus, table: str, columns: str, wanted: Sequence[Row], present: Sequence[Row]
) -> bool:
    """Replace the rows of a small table, if they differ. Return whether they did."""
    if wanted == present:
        return False
    replica.run(f"DELETE FROM {table}")
    if wanted:
        places = ", ".join("?" * len(wanted[0]))
        target = f"{table} ({columns})" if columns else table
        replica.run_many(f"INSERT INTO {target} VALUES ({places})", wanted)
    return True


def _synchronize_indexes(source: Corpus, replica: Corpus) -> tuple[dict[int, EmbeddingIndex], bool]:
    """The replica's index for each index of the source, by its number; and whether any changed."""
    has_changes = visible_indexes(source) != visible_indexes(replica)
    wanted = vector_index.all_indexes(source)
    wanted_models = [model_of(index) for index in wanted]
    for index in vector_index.all_indexes(replica):
        if model_of(index) not in wanted_models:
            vector_index.delete_index(replica, index)
    indexes = {}
    for index in wanted:
        own = vector_index.find_index(replica, index.identity) or vector_index.create_index(
            replica, index.identity, started_at=index.started_at, activate=False
        )
        if has_changes:
            vector_index.set_chunker(replica, own, index.identity.chunker)
            vector_index.set_connection(replica, own, index.connection)
            if index.noise is not None:
                vector_index.set_noise(replica, own, index.noise)
            if index.active:
                vector_index.activate_index(replica, own)
        indexes[index.id] = own
    return indexes, has_changes


def _put_documents(
    source: Corpus,
    replica: Corpus,
    pseudonym: Pseudonym,
    rows: Sequence[int],
    before: dict[str, int],
    indexes: dict[int, EmbeddingIndex],
) -> None:
    """Write documents with all that belongs to them.

    Args:
        source: the source.
        replica: the replica.
        pseudonym: as for :func:`synchronize`.
        rows: the rows of the documents in the source.
        before: document id → row in the replica, for those that it has already.
        indexes: number of an index in the source → the replica's own.
    """
    written, new_chunks = [], []
    chunks = _chunks(source, rows)
    for document in visible_documents(source, pseudonym, rows):
        row = _put_document(replica, document, before.get(document.document_id))
        written.append(row)
        present = dict(chunks.get(document.row, ()))
        if document.document_id in before:
            compartment = int(
                replica.value("SELECT compartment FROM document WHERE id = ?", (row,))
            )
            present = update_chunks(replica, row, compartment, present)
        new_chunks += [(row, name, *columns) for name, columns in present.items()]
    insert_chunks(replica, new_chunks)
    for number, index in indexes.items():
        _put_vectors(source, replica, rows, number, index)
    files = replica.rows(f"SELECT file FROM document WHERE id {IN_LIST}", (json.dumps(written),))
    digests.write(replica, "file", [file for (file,) in files])
    for table in ("scanned", "remembered", "document"):
        digests.write(replica, table, written)


def _remove_stale_chunks(
    source: Corpus, replica: Corpus, source_rows: Sequence[int], rows: Sequence[int]
) -> None:
    """Remove the chunks that documents no longer have, so that others may have their ids."""
    select = (
        "SELECT d.document_id, c.chunk_id, c.id FROM chunk c JOIN document d ON d.id = c.document "
        f"WHERE d.id {IN_LIST}"
    )
    stored = source.rows(select, (json.dumps(list(source_rows)),))
    wanted = {(document, name) for document, name, _ in stored}
    present = replica.rows(select, (json.dumps(list(rows)),))
    remove_chunks(
        replica, [row for document, name, row in present if (document, name) not in wanted]
    )


def _chunks(source: Corpus, rows: Sequence[int]) -> dict[int, list[tuple[str, Row]]]:
    """Row of a document → its chunks in order, each as chunk id and columns."""
    found = source.rows(
        f"SELECT document, chunk_id, {CHUNK_COLUMNS} FROM chunk WHERE document {IN_LIST} "
        "ORDER BY document, ordinal, chunk_id",
        (json.dumps(list(rows)),),
    )
    return {
        document: [(name, tuple(columns)) for _, name, *columns in group]
        for document, group in groupby(found, key=itemgetter(0))
    }


def _put_document(replica: Corpus, document: VisibleDocument, row: int | None) -> int:
    """Write the row of a document and what belongs to it, without its chunks. Return the row."""
    compartment = partition.find_or_create(
        replica, document.scope, document.sensitivity, document.labels
    )
    # One file may have several documents.
    replica.run(
        "INSERT INTO file (location, path, content_hash, recipe) VALUES (?, ?, '', '') "
        "ON CONFLICT (location) DO UPDATE SET path = excluded.path",
        (document.location, document.path),
    )
    replica.run("INSERT OR IGNORE INTO source (source_id) VALUES (?)", (document.source_id,))
    file = replica.value("SELECT id FROM file WHERE location = ?", (document.location,))
    source = replica.value("SELECT id FROM source WHERE source_id = ?", (document.source_id,))
    if row is None:
        replica.run(
            f"INSERT INTO document (document_id, file, source, compartment, {OWN_COLUMNS}) "
            f"VALUES ({', '.join('?' * (4 + len(document.columns)))})",
            (document.document_id, file, source, compartment, *document.columns),
        )
        row = replica.last_rowid()
        replica.run("UPDATE corpus_state SET documents = documents + 1")
        compartments.add_to_counts(replica, compartment, documents=1)
    else:
        current = replica.value("SELECT compartment FROM document WHERE id = ?", (row,))
        if current != compartment:
            partition.move_documents(replica, [row], current, compartment)
        replica.run(
            f"UPDATE document SET file = ?, source = ?, {assignments(OWN_COLUMNS)} WHERE id = ?",
            (file, source, *document.columns, row),
        )
        for table, column in (
            ("supersession", "newer"),
            ("scanned", "document"),
            ("remembered", "document"),
        ):
            replica.run(f"DELETE FROM {table} WHERE {column} = ?", (row,))
    replica.run_many(
        "INSERT INTO supersession (newer, superseded, reach) VALUES (?, ?, ?)",
        ((row, *claim) for claim in json.loads(document.claims)),
    )
    if document.scanned:
        replica.run(
            f"INSERT INTO scanned (document, {SCANNED_COLUMNS}, content_hash, findings, original) "
            "VALUES (?, ?, ?, '', '[]', '')",
            (row, *json.loads(document.scanned)),
        )
    if document.remembered:
        replica.run(
            f"INSERT INTO remembered (document, {REMEMBERED_COLUMNS}, digest) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, x'')",
            (row, *json.loads(document.remembered)),
        )
    return row


def _put_vectors(
    source: Corpus, replica: Corpus, rows: Sequence[int], number: int, index: EmbeddingIndex
) -> None:
    """Give the chunks of these documents in the replica the vectors that the source has."""
    vectors = source.rows(
        "SELECT c.chunk_id, e.input_hash, e.vector_hash, e.vector FROM chunk c "
        f"JOIN embedded e ON e.chunk = c.id WHERE e.index_id = ? AND c.document {IN_LIST}",
        (number, json.dumps(list(rows))),
    )
    documents = source.rows(
        f"SELECT document_id FROM document WHERE id {IN_LIST}", (json.dumps(list(rows)),)
    )
    present = {
        name: (chunk, vector_hash)
        for name, chunk, vector_hash in replica.rows(
            "SELECT c.chunk_id, c.id, e.vector_hash FROM chunk c "
            "LEFT JOIN embedded e ON e.chunk = c.id AND e.index_id = ? WHERE c.document IN "
            f"(SELECT id FROM document WHERE document_id {IN_LIST}) ORDER BY c.id",
            (index.id, json.dumps([name for (name,) in documents])),
        )
    }
    new = [
        (present[name][0], input_hash, vector)
        for name, input_hash, vector_hash, vector in vectors
        if present[name][1] != vector_hash
    ]
    wanted = {name for name, *_ in vectors}
    vector_index.remove(
        replica, index, [chunk for name, (chunk, _) in present.items() if name not in wanted]
    )
    vector_index.add(replica, index, sorted(new))
