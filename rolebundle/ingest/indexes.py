"""Looking after embedding indexes: what there is, what a new one would cost, the fast companion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter

from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest.embedding import count_waiting, embedding_text
from rolebundle.storage import documents, fast_index, vector_index, vector_search
from rolebundle.storage.connection import Corpus
from rolebundle.storage.fast_index import LEAST_RECALL, FastState, Share
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
    rows = corpus.rows("SELECT id FROM chunk ORDER BY id LIMIT ?", (_TIMED_TEXTS,))
    stored = documents.texts(corpus, [rowid for (rowid,) in rows])
    texts = [embedding_text(*passage[1:]) for passage in stored]
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
        vector_index.use(corpus, index)
        corpus.run("UPDATE corpus_state SET generation = generation + 1")


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
        vector_index.discard(corpus, index)


def optimize(corpus: Corpus, index: EmbeddingIndex) -> Optimized:
    """Build the fast companion of an index, and keep it if it finds what the exact search finds.

    Raises:
        ConfigurationError: this build of apsw has no ``vec1``, or there are too few vectors.
    """
    if not fast_index.available(corpus):
        raise ConfigurationError(
            "no_vec1",
            "this build of apsw does not carry the vec1 extension",
            "go on with the exact search, or install apsw from its wheel",
        )
    corpus.load_vectors()
    started = perf_counter()
    with corpus.writing():
        count = vector_index.count_embedded(corpus, index)
        if count < SAMPLE_QUERIES:
            raise ConfigurationError(
                "too_few_vectors",
                f"{count} vectors are too few to gain anything from a fast index",
                f"it pays from about {fast_index.WORTH_VECTORS:,} on",
            )
        shares = vector_index.shares_of(corpus, index)
        # In a small compartment the exact search is as fast; a small corpus may still try it.
        large = [share for share in shares if share.vectors >= fast_index.WORTH_VECTORS]
        built = [_built(corpus, share) for share in large or [max(shares, key=_size)]]
    recall = min(recall for _, recall in built)
    buckets = sum(buckets for buckets, _ in built)
    return Optimized(recall >= LEAST_RECALL, recall, buckets, perf_counter() - started)


def _size(share: Share) -> int:
    return share.vectors


def _built(corpus: Corpus, share: Share) -> tuple[int, float]:
    """Buckets and recall of a share's new companion, which is kept if it is good enough."""
    fast_index.remove(corpus, share)
    fast_index.build(corpus, share)
    buckets = fast_index.buckets_for(share.vectors)
    # As few probes as find enough; the sample says how many that are on these vectors.
    for probes in (32, 64, 128, 256):
        state = FastState(buckets, min(probes, buckets), 1.0, share.vectors, 0)
        recall = _sampled_recall(corpus, share, state)
        if recall >= WANTED_RECALL or probes >= buckets:
            break
    fast_index.record(corpus, share, replace(state, recall=recall))
    if recall < LEAST_RECALL:
        fast_index.remove(corpus, share)
    return buckets, recall


def _sampled_recall(corpus: Corpus, share: Share, state: FastState) -> float:
    """The share of the exact nearest that the companion finds, for vectors from all over."""
    trial = share._replace(fast=state.write())
    rowids = corpus.each(f"SELECT rowid FROM {share.table}")
    sample = list(islice(rowids, 0, None, max(1, share.vectors // SAMPLE_QUERIES)))
    hits = wanted = 0
    for (rowid,) in sample[:SAMPLE_QUERIES]:
        vector = corpus.value(
            "SELECT vector FROM embedded WHERE index_id = ? AND chunk = ?", (share.index_id, rowid)
        )
        exact = corpus.rows(vector_search.search_sql(share), (vector, SAMPLE_NEIGHBOURS))
        proposed = set(fast_index.nearest(corpus, trial, vector, 2 * SAMPLE_NEIGHBOURS))
        hits += sum(row in proposed for row, _ in exact)
        wanted += len(exact)
    return hits / wanted if wanted else 0.0
