"""The words of a compartment in memory, and the BM25 of its chunks.

FTS5's index is the only stored one. What it knows of a word is read when the word is first asked
for, and kept until the corpus changes. BM25 is computed as FTS5 computes it (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; constants, floor and order
of terms are those of SQLite's ``fts5_aux.c``), with the statistics of all that is visible.

It is imported for a search only, because it needs numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rolebundle.errors import CorpusCorrupt
from rolebundle.lazy import Floats, Integers
from rolebundle.storage.corpus import ALL_CHUNKS, Corpus, Ranges, kept_in_memory
from rolebundle.storage.lexical_index import (
    COLUMN_WEIGHTS,
    COLUMNS,
    OFFSET_RANGE,
    TEXTS,
    Phrase,
    keys_of_texts,
)
from rolebundle.storage.sqlite import IN_SET
from rolebundle.storage.stored_values import damage_error

K1 = 1.2
"""Saturation: the smaller, the less further occurrences of a term count."""
B = 0.75
"""How much the length of a chunk counts, in [0, 1]."""

MAX_KEPT = 8_000_000
"""The most postings of a compartment that are kept in memory, at 8 bytes each."""
MAX_KEPT_OF_A_CHUNK = 24
"""How many a large compartment may keep for each chunk: there, reading a word again takes long."""

_COST_OF_A_PHRASE = 64
"""What is kept for each phrase, counted as postings."""
_WEIGHTS = np.array(COLUMN_WEIGHTS)

Indices = NDArray[np.int32]
"""Chunks by their index in ``Postings.rowids``, sorted."""


class Occurrences(NamedTuple):
    """Where a phrase occurs.

    Attributes:
        indices: of the chunks that have it.
        counts: how often each has it, weighted by the column, float32.
    """

    indices: Indices
    counts: NDArray[np.float32]


class Postings:
    """The words of one compartment at one generation of the corpus.

    Attributes:
        rowids: of its chunks, sorted, int64.
        lengths: the number of tokens of each chunk, float64.
        tokens: of all chunks together.

    Raises:
        CorpusCorrupt: the index is damaged, also by :meth:`read`.
    """

    def __init__(self, corpus: Corpus, compartment: int) -> None:
        self._compartment = compartment
        self._known: dict[Phrase, Occurrences] = {}
        self._set(corpus, *corpus.lexical.lengths(corpus, compartment, ALL_CHUNKS))

    def _set(self, corpus: Corpus, rowids: Integers, lengths: Floats) -> None:
        self.rowids, self.lengths = rowids, lengths
        self.tokens = float(lengths.sum())
        if corpus.lexical.extent(corpus, self._compartment) != (len(rowids), self.tokens):
            raise self._damaged()

    def _damaged(self) -> CorpusCorrupt:
        return damage_error(f"the lexical index of the compartment {self._compartment}")

    def updated(self, corpus: Corpus, ranges: Ranges) -> Postings:
        """The same at the current generation: the chunks of these ranges are read again."""
        new = copy(self)
        is_old = np.zeros(len(self.rowids), bool)
        for first, last in ranges:
            start, end = np.searchsorted(self.rowids, (first, last + 1))
            is_old[start:end] = True
        changed, lengths = corpus.lexical.lengths(corpus, self._compartment, ranges)
        stays = np.flatnonzero(~is_old)
        rowids = np.concatenate([self.rowids[stays], changed])
        order = np.argsort(rowids, kind="stable")
        new._set(corpus, rowids[order], np.concatenate([self.lengths[stays], lengths])[order])
        # `moved`: the new index for each old one, −1 if the chunk is gone or was read again. In
        # `indices`, the new indices of the chunks that were read follow.
        indices = np.argsort(order, kind="stable").astype(np.int32)
        moved = np.full(len(self.rowids), -1, np.int32)
        moved[stays] = indices[: len(stays)]
        keys = _keys_of_texts(corpus, changed)
        # What comes before the first change stays as it is.
        first = int(np.argmin(np.append(moved, -1) == np.arange(len(moved) + 1)))
        new._known = {
            phrase: new._moved(known, moved, first, _phrase_keys(phrase, keys) // OFFSET_RANGE)
            for phrase, known in self._known.items()
        }
        return new

    def _moved(self, old: Occurrences, moved: Indices, first: int, keys: Integers) -> Occurrences:
        """The occurrences with their new indices, and those in the chunks that were read again."""
        cut = np.searchsorted(old.indices, first)
        if cut == len(old.indices) and not len(keys):
            return old
        indices, added = moved[old.indices[cut:]], self._counted(keys)
        stays = indices >= 0
        at = np.concatenate([old.indices[:cut], indices[stays], added.indices])
        counts = np.concatenate([old.counts[:cut], old.counts[cut:][stays], added.counts])
        by_index = np.argsort(at, kind="stable") if len(keys) else slice(None)
        return Occurrences(at[by_index], counts[by_index])

    def read(self, corpus: Corpus, phrases: Sequence[Phrase]) -> list[Occurrences]:
        """Where each phrase occurs."""
        known = self._known
        missing = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known]
        if missing:
            # A new mapping, because other threads may read the old one.
            known = known | self._from_index(corpus, missing)
            size = sum(_COST_OF_A_PHRASE + len(found.indices) for found in known.values())
            if size > max(MAX_KEPT, MAX_KEPT_OF_A_CHUNK * len(self.rowids)):
                known = {phrase: known[phrase] for phrase in phrases}
            self._known = known
        return [known[phrase] for phrase in phrases]

    def _from_index(self, corpus: Corpus, phrases: Sequence[Phrase]) -> dict[Phrase, Occurrences]:
        words = list(dict.fromkeys(word for phrase in phrases for word in phrase))
        # With their offsets only if there are phrases of several words.
        has_offsets = any(len(phrase) > 1 for phrase in phrases)
        keys = corpus.lexical.keys_of(corpus, self._compartment, words, with_offsets=has_offsets)
        unit = OFFSET_RANGE if has_offsets else 1
        return {phrase: self._counted(_phrase_keys(phrase, keys) // unit) for phrase in phrases}

    def _counted(self, keys: Integers) -> Occurrences:
        """Occurrences from keys ``rowid * columns + column``, sorted."""
        rowids, columns = np.divmod(keys, len(COLUMNS))
        starts = np.flatnonzero(np.diff(rowids, prepend=-1))
        weights = _WEIGHTS[columns]
        counts = np.add.reduceat(weights, starts) if len(starts) else weights
        indices = np.searchsorted(self.rowids, rowids[starts])
        if not np.array_equal(self.rowids[indices[indices < len(self.rowids)]], rowids[starts]):
            raise self._damaged()
        return Occurrences(indices.astype(np.int32), counts.astype(np.float32))

    def having(self, corpus: Corpus, phrases: Sequence[Phrase]) -> Indices:
        """The indices of all chunks that have any of the phrases."""
        found = [occurrences.indices for occurrences in self.read(corpus, phrases)]
        if len(found) == 1:
            return found[0]
        # Marking is several times as fast as sorting.
        has_any = np.zeros(len(self.rowids), bool)
        for indices in found:
            has_any[indices] = True
        return np.flatnonzero(has_any).astype(np.int32)

    def common(self, indices: Indices, others: Indices) -> list[int]:
        """The rowids of the chunks that are among both."""
        positions, _ = _shared(indices, others)
        return [int(rowid) for rowid in self.rowids[indices[positions]]]

    def indices_of(self, rowids: Sequence[int] | Integers) -> Indices:
        """The indices of those chunks that are in this compartment."""
        wanted = np.sort(np.array(rowids, np.int64))
        indices = np.searchsorted(self.rowids, wanted)
        is_within = indices < len(self.rowids)
        indices, wanted = indices[is_within], wanted[is_within]
        found: Indices = indices[self.rowids[indices] == wanted].astype(np.int32)
        return found

    def bm25(
        self,
        query: Iterable[tuple[Occurrences, float, int]],
        average: float,
        only: Indices | None = None,
    ) -> Floats:
        """The scores of chunks, each at least 0; 0 for those that have no phrase of the query.

        ``Σ idf · f · (k1 + 1) / (f + k1 · (1 − b + b · tokens / average))``, in the order of the
        query, so that no score depends on the other chunks.

        Args:
            query: of each phrase, where it occurs, its idf, and how often the query has it.
            average: the mean number of tokens of a chunk.
            only: the indices of the chunks that are scored, sorted; ``None`` for all.
        """
        scores = np.zeros(len(self.rowids) if only is None else len(only))
        for occurrences, idf, repeated in query:
            positions, indices, counts = _occurrences_in(occurrences, only)
            often = counts.astype(np.float64)
            length = K1 * (1 - B + B * self.lengths[indices] / average)
            part = idf * (often * (K1 + 1) / (often + length))
            for _ in range(repeated):
                scores[positions] += part
        return scores

    def highest(self, scores: Floats, depth: int, only: Indices | None = None) -> dict[int, float]:
        """Rowid → score, for the highest scores above 0, and for all that tie with the last one."""
        best = np.flatnonzero(scores)
        if len(best) > depth:
            least = np.partition(scores[best], -depth)[-depth]
            best = best[scores[best] >= least]
        indices = best if only is None else only[best]
        return dict(zip(self.rowids[indices].tolist(), scores[best].tolist(), strict=True))


_NO_KEYS = np.empty(0, np.int64)


def _occurrences_in(
    occurrences: Occurrences, only: Indices | None
) -> tuple[NDArray[np.integer], Indices, NDArray[np.float32]]:
    """The occurrences in chunks that are searched, after the positions of these in ``only``."""
    indices, counts = occurrences
    if only is None:
        return indices, indices, counts
    positions, in_indices = _shared(only, indices)
    return positions, only[positions], counts[in_indices]


def _shared(first: Indices, second: Indices) -> tuple[Integers, Integers]:
    """The positions of the common elements in the first, and in the second. Both are sorted."""
    in_second = np.searchsorted(second, first)
    in_first = np.flatnonzero(in_second < len(second))
    in_first = in_first[second[in_second[in_first]] == first[in_first]]
    return in_first, in_second[in_first]


def _phrase_keys(phrase: Phrase, keys: Mapping[str, Integers]) -> Integers:
    """The sorted keys at which a phrase begins, from those of its words."""
    found = keys.get(phrase[0], _NO_KEYS) if phrase else _NO_KEYS
    for number, word in enumerate(phrase[1:], 1):
        found = np.intersect1d(found, keys.get(word, _NO_KEYS) - number, assume_unique=True)
    return found


def _keys_of_texts(corpus: Corpus, rowids: Integers) -> dict[str, Integers]:
    """Word → its keys with offsets, as of :func:`lexical_index.keys_of`, from the texts."""
    texts = corpus.rows(f"{TEXTS} WHERE c.id {IN_SET} ORDER BY c.id", (rowids.tolist(),))
    return {word: np.array(found, np.int64) for word, found in keys_of_texts(texts).items()}


def postings_of(corpus: Corpus, compartment: int) -> Postings:
    """The words of a compartment, kept in memory.

    A writer keeps none: it would have what another transaction undoes.
    """
    if not corpus.snapshot:
        return Postings(corpus, compartment)
    return kept_in_memory(corpus, ("words", compartment), lambda: Postings(corpus, compartment))
