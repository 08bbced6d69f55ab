"""Telling models apart by what they answer, where a server tells nothing else.

A hash of the vector itself would change with the last bit of a float, that is with the number of
threads. SimHash keeps one bit for each of a few random directions, the side on which the vector
lies: noise leaves the bits alone, another model's vector turns half of them.

Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.
"""

from __future__ import annotations

from hashlib import shake_256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

PROBE = "Which model is this? 27 amber otters count the rivers between Lagos and Reykjavík."
"""The text whose vector stands for the model. To change it is to change every fingerprint."""

BITS = 32


def fingerprint(vector: Matrix) -> str:
    """The SimHash of one vector, in hexadecimal."""
    import numpy as np

    size = vector.size
    # From a hash and not from a random generator: these directions must never change.
    stream = shake_256(b"rolebundle directions 1").digest(-(-BITS * size // 8))
    signs = np.unpackbits(np.frombuffer(stream, np.uint8), count=BITS * size).reshape(BITS, size)
    sides = (signs.astype(np.float64) * 2 - 1) @ vector.reshape(size).astype(np.float64) > 0
    return np.packbits(sides).tobytes().hex()
