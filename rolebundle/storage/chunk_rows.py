"""Chunks as rows: inserted, brought in step, removed, and the indexes with them.

A chunk that did not change keeps its row, its place in the lexical index and its vector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import NamedTuple

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.terms import ContentType
from rolebundle.storage import compartments, lexical_index, vector_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.sqlite_file import Row


class StoredChunk(NamedTuple):
    """A chunk as it is stored. A tuple, because hundreds of thousands come out of the workers."""

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
    forms: str = ""
    """What the index has of it beside its words (``rolebundle/text/forms.py``)."""


def content_hash(content: str) -> str:
    """The stored hash of a chunk's text: BLAKE2b, 16 bytes, hexadecimal.

    Chunk ids contain its first 10 digits.
    """
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_INDEXED = "title, headings, content, tags, hints"
_UNINDEXED = (
    "ordinal, content_type, content_hash, start_line, end_line, page, applicable_roles, "
    "excluded_roles"
)
_EMBEDDED = 4  # title, headings, content and tags are what a vector is made of


def indexed_title(title: str, content: str) -> str:
    """The title under which a chunk is indexed, in words and as a vector."""
    # A title that is the whole text would be indexed twice, and count for more than a text.
    return "" if content == title else title


def chunk_columns(metadata: DocumentMetadata, chunks: Sequence[StoredChunk]) -> dict[str, Row]:
    """Chunk id → what is stored of the chunk beside its id."""
    return {
        chunk.chunk_id: (
            indexed_title(metadata.title, chunk.content),
            json_array(chunk.headings),
            chunk.content,
            json_array(_distinct(metadata.tags, chunk.tags)),
            # Both are for the index alone and never shown.
            json_array((*metadata.retrieval_hints, chunk.forms))
            if chunk.forms
            else json_array(metadata.retrieval_hints),
            ordinal,
            chunk.content_type,
            chunk.content_hash,
            chunk.start_line,
            chunk.end_line,
            chunk.page,
            json_array(chunk.applicable_roles or metadata.applicable_roles),
            json_array(_distinct(metadata.excluded_roles, chunk.excluded_roles)),
        )
        for ordinal, chunk in enumerate(chunks)
    }


def update_chunks(
    corpus: Corpus, document_row: int, compartment: int, now: Mapping[str, Row]
) -> dict[str, Row]:
    """Bring a document's stored chunks in step with ``now``; returns those that are new."""
    before: dict[str, Row] = {
        row[0]: row[1:]
        for row in corpus.rows(
            f"SELECT chunk_id, id, {_INDEXED}, {_UNINDEXED} FROM chunk WHERE document = ?",
            (document_row,),
        )
    }
    remove_chunks(corpus, [row[0] for name, row in before.items() if name not in now])
    for name, values in now.items():
        if name in before:
            _update_chunk(corpus, compartment, before[name], values)
    return {name: values for name, values in now.items() if name not in before}


def _update_chunk(corpus: Corpus, compartment: int, before: Row, values: Row) -> None:
    rowid, old = before[0], before[1:]
    if old == values:
        return
    indexed = _INDEXED.count(",") + 1
    reindex = old[:indexed] != values[:indexed]
    if reindex:
        lexical_index.remove(corpus, compartment, [rowid])
    if old[:_EMBEDDED] != values[:_EMBEDDED]:
        _remove_vectors(corpus, [rowid])
    corpus.run(
        f"UPDATE chunk SET {assignments(f'{_INDEXED}, {_UNINDEXED}')} WHERE id = ?",
        (*values, rowid),
    )
    if reindex:
        lexical_index.add(corpus, compartment, rowid, rowid)


def insert_chunks(corpus: Corpus, rows: Sequence[Row]) -> None:
    """Insert chunks, each given as (document row, chunk id, *columns)."""
    if not rows:
        return
    first = next_row(corpus, "chunk")
    insert(
        corpus,
        f"chunk (id, document, chunk_id, {_INDEXED}, {_UNINDEXED})",
        [(first + offset, *row) for offset, row in enumerate(rows)],
    )
    last = first + len(rows) - 1
    for compartment, count in compartments.of_range(corpus, first, last).items():
        lexical_index.add(corpus, compartment, first, last)
        compartments.count(corpus, compartment, chunks=count)
    corpus.run("UPDATE corpus_state SET chunks = chunks + ?", (len(rows),))


def remove_chunks(corpus: Corpus, rowids: Sequence[int]) -> None:
    """Remove chunks, and what the indexes have of them."""
    if not rowids:
        return
    for compartment, chunks in compartments.of_chunks(corpus, rowids).items():
        lexical_index.remove(corpus, compartment, chunks)
        compartments.count(corpus, compartment, chunks=-len(chunks))
    _remove_vectors(corpus, rowids)
    corpus.run(
        "DELETE FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rowids)),),
    )
    corpus.run("UPDATE corpus_state SET chunks = chunks - ?", (len(rowids),))


def _remove_vectors(corpus: Corpus, rowids: Sequence[int]) -> None:
    for index in vector_index.all_indexes(corpus):
        vector_index.remove(corpus, index, rowids)


def next_row(corpus: Corpus, table: str) -> int:
    """The first rowid after all that the table has."""
    return 1 + int(corpus.value(f"SELECT coalesce(max(id), 0) FROM {table}"))


def insert(corpus: Corpus, target: str, rows: Sequence[Row]) -> None:
    """Insert rows into ``target``: a table and its columns."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        corpus.run_many(f"INSERT INTO {target} VALUES ({places})", rows)


def assignments(columns: str) -> str:
    """What stands after SET in an UPDATE of these columns."""
    return ", ".join(f"{name} = ?" for name in columns.split(", "))


@lru_cache(maxsize=4096)
def json_array(values: tuple[str, ...]) -> str:
    """Texts as they are stored. Cached, because neighbouring chunks share most of theirs."""
    return f"[{', '.join(map(encode_basestring, values))}]"


def _distinct(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second))) if second else first
