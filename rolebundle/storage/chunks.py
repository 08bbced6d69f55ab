"""Writing the chunks of documents: their rows, words and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rolebundle.contracts.documents import DocumentMetadata, attribute_texts
from rolebundle.storage import compartments, vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.digests import (
    EMBEDDED_COLUMNS,
    INDEXED_COLUMNS,
    UNINDEXED_COLUMNS,
    chunk_digest,
)
from rolebundle.storage.documents import (
    StoredChunk,
)
from rolebundle.storage.passages import indexed_title
from rolebundle.storage.sqlite import AMONG, Row
from rolebundle.storage.stored_values import json_array


def next_row(corpus: Corpus, table: str) -> int:
    """The first rowid after all rows of the table."""
    return 1 + int(corpus.value(f"SELECT coalesce(max(id), 0) FROM {table}"))


def assignments(columns: str) -> str:
    """The SET part of an UPDATE of these columns."""
    return ", ".join(f"{name} = ?" for name in columns.split(", "))


def chunk_columns(metadata: DocumentMetadata, chunks: Sequence[StoredChunk]) -> dict[str, Row]:
    """Chunk id → the other columns of the chunk's row."""
    return {
        chunk.chunk_id: (
            indexed_title(metadata.title, chunk.content),
            json_array(chunk.headings),
            chunk.content,
            json_array(_distinct(metadata.tags, chunk.tags)),
            json_array(_hints(metadata, ordinal, chunk.forms)),
            ordinal,
            chunk.content_type,
            chunk.content_hash,
            chunk.start_line,
            chunk.end_line,
            chunk.page,
            json_array(chunk.applicable_roles or metadata.applicable_roles),
            json_array(_distinct(metadata.excluded_roles, chunk.excluded_roles)),
            chunk.anchor,
        )
        for ordinal, chunk in enumerate(chunks)
    }


def _hints(metadata: DocumentMetadata, ordinal: int, forms: str) -> tuple[str, ...]:
    """Words for the index alone. They are no part of what is shown or embedded of a chunk."""
    hints = metadata.retrieval_hints
    if metadata.attributes and ordinal == 0:
        # Only in the first chunk: in each one they would make all chunks of the document longer,
        # and match where the text does not.
        hints += attribute_texts(metadata.attributes)
    return (*hints, forms) if forms else hints


def update_chunks(
    corpus: Corpus, document_row: int, compartment: int, now: Mapping[str, Row]
) -> dict[str, Row]:
    """Update and remove a document's stored chunks to match ``now``. Return the new ones."""
    before: dict[str, Row] = {
        row[0]: row[1:]
        for row in corpus.rows(
            f"SELECT chunk_id, id, {INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}, digest FROM chunk "
            "WHERE document = ?",
            (document_row,),
        )
    }
    remove_chunks(corpus, [row[0] for name, row in before.items() if name not in now])
    for name, values in now.items():
        if name in before:
            rowid, *old = before[name]
            digest = chunk_digest((rowid, document_row, name, *values))
            _update_chunk(corpus, compartment, rowid, tuple(old), (*values, digest))
    return {name: values for name, values in now.items() if name not in before}


def _update_chunk(corpus: Corpus, compartment: int, rowid: int, old: Row, values: Row) -> None:
    if old == values:
        return
    indexed, embedded = (
        len(columns.split(", ")) for columns in (INDEXED_COLUMNS, EMBEDDED_COLUMNS)
    )
    reindex = old[:indexed] != values[:indexed]
    if reindex:
        corpus.lexical.remove_chunks(corpus, compartment, [rowid])
    if old[:embedded] != values[:embedded]:
        _remove_vectors(corpus, [rowid])
    corpus.run(
        f"UPDATE chunk SET {assignments(f'{INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}, digest')} "
        "WHERE id = ?",
        (*values, rowid),
    )
    if reindex:
        corpus.lexical.add_range(corpus, compartment, rowid, rowid)


def insert_chunks(corpus: Corpus, rows: Sequence[Row]) -> None:
    """Insert chunks. Each row is (document row, chunk id, *columns)."""
    if not rows:
        return
    first = next_row(corpus, "chunk")
    numbered = [(first + offset, *row) for offset, row in enumerate(rows)]
    columns = f"id, document, chunk_id, {INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}, digest"
    corpus.insert(f"chunk ({columns})", [(*row, chunk_digest(row)) for row in numbered])
    last = first + len(rows) - 1
    for compartment, count in compartments.count_by_compartment(corpus, first, last).items():
        corpus.lexical.add_range(corpus, compartment, first, last)
        compartments.add_to_counts(corpus, compartment, chunks=count)
    corpus.run("UPDATE corpus_state SET chunks = chunks + ?", (len(rows),))


def remove_chunks(corpus: Corpus, rowids: Sequence[int]) -> None:
    """Remove chunks from the table and from all indexes."""
    if not rowids:
        return
    for compartment, chunks in compartments.chunks_by_compartment(corpus, rowids).items():
        corpus.lexical.remove_chunks(corpus, compartment, chunks)
        compartments.add_to_counts(corpus, compartment, chunks=-len(chunks))
    _remove_vectors(corpus, rowids)
    corpus.run(f"DELETE FROM chunk WHERE id {AMONG}", ([*rowids],))
    corpus.run("UPDATE corpus_state SET chunks = chunks - ?", (len(rowids),))


def _remove_vectors(corpus: Corpus, rowids: Sequence[int]) -> None:
    for index in vector_index.all_indexes(corpus):
        vector_index.remove(corpus, index, rowids)


def _distinct(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second))) if second else first
