"""Words and vectors in memory, and the record of changed chunks that keeps them up to date."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from rolebundle.storage.corpus import Corpus, Ranges, corpus_counts, true_generation

KEPT = 100
"""The changes of so many generations are kept."""
_GAP = 100
"""Changed rowids that are no further apart are recorded as one range."""
_MAX_RANGES = 50
"""If there are more, they are recorded as one."""
MAX_CHANGED = 5_000
"""If more chunks may have changed, everything is read again."""

ALL: Ranges = [(0, 2**63 - 1)]


def record(corpus: Corpus, rowids: Sequence[int]) -> None:
    """Record that these chunks, their words or their vectors change with the next generation.

    Call it inside a write transaction that ends with
    :func:`~rolebundle.storage.corpus.increment_generation`.
    """
    ranges: Ranges = []
    for rowid in sorted(rowids):
        if ranges and rowid - ranges[-1][1] <= _GAP:
            ranges[-1] = (ranges[-1][0], rowid)
        else:
            ranges.append((rowid, rowid))
    if len(ranges) > _MAX_RANGES:
        ranges = [(ranges[0][0], ranges[-1][1])]
    record_ranges(corpus, ranges)


def record_ranges(corpus: Corpus, ranges: Ranges) -> None:
    """Record that chunks of these ranges change with the next generation."""
    generation = true_generation(corpus) + 1
    corpus.run("DELETE FROM chunk_change WHERE generation < ?", (generation - KEPT,))
    corpus.insert("chunk_change (generation, first, last)", [(generation, *one) for one in ranges])


def changed_since(corpus: Corpus, generation: int) -> Ranges | None:
    """The ranges, sorted and apart, in which all chunks that changed since are.

    ``None`` if they are not known, or too many.
    """
    if not 0 <= true_generation(corpus) - generation < KEPT:
        return None  # It goes back if an older state is restored into a database.
    ranges: Ranges = []
    for first, last in corpus.rows(
        "SELECT first, last FROM main.chunk_change WHERE generation > ? ORDER BY first",
        (generation,),
    ):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(last, ranges[-1][1]))
        else:
            ranges.append((first, last))
    return ranges if sum(last - first + 1 for first, last in ranges) <= MAX_CHANGED else None


_T = TypeVar("_T")
_shared: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
"""For all connections of this process to a file. Each open corpus holds those that it uses: as long
as one does, no other file can have its stamp."""


def up_to_date(corpus: Corpus, name: Hashable, read: Callable[[], _T]) -> _T:
    """What is kept in memory under a name. Call it inside a snapshot.

    It never changes. Its method ``updated(corpus, ranges)`` returns the same at the current
    generation: what is of these ranges is read again.

    Args:
        corpus: a corpus open for reading.
        name: the name.
        read: reads it, if it is not in memory, or if too much has changed.
    """
    file = (corpus.path, corpus.stamp, corpus_counts(corpus).corpus_id, name)
    generation = true_generation(corpus)
    known, before, kept = corpus.in_memory.get(name, ((), 0, None))
    if (known, before) != (file, generation):
        key = (*file, generation)
        value = _shared.get(key)
        if value is None:
            ranges = changed_since(corpus, before) if known == file else None
            value = read() if ranges is None else kept.updated(corpus, ranges)
        _shared[key] = value
        corpus.in_memory[name] = (file, generation, value)
    found: _T = corpus.in_memory[name][2]
    return found
