"""Looking after embedding indexes: what there is, what a new one would cost, the fast companion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.texts import embedding_text
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest.embedding import count_waiting
from rolebundle.storage import approximate_index, documents, store, vector_index
from rolebundle.storage.approximate_index import MIN_RECALL, ApproximateState, Share
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import EmbeddingIndex

SAMPLE_QUERIES = 100
SAMPLE_NEIGHBOURS = 50
WANTED_RECALL = 0.99
_TIMED_TEXTS = 32
_BYTES_A_DIMENSION = 8  # a float32 in the vec0 table, and one beside its record


@dataclass(frozen=True, slots=True)
class Plan:
    """What an index of this model would take: chunks to embed, seconds, bytes."""

    chunks: int
    waiting: int
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Optimized:
    """What came of building a fast companion."""

    kept: bool
    recall: float
    buckets: int
    seconds: float


def plan(corpus: Corpus, provider: EmbeddingProvider, chunker: str) -> Plan:
    """What building or completing this provider's index would take; embeds a few chunks to see.

    Raises:
        EmbedderError: the model is not at hand.
    """
    from rolebundle.contracts.index import IndexIdentity

    model = provider.identity
    index = vector_index.find_index(corpus, IndexIdentity(model, chunker))
    chunks = documents.counts(corpus).chunks
    waiting = count_waiting(corpus, index) if index else chunks
    texts = [embedding_text(*text[1:]) for text in documents.first_texts(corpus, _TIMED_TEXTS)]
    if not texts:
        return Plan(chunks, waiting, 0.0, 0)
    provider.embed_passages(texts[:1])  # the first call loads the model
    started = perf_counter()
    provider.embed_passages(texts)
    each = (perf_counter() - started) / len(texts)
    return Plan(chunks, waiting, each * waiting, waiting * model.dimensions * _BYTES_A_DIMENSION)


def named_index(corpus: Corpus, name: str) -> EmbeddingIndex:
    """The index that a person names: its number, or ``provider:model``.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = [
        index
        for index in vector_index.all_indexes(corpus)
        if name in {str(index.id), label(index), index.identity.model.model}
    ]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{one.id} ({label(one)})" for one in vector_index.all_indexes(corpus))
    raise UsageError(
        "unknown_index" if not found else "ambiguous_index",
        f"{name!r} names {'no' if not found else 'more than one'} embedding index",
        f"indexes: {known or 'none'}; name one by its number",
    )


def label(index: EmbeddingIndex) -> str:
    """``provider:model``."""
    return f"{index.identity.model.provider}:{index.identity.model.model}"


def use_index(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Make an index the one that answers, in one transaction.

    Raises:
        UsageError: chunks wait for their vector in it.
    """
    with corpus.writing():
        left = count_waiting(corpus, index)
        if left:
            raise UsageError(
                "index_incomplete",
                f"the index {index.id} ({label(index)}) lacks the vectors of {left} chunks",
                "complete it with `rolebundle embed --provider … --model …`, which changes over",
            )
        vector_index.activate_index(corpus, index)
        store.increment_generation(corpus)


def drop_index(corpus: Corpus, index: EmbeddingIndex) -> None:
    """Remove an index that does not answer.

    Raises:
        UsageError: it is the one that answers.
    """
    with corpus.writing():
        current = vector_index.active_index(corpus)
        if current is not None and current.id == index.id:
            raise UsageError(
                "index_in_use",
                f"the index {index.id} ({label(index)}) is the one that answers",
                "change over to another one first with `rolebundle embed use`",
            )
        vector_index.delete_index(corpus, index)


def optimize(corpus: Corpus, index: EmbeddingIndex) -> Optimized:
    """Build the fast companion of an index, and keep it if it finds what the exact search finds.

    Raises:
        ConfigurationError: this build of apsw has no ``vec1``, or there are too few vectors.
    """
    if not approximate_index.is_available(corpus):
        raise ConfigurationError(
            "no_vec1",
            "this build of apsw does not carry the vec1 extension",
            "go on with the exact search, or install apsw from its wheel",
        )
    corpus.load_vectors()
    started = perf_counter()
    with corpus.writing():
        count = vector_index.count_vectors(corpus, index)
        if count < SAMPLE_QUERIES:
            raise ConfigurationError(
                "too_few_vectors",
                f"{count} vectors are too few to gain anything from a fast index",
                f"it pays from about {approximate_index.MIN_VECTORS:,} on",
            )
        shares = vector_index.current_shares(corpus, index)
        # In a small compartment the exact search is as fast; a small corpus may still try it.
        large = [share for share in shares if share.vectors >= approximate_index.MIN_VECTORS]
        built = [_built(corpus, share) for share in large or [max(shares, key=_size)]]
    recall = min(recall for _, recall in built)
    buckets = sum(buckets for buckets, _ in built)
    return Optimized(recall >= MIN_RECALL, recall, buckets, perf_counter() - started)


def _size(share: Share) -> int:
    return share.vectors


def _built(corpus: Corpus, share: Share) -> tuple[int, float]:
    """Buckets and recall of a share's new approximate index, which is dropped if it is bad."""
    approximate_index.drop(corpus, share)
    approximate_index.build(corpus, share)
    buckets = approximate_index.bucket_count(share.vectors)
    # As few probes as have enough recall; how many that are depends on the vectors.
    for probes in (32, 64, 128, 256):
        state = ApproximateState(buckets, min(probes, buckets), 1.0, share.vectors, 0)
        recall = _sampled_recall(corpus, share, state)
        if recall >= WANTED_RECALL or probes >= buckets:
            break
    approximate_index.store_state(corpus, share, replace(state, recall=recall))
    if recall < MIN_RECALL:
        approximate_index.drop(corpus, share)
    return buckets, recall


def _sampled_recall(corpus: Corpus, share: Share, state: ApproximateState) -> float:
    """The share of the exact neighbours that the approximate index finds, for sampled vectors."""
    trial = share._replace(approximate=state.write())
    hits = total = 0
    for vector in vector_index.sample_vectors(corpus, share, SAMPLE_QUERIES):
        exact = vector_index.exact_neighbours(corpus, share, vector, SAMPLE_NEIGHBOURS)
        proposed = set(approximate_index.nearest(corpus, trial, vector, 2 * SAMPLE_NEIGHBOURS))
        hits += sum(rowid in proposed for rowid, _ in exact)
        total += len(exact)
    return hits / total if total else 0.0
