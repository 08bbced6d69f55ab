"""Writing files into the corpus. Every function here runs inside the caller's transaction.

A chunk that did not change keeps its row, its place in the lexical index and its vector.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.terms import ContentType
from rolebundle.corpus import lexical_index, vector_index
from rolebundle.corpus.connection import Corpus, Row
from rolebundle.errors import DocumentError


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it was read. ``location`` is absolute, ``path`` relative to the ingested folder."""

    location: str
    path: str
    content_hash: str
    recipe: str


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is stored."""

    chunk_id: str
    headings: tuple[str, ...]
    content: str
    content_type: ContentType
    content_hash: str
    start_line: int
    end_line: int
    page: int = 0
    tags: tuple[str, ...] = ()
    applicable_roles: tuple[str, ...] = ()
    excluded_roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with its chunks, in order."""

    metadata: DocumentMetadata
    chunks: tuple[StoredChunk, ...]


def known_files(corpus: Corpus) -> dict[str, tuple[str, str]]:
    """What was read before: location → (content hash, recipe)."""
    found = corpus.rows("SELECT location, content_hash, recipe FROM file")
    return {location: (content_hash, recipe) for location, content_hash, recipe in found}


def put_file(corpus: Corpus, file: StoredFile, documents: Sequence[StoredDocument]) -> None:
    """Store a file, replacing what the corpus had of it.

    Raises:
        DocumentError: a document or chunk id is taken by another file.
    """
    file_row = corpus.value("SELECT id FROM file WHERE location = ?", (file.location,))
    if file_row is None:
        corpus.run(
            "INSERT INTO file (location, path, content_hash, recipe) VALUES (?, ?, ?, ?)",
            (file.location, file.path, file.content_hash, file.recipe),
        )
        file_row = corpus.last_rowid()
    else:
        corpus.run(
            "UPDATE file SET path = ?, content_hash = ?, recipe = ? WHERE id = ?",
            (file.path, file.content_hash, file.recipe, file_row),
        )
    before: dict[str, int] = dict(
        corpus.rows("SELECT document_id, id FROM document WHERE file = ?", (file_row,))
    )
    kept = {document.metadata.document_id for document in documents}
    _remove_documents(corpus, [row for name, row in before.items() if name not in kept])
    for document in documents:
        _put_document(corpus, file_row, document, before.get(document.metadata.document_id))


def remove_files(corpus: Corpus, locations: Iterable[str]) -> None:
    """Remove files with all of their documents."""
    for location in locations:
        found = corpus.rows(
            "SELECT d.id FROM document d JOIN file f ON f.id = d.file WHERE f.location = ?",
            (location,),
        )
        _remove_documents(corpus, [row for (row,) in found])
        corpus.run("DELETE FROM file WHERE location = ?", (location,))


def note_change(corpus: Corpus) -> None:
    """Name a new state of the corpus. Every transaction that changes an answer ends with it."""
    corpus.run("UPDATE corpus_state SET generation = generation + 1")


def drop_unused_sources(corpus: Corpus) -> None:
    """Forget sources that have no documents left."""
    corpus.run("DELETE FROM source WHERE id NOT IN (SELECT source FROM document)")


def rowids_of(corpus: Corpus, chunk_ids: Sequence[str]) -> dict[str, int]:
    """Chunk id → rowid, for those that are stored."""
    return dict(
        corpus.rows(
            "SELECT chunk_id, id FROM chunk WHERE chunk_id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(chunk_ids)),),
        )
    )


def _put_document(
    corpus: Corpus, file_row: int, document: StoredDocument, document_row: int | None
) -> None:
    metadata = document.metadata
    values = (
        file_row,
        _source_row(corpus, metadata),
        metadata.title,
        metadata.uri,
        metadata.document_type,
        metadata.domain,
        metadata.trust_tier,
        metadata.updated_at,
        metadata.language,
        metadata.source_kind,
        metadata.sensitivity,
        metadata.origin,
        metadata.scope,
        _json(metadata.tags),
        _json(metadata.applicable_roles),
        _json(metadata.excluded_roles),
        _json(metadata.retrieval_hints),
        _json(metadata.supersedes),
    )
    if document_row is None:
        taken = corpus.rows(
            "SELECT f.path FROM document d JOIN file f ON f.id = d.file WHERE d.document_id = ?",
            (metadata.document_id,),
        )
        if taken:
            raise DocumentError(
                "duplicate_document_id",
                f"the document id {metadata.document_id!r} is taken by {taken[0][0]}",
                "give one of the two another document_id or source_id",
            )
        corpus.run(
            "INSERT INTO document (file, source, title, uri, document_type, domain, trust_tier, "
            "updated_at, language, source_kind, sensitivity, origin, scope, tags, "
            "applicable_roles, excluded_roles, retrieval_hints, supersedes, document_id) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, metadata.document_id),
        )
        document_row = corpus.last_rowid()
        corpus.run("UPDATE corpus_state SET documents = documents + 1")
    else:
        corpus.run(
            "UPDATE document SET file = ?, source = ?, title = ?, uri = ?, document_type = ?, "
            "domain = ?, trust_tier = ?, updated_at = ?, language = ?, source_kind = ?, "
            "sensitivity = ?, origin = ?, scope = ?, tags = ?, applicable_roles = ?, "
            "excluded_roles = ?, retrieval_hints = ?, supersedes = ? WHERE id = ?",
            (*values, document_row),
        )
        corpus.run("DELETE FROM supersession WHERE newer = ?", (document_row,))
    corpus.run_many(
        "INSERT OR IGNORE INTO supersession (newer, superseded) VALUES (?, ?)",
        ((document_row, old) for old in metadata.supersedes),
    )
    _put_chunks(corpus, document_row, document)


def _source_row(corpus: Corpus, metadata: DocumentMetadata) -> int:
    row = corpus.value("SELECT id FROM source WHERE source_id = ?", (metadata.source_id,))
    if row is None:
        corpus.run("INSERT INTO source (source_id) VALUES (?)", (metadata.source_id,))
        row = corpus.last_rowid()
    return int(row)


_INDEXED = "title, headings, content, tags, hints"
_UNINDEXED = (
    "ordinal, content_type, content_hash, start_line, end_line, page, applicable_roles, "
    "excluded_roles"
)
_EMBEDDED = 3  # title, headings and content are what a vector is made of


def _put_chunks(corpus: Corpus, document_row: int, document: StoredDocument) -> None:
    before: dict[str, Row] = {
        row[0]: row[1:]
        for row in corpus.rows(
            f"SELECT chunk_id, id, {_INDEXED}, {_UNINDEXED} FROM chunk WHERE document = ?",
            (document_row,),
        )
    }
    now = {
        chunk.chunk_id: _columns(document.metadata, ordinal, chunk)
        for ordinal, chunk in enumerate(document.chunks)
    }
    if len(now) != len(document.chunks):
        raise DocumentError(
            "duplicate_chunk_id",
            f"the document {document.metadata.document_id!r} brings one chunk id twice",
            "give each of its chunks an id of its own",
        )
    _remove_chunks(corpus, [row[0] for name, row in before.items() if name not in now])
    for name, values in now.items():
        if name in before:
            _update_chunk(corpus, before[name], values)
    _insert_chunks(
        corpus, document_row, [(name, *v) for name, v in now.items() if name not in before]
    )


def _columns(metadata: DocumentMetadata, ordinal: int, chunk: StoredChunk) -> Row:
    return (
        metadata.title,
        _json(chunk.headings),
        chunk.content,
        _json(dict.fromkeys((*metadata.tags, *chunk.tags))),
        _json(metadata.retrieval_hints),
        ordinal,
        chunk.content_type,
        chunk.content_hash,
        chunk.start_line,
        chunk.end_line,
        chunk.page,
        _json(chunk.applicable_roles or metadata.applicable_roles),
        _json(dict.fromkeys((*metadata.excluded_roles, *chunk.excluded_roles))),
    )


def _update_chunk(corpus: Corpus, before: Row, values: Row) -> None:
    rowid, old = before[0], before[1:]
    if old == values:
        return
    indexed = _INDEXED.count(",") + 1
    reindex = old[:indexed] != values[:indexed]
    if reindex:
        lexical_index.remove(corpus, [rowid])
    if old[:_EMBEDDED] != values[:_EMBEDDED]:
        _remove_vectors(corpus, [rowid])
    names = f"{_INDEXED}, {_UNINDEXED}".split(", ")
    corpus.run(
        f"UPDATE chunk SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?",
        (*values, rowid),
    )
    if reindex:
        lexical_index.add(corpus, rowid, rowid)


def _insert_chunks(corpus: Corpus, document_row: int, rows: Sequence[Row]) -> None:
    if not rows:
        return
    taken = rowids_of(corpus, [row[0] for row in rows])
    if taken:
        raise DocumentError(
            "duplicate_chunk_id",
            f"the chunk id {min(taken)!r} is taken by another document",
            "give one of the two chunks another id",
        )
    first = 1 + int(corpus.value("SELECT coalesce(max(id), 0) FROM chunk"))
    places = ", ".join("?" * (3 + len(rows[0]) - 1))
    corpus.run_many(
        f"INSERT INTO chunk (id, document, chunk_id, {_INDEXED}, {_UNINDEXED}) VALUES ({places})",
        ((first + offset, document_row, *row) for offset, row in enumerate(rows)),
    )
    lexical_index.add(corpus, first, first + len(rows) - 1)
    corpus.run("UPDATE corpus_state SET chunks = chunks + ?", (len(rows),))


def _remove_documents(corpus: Corpus, document_rows: Sequence[int]) -> None:
    if not document_rows:
        return
    chosen = json.dumps(list(document_rows))
    chunk_rows = corpus.rows(
        "SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?))", (chosen,)
    )
    _remove_chunks(corpus, [row for (row,) in chunk_rows])
    corpus.run("DELETE FROM document WHERE id IN (SELECT value FROM json_each(?))", (chosen,))
    corpus.run("UPDATE corpus_state SET documents = documents - ?", (len(document_rows),))


def _remove_chunks(corpus: Corpus, rowids: Sequence[int]) -> None:
    if not rowids:
        return
    lexical_index.remove(corpus, rowids)
    _remove_vectors(corpus, rowids)
    corpus.run(
        "DELETE FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rowids)),),
    )
    corpus.run("UPDATE corpus_state SET chunks = chunks - ?", (len(rowids),))


def _remove_vectors(corpus: Corpus, rowids: Sequence[int]) -> None:
    for index in vector_index.all_indexes(corpus):
        vector_index.remove(corpus, index, rowids)


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
