"""Digests of rows. They find what SQLite does not: flipped bits, and rows that others changed.

A chunk's digest covers its row without the text, and the text's hash. A document's digest covers
its row and what belongs to it: the id of its source, the location and path of its file, the scan's
findings, its supersessions and the number of its chunks. `seal.py` covers the small tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b

from rolebundle.contracts.documents import LATER_FIELDS, DocumentMetadata
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.seal import row_digest
from rolebundle.storage.sqlite import IN_SET, Row
from rolebundle.storage.stored_values import damage_error, values_of

EMBEDDED_COLUMNS = "title, headings, content, tags"
"""What the vector of a chunk is computed from."""
INDEXED_COLUMNS = f"{EMBEDDED_COLUMNS}, hints"
UNINDEXED_COLUMNS = (
    "ordinal, content_type, content_hash, start_line, end_line, page, applicable_roles, "
    "excluded_roles, anchor, flags"
)
OWN_COLUMNS = ", ".join(DocumentMetadata._fields[2:-1])
"""The columns of a document that are named like its metadata, in the same order."""
DOCUMENT_COLUMNS = f"file, source, {OWN_COLUMNS}, compartment"
"""All columns of a document but its ids and its digest."""
FILE_ROW = "id, location, path, content_hash, recipe, size, modified_ns"
SCANNED_ROW = "document, verdict, content_hash, kinds, findings, original"
_CHUNK_ROW = f"id, document, chunk_id, {INDEXED_COLUMNS}, {UNINDEXED_COLUMNS}"
_CONTENT, _HASH = map(_CHUNK_ROW.split(", ").index, ("content", "content_hash"))
_DEFAULTS = values_of(DocumentMetadata("", "", "", ""))
_UNSET = {"anchor": "", "size": 0, "modified_ns": 0} | {
    name: _DEFAULTS[DocumentMetadata._fields.index(name)] for name in LATER_FIELDS
}
"""Columns that earlier schemas lack, with their defaults. A digest covers them only if they are
set, so that the digests of earlier schemas stay valid."""
_DOCUMENT_ROW = f"id, document_id, {DOCUMENT_COLUMNS}"
_BELONGING = (
    "s.source_id, f.location, f.path, scanned.verdict, scanned.content_hash, scanned.kinds, "
    "scanned.digest, "
    "(SELECT json_group_array(json_array(c.superseded, c.reach)) FROM supersession c "
    "WHERE c.newer = d.id), "
    "(SELECT count(*) FROM chunk c WHERE c.document = d.id)"
)


def content_hash(content: str) -> str:
    """The stored hash of a text: BLAKE2b, 16 bytes, hexadecimal.

    The id of a chunk contains the first 10 digits of the hash of its text.
    """
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def chunk_digest(row: Row) -> bytes:
    """The digest of a chunk's row, without the column ``digest``."""
    # The text is left out, because its hash covers it: hashing it again would make an ingest a
    # tenth slower.
    last = len(row)
    while not row[last - 1] and last > len(row) - 2:  # as in `_covered`: the anchor and the flags
        last -= 1
    return row_digest((*row[:_CONTENT], *row[_CONTENT + 1 : last]))


def file_digest(row: Row) -> bytes:
    """The digest of a file's row, the columns ``FILE_ROW``."""
    return row_digest(_covered(FILE_ROW, row))


def _covered(columns: str, row: Row) -> list[object]:
    """The values of a row; the columns of ``_UNSET`` with their names, and only if they are set."""
    pairs = zip(columns.split(", "), row, strict=True)
    return [
        [name, value] if name in _UNSET else value
        for name, value in pairs
        if name not in _UNSET or value != _UNSET[name]
    ]


def document_digest(
    row: Row,
    source_id: str,
    paths: tuple[str, str],
    scanned: Row | None,
    claims: Iterable[tuple[str, str]],
    chunks: int,
) -> bytes:
    """The digest of a document.

    Args:
        row: id, document id and ``DOCUMENT_COLUMNS``.
        source_id: the id of its source.
        paths: the location and the path of its file.
        scanned: the row of what the scan found, with its own digest; ``None`` for nothing.
        claims: what it supersedes, and the reach of each claim.
        chunks: how many chunks it has.
    """
    verdict = (None,) * 4 if scanned is None else (*scanned[1:4], scanned[-1])
    values = _covered(_DOCUMENT_ROW, row)
    return row_digest((*values, source_id, *paths, *verdict, sorted(map(list, claims)), chunks))


# -- comparing with what is stored -----------------------------------------------------------------


def _stored_chunk(row: Row) -> bytes:
    if content_hash(row[_CONTENT]) != row[_HASH]:
        raise ValueError("its text does not match its hash")
    return chunk_digest(row)


def _stored_document(row: Row) -> bytes:
    *values, source_id, location, path, verdict, content, kinds, digest, claims, chunks = row
    scanned = (None, verdict, content, kinds, digest)
    return document_digest(
        tuple(values), source_id, (location, path), scanned, json.loads(claims), chunks
    )


_DOCUMENTS = (
    "document d LEFT JOIN source s ON s.id = d.source LEFT JOIN file f ON f.id = d.file "
    "LEFT JOIN scanned ON scanned.document = d.id"
)
REMEMBERED_COLUMNS = (
    "fact_hash, source_document, remembered_by, count, first_at, last_at, promoted_by"
)
_REMEMBERED_ROW = f"document, {REMEMBERED_COLUMNS}"
_DOCUMENT_COLUMNS = f"d.{_DOCUMENT_ROW.replace(', ', ', d.')}, {_BELONGING}"
_TABLES: dict[str, tuple[str, str, Callable[[Row], bytes], str, str]] = {
    "file": ("id", FILE_ROW, file_digest, "file", "''"),
    "scanned": ("document", SCANNED_ROW, row_digest, "scanned", "''"),
    "remembered": ("document", _REMEMBERED_ROW, row_digest, "remembered", "''"),
    "chunk": ("id", _CHUNK_ROW, _stored_chunk, "chunk", "chunk_id"),
    "document": ("d.id", _DOCUMENT_COLUMNS, _stored_document, _DOCUMENTS, "document_id"),
}
"""Tables with a column ``digest``: key, what the digest covers, how to compute it, what is read,
and the name of a row. In the order in which digests are written: the digest of a document covers
that of its findings."""
DIGESTED = tuple(_TABLES)


OF_CHUNKS = f"IN (SELECT document FROM chunk WHERE id {IN_SET})"
"""The condition of the documents of chunks."""


def _digests_sql(table: str) -> str:
    key, columns, _, tables, name = _TABLES[table]
    digest = "d.digest" if table == "document" else "digest"
    return f"SELECT {key}, {name}, {digest}, {columns} FROM {tables}"


def checked(
    corpus: Corpus, table: str, rowids: Sequence[int] | None = None, condition: str = IN_SET
) -> Iterator[tuple[int, str, bytes | None, bool]]:
    """These rows of a table of ``DIGESTED``, or all, compared with their digests.

    Args:
        corpus: an open corpus.
        table: its name.
        rowids: of the rows, or what ``condition`` is about; ``None`` for all.
        condition: the SQL condition of the rows' key.

    Yields:
        The rowid; the id of the chunk or document, empty for other rows; the digest that it must
        have, ``None`` if it cannot be what was stored; and whether it has that digest.
    """
    key, _, compute, _, _ = _TABLES[table]
    select = _digests_sql(table)
    if rowids is None:
        rows: Iterable[Row] = corpus.iterate(select)
    else:
        rows = corpus.rows(f"{select} WHERE {key} {condition}", (rowids,))
    for rowid, label, stored, *row in rows:
        try:
            expected: bytes | None = compute(tuple(row))
        except (AttributeError, TypeError, ValueError, RecursionError):
            expected = None  # A damaged page may return any type.
        yield rowid, label, expected, expected is not None and stored == expected


# -- what an answer is made of ---------------------------------------------------------------------


def verify_passages(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare passages and their documents with their digests. Call it inside ``reading()``.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    chunks = sorted(rowids)
    corpus.prefetch(f"{_digests_sql('document')} WHERE d.id {OF_CHUNKS}", (chunks,))
    _verify(corpus, "chunk", chunks)
    _verify(corpus, "document", chunks, OF_CHUNKS)


def verify_documents(corpus: Corpus, rowids: Collection[int]) -> None:
    """Compare documents with their digests.

    Raises:
        CorpusCorrupt: one of them is not what was stored.
    """
    _verify(corpus, "document", sorted(rowids))


def _verify(corpus: Corpus, table: str, rowids: Sequence[int], condition: str = IN_SET) -> None:
    for _, name, _, is_intact in checked(corpus, table, rowids, condition):
        if not is_intact:
            word = "passage" if table == "chunk" else table
            raise damage_error(f"the {word} {name}", "damaged_passage", corpus.path)


# -- keeping them true -----------------------------------------------------------------------------


@contextmanager
def renewing(corpus: Corpus, documents: Sequence[int], **others: Sequence[int]) -> Iterator[None]:
    """A block that changes documents, or what a scan found in them, or rows of other tables.

    After it their digests are true again. A digest that was wrong before stays wrong, so that the
    damage is still found.
    """
    changing = {**others, "scanned": documents, "document": documents}
    intact = {
        table: [rowid for rowid, *_, is_intact in checked(corpus, table, rowids) if is_intact]
        for table, rowids in changing.items()
    }
    yield
    for table, rowids in intact.items():
        write(corpus, table, rowids)


def write(corpus: Corpus, table: str, rowids: Sequence[int] | None = None) -> None:
    """Store the digests that these rows of a table must have, or all rows.

    A chunk whose text does not match its hash gets none. Call it inside a write transaction.
    """
    changes = [
        (expected, rowid)
        for rowid, _, expected, is_intact in checked(corpus, table, rowids)
        if expected and not is_intact
    ]
    key = _TABLES[table][0].removeprefix("d.")
    corpus.run_many(f"UPDATE {table} SET digest = ? WHERE {key} = ?", changes)
