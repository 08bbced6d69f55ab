"""BM25 as FTS5 computes it, with statistics from wherever they are taken.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; constants
and floor are those of SQLite's ``fts5_aux.c``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

K1 = 1.2
"""How soon further occurrences of a term stop to count."""
B = 0.75
"""How much a long chunk has to make up for its length."""
_LEAST = 1e-6


def inverse_frequency(chunks: int, frequency: int) -> float:
    """What a term's occurrence is worth; FTS5's floor where more than half of the chunks have it.

    Args:
        chunks: how many there are.
        frequency: how many of them have the term.
    """
    return max(_LEAST, math.log((chunks - frequency + 0.5) / (frequency + 0.5)))


class Statistics(NamedTuple):
    """What BM25 knows of a collection, for the terms of one query."""

    worth: tuple[float, ...]
    """Of each term: its inverse frequency times its weight in the query."""
    average: float
    """Tokens of a chunk."""
    reach: float
    """The sum of what those terms are worth that the collection has at all."""

    @classmethod
    def of(
        cls, chunks: int, tokens: int, frequencies: Sequence[int], weights: Sequence[int]
    ) -> Self:
        """The statistics of a collection.

        Args:
            chunks: how many it has.
            tokens: how many they have together.
            frequencies: for each term of the query, how many chunks have it.
            weights: how often each term stands in the query.
        """
        worth = tuple(
            weight * inverse_frequency(chunks, frequency)
            for frequency, weight in zip(frequencies, weights, strict=True)
        )
        reach = sum(one for one, count in zip(worth, frequencies, strict=True) if count)
        return cls(worth, tokens / chunks if chunks else 0.0, reach)

    def bm25(self, tokens: float, occurrences: Sequence[float]) -> float:
        """The score of a chunk.

        Args:
            tokens: how many it has.
            occurrences: of each term, how often the chunk has it, weighted by column.
        """
        length = K1 * (1 - B + B * tokens / self.average)
        return sum(
            worth * count * (K1 + 1) / (count + length)
            for worth, count in zip(self.worth, occurrences, strict=True)
            if count
        )
