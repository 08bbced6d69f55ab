"""The vectors of one part of an embedding index in memory, which propose candidates exactly.

Each vector v is kept as whole numbers c, from −127 to 127, times a scale s, so that no component of
v − s·c is larger than s/2. For a query q, v·q then differs from s·(c·q) by at most s/2 · Σ|q|. The
distance d that sqlite-vec measures decreases as v·q − |v|²/2 = (|q|² − d²)/2 grows. So all that can
be among the nearest k are those whose value plus its error reaches the k-th highest value minus its
error.

It is imported for a second answer only, because it needs numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from rolebundle.storage.corpus import Corpus, corpus_counts, true_generation
from rolebundle.storage.vector_index import IndexPart

_MOST = 127
_SMALLEST_SCALE = 1e-30
_ROWS = 512
"""So many rows as float32 fit into a processor's cache; 4,096 take several times as long."""


@dataclass(frozen=True, eq=False)
class VectorScan:
    """The vectors of one part: 1 byte a dimension, and 16 bytes a vector.

    Attributes:
        rowids: of their chunks, int64.
        codes: one row of int8 for each vector.
        scales: what the row is multiplied by, float32.
        halves: half the square of the vector's length, float32.
    """

    rowids: NDArray[np.int64]
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    halves: NDArray[np.float32]

    def candidates(self, vector: bytes, k: int) -> list[int]:
        """Rowids of all that may be among the ``k`` nearest to a vector, ties included.

        Args:
            vector: float32, as long as the vectors.
            k: at least 1.
        """
        query = np.frombuffer(vector, "<f4")
        count, dimensions = self.codes.shape
        values = np.empty(count, np.float32)
        floats = np.empty((_ROWS, dimensions), np.float32)
        for start in range(0, count, _ROWS):
            rows = self.codes[start : start + _ROWS]
            floats[: len(rows)] = rows
            np.dot(floats[: len(rows)], query, out=values[start : start + _ROWS])
        values = values * self.scales - self.halves
        # A sum of n float32 products has an error of at most n · 2^-24 times the sum of their
        # absolute values (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1). Four
        # times that, and some terms more, is for our sum and for sqlite-vec's.
        rounding = (dimensions + 16) * 2.0**-22
        of_scale = np.float32(np.abs(query).sum() * (0.5 + _MOST * rounding))
        errors = self.scales * of_scale + np.float32(rounding) * (self.halves + query @ query)
        least = np.partition(values - errors, max(0, count - k))[max(0, count - k)]
        return [int(rowid) for rowid in self.rowids[values + errors >= least]]


_shared: WeakValueDictionary[tuple[object, ...], VectorScan] = WeakValueDictionary()
"""For all connections of this process to a file. Each open corpus holds those that it uses: as long
as one does, no other file can have its stamp."""


def scan_of(corpus: Corpus, part: IndexPart) -> VectorScan | None:
    """The vectors of a part, read once for each generation; ``None`` if they are damaged.

    Call it inside :meth:`~rolebundle.storage.corpus.Corpus.reading`.
    """
    name = corpus_counts(corpus).corpus_id
    key = (corpus.path, corpus.stamp, name, true_generation(corpus), part.table)
    scan = _shared.get(key) or _read(corpus, part)
    if scan is not None:
        _shared[key] = scan
    return scan


def _read(corpus: Corpus, part: IndexPart) -> VectorScan | None:
    """Read the blocks of vec0's table as it stores them."""
    scan = VectorScan(
        np.empty(part.vectors, np.int64),
        np.empty((part.vectors, part.dimensions), np.int8),
        np.empty(part.vectors, np.float32),
        np.empty(part.vectors, np.float32),
    )
    done = 0
    for validity, rowids, stored in corpus.iterate(
        f"SELECT c.validity, c.rowids, v.vectors FROM {part.table}_chunks c "
        f"JOIN {part.table}_vector_chunks00 v ON v.rowid = c.chunk_id"
    ):
        try:
            used = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little") == 1
            vectors = np.frombuffer(stored, "<f4").reshape(len(used), part.dimensions)[used]
            rows = slice(done, done + len(vectors))
            scan.rowids[rows] = np.frombuffer(rowids, "<i8")[used]
            scales = np.maximum(np.abs(vectors).max(axis=1) / _MOST, np.float32(_SMALLEST_SCALE))
            scan.codes[rows] = np.rint(vectors / scales[:, None])
            scan.scales[rows], scan.halves[rows] = scales, np.square(vectors).sum(axis=1) / 2
        except (ValueError, IndexError, TypeError):
            return None
        done += len(vectors)
    return scan if done == part.vectors and np.isfinite(scan.halves).all() else None
