"""Vectors in PostgreSQL: pgvector finds the nearest ones, and sqlite-vec measures those.

So the cosines are those of a corpus file, to the last bit.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from struct import pack
from typing import Any

import apsw
import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from rolebundle.storage.corpus import Corpus
from rolebundle.storage.sqlite import AMONG, Binding, Row, vectors_library
from rolebundle.storage.vector_distance import cosines_of


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
    compartments: Sequence[int],
    documents: Sequence[int] | None,
) -> dict[int, float]:
    """The nearest chunks of compartments, or of documents in them: rowid → cosine."""
    chosen, bindings = "", list[Binding]()
    if documents is not None:
        chosen = f"AND e.chunk IN (SELECT id FROM chunk WHERE document {AMONG})"
        bindings = [[*documents]]
    rows = corpus.rows(
        f"SELECT e.chunk, e.vector FROM embedded e WHERE e.index_id = ? AND e.compartment {AMONG} "
        f"{chosen} ORDER BY e.vector <-> ?, e.chunk LIMIT ?",
        (index_id, [*compartments], *bindings, Vector(vector), limit),
    )
    return dict(sorted(_measured(vector, rows).items(), key=lambda item: (-item[1], item[0])))


_VECTORS = f"SELECT e.chunk, e.vector FROM embedded e WHERE e.index_id = ? AND e.chunk {AMONG}"


def prefetch(corpus: Corpus, index_id: int, rowids: Sequence[int]) -> None:
    """Say that :func:`cosines` will be asked of these chunks."""
    corpus.prefetch(_VECTORS, (index_id, [*rowids]))


def cosines(
    corpus: Corpus, index_id: int, vector: bytes, rowids: Sequence[int]
) -> dict[int, float]:
    """Rowid → cosine, of those chunks that have a vector."""
    return _measured(vector, corpus.rows(_VECTORS, (index_id, [*rowids])))


def _measured(vector: bytes, rows: Iterable[Row]) -> dict[int, float]:
    measure = "SELECT vec_distance_L2(?, ?)"
    return cosines_of(
        (rowid, _measuring().execute(measure, (vector, own)).get) for rowid, own in rows
    )


@cache
def _measuring() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(vectors_library())
    db.enable_load_extension(False)
    return db
