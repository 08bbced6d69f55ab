"""The rows of chunks, and the passages that are read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_type_hints

from rolebundle.contracts.documents import ATTACHED, LANGUAGE, REMEMBERED_KIND, STATEMENT, Passage
from rolebundle.storage import marks
from rolebundle.storage.corpus import Corpus, corpus_contents, once_in_generation
from rolebundle.storage.documents import (
    ATTACHED_AT,
    DOCUMENT_TABLES,
    METADATA,
    cached_metadata,
    documents_named,
    superseders,
    superseders_sql,
)
from rolebundle.storage.sqlite import IN_SET, Binding
from rolebundle.storage.stored_values import grouped, typed


def indexed_title(title: str, content: str) -> str:
    """The title under which a chunk is indexed, lexically and as a vector."""
    # A title that is the whole text would be indexed twice, and count for more than a text.
    return "" if content == title else title


_ELSEWHERE = ("document", "superseded_by", "ignored_claims", "mark")
"""The fields of a passage that are no columns."""
_TYPES = {name: kind for name, kind in get_type_hints(Passage).items() if name not in _ELSEWHERE}
_FINDINGS = "coalesce(c.flags, scanned.kinds, '[]')"
_CHUNK = {name: f"c.{name}" for name in _TYPES} | {
    "rowid": "c.id",
    "path": "f.path",
    "flags": _FINDINGS,
}
_ROW = {"rowid": "id"}  # A view has no rowid.


def passages_sql(condition: str) -> str:
    """Chunks with all that belongs to them, for a WHERE condition."""
    return (
        f"SELECT {', '.join((*_CHUNK.values(), 'd.id', *METADATA.values()))} "
        f"FROM {DOCUMENT_TABLES} JOIN chunk c ON c.document = d.id "
        "LEFT JOIN scanned ON scanned.document = d.id "
        f"WHERE {condition} ORDER BY c.document, c.ordinal"
    )


def _documents_sql(condition: str) -> str:
    """The condition of the documents of chunks that meet a condition."""
    placed = "" if condition.startswith("c.") else f"JOIN ({DOCUMENT_TABLES}) ON d.id = c.document"
    return f"IN (SELECT c.document FROM chunk c {placed} WHERE {condition})"


def _prefetch(corpus: Corpus, condition: str, *bindings: Binding) -> None:
    if corpus_contents(corpus).has_claims:
        corpus.prefetch(superseders_sql(_documents_sql(condition)), bindings)
    corpus.prefetch(passages_sql(condition), bindings)


def _passages(corpus: Corpus, condition: str, *bindings: Binding) -> list[Passage]:
    """The passages that meet a condition, by document and in order."""
    _prefetch(corpus, condition, *bindings)
    rows = corpus.rows(passages_sql(condition), bindings)
    width = len(_TYPES)
    owners = [row[width] for row in rows]
    # Many passages have the same document.
    columns = {row[width]: row[width + 1 :] for row in rows}
    documents = {number: cached_metadata(*values) for number, values in columns.items()}
    chunks = typed((row[:width] for row in rows), *_TYPES.values())
    newer, ignored = superseders(corpus, _documents_sql(condition), *bindings)
    passages = [
        Passage(
            **dict(zip(_TYPES, row, strict=True)),
            document=documents[n],
            superseded_by=newer.get(n, ()),
            ignored_claims=ignored.get(n, ()),
        )
        for row, n in zip(chunks, owners, strict=True)
    ]
    marked = marks.marks_for(corpus, passages)
    if not marked:
        return passages
    return [passage._replace(mark=marked.get(passage.chunk_id)) for passage in passages]


def prefetch_passages(corpus: Corpus, rowids: Sequence[int]) -> None:
    """Say that :func:`passages_by_rowid` will be asked of these chunks."""
    _prefetch(corpus, f"c.id {IN_SET}", rowids)


def passages_by_rowid(corpus: Corpus, rowids: Sequence[int]) -> dict[int, Passage]:
    """The chunks with these rowids, by rowid."""
    return {passage.rowid: passage for passage in _passages(corpus, f"c.id {IN_SET}", rowids)}


def passage_by_id(corpus: Corpus, chunk_id: str) -> Passage | None:
    """The chunk with this id, or ``None``."""
    return next(iter(passages_by_id(corpus, [chunk_id])), None)


def passages_by_id(corpus: Corpus, chunk_ids: Sequence[str]) -> list[Passage]:
    """The chunks of the corpus with these ids, by document and place."""
    return _passages(corpus, f"c.chunk_id {IN_SET}", chunk_ids)


def passages_of_document(corpus: Corpus, document_id: str) -> list[Passage]:
    """The chunks of a document, in order; empty if there is no such document."""
    return _passages(corpus, "d.document_id = ?", document_id)


def passages_from(corpus: Corpus, document_id: str, first: int, count: int) -> list[Passage]:
    """The chunks of a document from the ``first`` on, counted from 1, in order."""
    following = "d.document_id = ? AND c.ordinal >= ? AND c.ordinal < ?"
    return _passages(corpus, following, document_id, first - 1, first - 1 + count)


def passages_at_lines(corpus: Corpus, path: str, start_line: int, end_line: int) -> list[Passage]:
    """The chunks of a file or attachment that share a line with the range, in order."""
    lines, paths = "c.start_line <= ? AND c.end_line >= ?", [path]
    if ATTACHED in path:
        found = _passages(
            corpus, f"(f.path = ? OR {ATTACHED_AT}) AND {lines}", path, path, end_line, start_line
        )
    else:
        named = () if path.isascii() else documents_named(corpus, path, ())
        paths += [document.path for document in named]
        found = _passages(corpus, f"f.path {IN_SET} AND {lines}", paths, end_line, start_line)
    return [passage for passage in found if passage.locator_path in paths]


def passages_of_documents(
    corpus: Corpus, rowids: Sequence[int], start_line: int = 0, end_line: int = 1 << 62
) -> list[Passage]:
    """The chunks of these documents that share a line with the range, by document and in order."""
    lines = f"d.id {IN_SET} AND c.start_line <= ? AND c.end_line >= ?"
    return _passages(corpus, lines, rowids, end_line, start_line)


MAX_STATING = 300
"""How many documents are read for what they say of others, or their language, the latest ones."""


def stating_passages(corpus: Corpus) -> list[Passage]:
    """The first passage of each trusted document that says that it changes another."""
    return _first_ones_with(corpus, STATEMENT, trusted=True)


def passages_in_other_languages(corpus: Corpus) -> list[Passage]:
    """The first passage of each document that is not in English."""
    return _first_ones_with(corpus, LANGUAGE, trusted=False)


def _first_ones_with(corpus: Corpus, key: str, *, trusted: bool) -> list[Passage]:
    """The first passage of each of the latest documents with an attribute."""
    latest = (
        f"SELECT id FROM document WHERE attributes LIKE ? "
        f"{'AND trust_tier <> ? ' if trusted else ''}ORDER BY updated_at DESC, id LIMIT ?"
    )
    bindings = f'%"{key}"%', *(("untrusted",) if trusted else ()), MAX_STATING
    # Kept, because it reads all documents.
    ids = once_in_generation(corpus, key, lambda: [row[0] for row in corpus.rows(latest, bindings)])
    return _passages(corpus, f"d.id {IN_SET} AND c.ordinal = 0", ids) if ids else []


# -- parts of chunks -------------------------------------------------------------------------------


MAX_TIED = 32
"""How many more chunks are among the first if they tie with the last of them."""


def first_by_score(corpus: Corpus, scores: Mapping[int, float], depth: int) -> dict[int, float]:
    """The chunks with the highest scores, best first, and the ones that tie with the last of them.

    If more than ``MAX_TIED`` tie, the lower chunk ids are taken.

    Args:
        corpus: an open corpus.
        scores: rowid → score.
        depth: how many, 1 or more.
    """
    ordered = sorted(scores, key=lambda rowid: (-scores[rowid], rowid))
    if len(ordered) > depth:
        edge = scores[ordered[depth - 1]]
        above = [rowid for rowid in ordered if scores[rowid] > edge]
        tied = [rowid for rowid in ordered if scores[rowid] == edge]
        if len(above) + len(tied) > depth + MAX_TIED:
            names = f"SELECT id, chunk_id FROM chunk WHERE id {IN_SET}"
            chunk_ids: dict[int, str] = dict(corpus.rows(names, (tied,)))
            tied.sort(key=lambda rowid: chunk_ids.get(rowid, ""))
            tied = tied[: depth - len(above)]
        ordered = above + tied
    return {rowid: scores[rowid] for rowid in ordered}


def chunks_of(corpus: Corpus, documents: Sequence[int]) -> list[int]:
    """The rowids of the chunks of some documents."""
    return corpus.column(f"SELECT id FROM chunk WHERE document {IN_SET}", (documents,))


def content_hashes(corpus: Corpus, chunk_ids: Sequence[str]) -> dict[str, str]:
    """Chunk id → hash of its text, for the ids that the corpus has."""
    chosen = f"SELECT chunk_id, content_hash FROM chunk WHERE chunk_id {IN_SET} ORDER BY chunk_id"
    return dict(typed(corpus.rows(chosen, (chunk_ids,)), str, str))


def chunk_texts(
    corpus: Corpus, rowids: Sequence[int]
) -> list[tuple[int, str, tuple[str, ...], str, tuple[str, ...], str, str | None]]:
    """What is embedded of these chunks, ordered by rowid.

    Their rowid, title, headings, content and tags, and the address and date of their document.
    """
    rows = corpus.rows(
        "SELECT c.id, c.title, headings, content, c.tags, "
        f"CASE d.source_kind WHEN '{REMEMBERED_KIND}' THEN '' ELSE d.uri END, d.updated_at "
        f"FROM chunk c JOIN document d ON d.id = c.document WHERE c.id {IN_SET} ORDER BY c.id",
        (rowids,),
    )
    return typed(rows, int, str, tuple[str, ...], str, tuple[str, ...], str, str | None)


_SAMPLED_CHARS = 1_000


def sampled_contents(corpus: Corpus, count: int) -> list[str]:
    """A part of each document that has one of ``count`` chunks, spread over the corpus."""
    first, last = corpus.rows("SELECT min(id), max(id) FROM chunk")[0]
    if first is None:
        return []
    step = max(1, (last - first + 1) // count)
    sample = range(first, last + 1, step)[:count]
    rows = corpus.rows(
        f"SELECT document, content FROM chunk WHERE id {IN_SET} ORDER BY id", (sample,)
    )
    of_documents: dict[int, list[str]] = grouped(typed(rows, int, str))
    return ["\n".join(texts)[:_SAMPLED_CHARS] for texts in of_documents.values()]


class PlacedText(NamedTuple):
    """The text of a chunk, and its lines in the file."""

    document: int
    rowid: int
    start_line: int
    end_line: int
    content: str


def placed_texts(corpus: Corpus, documents: Sequence[int]) -> dict[int, list[PlacedText]]:
    """Rowid of a document → the texts of its chunks, in order."""
    chosen = f"chunk WHERE document {IN_SET} ORDER BY document, ordinal"
    texts = corpus.select(PlacedText, chosen, (documents,), _ROW)
    return grouped((text.document, text) for text in texts)
