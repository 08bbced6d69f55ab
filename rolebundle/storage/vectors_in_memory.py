"""The vectors of an embedding index in memory, which propose candidates exactly.

A vector is rounded to 8 bits a component. The rounded one gives an estimate of a value that is
higher the nearer the vector is, and a bound of the estimate's error. A vector may be among the
nearest k only if its estimate plus error reaches the k-th highest estimate minus error.

In formulas: a vector v is kept as whole numbers c, from −127 to 127, times a scale s, so that no
component of v − s·c is larger than s/2. For a query q, the value is v·q − |v|²/2, which is
(|q|² − d²)/2 for the distance d that sqlite-vec measures. s·(c·q) differs from v·q by at most
s/2 · Σ|q|.

It is imported for a second answer only, because it needs numpy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rolebundle.storage.corpus import ALL_CHUNKS, Corpus, Ranges, kept_in_memory
from rolebundle.storage.sqlite import Row
from rolebundle.storage.vector_index import EmbeddingIndex

_MAX_INT8 = 127
_SMALLEST_SCALE = 1e-30
_MAX_BLOCKS = 1_000
_HALF_OF_DAMAGED = np.float32(-1e30)
"""In place of half the square of a length; it makes a vector a candidate in every search."""
_ROWS = 512
"""How many rows fit into a processor's cache as float32; 4,096 take several times as long."""


@dataclass(frozen=True, eq=False)
class CompartmentVectors:
    """Vectors: 1 byte a dimension, and 16 bytes a vector.

    Attributes:
        rowids: of their chunks, int64.
        blocks: one row of int8 for each vector, in blocks, so that few are copied by a change.
        scales: what the row is multiplied by, float32.
        halves: half the square of the vector's length, float32.
    """

    rowids: NDArray[np.int64]
    blocks: tuple[NDArray[np.int8], ...]
    scales: NDArray[np.float32]
    halves: NDArray[np.float32]

    def shortlist(self, vector: bytes, k: int) -> list[int]:
        """Rowids of all that may be among the ``k`` nearest to a vector, ties included.

        Args:
            vector: float32, as long as the vectors.
            k: at least 1.
        """
        query = np.frombuffer(vector, "<f4")
        count, dimensions = len(self.rowids), len(query)
        if not count:
            return []
        values = np.empty(count, np.float32)
        floats = np.empty((_ROWS, dimensions), np.float32)
        done = 0
        for block in self.blocks:
            for start in range(0, len(block), _ROWS):
                rows = block[start : start + _ROWS]
                floats[: len(rows)] = rows
                np.dot(floats[: len(rows)], query, out=values[done : done + len(rows)])
                done += len(rows)
        values = values * self.scales - self.halves
        # A sum of n float32 products has an error of at most n · 2^-24 times the sum of their
        # absolute values (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1). Four
        # times that, and some terms more, is for our sum and for sqlite-vec's.
        rounding = (dimensions + 16) * 2.0**-22
        of_scale = np.float32(np.abs(query).sum() * (0.5 + _MAX_INT8 * rounding))
        errors = self.scales * of_scale + np.float32(rounding) * (self.halves + query @ query)
        least = np.partition(values - errors, max(0, count - k))[max(0, count - k)]
        return [int(rowid) for rowid in self.rowids[values + errors >= least]]


@dataclass(frozen=True, eq=False)
class VectorsInMemory:
    """The vectors of an embedding index, by the compartment of their chunks."""

    index_id: int
    dimensions: int
    parts: Mapping[int, CompartmentVectors]

    def shortlist(self, compartments: Collection[int], vector: bytes, k: int) -> list[int]:
        """The shortlists of these compartments (:meth:`CompartmentVectors.shortlist`), joined."""
        found = (self.parts[number] for number in compartments if number in self.parts)
        return [rowid for part in found for rowid in part.shortlist(vector, k)]

    def updated(self, corpus: Corpus, ranges: Ranges) -> VectorsInMemory:
        """The same at the current generation: the vectors of these ranges are read again."""
        new = _read(corpus, self.index_id, self.dimensions, ranges).parts
        stay = {number: _without(part, ranges) for number, part in self.parts.items()}
        parts = {
            number: _joined([part[number] for part in (stay, new) if number in part])
            for number in stay.keys() | new
        }
        return VectorsInMemory(self.index_id, self.dimensions, parts)


def vectors_in_memory(corpus: Corpus, index: EmbeddingIndex) -> VectorsInMemory:
    """The vectors of an index, kept in memory. Call it inside a snapshot.

    Damaged ones, of another length or not finite, are always candidates.
    """
    dimensions = index.identity.model.dimensions
    name = ("vectors", index.id, dimensions)
    return kept_in_memory(corpus, name, lambda: _read(corpus, index.id, dimensions, ALL_CHUNKS))


def _read(corpus: Corpus, index_id: int, dimensions: int, ranges: Ranges) -> VectorsInMemory:
    rows = corpus.iterate(
        "SELECT e.compartment, e.chunk, e.vector FROM json_each(?) r CROSS JOIN main.embedded e "
        "ON e.index_id = ? AND e.chunk BETWEEN r.value ->> 0 AND r.value ->> 1",
        (ranges, index_id),
    )
    pieces: dict[int, list[CompartmentVectors]] = {}
    while batch := list(islice(rows, _ROWS)):
        for number in {compartment for compartment, *_ in batch}:
            of_part = [row for row in batch if row[0] == number]
            pieces.setdefault(number, []).append(_encoded(of_part, dimensions))
    return VectorsInMemory(
        index_id, dimensions, {number: _joined(found) for number, found in pieces.items()}
    )


def _encoded(rows: Iterable[Row], dimensions: int) -> CompartmentVectors:
    _, rowids, stored = zip(*rows, strict=True)
    damaged = np.full(dimensions, np.nan, "<f4").tobytes()
    whole = (vector if len(vector) == len(damaged) else damaged for vector in stored)
    vectors = np.frombuffer(b"".join(whole), "<f4").reshape(-1, dimensions)
    with np.errstate(all="ignore"):
        halves = np.square(vectors).sum(axis=1) / 2
    is_damaged = ~np.isfinite(halves)
    vectors = np.where(is_damaged[:, None], np.float32(0), vectors)
    halves[is_damaged] = _HALF_OF_DAMAGED
    scales = np.maximum(np.abs(vectors).max(axis=1) / _MAX_INT8, np.float32(_SMALLEST_SCALE))
    blocks = np.rint(vectors / scales[:, None]).astype(np.int8)
    return CompartmentVectors(np.array(rowids, np.int64), (blocks,), scales, halves)


def _joined(pieces: list[CompartmentVectors]) -> CompartmentVectors:
    blocks = tuple(block for piece in pieces for block in piece.blocks)
    return CompartmentVectors(
        np.concatenate([piece.rowids for piece in pieces]),
        blocks if len(blocks) <= _MAX_BLOCKS else (np.concatenate(blocks),),
        np.concatenate([piece.scales for piece in pieces]),
        np.concatenate([piece.halves for piece in pieces]),
    )


def _without(part: CompartmentVectors, ranges: Ranges) -> CompartmentVectors:
    stays = np.ones(len(part.rowids), bool)
    for first, last in ranges:
        stays &= (part.rowids < first) | (part.rowids > last)
    if stays.all():
        return part
    both = zip(part.blocks, np.split(stays, np.cumsum([*map(len, part.blocks)])[:-1]), strict=True)
    blocks = tuple(block if of.all() else block[of] for block, of in both)
    return CompartmentVectors(part.rowids[stays], blocks, part.scales[stays], part.halves[stays])
