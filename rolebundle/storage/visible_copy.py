"""Copying what a restricted connection sees into a replica, and bringing a replica up to date.

Nothing is copied that the connection does not show, so a replica cannot depend on anything else.
Rows get numbers of the replica's own. What would tell of the publisher's machine or policy, the
locations of files and the deny patterns of compartments, is replaced by pseudonyms. A row of a file
keeps only its path: its hash covers all of its documents, also those that are not visible.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from hashlib import blake2b
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from rolebundle.storage import (
    compartments,
    decisions,
    digests,
    lexical_index,
    partition,
    store,
    vector_cache,
    vector_index,
)
from rolebundle.storage.chunks import insert_chunks, remove_chunks, update_chunks
from rolebundle.storage.connection import Corpus
from rolebundle.storage.digests import DOCUMENT_COLUMNS, INDEXED_COLUMNS, UNINDEXED_COLUMNS
from rolebundle.storage.replica import PUBLISHED
from rolebundle.storage.row_digest import digest_rows, row_digest
from rolebundle.storage.rows import assignments
from rolebundle.storage.sqlite_file import Row, SqliteFile
from rolebundle.storage.vector_index import EmbeddingIndex

Pseudonym = Callable[[str], str]
"""Replaces a text that a replica must not show; equal texts get equal pseudonyms."""

_DOCUMENTS_PER_STEP = 500
_OWN_COLUMNS = ", ".join(
    name for name in DOCUMENT_COLUMNS.split(", ") if name not in {"file", "source", "compartment"}
)
_PREFIXED = f"d.{_OWN_COLUMNS.replace(', ', ', d.')}"
_THESE = "IN (SELECT value FROM json_each(?))"
# What agents are shown. The other columns have the text that the scan took out of a document: as a
# whole, in notes, and as a hash, against which guesses of a secret could be tested.
_SCANNED = "verdict, kinds"
_REMEMBERED = "fact_hash, source_document, remembered_by, count, first_at, last_at, promoted_by"
_MARK = "kind, target, text_hash, state, marked_by, authority, reason, marked_at"
_CHUNK = f"{INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}"
# The text is covered by its hash.
_HASHED_CHUNK = _CHUNK.replace("content, ", "", 1)
_DOCUMENTS = (
    "SELECT d.id, d.document_id, s.source_id, f.path, f.location, k.scope, k.sensitivity, "
    f"k.denied, {_PREFIXED}, "
    "(SELECT json_group_array(json_array(superseded, reach)) FROM "
    "(SELECT superseded, reach FROM supersession WHERE newer = d.id ORDER BY superseded)), "
    f"(SELECT json_array({_SCANNED}) FROM scanned WHERE document = d.id), "
    f"(SELECT json_array({_REMEMBERED}) FROM remembered WHERE document = d.id) "
    "FROM document d JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file "
    "JOIN compartment k ON k.id = d.compartment"
)


class Difference(NamedTuple):
    """How many documents of a replica were added, updated and removed."""

    added: int
    updated: int
    removed: int
    others: bool
    """Whether marks, decisions or embedding indexes changed."""


class _Document(NamedTuple):
    """A document with what belongs to it, without the numbers of rows."""

    row: int
    document_id: str
    source_id: str
    path: str
    location: str
    scope: str
    sensitivity: str
    labels: tuple[str, ...]
    columns: Row
    claims: str
    scanned: str | None
    remembered: str | None


class _State(NamedTuple):
    row: int
    digest: bytes


def keyed_pseudonym(key: bytes) -> Pseudonym:
    """Pseudonyms that nobody can test guesses against without the key."""

    def pseudonym(text: str) -> str:
        content = text.encode("utf-8", "surrogatepass")
        return PUBLISHED + blake2b(content, key=key, digest_size=12).hexdigest()

    return pseudonym


def as_stored(text: str) -> str:
    """The pseudonym in a replica, which already is one."""
    return text


# -- reading ---------------------------------------------------------------------------------------


def content_digest(corpus: Corpus, pseudonym: Pseudonym = as_stored) -> str:
    """The digest of all that a connection shows, however it is stored.

    Args:
        corpus: a replica, or a restricted connection with what a replica of it would hold.
        pseudonym: as for :func:`synchronize`; for a replica :func:`as_stored`.
    """
    states = _states(corpus, pseudonym)
    listed = [[name, state.digest] for name, state in sorted(states.items())]
    return row_digest([listed, _indexes(corpus), _marks(corpus), *_decisions(corpus, None)]).hex()


class Held(NamedTuple):
    """Ids of documents, and hashes of the texts of passages."""

    documents: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def and_also(self, other: Held) -> Held:
        """What is in one of the two."""
        return Held(self.documents | other.documents, self.texts | other.texts)

    def without(self, other: Held) -> Held:
        """What is not in the other."""
        return Held(self.documents - other.documents, self.texts - other.texts)


def held(corpus: Corpus) -> Held:
    """What a connection shows."""
    return Held(_names(corpus, "document", "document_id"), _names(corpus, "chunk", "content_hash"))


def is_anything_hidden_now(source: Corpus, former: Held) -> bool:
    """Whether the source has something of this, but does not show it.

    Args:
        source: a restricted connection.
        former: what a replica of it holds, or held since it was built.
    """
    missing = former.without(held(source))
    return any(
        bool(
            source.value(
                f"SELECT EXISTS (SELECT 1 FROM main.{table} WHERE {column} {_THESE})",
                (json.dumps(sorted(names)),),
            )
        )
        for table, column, names in (
            ("document", "document_id", missing.documents),
            ("chunk", "content_hash", missing.texts),
        )
    )


def _names(corpus: Corpus, table: str, column: str) -> frozenset[str]:
    return frozenset(name for (name,) in corpus.rows(f"SELECT {column} FROM {table}"))


def _states(corpus: Corpus, pseudonym: Pseudonym) -> dict[str, _State]:
    """Document id → its row, and the digest of all that a replica holds of it."""
    chunks: dict[int, list[tuple[str, bytes]]] = {}
    vectors: dict[int, list[tuple[int, str, str]]] = {}
    for chunk, index_id, input_hash, vector_hash in corpus.each(
        "SELECT chunk, index_id, input_hash, vector_hash FROM embedded"
    ):
        vectors.setdefault(chunk, []).append((index_id, input_hash, vector_hash))
    names = {index.id: _identity(index) for index in vector_index.all_indexes(corpus)}
    for row, document, *columns in corpus.each(
        f"SELECT id, document, chunk_id, {_HASHED_CHUNK} FROM chunk"
    ):
        embedded = sorted([names[number], *hashes] for number, *hashes in vectors.pop(row, ()))
        digest = row_digest([*columns, embedded])
        chunks.setdefault(document, []).append((columns[0], digest))
    return {
        document.document_id: _State(
            document.row, row_digest([*document[1:], sorted(chunks.get(document.row, ()))])
        )
        for document in _documents(corpus, pseudonym)
    }


def _documents(
    corpus: Corpus, pseudonym: Pseudonym, rows: Sequence[int] | None = None
) -> Iterable[_Document]:
    these = "" if rows is None else f" WHERE d.id {_THESE}"
    bindings = () if rows is None else (json.dumps(list(rows)),)
    for row in corpus.each(f"{_DOCUMENTS}{these} ORDER BY d.document_id", bindings):
        number, document_id, source_id, path, location, scope, sensitivity, denied, *rest = row
        labels = (pseudonym(denied),) if json.loads(denied) else ()
        if pseudonym is as_stored:
            labels = tuple(json.loads(denied))
        yield _Document(
            number,
            document_id,
            source_id,
            path,
            pseudonym(location),
            scope,
            sensitivity,
            labels,
            tuple(rest[:-3]),
            *rest[-3:],
        )


def _identity(index: EmbeddingIndex) -> list[object]:
    return [*astuple(index.identity.model), index.identity.normalization]


def _indexes(corpus: Corpus) -> list[list[object]]:
    rows: list[list[object]] = [
        [
            *_identity(index),
            index.identity.chunker,
            index.active,
            index.reach,
            list(index.noise or ()),
        ]
        for index in vector_index.all_indexes(corpus)
    ]
    return sorted(rows, key=str)


def _marks(corpus: Corpus) -> list[Row]:
    return corpus.rows(f"SELECT {_MARK} FROM mark ORDER BY kind, target")


def _decisions(corpus: Corpus, scopes: Sequence[str] | None) -> tuple[list[Row], list[Row]]:
    """The rows of the decisions of these scopes, or of all, and those of their ends."""
    chosen = (None if scopes is None else json.dumps(sorted(scopes)),)
    return (
        corpus.rows(f"{decisions.ROWS_OF_SCOPES} ORDER BY scope, number", chosen),
        corpus.rows(f"{decisions.ENDS_OF_SCOPES} ORDER BY scope, number", chosen),
    )


# -- writing ---------------------------------------------------------------------------------------


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
    indexes, others = _synchronize_indexes(source, replica)
    now, before = _states(source, pseudonym), _states(replica, as_stored)
    removed = [state.row for name, state in before.items() if name not in now]
    store.remove_documents(replica, removed)
    changed = sorted(
        name
        for name, state in now.items()
        if name not in before or before[name].digest != state.digest
    )
    _remove_gone_chunks(
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
    others |= _replace(replica, "mark", _MARK, _marks(source), _marks(replica))
    for table, wanted, present in zip(
        ("decision", "decision_end"),
        _decisions(source, decision_scopes),
        _decisions(replica, None),
        strict=True,
    ):
        others |= _replace(replica, table, "", wanted, present)
    vector_cache.clear_cache(replica)
    updated = sum(name in before for name in changed)
    return Difference(len(changed) - updated, updated, len(removed), others)


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
    others = _indexes(source) != _indexes(replica)
    wanted = vector_index.all_indexes(source)
    kept = [_identity(index) for index in wanted]
    for index in vector_index.all_indexes(replica):
        if _identity(index) not in kept:
            vector_index.delete_index(replica, index)
    indexes = {}
    for index in wanted:
        own = vector_index.find_index(replica, index.identity) or vector_index.create_index(
            replica, index.identity, started_at=index.started_at, activate=False
        )
        if others:
            vector_index.set_chunker(replica, own, index.identity.chunker)
            vector_index.set_reach(replica, own, index.reach)
            if index.noise is not None:
                vector_index.set_noise(replica, own, index.noise)
            if index.active:
                vector_index.activate_index(replica, own)
        indexes[index.id] = own
    return indexes, others


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
    for document in _documents(source, pseudonym, rows):
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
    for table in ("scanned", "remembered"):
        digests.write(replica, table, digests.checked_rows(replica, table, written))
    files = replica.rows(f"SELECT file FROM document WHERE id {_THESE}", (json.dumps(written),))
    digests.write(
        replica, "file", digests.checked_rows(replica, "file", sorted({file for (file,) in files}))
    )
    digests.write(replica, "document", digests.checked_documents(replica, written))


def _remove_gone_chunks(
    source: Corpus, replica: Corpus, source_rows: Sequence[int], rows: Sequence[int]
) -> None:
    """Remove the chunks that documents no longer have, so that others may have their ids."""
    select = (
        "SELECT d.document_id, c.chunk_id, c.id FROM chunk c JOIN document d ON d.id = c.document "
        f"WHERE d.id {_THESE}"
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
        f"SELECT document, chunk_id, {_CHUNK} FROM chunk WHERE document {_THESE} "
        "ORDER BY document, ordinal, chunk_id",
        (json.dumps(list(rows)),),
    )
    return {
        document: [(name, tuple(columns)) for _, name, *columns in group]
        for document, group in groupby(found, key=itemgetter(0))
    }


def _put_document(replica: Corpus, document: _Document, row: int | None) -> int:
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
            f"INSERT INTO document (document_id, file, source, compartment, {_OWN_COLUMNS}) "
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
            f"UPDATE document SET file = ?, source = ?, {assignments(_OWN_COLUMNS)} WHERE id = ?",
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
            f"INSERT INTO scanned (document, {_SCANNED}, content_hash, findings, original) "
            "VALUES (?, ?, ?, '', '[]', '')",
            (row, *json.loads(document.scanned)),
        )
    if document.remembered:
        replica.run(
            f"INSERT INTO remembered (document, {_REMEMBERED}, digest) "
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
        f"JOIN embedded e ON e.chunk = c.id WHERE e.index_id = ? AND c.document {_THESE}",
        (number, json.dumps(list(rows))),
    )
    documents = source.rows(
        f"SELECT document_id FROM document WHERE id {_THESE}", (json.dumps(list(rows)),)
    )
    present = {
        name: (chunk, vector_hash)
        for name, chunk, vector_hash in replica.rows(
            "SELECT c.chunk_id, c.id, e.vector_hash FROM chunk c "
            "LEFT JOIN embedded e ON e.chunk = c.id AND e.index_id = ? WHERE c.document IN "
            f"(SELECT id FROM document WHERE document_id {_THESE}) ORDER BY c.id",
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


def set_identity(replica: Corpus, corpus_id: str, generation: int) -> None:
    """Give a replica the identity of its corpus, and its generation, inside a write transaction."""
    replica.run("UPDATE corpus_state SET corpus_id = ?, generation = ?", (corpus_id, generation))


def names_in(replica: Corpus) -> list[str]:
    """The ids of the documents in a replica, and ``decision:SCOPE-NUMBER`` for its decisions."""
    documents = replica.rows("SELECT document_id FROM document")
    decided, _ = _decisions(replica, None)
    return [*(name for (name,) in documents), *(f"decision:{row[0]}-{row[1]}" for row in decided)]


def compact(replica: Corpus) -> None:
    """Merge the lexical indexes of a new replica, and leave no free page in its file."""
    with replica.writing():
        for compartment in compartments.visible_compartments(replica):
            while lexical_index.merge(replica, compartment.id):
                pass
    replica.run("VACUUM")


# -- the file --------------------------------------------------------------------------------------

_NOT_STORED = ("replica", "seal")
"""Tables that depend on the manifest, and so on the digest."""
_LITESTREAM = ("_litestream_lock", "_litestream_seq")
"""Tables that Litestream adds to a file that it replicates."""
_ROWS_PER_STEP = 16  # a row of vec0 has 1024 vectors


def stored_digest(corpus: Corpus) -> str:
    """The digest of every row of every table as it is stored, also of the indexes' own tables.

    With SQLite's own check, which compares its indexes with the tables, it proves a whole file. It
    leaves out what depends on the manifest, and the tables that Litestream adds.
    """
    objects = [
        row
        for row in corpus.rows(
            # SQLite makes the indexes of constraints without a statement.
            "SELECT type, name, sql FROM main.sqlite_schema WHERE sql NOT NULL ORDER BY type, name"
        )
        if not _is_litestreams(*row)
    ]
    digest = blake2b(row_digest([[str(value) for value in row] for row in objects]), digest_size=16)
    for kind, name, sql in objects:
        if (
            kind == "table"
            and name not in _NOT_STORED
            and not str(sql).startswith("CREATE VIRTUAL")
        ):
            digest.update(row_digest([name]))
            # Not through an index that has all columns: the order is that of the table.
            quoted = str(name).replace('"', '""')
            rows = corpus.each(f'SELECT * FROM main."{quoted}" NOT INDEXED')
            while batch := list(islice(rows, _ROWS_PER_STEP)):
                digest_rows(digest, batch)
    return digest.hexdigest()


def _is_litestreams(kind: str, name: str, sql: str) -> bool:
    return kind == "table" and name in _LITESTREAM and str(sql).startswith("CREATE TABLE")


def tidy(replica: SqliteFile) -> None:
    """Remove the tables that a transport added, and let readers need no log.

    A file that is replaced while others read it must have none.
    """
    for name in _LITESTREAM:
        replica.run(f"DROP TABLE IF EXISTS {name}")
    replica.run("PRAGMA journal_mode = delete")
