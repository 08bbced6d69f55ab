"""Builds approximate indexes beside the exact ones, and keeps those whose recall is sufficient."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest.indexes import Progress
from rolebundle.storage.connection import Corpus
from rolebundle.storage.indexes import approximate_index, vector_index, vector_search
from rolebundle.storage.indexes.approximate_index import MIN_RECALL, ApproximateState, IndexPart
from rolebundle.storage.indexes.vector_index import EmbeddingIndex

SAMPLE_QUERIES = 100
SAMPLE_NEIGHBOURS = 50
TARGET_RECALL = 0.99


@dataclass(frozen=True, slots=True)
class Optimized:
    """The result of building approximate indexes, one per large compartment.

    Attributes:
        is_kept: false if the recall of at least one was too low; that one was dropped.
        recall: the lowest recall, 0 to 1.
        buckets: the number of buckets of all of them.
        seconds: how long the building took.
    """

    is_kept: bool
    recall: float
    buckets: int
    seconds: float


def optimize(corpus: Corpus) -> Optimized:
    """Build approximate indexes beside the active one, and keep each if its recall is sufficient.

    Each large compartment gets one. If none is large, the largest compartment gets one.

    Raises:
        ConfigurationError: this build of apsw has no ``vec1``, or there are too few vectors.
        UsageError: the corpus has no embedding index.
    """
    index = vector_index.active_index(corpus)
    if index is None:
        raise UsageError(
            "no_index", f"{corpus.path}: has no embedding index", "run `rolebundle corpus embed`"
        )
    if not approximate_index.is_available(corpus):
        raise ConfigurationError(
            "no_vec1",
            "this build of apsw does not contain the vec1 extension",
            "continue with the exact search, or install apsw from its wheel",
        )
    corpus.load_vectors()
    started = perf_counter()
    with corpus.writing():
        count = vector_index.count_vectors(corpus, index)
        if count < SAMPLE_QUERIES:
            raise ConfigurationError(
                "too_few_vectors",
                f"{count} vectors are too few to measure the recall of an approximate index",
                "continue with the exact search; an approximate index is faster from about "
                f"{approximate_index.MIN_VECTORS:,} vectors on",
            )
        parts = vector_index.current_parts(corpus, index)
        # In small compartments the exact search is as fast.
        large = [part for part in parts if part.vectors >= approximate_index.MIN_VECTORS]
        largest = max(parts, key=lambda part: part.vectors)
        results = [_build_approximate(corpus, part) for part in large or [largest]]
    recall = min(recall for _, recall in results)
    buckets = sum(buckets for buckets, _ in results)
    return Optimized(recall >= MIN_RECALL, recall, buckets, perf_counter() - started)


def optimize_large(corpus: Corpus, index: EmbeddingIndex, progress: Progress) -> int:
    """Build the approximate indexes of large compartments that have none or an outdated one.

    Each is one transaction. One whose recall is too low stays, unused, so that it is not built
    again until its vectors have changed.

    Returns:
        How many were built. None if this build of apsw has no ``vec1``.
    """
    parts = [
        part
        for part in vector_index.current_parts(corpus, index)
        if part.vectors >= approximate_index.MIN_VECTORS and _is_outdated(part)
    ]
    if not parts or not approximate_index.is_available(corpus):
        return 0
    corpus.load_vectors()
    for number, part in enumerate(parts):
        progress("indexing", number, len(parts))
        with corpus.writing():
            _build_approximate(corpus, part, keep=True)
    progress("indexing", len(parts), len(parts))
    return len(parts)


def _is_outdated(part: IndexPart) -> bool:
    state = ApproximateState.read(part.approximate)
    return state is None or state.is_stale


def _build_approximate(corpus: Corpus, part: IndexPart, *, keep: bool = False) -> tuple[int, float]:
    """Build the approximate index of a compartment's vectors; return its buckets and recall.

    It is dropped if its recall is below ``MIN_RECALL``, unless ``keep`` is set.
    """
    approximate_index.drop(corpus, part)
    approximate_index.build(corpus, part)
    buckets = approximate_index.bucket_count(part.vectors)
    # Use the smallest number of probes with sufficient recall, which depends on the vectors.
    for probes in (32, 64, 128, 256):
        # The recall is replaced by the measured one below.
        state = ApproximateState(
            buckets=buckets,
            probes=min(probes, buckets),
            recall=1.0,
            built=part.vectors,
            changed=0,
        )
        recall = _sampled_recall(corpus, part, state)
        if recall >= TARGET_RECALL or probes >= buckets:
            break
    approximate_index.store_state(corpus, part, state._replace(recall=recall))
    if recall < MIN_RECALL and not keep:
        approximate_index.drop(corpus, part)
    return buckets, recall


def _sampled_recall(corpus: Corpus, part: IndexPart, state: ApproximateState) -> float:
    """The fraction of the exact neighbours of sampled vectors that the approximate index finds."""
    trial = part._replace(approximate=state.write())
    hits = total = 0
    for vector in vector_index.sample_vectors(corpus, part, SAMPLE_QUERIES):
        exact = vector_search.exact_neighbours(corpus, part, vector, SAMPLE_NEIGHBOURS)
        proposed = set(approximate_index.nearest(corpus, trial, vector, 2 * SAMPLE_NEIGHBOURS))
        hits += sum(rowid in proposed for rowid, _ in exact)
        total += len(exact)
    return hits / total if total else 0.0
