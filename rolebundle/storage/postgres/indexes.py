"""The words and vectors of chunks in PostgreSQL, with the tokens of the file's index.

A word has blocks of its occurrences; see ``migrations/postgres/0001_initial.sql``. Each batch of
chunks writes a block for each of its words, so a block is written once, and read as it is. The
occurrences of a chunk in a word are all in one block.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from struct import pack
from typing import Any

import apsw
import numpy as np
import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from rolebundle.lazy import Floats, Integers
from rolebundle.storage.compartments import searchable_compartments
from rolebundle.storage.corpus import Corpus, Ranges, record_changes
from rolebundle.storage.lexical_index import COLUMNS, OFFSET_RANGE, TEXTS, keys_of_texts
from rolebundle.storage.sqlite import IN_SET, Binding, Row, load_vectors_library
from rolebundle.storage.stored_values import damage_error, grouped
from rolebundle.storage.vector_search import Cosines, cosines_from_rows

_KEYS_OF_A_CHUNK = OFFSET_RANGE * len(COLUMNS)
"""How many keys a chunk may have."""
_BATCH = 2_000
MAX_BLOCKS = 64
"""If a word has more, they are joined."""
_WORDS_PER_STEP = 500

Keys = dict[str, Integers]


def create(corpus: Corpus, compartment: int) -> None:
    """Do nothing, because all compartments share one table."""


def drop(corpus: Corpus, compartment: int) -> None:
    """Remove the words of a compartment."""
    for table in ("posting", "chunk_length"):
        corpus.run(f"DELETE FROM {table} WHERE compartment = ?", (compartment,))


def add_chunks(corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
    """Index these chunks."""
    texts = corpus.rows(f"{TEXTS} WHERE c.id {IN_SET} ORDER BY c.id", (rowids,))
    for start in range(0, len(texts), _BATCH):
        _write(corpus, compartment, texts[start : start + _BATCH])
    record_changes(corpus, rowids)


def _write(corpus: Corpus, compartment: int, texts: Sequence[Row]) -> None:
    found = {word: np.array(keys, np.int64) for word, keys in keys_of_texts(texts).items()}
    rowids = [row[0] for row in texts]
    chunks = np.concatenate([*found.values(), np.empty(0, np.int64)]) // _KEYS_OF_A_CHUNK
    tokens = np.bincount(np.searchsorted(rowids, chunks), minlength=len(rowids)).tolist()
    lengths = zip(rowids, tokens, strict=True)
    corpus.insert(
        "chunk_length (compartment, chunk, tokens)", [(compartment, *length) for length in lengths]
    )
    _insert_blocks(corpus, compartment, found)


def _insert_blocks(corpus: Corpus, compartment: int, found: Keys) -> None:
    rows: list[Row] = []
    for word, keys in found.items():
        first, last = int(keys[0]) // _KEYS_OF_A_CHUNK, int(keys[-1]) // _KEYS_OF_A_CHUNK
        rows.append((compartment, word, first, last, keys.astype("<i8").tobytes()))
    corpus.insert("posting (compartment, word, first, last, keys)", rows)


def remove_chunks(corpus: Corpus, compartment: int, rowids: Sequence[int]) -> None:
    """Remove chunks from the index. Call it while their rows still have the indexed text."""
    removed = np.array(sorted(rowids), np.int64)
    if not len(removed):
        return
    words = keys_of_texts(corpus.rows(f"{TEXTS} WHERE c.id {IN_SET}", (rowids,)))
    overlapping = (
        f"FROM posting WHERE compartment = ? AND word {IN_SET} AND first <= ? AND last >= ?"
    )
    bindings = (compartment, words, int(removed[-1]), int(removed[0]))
    blocks = corpus.rows(f"SELECT word, keys {overlapping}", bindings)
    corpus.run(f"DELETE {overlapping}", bindings)
    for word, block in blocks:
        keys = np.frombuffer(block, "<i8")
        stay = keys[~np.isin(keys // _KEYS_OF_A_CHUNK, removed)]
        if len(stay):
            _insert_blocks(corpus, compartment, {word: stay})
    corpus.run(
        f"DELETE FROM chunk_length WHERE compartment = ? AND chunk {IN_SET}", (compartment, rowids)
    )
    record_changes(corpus, rowids)


def extent(corpus: Corpus, compartment: int) -> tuple[int, int]:
    """The chunks and tokens of an index."""
    sizes = "SELECT count(*), coalesce(sum(tokens), 0) FROM main.chunk_length WHERE compartment = ?"
    [(chunks, tokens)] = corpus.rows(sizes, (compartment,))
    return chunks, int(tokens)


def lengths(corpus: Corpus, compartment: int, ranges: Ranges) -> tuple[Integers, Floats]:
    """The rowids in these ranges, sorted, and the number of tokens of each."""
    rows = corpus.rows(
        "SELECT chunk, tokens FROM json_each(?) r JOIN main.chunk_length ON compartment = ? "
        "AND chunk BETWEEN r.value ->> 0 AND r.value ->> 1 ORDER BY chunk",
        (ranges, compartment),
    )
    table = np.array(rows, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1].astype(np.float64)


def keys_of(corpus: Corpus, compartment: int, words: Sequence[str], *, with_offsets: bool) -> Keys:
    """Word → its occurrences; see :func:`rolebundle.storage.lexical_index.keys_of`."""
    # A search reads the same words of other compartments, too: in one round trip.
    searched = searchable_compartments(corpus, with_facts=True) if corpus.snapshot else ()
    numbers = sorted({compartment, *(other.id for other in searched)})
    rows = corpus.rows(
        f"SELECT compartment, word, keys FROM main.posting WHERE compartment {IN_SET} "
        f"AND word {IN_SET}",
        (numbers, words),
    )
    blocks = grouped((word, block) for number, word, block in rows if number == compartment)
    unit = 1 if with_offsets else OFFSET_RANGE
    return {
        word: np.sort(np.frombuffer(b"".join(blocks.get(word, ())), "<i8")) // unit
        for word in words
    }


def merge(corpus: Corpus, compartment: int) -> bool:
    """Join the blocks of some words that have many; each ingest adds one."""
    many = (
        "SELECT word FROM posting WHERE compartment = ? GROUP BY word HAVING count(*) > ? LIMIT ?"
    )
    words = corpus.column(many, (compartment, MAX_BLOCKS, _WORDS_PER_STEP))
    if not words:
        return False
    joined = keys_of(corpus, compartment, words, with_offsets=True)
    corpus.run(f"DELETE FROM posting WHERE compartment = ? AND word {IN_SET}", (compartment, words))
    _insert_blocks(corpus, compartment, joined)
    return True


def rebuild(corpus: Corpus, compartment: int) -> None:
    """Write the words of all chunks of a compartment again."""
    drop(corpus, compartment)
    for texts in _batches(corpus, compartment):
        _write(corpus, compartment, texts)


def _batches(corpus: Corpus, compartment: int) -> Iterator[list[Row]]:
    """The texts of the chunks of a compartment, by rowid."""
    after = -1
    while texts := corpus.rows(
        f"{TEXTS} WHERE d.compartment = ? AND c.id > ? ORDER BY c.id LIMIT ?",
        (compartment, after, _BATCH),
    ):
        yield texts
        after = texts[-1][0]


def check(corpus: Corpus, compartment: int) -> None:
    """Compare the index with the chunks.

    Raises:
        CorpusCorrupt: they differ.
    """
    total = 0
    for texts in _batches(corpus, compartment):
        expected = keys_of_texts(texts)
        first, last = texts[0][0], texts[-1][0]
        stored: dict[str, list[Integers]] = {}
        for word, block in corpus.rows(
            "SELECT word, keys FROM posting WHERE compartment = ? AND first <= ? AND last >= ?",
            (compartment, last, first),
        ):
            found = np.frombuffer(block, "<i8")
            chunks = found // _KEYS_OF_A_CHUNK
            found = found[(chunks >= first) & (chunks <= last)]
            if len(found):
                stored.setdefault(word, []).append(found)
        if stored.keys() != expected.keys() or any(
            not np.array_equal(np.sort(np.concatenate(stored[word])), keys)
            for word, keys in expected.items()
        ):
            raise damage_error("the lexical index")
        total += sum(map(len, expected.values()))
    if extent(corpus, compartment)[1] != total:
        raise damage_error("the lexical index")


# -- vectors ---------------------------------------------------------------------------------------
#
# pgvector finds the nearest ones, and sqlite-vec measures those. So the cosines are those of a
# corpus file, to the last bit.


class Vector(bytes):
    """A vector of float32, as a corpus file has it: little-endian."""


def _swapped(data: bytes) -> bytes:
    numbers = array("f", data)
    numbers.byteswap()
    return numbers.tobytes()


class _Dumper(Dumper):
    """pgvector's binary form: the number of dimensions, 0, and float32, big-endian."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return pack(">HH", len(obj) // 4, 0) + _swapped(obj)


class _Loader(Loader):
    format = Format.BINARY

    def load(self, data: Any) -> bytes:
        return _swapped(bytes(data)[4:])


def register(connection: psycopg.Connection[Row]) -> None:
    """Let a connection read and write vectors, if the database has any."""
    assert sys.byteorder == "little"
    info = TypeInfo.fetch(connection, "vector")
    if info is not None:
        dumper = type("_VectorDumper", (_Dumper,), {"oid": info.oid})
        connection.adapters.register_dumper(Vector, dumper)
        connection.adapters.register_loader(info.oid, _Loader)


def nearest(
    corpus: Corpus,
    index_id: int,
    vector: bytes,
    limit: int,
    compartment_ids: Sequence[int],
    document_rowids: Sequence[int] | None,
) -> Cosines:
    """The nearest chunks of compartments, or of documents in them: rowid → cosine."""
    chosen, bindings = "", list[Binding]()
    if document_rowids is not None:
        chosen = f"AND e.chunk IN (SELECT id FROM chunk WHERE document {IN_SET})"
        bindings = [document_rowids]
    rows = corpus.rows(
        "SELECT e.chunk, e.vector FROM embedded e WHERE e.index_id = ? "
        f"AND e.compartment {IN_SET} {chosen} ORDER BY e.vector <-> ?, e.chunk LIMIT ?",
        (index_id, compartment_ids, *bindings, Vector(vector), limit),
    )
    return dict(sorted(_measured(vector, rows).items(), key=lambda item: (-item[1], item[0])))


_VECTORS = f"SELECT e.chunk, e.vector FROM embedded e WHERE e.index_id = ? AND e.chunk {IN_SET}"


def prefetch(corpus: Corpus, index_id: int, rowids: Sequence[int]) -> None:
    """Say that :func:`cosines` will be asked of these chunks."""
    corpus.prefetch(_VECTORS, (index_id, rowids))


def cosines(corpus: Corpus, index_id: int, vector: bytes, rowids: Sequence[int]) -> Cosines:
    """Rowid → cosine, of those chunks that have a vector."""
    return _measured(vector, corpus.rows(_VECTORS, (index_id, rowids)))


def _measured(vector: bytes, rows: Iterable[Row]) -> Cosines:
    measure = "SELECT vec_distance_L2(?, ?)"
    return cosines_from_rows(
        (rowid, measuring().execute(measure, (vector, own)).get) for rowid, own in rows
    )


@cache
def measuring() -> apsw.Connection:
    """A database in memory that has sqlite-vec's functions."""
    db = apsw.Connection(":memory:")
    load_vectors_library(db)
    return db
