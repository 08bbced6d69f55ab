"""Fills the rerank cache before the first question, so that no answer waits for passages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rolebundle.embedding.provider import PROBE_TEXT, TEXT_FAULTS, EmbeddingProvider
from rolebundle.embedding.texts import embedding_text, input_hash
from rolebundle.errors import CorpusBusy, EmbedderError
from rolebundle.retrieval.rerank.scorers import passage_vector
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.passages import ChunkText, texts_after
from rolebundle.storage.corpus_state import corpus_counts, true_generation
from rolebundle.storage.files.lock import try_lock
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import warming_path

BATCH = 128
"""Chunks that are embedded and stored together."""

Progress = Callable[[str, int, int], None]
Pause = Callable[[], None]
"""Called before each text. It may wait, and raises if no more texts are to be embedded."""


class WarmReport(NamedTuple):
    """How many texts were embedded, how many chunks are left out, and why the first one is."""

    embedded: int
    waiting: int
    problem: str = ""


def warm_cache(
    corpus: Corpus,
    cache: Path,
    provider: EmbeddingProvider,
    progress: Progress,
    pause: Pause | None,
) -> WarmReport:
    """Embed every chunk whose vector is not in the rerank cache, until the cache is full.

    Chunks that are ingested meanwhile are included. What was embedded is stored, however it ends;
    if the process is killed, all but the last batch. The next call continues.

    Args:
        corpus: an open corpus; it is only read.
        cache: the cache's file, which may be missing.
        provider: the model.
        progress: called with the current step, how many chunks are done, and how many there are,
            before and after a batch is embedded.
        pause: if given, texts are embedded one after the other.

    Raises:
        EmbedderError: the model is not available, or embeds nothing.
        CorpusBusy: ``rerank_cache_filling``: another process does this. It includes what is in the
            corpus now.
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the cache cannot be used.
    """
    embedded = 0
    while True:
        with try_lock(warming_path(corpus.path)) as is_alone:
            if not is_alone:
                raise CorpusBusy(
                    "rerank_cache_filling",
                    f"{cache}: another process is filling the rerank cache",
                    "let it go on; it also embeds what was just ingested",
                )
            generation = true_generation(corpus)
            report = _fill(corpus, cache, provider, progress, pause)
        embedded += report.embedded
        # Another process may have ingested, and left the new chunks to this one.
        if report.problem or true_generation(corpus) == generation:
            return report._replace(embedded=embedded)


def _fill(
    corpus: Corpus,
    cache: Path,
    provider: EmbeddingProvider,
    progress: Progress,
    pause: Pause | None,
) -> WarmReport:
    model, total = provider.identity, corpus_counts(corpus).chunks
    done = embedded = last = 0
    problem = ""
    vector = partial(_vector_or_fault, provider, pause or (lambda: None))
    with ThreadPoolExecutor(provider.parallel_batches) as pool:
        while rows := texts_after(corpus, last, BATCH):
            texts = _by_hash(rows)
            missing = sorted(texts.keys() - rerank_cache.load(cache, model, list(texts)).keys())
            if missing and rerank_cache.is_full(cache, len(missing) * 4 * model.dimensions):
                problem = problem or "the rerank cache is full"
                break
            if missing:
                progress("embedding", done, total)
            found: dict[str, bytes | EmbedderError] = {}
            results = (map if pause else pool.map)(vector, [texts[key] for key in missing])
            try:
                found.update(zip(missing, results, strict=True))
            finally:
                vectors = {key: value for key, value in found.items() if isinstance(value, bytes)}
                # A purge deletes the cache as soon as nobody reads what was purged. So only what
                # the corpus still has is stored, and while it is read.
                with corpus.reading():
                    current = (
                        _by_hash(texts_after(corpus, last, BATCH)) if corpus.is_current() else {}
                    )
                    kept_vectors = {key: vectors[key] for key in vectors.keys() & current.keys()}
                    rerank_cache.store(cache, model, kept_vectors)
            if not corpus.is_current():
                problem = "the corpus file was replaced"
                break
            faults = [value for value in found.values() if isinstance(value, EmbedderError)]
            if faults:
                problem = problem or faults[0].message
                if not embedded and not vectors:
                    # Raises if the fault is the model's and not these texts'.
                    passage_vector(provider, PROBE_TEXT)
            last = rows[-1].rowid
            embedded += len(vectors)
            done += len(rows) - len(faults)
            if missing:
                progress("embedding", done, total)
    return WarmReport(embedded, max(0, total - done), problem)


def _by_hash(rows: Iterable[ChunkText]) -> dict[str, str]:
    texts = (embedding_text(*row[1:]) for row in rows)
    return {input_hash(text): text for text in texts}


def _vector_or_fault(provider: EmbeddingProvider, pause: Pause, text: str) -> bytes | EmbedderError:
    pause()
    try:
        return passage_vector(provider, text)
    except EmbedderError as error:
        if error.code not in TEXT_FAULTS:
            raise
        return error
