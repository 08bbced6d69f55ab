"""Reading passages: chunks with what belongs to them; `chunks.py` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import ContentType
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import METADATA_COLUMNS, metadata_of
from rolebundle.storage.content.supersession import superseders
from rolebundle.storage.files.sqlite_file import Row
from rolebundle.storage.files.stored_values import records, typed
from rolebundle.storage.records import marks

_CHUNK_COLUMNS = (
    "c.id, c.chunk_id, f.path, c.headings, c.content, c.content_type, c.content_hash, "
    "c.start_line, c.end_line, c.page, c.tags, c.applicable_roles, c.excluded_roles, "
    "coalesce(scanned.kinds, '[]'), c.anchor, c.ordinal"
)
_JOINED = (
    "FROM chunk c JOIN document d ON d.id = c.document JOIN source s ON s.id = d.source "
    "JOIN file f ON f.id = d.file LEFT JOIN scanned ON scanned.document = d.id"
)


def passages_sql(condition: str) -> str:
    """Chunks with all that belongs to them, for a WHERE condition."""
    return (
        f"SELECT {_CHUNK_COLUMNS}, d.id, {METADATA_COLUMNS} {_JOINED} WHERE {condition} "
        "ORDER BY c.document, c.ordinal"
    )


def passages_by_rowid(corpus: Corpus, rowids: Sequence[int]) -> dict[int, Passage]:
    """The chunks with these rowids, by rowid."""
    rows = corpus.rows(passages_sql("c.id IN (SELECT value FROM json_each(?))"), ([*rowids],))
    return {passage.rowid: passage for passage in _passages(corpus, rows)}


def content_hashes(corpus: Corpus, chunk_ids: Sequence[str]) -> dict[str, str]:
    """Chunk id → hash of its text, for those of the ids that the corpus has."""
    rows = corpus.rows(
        "SELECT chunk_id, content_hash FROM chunk "
        "WHERE chunk_id IN (SELECT value FROM json_each(?)) ORDER BY chunk_id",
        ([*chunk_ids],),
    )
    return dict(typed(rows, str, str))


class ChunkText(NamedTuple):
    """The parts of a chunk that are embedded."""

    rowid: int
    title: str
    headings: tuple[str, ...]
    content: str
    tags: tuple[str, ...]


def search_hints(corpus: Corpus, rowids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Rowid → the words under which a chunk is found besides its text; they are not shown."""
    rows = corpus.rows(
        "SELECT id, hints FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
        ([*rowids],),
    )
    return dict(typed(rows, int, tuple[str, ...]))


def chunk_texts(corpus: Corpus, rowids: Sequence[int]) -> list[ChunkText]:
    """What is embedded of these chunks, ordered by rowid."""
    rows = corpus.rows(
        "SELECT id, title, headings, content, tags FROM chunk "
        "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        ([*rowids],),
    )
    return records(ChunkText, rows)


def sampled_texts(corpus: Corpus, count: int) -> list[ChunkText]:
    """What is embedded of at most ``count`` chunks, spread over the corpus."""
    first, last = corpus.rows("SELECT min(id), max(id) FROM chunk")[0]
    if first is None:
        return []
    step = max(1, (last - first + 1) // count)
    return chunk_texts(corpus, range(first, last + 1, step)[:count])


def passage_by_id(corpus: Corpus, chunk_id: str) -> Passage | None:
    """The chunk with this id, or ``None``."""
    matches = _passages(corpus, corpus.rows(passages_sql("c.chunk_id = ?"), (chunk_id,)))
    return matches[0] if matches else None


def passages_by_id(corpus: Corpus, chunk_ids: Sequence[str]) -> list[Passage]:
    """The chunks with these ids, by document and place; only those that the corpus has."""
    condition = "c.chunk_id IN (SELECT value FROM json_each(?))"
    return _passages(corpus, corpus.rows(passages_sql(condition), ([*chunk_ids],)))


def passages_of_document(corpus: Corpus, document_id: str) -> list[Passage]:
    """The chunks of a document, in order; empty if there is no such document."""
    return _passages(corpus, corpus.rows(passages_sql("d.document_id = ?"), (document_id,)))


def passages_of_type(corpus: Corpus, document_type: str) -> list[Passage]:
    """The chunks of all documents of a type, by document and in order."""
    return _passages(corpus, corpus.rows(passages_sql("d.document_type = ?"), (document_type,)))


def passages_from(corpus: Corpus, document_id: str, first: int, count: int) -> list[Passage]:
    """The chunks of a document from the ``first`` on, counted from 1, in order."""
    rows = corpus.rows(
        passages_sql("d.document_id = ? AND c.ordinal >= ? AND c.ordinal < ?"),
        (document_id, first - 1, first - 1 + count),
    )
    return _passages(corpus, rows)


class PlacedText(NamedTuple):
    """The text of a chunk, and its lines in the file."""

    rowid: int
    start_line: int
    end_line: int
    content: str


def placed_texts(corpus: Corpus, documents: Sequence[int]) -> dict[int, list[PlacedText]]:
    """Rowid of a document → the texts of its chunks, in order."""
    rows = corpus.rows(
        "SELECT document, id, start_line, end_line, content FROM chunk "
        "WHERE document IN (SELECT value FROM json_each(?)) ORDER BY document, ordinal",
        ([*documents],),
    )
    texts: dict[int, list[PlacedText]] = {}
    for document, *placed in typed(rows, int, int, int, int, str):
        texts.setdefault(document, []).append(PlacedText(*placed))
    return texts


def positions(corpus: Corpus, rowids: Sequence[int]) -> dict[int, int]:
    """Rowid → position of the chunk in its document, counted from 1."""
    rows = corpus.rows(
        "SELECT id, ordinal + 1 FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
        ([*rowids],),
    )
    return dict(typed(rows, int, int))


def passages_at_lines(corpus: Corpus, path: str, start_line: int, end_line: int) -> list[Passage]:
    """The chunks of a file that share a line with the range, in order."""
    rows = corpus.rows(
        passages_sql("f.path = ? AND c.start_line <= ? AND c.end_line >= ?"),
        (path, end_line, start_line),
    )
    return _passages(corpus, rows)


def passages_of_documents(
    corpus: Corpus, rowids: Sequence[int], start_line: int = 0, end_line: int = 1 << 62
) -> list[Passage]:
    """The chunks of these documents that share a line with the range, by document and in order."""
    rows = corpus.rows(
        passages_sql(
            "d.id IN (SELECT value FROM json_each(?)) AND c.start_line <= ? AND c.end_line >= ?"
        ),
        ([*rowids], end_line, start_line),
    )
    return _passages(corpus, rows)


class _Chunk(NamedTuple):
    """The columns of a chunk, as :class:`Passage` describes them."""

    rowid: int
    chunk_id: str
    path: str
    headings: tuple[str, ...]
    content: str
    content_type: ContentType
    content_hash: str
    start_line: int
    end_line: int
    page: int
    tags: tuple[str, ...]
    applicable_roles: tuple[str, ...]
    excluded_roles: tuple[str, ...]
    flags: tuple[str, ...]
    anchor: str
    ordinal: int


def _passages(corpus: Corpus, rows: Sequence[Row]) -> list[Passage]:
    width = len(_Chunk._fields)
    chunks = records(_Chunk, (row[:width] for row in rows))
    numbers = [row[width] for row in rows]
    newer, ignored = superseders(corpus, set(numbers))
    marked = marks.marks_for(corpus, ((row[1], row[6], row[width + 1]) for row in rows))
    columns = {row[width]: row[width + 1 :] for row in rows}
    documents = dict(zip(columns, metadata_of(columns.values()), strict=True))
    return [
        Passage(
            **chunk._asdict(),
            document=documents[number],
            superseded_by=newer.get(number, ()),
            ignored_claims=ignored.get(number, ()),
            mark=marked.get(chunk.chunk_id),
        )
        for chunk, number in zip(chunks, numbers, strict=True)
    ]
