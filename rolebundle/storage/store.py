"""Writing files and documents. Every function here runs inside the caller's transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rolebundle.contracts.documents import DocumentMetadata, Texts, attribute_texts
from rolebundle.errors import DocumentError
from rolebundle.storage import partition, vector_index
from rolebundle.storage.compartments import REMEMBERED, Kind, add_to_counts, chunks_by_compartment
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.digests import (
    DOCUMENT_COLUMNS,
    EMBEDDED_COLUMNS,
    FILE_ROW,
    INDEXED_COLUMNS,
    SCANNED_ROW,
    UNINDEXED_COLUMNS,
    chunk_digest,
    document_digest,
    file_digest,
)
from rolebundle.storage.documents import (
    DOCUMENT_TABLES,
    FileIdentity,
    StoredChunk,
    StoredDocument,
    StoredFile,
)
from rolebundle.storage.passages import chunks_of, indexed_title
from rolebundle.storage.seal import row_digest
from rolebundle.storage.sqlite import IN_SET, Row
from rolebundle.storage.stored_values import json_array, typed, values_of

Files = Sequence[tuple[StoredFile, Sequence[StoredDocument]]]


def known_files(corpus: Corpus) -> dict[str, FileIdentity]:
    """Location → identity, for every file that was read. Remembered facts have none."""
    files = "SELECT location, path, content_hash, recipe FROM file WHERE location NOT LIKE ?"
    rows = corpus.rows(files, (f"{REMEMBERED}%",))
    return {location: (*identity,) for location, *identity in typed(rows, str, str, str, str)}


def known_sizes(corpus: Corpus) -> dict[str, int]:
    """Location → size in bytes, for every file that was read."""
    return dict(typed(corpus.rows("SELECT location, size FROM file"), str, int))


def put_files(
    corpus: Corpus,
    files: Files,
    deny_matcher: partition.DenyMatcher = partition.no_denied_patterns,
    displaced: list[tuple[str, DocumentError]] | None = None,
) -> list[DocumentError | None]:
    """Store files one after the other, each replacing its earlier version.

    A file that declares an id which belongs to another document is refused, and removed if it is
    stored.

    Args:
        corpus: a corpus open for writing.
        files: each file with its documents.
        deny_matcher: the deny patterns of the policy that match a file.
        displaced: gets the path of each stored file that was removed, with the reason.

    Returns:
        For each file why it was refused, or ``None``. Nothing of a refused file is written.
    """
    refused, removed = contested(corpus, files)
    remove_files(corpus, removed)
    if displaced is not None:
        displaced += [(path, _taken(name)) for path, name in removed.values()]
    batch = _Batch(corpus, files, deny_matcher)
    problems: list[DocumentError | None] = []
    for file, documents in files:
        problem = _taken(refused[file.location]) if file.location in refused else None
        try:
            if problem is None:
                batch.put(file, documents)
        except DocumentError as error:
            problem = error
        problems.append(problem)
    batch.insert_new_rows()
    partition.remove_empty(corpus)
    return problems


def _taken(name: str) -> DocumentError:
    problem = f"the id {name.lstrip()!r}, which it declares, belongs to another document"
    step = "declare another id"
    return DocumentError("duplicate_document_id", problem, step)


def remove_files(corpus: Corpus, locations: Iterable[str]) -> None:
    """Remove files with all of their documents."""
    of_file = "SELECT d.id FROM document d JOIN file f ON f.id = d.file WHERE f.location = ?"
    for location in locations:
        remove_documents(corpus, corpus.column(of_file, (location,)))
        corpus.run("DELETE FROM file WHERE location = ?", (location,))


def drop_unused(corpus: Corpus) -> None:
    """Remove sources and compartments that have no documents left."""
    corpus.run("DELETE FROM source WHERE id NOT IN (SELECT source FROM document)")
    partition.remove_empty(corpus)


class _Batch:
    """Files that are stored together.

    Existing rows are changed file by file. New rows wait, and are inserted at the end with one
    statement per table. Ids are checked before anything is written, so that a refused file needs
    no savepoint: FTS5 writes a segment to disk for each savepoint.
    """

    def __init__(self, corpus: Corpus, files: Files, deny_matcher: partition.DenyMatcher) -> None:
        self.corpus = corpus
        self.deny_matcher = deny_matcher
        self.compartments: dict[Kind, int] = {}
        locations = (file.location for file, _ in files)
        rows = _rows(corpus, "location", "location, id FROM file", locations)
        self.file_rows: dict[str, int] = dict(rows)
        ids = [name for _, documents in files for name in _ids_of(documents)]
        # For each id of this batch that exists: the row of its file, and its location.
        self.owners: dict[str, tuple[int, str]] = {
            name: (*owner,) for name, *owner in _owned(corpus, "f.id, location", ids)
        }
        self.source_rows: dict[str, int] = dict(corpus.rows("SELECT source_id, id FROM source"))
        self.next_file = next_row(corpus, "file")
        self.next_document = next_row(corpus, "document")
        self.new_files: list[Row] = []
        self.new_documents: list[Row] = []
        self.new_chunks: list[Row] = []
        self.supersessions: list[Row] = []
        self.scanned: list[Row] = []

    def put(self, file: StoredFile, documents: Sequence[StoredDocument]) -> None:
        known = self.file_rows.get(file.location)
        file_row = self.next_file if known is None else known
        self._refuse_used_ids(file_row, file, documents)
        before: dict[str, int] = {}
        if known is None:
            self.next_file += 1
            self.new_files.append(_file_row(file_row, file))
        else:
            before = self._update_file(file_row, file, documents)
        self.owners |= dict.fromkeys(_ids_of(documents), (file_row, file.location))
        for document in documents:
            self._put_document(file_row, file, document, before.get(document.metadata.document_id))

    def insert_new_rows(self) -> None:
        for target, rows in (
            (f"file ({FILE_ROW}, digest)", self.new_files),
            (f"document (id, document_id, {DOCUMENT_COLUMNS}, digest)", self.new_documents),
            ("supersession (newer, superseded, reach)", self.supersessions),
            (f"scanned ({SCANNED_ROW}, digest)", self.scanned),
        ):
            self.corpus.insert(target, rows)
        insert_chunks(self.corpus, self.new_chunks)
        count_documents = "UPDATE corpus_state SET documents = documents + ?"
        self.corpus.run(count_documents, (len(self.new_documents),))
        for compartment, count in Counter(row[-2] for row in self.new_documents).items():
            add_to_counts(self.corpus, compartment, documents=count)

    def _refuse_used_ids(
        self, file_row: int, file: StoredFile, documents: Sequence[StoredDocument]
    ) -> None:
        used: set[str] = set()
        for document in documents:
            document_id, *chunk_ids = _ids_of([document])
            owner, location = self.owners.get(document_id, (file_row, file.location))
            if owner != file_row or document_id in used:
                problem = f"the document id {document_id!r} is taken by {location}"
                step = "give one of the two another document_id or source_id"
                raise DocumentError("duplicate_document_id", problem, step)
            used.add(document_id)
            for name in chunk_ids:
                if name in used or self.owners.get(name, (file_row,))[0] != file_row:
                    raise DocumentError(
                        "duplicate_chunk_id",
                        f"the chunk id {name[1:]!r} is there twice or taken by another document",
                        "give one of the two chunks another id",
                    )
                used.add(name)

    def _update_file(
        self, file_row: int, file: StoredFile, documents: Sequence[StoredDocument]
    ) -> dict[str, int]:
        """Update the file's row, and remove the documents that it has no more."""
        # The index has the names of files.
        renamed = f"SELECT c.id FROM {DOCUMENT_TABLES} JOIN chunk c ON c.document = d.id "
        chunks = self.corpus.column(f"{renamed}WHERE f.id = ? AND path <> ?", (file_row, file.path))
        reindexed = chunks_by_compartment(self.corpus, chunks)
        for compartment, rowids in reindexed.items():
            self.corpus.lexical.remove_chunks(self.corpus, compartment, rowids)
        update = f"UPDATE file SET {assignments(f'{FILE_ROW}, digest')} WHERE id = ?"
        self.corpus.run(update, (*_file_row(file_row, file), file_row))
        for compartment, rowids in reindexed.items():
            self.corpus.lexical.add_chunks(self.corpus, compartment, rowids)
        before: dict[str, int] = dict(
            self.corpus.rows("SELECT document_id, id FROM document WHERE file = ?", (file_row,))
        )
        current = {document.metadata.document_id for document in documents}
        remove_documents(self.corpus, [row for name, row in before.items() if name not in current])
        # The ids that the file gave up are free for the files after it.
        self.owners = {name: owner for name, owner in self.owners.items() if owner[0] != file_row}
        return before

    def _put_document(
        self, file_row: int, file: StoredFile, document: StoredDocument, known: int | None
    ) -> None:
        metadata = document.metadata
        scanned = document.scanned
        if scanned and known is not None and partition.is_released(self.corpus, known, scanned):
            scanned = scanned._replace(verdict="released")
        is_quarantined = scanned is not None and scanned.verdict == "quarantine"
        compartment = self._compartment(metadata, file, is_quarantined)
        chunks = chunk_columns(metadata, document.chunks)
        row = known
        if row is None:
            row = self.next_document
            self.next_document += 1
        claims = [(old, metadata.reach) for old in dict.fromkeys(metadata.supersedes)]
        findings = (row, *scanned, row_digest((row, *scanned))) if scanned else None
        source_row = self._source_row(metadata.source_id)
        columns = (file_row, source_row, *values_of(metadata)[2:-1], compartment)
        values = (row, metadata.document_id, *columns)
        paths = (file.location, file.path)
        digest = document_digest(values, metadata.source_id, paths, findings, claims, len(chunks))
        if known is None:
            self.new_documents.append((*values, digest))
        else:
            [(current, *embedded)] = self.corpus.rows(
                "SELECT compartment, uri, updated_at FROM document WHERE id = ?", (row,)
            )
            if embedded != [metadata.uri, metadata.updated_at]:  # with its chunks
                _remove_vectors(self.corpus, chunks_of(self.corpus, [row]))
            if current != compartment:
                partition.move_documents(self.corpus, [row], current, compartment)
            assigned = assignments(f"{DOCUMENT_COLUMNS}, digest")
            self.corpus.run(f"UPDATE document SET {assigned} WHERE id = ?", (*columns, digest, row))
            self.corpus.run("DELETE FROM supersession WHERE newer = ?", (row,))
            chunks = update_chunks(self.corpus, row, compartment, chunks)
            self.corpus.run("DELETE FROM scanned WHERE document = ?", (row,))
        if findings:
            self.scanned.append(findings)
        self.supersessions += [(row, *claim) for claim in claims]
        self.new_chunks += [(row, name, *columns) for name, columns in chunks.items()]

    def _compartment(self, metadata: DocumentMetadata, file: StoredFile, quarantined: bool) -> int:
        denied = partition.denied_by(self.deny_matcher, file.path, file.location)
        kind = (metadata.scope, metadata.sensitivity, denied, quarantined)
        if kind not in self.compartments:
            self.compartments[kind] = partition.find_or_create(self.corpus, *kind)
        return self.compartments[kind]

    def _source_row(self, source_id: str) -> int:
        if source_id not in self.source_rows:
            self.corpus.run("INSERT INTO source (source_id) VALUES (?)", (source_id,))
            self.source_rows[source_id] = self.corpus.last_rowid()
        return self.source_rows[source_id]


def _rows(corpus: Corpus, column: str, select: str, names: Iterable[str]) -> list[Row]:
    """The selected rows whose column has one of the names."""
    return corpus.rows(f"SELECT {select} WHERE {column} {IN_SET}", ([*names],))


def _owned(corpus: Corpus, columns: str, names: Sequence[str]) -> Iterator[Row]:
    """Of each of these ids that is stored: the id, and columns of its owner.

    Args:
        corpus: an open corpus.
        columns: of the tables ``document d``, ``file f`` and ``source s``.
        names: the ids, as of :func:`_ids_of`.
    """
    owner = f"{columns} FROM {DOCUMENT_TABLES}"
    of_chunks = f"chunk_id, {owner} JOIN chunk c ON c.document = d.id"
    chunk_ids = (name[1:] for name in names if name.startswith("\n"))
    yield from _rows(corpus, "document_id", f"document_id, {owner}", names)
    for chunk_id, *own in _rows(corpus, "chunk_id", of_chunks, chunk_ids):
        yield f"\n{chunk_id}", *own


def _ids_of(documents: Iterable[StoredDocument]) -> Iterator[str]:
    """The id of each document, then the ids of its chunks.

    A line break is put before the ids of chunks. No document id has one, so that a set can hold
    both kinds.
    """
    for document in documents:
        yield document.metadata.document_id
        yield from (f"\n{chunk.chunk_id}" for chunk in document.chunks)


def _file_row(row: int, file: StoredFile) -> Row:
    values = (row, *file)
    return (*values, file_digest(values))


def remove_documents(corpus: Corpus, document_rows: Sequence[int]) -> None:
    """Remove documents with their chunks; their files stay."""
    if not document_rows:
        return
    chosen = (document_rows,)
    remove_chunks(corpus, corpus.column(f"SELECT id FROM chunk WHERE document {IN_SET}", chosen))
    counts = f"SELECT compartment, count(*) FROM document WHERE id {IN_SET} GROUP BY compartment"
    for compartment, count in corpus.rows(counts, chosen):
        add_to_counts(corpus, compartment, documents=-count)
    corpus.run(f"DELETE FROM document WHERE id {IN_SET}", chosen)
    corpus.run("UPDATE corpus_state SET documents = documents - ?", (len(document_rows),))


# -- who keeps an id that two files claim ----------------------------------------------------------
#
# A document has three kinds of ids by right: the one that is made of its source and path; one that
# its owner gave it; and ids of chunks that begin with its own id. A file that declares an id which
# another document has by right is refused, even if it was stored first. If two declare the same id,
# the first one keeps it.


def contested(corpus: Corpus, files: Files) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """The files that declare an id which a document of ``files`` has by right.

    Returns:
        Of ``files``: location → id. Of the stored files: location → path and id.
    """
    ids = [
        (file.location, *each) for file, documents in files for each in _own_ids(file, documents)
    ]
    by_right = {name: location for location, name, is_right in ids if is_right}
    refused = {
        location: name
        for location, name, is_right in ids
        if not is_right and by_right.get(name, location) != location
    }
    displaced = {
        location: (path, name)
        for name, location, path, is_right in _stored_ids(corpus, sorted(by_right))
        if not is_right and by_right[name] != location
    }
    return refused, displaced


def _own_ids(file: StoredFile, documents: Sequence[StoredDocument]) -> Iterator[tuple[str, bool]]:
    """Each id, as of :func:`_ids_of`, with whether it is theirs by right."""
    for document in documents:
        metadata = document.metadata
        name, declared = metadata.document_id, metadata.self_declared
        is_right = not _is_declared(declared, name, metadata.source_id, file.path)
        yield name, is_right
        for chunk in document.chunks:
            yield f"\n{chunk.chunk_id}", is_right and chunk.chunk_id.startswith(f"{name}#")


def _stored_ids(corpus: Corpus, names: Sequence[str]) -> Iterator[tuple[str, str, str, bool]]:
    """Of each of these ids that is stored: id, location and path of its file, whether by right."""
    columns = "f.location, f.path, d.document_id, s.source_id, d.self_declared"
    for name, location, path, document_id, source_id, declared in _owned(corpus, columns, names):
        [(keys,)] = typed([(declared,)], Texts)
        is_right = not _is_declared(keys, document_id, source_id, path)
        is_own = name == document_id or name.startswith(f"\n{document_id}#")
        yield name, location, path, is_right and is_own


def _is_declared(declared: Sequence[str], document_id: str, source_id: str, path: str) -> bool:
    # The source is a part of the id, and may contain a slash.
    if "source_id" in declared:
        return True
    is_own = f"{document_id}#".startswith(f"{source_id}/{path}#")
    return "document_id" in declared and not is_own


# -- the chunks of documents: their rows, words and vectors ----------------------------------------


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
            None if chunk.flags is None else json_array(chunk.flags),
        )
        for ordinal, chunk in enumerate(chunks)
    }


def _hints(metadata: DocumentMetadata, ordinal: int, forms: str) -> Texts:
    """Words for the index alone. They are no part of what is shown or embedded of a chunk."""
    hints = metadata.retrieval_hints
    if metadata.attributes and ordinal == 0:
        # Only in the first chunk: in each one they would make all chunks of the document longer,
        # and match where the text does not.
        hints += attribute_texts(metadata.attributes)
    return (*hints, forms) if forms else hints


def update_chunks(
    corpus: Corpus, document_row: int, compartment: int, wanted: Mapping[str, Row]
) -> dict[str, Row]:
    """Update and remove a document's stored chunks to match ``wanted``. Return the new ones."""
    columns = f"chunk_id, id, {INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}, digest"
    rows = corpus.rows(f"SELECT {columns} FROM chunk WHERE document = ?", (document_row,))
    before: dict[str, Row] = {row[0]: row[1:] for row in rows}
    remove_chunks(corpus, [row[0] for name, row in before.items() if name not in wanted])
    for name, values in wanted.items():
        if name in before:
            rowid, *old = before[name]
            digest = chunk_digest((rowid, document_row, name, *values))
            _update_chunk(corpus, compartment, rowid, tuple(old), (*values, digest))
    return {name: values for name, values in wanted.items() if name not in before}


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
        corpus.lexical.add_chunks(corpus, compartment, [rowid])


def insert_chunks(corpus: Corpus, rows: Sequence[Row]) -> None:
    """Insert chunks. Each row is (document row, chunk id, *columns)."""
    if not rows:
        return
    first = next_row(corpus, "chunk")
    numbered = [(first + offset, *row) for offset, row in enumerate(rows)]
    columns = f"id, document, chunk_id, {INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}, digest"
    corpus.insert(f"chunk ({columns})", [(*row, chunk_digest(row)) for row in numbered])
    rowids = range(first, first + len(rows))
    for compartment, chunks in chunks_by_compartment(corpus, rowids).items():
        corpus.lexical.add_chunks(corpus, compartment, chunks)
        add_to_counts(corpus, compartment, chunks=len(chunks))
    corpus.run("UPDATE corpus_state SET chunks = chunks + ?", (len(rows),))


def remove_chunks(corpus: Corpus, rowids: Sequence[int]) -> None:
    """Remove chunks from the table and from all indexes."""
    if not rowids:
        return
    for compartment, chunks in chunks_by_compartment(corpus, rowids).items():
        corpus.lexical.remove_chunks(corpus, compartment, chunks)
        add_to_counts(corpus, compartment, chunks=-len(chunks))
    _remove_vectors(corpus, rowids)
    corpus.run(f"DELETE FROM chunk WHERE id {IN_SET}", (rowids,))
    corpus.run("UPDATE corpus_state SET chunks = chunks - ?", (len(rowids),))


def _remove_vectors(corpus: Corpus, rowids: Sequence[int]) -> None:
    for index in vector_index.all_indexes(corpus):
        vector_index.remove(corpus, index, rowids)


def _distinct(first: Texts, second: Texts) -> Texts:
    return tuple(dict.fromkeys((*first, *second))) if second else first
