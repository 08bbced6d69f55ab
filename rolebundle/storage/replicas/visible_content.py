"""What a connection to a corpus shows of what replicas hold, however it is stored.

What would tell of the publisher's machine or policy, the locations of files and the deny patterns
of compartments, is replaced by pseudonyms. A row of a file keeps only its path: its hash covers all
of its documents, also those that are not visible.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from hashlib import blake2b
from typing import NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.digests import INDEXED_COLUMNS, OWN_COLUMNS, UNINDEXED_COLUMNS
from rolebundle.storage.files.sqlite_file import Row
from rolebundle.storage.indexes import vector_index
from rolebundle.storage.indexes.compartments import FACTS
from rolebundle.storage.indexes.vector_index import EmbeddingIndex
from rolebundle.storage.records import decisions
from rolebundle.storage.records.replica import PUBLISHED
from rolebundle.storage.row_digest import row_digest

Pseudonym = Callable[[str], str]
"""Replaces a text that a replica must not show; equal texts get equal pseudonyms."""

_PREFIXED = f"d.{OWN_COLUMNS.replace(', ', ', d.')}"
IN_LIST = "IN (SELECT value FROM json_each(?))"
# What agents are shown. The other columns have the text that the scan took out of a document: as a
# whole, in notes, and as a hash, against which guesses of a secret could be tested.
SCANNED_COLUMNS = "verdict, kinds"
REMEMBERED_COLUMNS = (
    "fact_hash, source_document, remembered_by, count, first_at, last_at, promoted_by"
)
MARK_COLUMNS = "kind, target, text_hash, state, marked_by, authority, reason, marked_at"
CHUNK_COLUMNS = f"{INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}"
# The text is covered by its hash.
_HASHED_CHUNK_COLUMNS = CHUNK_COLUMNS.replace("content, ", "", 1)
_DOCUMENTS = (
    "SELECT d.id, d.document_id, s.source_id, f.path, f.location, k.scope, k.sensitivity, "
    f"k.denied, {_PREFIXED}, "
    "(SELECT json_group_array(json_array(superseded, reach)) FROM "
    "(SELECT superseded, reach FROM supersession WHERE newer = d.id ORDER BY superseded)), "
    f"(SELECT json_array({SCANNED_COLUMNS}) FROM scanned WHERE document = d.id), "
    f"(SELECT json_array({REMEMBERED_COLUMNS}) FROM remembered WHERE document = d.id) "
    "FROM document d JOIN source s ON s.id = d.source JOIN file f ON f.id = d.file "
    "JOIN compartment k ON k.id = d.compartment"
)


class VisibleDocument(NamedTuple):
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


class DocumentState(NamedTuple):
    """The row of a document, and the digest of all that a replica holds of it."""

    row: int
    digest: bytes


def keyed_pseudonym(key: bytes) -> Pseudonym:
    """Pseudonyms that nobody can test guesses against without the key."""

    def pseudonym(text: str) -> str:
        content = text.encode("utf-8", "surrogatepass")
        return PUBLISHED + blake2b(content, key=key, digest_size=12).hexdigest()

    return pseudonym


def unchanged(text: str) -> str:
    """The pseudonym in a replica, which already is one."""
    return text


def content_digest(replica: Corpus) -> str:
    """The digest of all that a replica holds, however it is stored."""
    states = document_states(replica, unchanged)
    documents = [[name, state.digest] for name, state in sorted(states.items())]
    return row_digest(
        [
            documents,
            visible_indexes(replica),
            visible_marks(replica),
            *visible_decisions(replica, None),
        ]
    ).hex()


class ContentKeys(NamedTuple):
    """Ids of documents, and hashes of the texts of passages."""

    documents: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def union(self, other: ContentKeys) -> ContentKeys:
        """What is in one of the two."""
        return ContentKeys(self.documents | other.documents, self.texts | other.texts)

    def difference(self, other: ContentKeys) -> ContentKeys:
        """What is not in the other."""
        return ContentKeys(self.documents - other.documents, self.texts - other.texts)


def content_keys(corpus: Corpus) -> ContentKeys:
    """Those of all that a connection shows."""
    return ContentKeys(
        _names(corpus, "document", "document_id"), _names(corpus, "chunk", "content_hash")
    )


def has_any(corpus: Corpus, keys: ContentKeys) -> bool:
    """Whether a corpus has any of these, also if a restricted connection does not show it."""
    return any(
        bool(
            corpus.value(
                f"SELECT EXISTS (SELECT 1 FROM main.{table} WHERE {column} {IN_LIST})",
                (json.dumps(sorted(names)),),
            )
        )
        for table, column, names in (
            ("document", "document_id", keys.documents),
            ("chunk", "content_hash", keys.texts),
        )
    )


def _names(corpus: Corpus, table: str, column: str) -> frozenset[str]:
    return frozenset(name for (name,) in corpus.rows(f"SELECT {column} FROM {table}"))


def document_states(corpus: Corpus, pseudonym: Pseudonym) -> dict[str, DocumentState]:
    """Document id → its row, and the digest of all that a replica holds of it."""
    chunks: dict[int, list[tuple[str, bytes]]] = {}
    vectors: dict[int, list[tuple[int, str, str]]] = {}
    for chunk, index_id, input_hash, vector_hash in corpus.iterate(
        "SELECT chunk, index_id, input_hash, vector_hash FROM embedded"
    ):
        vectors.setdefault(chunk, []).append((index_id, input_hash, vector_hash))
    names = {index.id: model_of(index) for index in vector_index.all_indexes(corpus)}
    for row, document, *columns in corpus.iterate(
        f"SELECT id, document, chunk_id, {_HASHED_CHUNK_COLUMNS} FROM chunk"
    ):
        embedded = sorted([names[number], *hashes] for number, *hashes in vectors.pop(row, ()))
        digest = row_digest([*columns, embedded])
        chunks.setdefault(document, []).append((columns[0], digest))
    return {
        document.document_id: DocumentState(
            document.row, row_digest([*document[1:], sorted(chunks.get(document.row, ()))])
        )
        for document in visible_documents(corpus, pseudonym)
    }


def visible_documents(
    corpus: Corpus, pseudonym: Pseudonym, rows: Sequence[int] | None = None
) -> Iterable[VisibleDocument]:
    """The documents of these rows, or all, ordered by id."""
    condition = "" if rows is None else f" WHERE d.id {IN_LIST}"
    bindings = () if rows is None else (json.dumps(list(rows)),)
    for row in corpus.iterate(f"{_DOCUMENTS}{condition} ORDER BY d.document_id", bindings):
        (
            number,
            document_id,
            source_id,
            path,
            location,
            scope,
            sensitivity,
            denied,
            *further_columns,
        ) = row
        labels = tuple(json.loads(denied))
        if pseudonym is not unchanged:
            patterns = {pseudonym(denied)} if set(labels) - {FACTS} else set()
            labels = tuple(sorted(patterns | (set(labels) & {FACTS})))
        yield VisibleDocument(
            number,
            document_id,
            source_id,
            path,
            pseudonym(location),
            scope,
            sensitivity,
            labels,
            tuple(further_columns[:-3]),
            *further_columns[-3:],
        )


def model_of(index: EmbeddingIndex) -> list[object]:
    """What makes the vectors of an index comparable: its model, and how they are normalized."""
    return [*astuple(index.identity.model), index.identity.normalization]


def visible_indexes(corpus: Corpus) -> list[list[object]]:
    """All that a replica holds of its embedding indexes, besides the vectors."""
    rows: list[list[object]] = [
        [
            *model_of(index),
            index.identity.chunker,
            index.active,
            index.connection,
            list(index.noise or ()),
        ]
        for index in vector_index.all_indexes(corpus)
    ]
    return sorted(rows, key=str)


def visible_marks(corpus: Corpus) -> list[Row]:
    """The rows of the marks, ordered by what is marked."""
    return corpus.rows(f"SELECT {MARK_COLUMNS} FROM mark ORDER BY kind, target")


def visible_decisions(corpus: Corpus, scopes: Sequence[str] | None) -> tuple[list[Row], list[Row]]:
    """The rows of the decisions of these scopes, or of all, and those of their ends."""
    chosen = (None if scopes is None else json.dumps(sorted(scopes)),)
    return (
        corpus.rows(f"{decisions.ROWS_OF_SCOPES} ORDER BY scope, number", chosen),
        corpus.rows(f"{decisions.ENDS_OF_SCOPES} ORDER BY scope, number", chosen),
    )
