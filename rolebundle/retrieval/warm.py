"""Fills the rerank cache before the first question, so that no answer waits for passages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rolebundle.embedding.provider import PROBE_TEXT, TEXT_FAULTS, EmbeddingProvider
from rolebundle.embedding.texts import embedding_text, input_hash
from rolebundle.errors import EmbedderError
from rolebundle.retrieval.scorers import passage_vector
from rolebundle.storage import rerank_cache
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.passages import texts_after

BATCH = 128
"""Chunks that are embedded and stored together."""


class WarmReport(NamedTuple):
    """How many texts were embedded, how many chunks are left out, and why the first one is."""

    embedded: int
    waiting: int
    problem: str = ""


def warm_cache(
    corpus: Corpus,
    cache: Path,
    provider: EmbeddingProvider,
    progress: Callable[[str, int, int], None],
) -> WarmReport:
    """Embed every chunk whose vector is not in the rerank cache, until the cache is full.

    If the process is killed, the next call continues.

    Args:
        corpus: an open corpus; it is only read.
        cache: the cache's file, which may be missing.
        provider: the model.
        progress: called with the current step, how many chunks are done, and how many there are.

    Raises:
        EmbedderError: the model is not available, or embeds nothing.
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the cache cannot be used.
    """
    model, total = provider.identity, corpus_counts(corpus).chunks
    done = embedded = last = 0
    problem = ""
    with ThreadPoolExecutor(provider.parallel_batches) as pool:
        while rows := texts_after(corpus, last, BATCH):
            last = rows[-1].rowid
            texts = {input_hash(text): text for text in (embedding_text(*row[1:]) for row in rows)}
            missing = sorted(texts.keys() - rerank_cache.load(cache, model, list(texts)).keys())
            if missing and rerank_cache.is_full(cache, len(missing) * 4 * model.dimensions):
                problem = problem or "the rerank cache is full"
                break
            results = pool.map(
                partial(_vector_or_fault, provider), [texts[text_hash] for text_hash in missing]
            )
            found = dict(zip(missing, results, strict=True))
            vectors = {text_hash: one for text_hash, one in found.items() if isinstance(one, bytes)}
            faults = [one for one in found.values() if isinstance(one, EmbedderError)]
            if faults:
                problem = problem or faults[0].message
                if not embedded and not vectors:
                    # Raises if the fault is the model's and not these texts'.
                    passage_vector(provider, PROBE_TEXT)
            rerank_cache.store(cache, model, vectors)
            embedded += len(vectors)
            done += len(rows) - len(faults)
            progress("embedding", done, total)
    return WarmReport(embedded, total - done, problem)


def _vector_or_fault(provider: EmbeddingProvider, text: str) -> bytes | EmbedderError:
    try:
        return passage_vector(provider, text)
    except EmbedderError as error:
        if error.code not in TEXT_FAULTS:
            raise
        return error
