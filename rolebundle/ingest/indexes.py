"""Builds, fills and maintains embedding indexes.

A chunk is *waiting* in an index if the index has no vector for it. The *active* index is the one
that searches use. A new index is built beside it and activated when no chunk is waiting.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from math import inf
from time import perf_counter
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from rolebundle.contracts.documents import IndexIdentity, iso_utc
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.packaged import E5, MINILM
from rolebundle.embedding.provider import (
    PROBE_TEXT,
    TEXT_FAULTS,
    EmbeddingProvider,
    ProviderSpec,
    embedding_text,
    input_hash,
    unit_vectors,
)
from rolebundle.embedding.registry import IN_PROCESS, PROVIDERS, parse_spec, spec_from_json
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from rolebundle.ingest.chunking import CHUNKER_VERSION
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus, corpus_counts, increment_generation
from rolebundle.storage.passages import chunk_texts, sampled_contents
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.text.languages import english_share

BATCH = 512
"""Chunks that are embedded and stored together, at most."""
PATIENCE_SECONDS = 300.0
"""A command that embeds after its own work leaves what would take longer to others."""
HANDFUL = 16
"""How many chunks a reading embeds that does not wait for a contextual model: about a second."""
INPUT_VERSION = f"{CHUNKER_VERSION}, tags, names, dates"
"""The version of the embedded text: the chunker, and what is added to title and text. Stored in the
column ``chunker`` of each index."""

NO_CONNECTION = "{}"
"""No settings of the connection to a model: the defaults of its provider apply.

An index that the owner asked for always has settings; one that was built by default has none.
"""

Progress = Callable[[str, int, int], None]
"""Called with the current step, how many units of it are done, and how many there are."""


def no_progress(_step: str, _done: int, _total: int) -> None:
    """Report nothing."""


EmbedResult = tuple[list[bytes | None], str]
"""A vector for each text, or ``None`` if it failed, and message and hint of the first failure."""


class EmbeddingReport(NamedTuple):
    """How many chunks were embedded, how many are waiting, and why.

    ``seconds_left``: how long the waiting ones would take, if they were left for that reason.
    """

    embedded: int
    waiting: int
    problem: str = ""
    seconds_left: float = 0.0


def count_waiting(corpus: Corpus, index: EmbeddingIndex | None = None) -> int:
    """How many chunks have no vector in an index. Default: in the active index."""
    index = index or vector_index.active_index(corpus)
    embedded = vector_index.count_vectors(corpus, index) if index else 0
    return corpus_counts(corpus).chunks - embedded


# -- building ---------------------------------------------------------------------------------


def ensure_index(corpus: Corpus, provider: EmbeddingProvider) -> EmbeddingIndex:
    """Return the active index, ready for ``INPUT_VERSION``.

    The index is created if the corpus has none. Vectors of another input version are removed, and
    their chunks wait again.

    Args:
        corpus: opened for writing.
        provider: the model.

    Raises:
        EmbedderError: the active index is of another model (law 5), or the model is not available.
    """
    identity = IndexIdentity(provider.identity, INPUT_VERSION)
    index = vector_index.active_index(corpus)
    if index is None:
        with corpus.writing():
            # Another process may have created it while this one waited for the lock.
            index = vector_index.active_index(corpus) or vector_index.create_index(corpus, identity)
    if index.identity.model != identity.model:
        requested, stored = identity.model, index.identity.model
        raise EmbedderError(
            "model_mismatch",
            f"the corpus's index was built with {stored.provider}:{stored.model} "
            f"(digest {stored.digest}), but this is {requested.provider}:{requested.model} "
            f"(digest {requested.digest}); vectors of two models are never mixed",
            f"run `rolebundle corpus embed --model {requested.choice}` to "
            "build an index of this model beside it, or use --lexical-only",
        )
    return _remove_outdated_vectors(corpus, index)


def build_index(
    corpus: Corpus,
    provider: EmbeddingProvider,
    progress: Progress,
    *,
    connection: str = NO_CONNECTION,
    parallel: int | None = None,
    max_seconds: float = inf,
) -> EmbeddingReport:
    """Embed every chunk into the index of this model, and activate the index when it is complete.

    If the process is killed, the next call continues. The activation is one transaction.

    Args:
        corpus: opened for writing.
        provider: the model.
        progress: called after each batch.
        connection: how to connect to the model later, as JSON; replaces the stored settings of an
            existing index, unless it is ``NO_CONNECTION``.
        parallel: see :func:`fill_index`.
        max_seconds: see :func:`fill_index`.

    Raises:
        EmbedderError: the model is not available.
    """
    identity = IndexIdentity(provider.identity, INPUT_VERSION)
    with corpus.writing():
        index = vector_index.find_index(corpus, identity)
        if index is None:
            is_first = vector_index.active_index(corpus) is None
            index = vector_index.create_index(
                corpus,
                identity,
                connection=connection,
                started_at=iso_utc(datetime.now(UTC)),
                activate=is_first,
            )
        elif connection not in {NO_CONNECTION, index.connection}:
            # The model has another address now.
            vector_index.set_connection(corpus, index, connection)
    index = _remove_outdated_vectors(corpus, index)
    embedded = 0
    while True:
        report = fill_index(corpus, index, provider, progress, parallel, max_seconds)
        embedded += report.embedded
        with corpus.writing():
            # Another process may have ingested chunks since the last batch.
            waiting = count_waiting(corpus, index)
            if waiting == 0:
                vector_index.activate_index(corpus, index)
                increment_generation(corpus)
                return EmbeddingReport(embedded, 0)
        if report.problem or report.seconds_left or report.embedded == 0:
            return report._replace(embedded=embedded, waiting=waiting)


def _remove_outdated_vectors(corpus: Corpus, index: EmbeddingIndex) -> EmbeddingIndex:
    """Remove vectors of texts that another input version built differently; return the new index.

    Their chunks wait again. An earlier version may have omitted the tags, for example. Done once,
    in one transaction.
    """
    if index.identity.chunker == INPUT_VERSION:
        return index
    with corpus.writing():
        after = 0
        while stored := vector_index.input_hashes(corpus, index, after, BATCH):
            after = max(stored)
            texts = _texts(corpus, list(stored))
            outdated = [row for row, text in texts.items() if stored[row] != input_hash(text)]
            vector_index.remove(corpus, index, outdated)
        increment_generation(corpus)
        return vector_index.set_chunker(corpus, index, INPUT_VERSION)


def fill_index(
    corpus: Corpus,
    index: EmbeddingIndex,
    provider: EmbeddingProvider,
    progress: Progress,
    parallel: int | None = None,
    max_seconds: float = inf,
) -> EmbeddingReport:
    """Embed every waiting chunk, one transaction per batch, and record the model's noise.

    If the process is killed, the next call continues. If the model cannot embed a batch, its parts
    are tried down to single chunks. Chunks that fail alone are reported and stay waiting.

    Args:
        corpus: opened for writing.
        index: the index.
        provider: its model.
        progress: called after each batch. What it raises ends the call; stored vectors stay.
        parallel: how many batches are embedded in parallel. Default: as the provider wants.
        max_seconds: if the first batches show that the rest would take longer, it is left.
    """
    total = count_waiting(corpus, index)
    done, problem = 0, ""
    parallel = parallel or provider.parallel_batches
    progress("embedding", done, total)
    started = perf_counter()
    ahead = _embed_ahead(_batches(corpus, index, provider.batch_size), provider, parallel)
    try:
        for number, (batch, (vectors, failure)) in enumerate(ahead, 1):
            problem = problem or failure
            done += _store(corpus, index, batch, vectors)
            progress("embedding", done, total)
            if number == parallel and done:
                seconds = (perf_counter() - started) / done * (total - done)
                if seconds > max_seconds:
                    return EmbeddingReport(done, count_waiting(corpus, index), problem, seconds)
        if index.noise is None:
            noise = noise_of(provider)
            with corpus.writing():
                vector_index.set_noise(corpus, index, noise)
    except EmbedderError as error:
        # Stored batches stay stored; the other chunks stay waiting.
        problem = f"{error.message}; {error.hint}"
    finally:
        ahead.close()
    return EmbeddingReport(done, count_waiting(corpus, index), problem)


def embed_chunks(
    corpus: Corpus, index: EmbeddingIndex, provider: EmbeddingProvider, rowids: Sequence[int]
) -> int:
    """Embed these chunks and no others; return how many have a vector now.

    None, if the index needs work first: it is of another model or of another input version.

    Raises:
        EmbedderError: the model is not available.
    """
    if index.identity != IndexIdentity(provider.identity, INPUT_VERSION):
        return 0
    texts = _texts(corpus, rowids)
    vectors, _ = _embed(provider, list(texts.values()))
    return _store(corpus, index, texts, vectors)


_Batch = dict[int, str]
"""Texts by rowid."""


def _batches(corpus: Corpus, index: EmbeddingIndex, size: int = BATCH) -> Iterator[_Batch]:
    """The texts of the waiting chunks in batches; each chunk once."""
    after, size = 0, min(size, BATCH)
    while rowids := vector_index.chunks_without_vector(corpus, index, after, size):
        after = rowids[-1]
        yield _texts(corpus, rowids)


def _store(
    corpus: Corpus, index: EmbeddingIndex, texts: _Batch, vectors: Sequence[bytes | None]
) -> int:
    """Store the vectors of chunks that have not changed; return their number.

    While the model was running, another process may have changed a chunk, or removed it and reused
    its rowid. Such a chunk stays waiting.

    Args:
        corpus: opened for writing.
        index: the index.
        texts: the texts of the chunks, as they were embedded.
        vectors: one for each text; ``None`` if there is none.
    """
    embedded = {row: vector for row, vector in zip(texts, vectors, strict=True) if vector}
    if not embedded:
        return 0
    with corpus.writing():
        current = _texts(corpus, list(embedded))
        same = [row for row in embedded if current.get(row) == texts[row]]
        rows = [(row, input_hash(texts[row]), embedded[row]) for row in same]
        if rows:
            vector_index.add(corpus, index, rows)
            increment_generation(corpus)
    return len(rows)


def _texts(corpus: Corpus, rowids: Sequence[int]) -> dict[int, str]:
    """The texts to embed, by rowid, without rows that no longer exist."""
    return {row[0]: embedding_text(*row[1:]) for row in chunk_texts(corpus, rowids)}


def _embed_ahead(
    batches: Iterator[_Batch], provider: EmbeddingProvider, parallel: int
) -> Generator[tuple[_Batch, EmbedResult], None, None]:
    """Each batch with its vectors. The model embeds the next batches while one is stored."""
    # One thread of the BLAS library for each of these: more would only wait for each other.
    with ThreadPoolExecutor(parallel) as pool, threadpool_limits(1, user_api="blas"):
        running: deque[tuple[_Batch, Future[EmbedResult]]] = deque()
        try:
            for batch in batches:
                running.append((batch, pool.submit(_embed, provider, [*batch.values()])))
                if len(running) > parallel:
                    first, result = running.popleft()
                    yield first, result.result()
            for last, result in running:
                yield last, result.result()
        finally:
            # If the caller ends early, it waits for the batches that have begun only.
            pool.shutdown(wait=False, cancel_futures=True)


def _embed(
    provider: EmbeddingProvider, texts: Sequence[str], *, is_half: bool = False
) -> EmbedResult:
    dimensions = provider.identity.dimensions
    try:
        matrix = unit_vectors(provider.embed_passages(texts), len(texts), dimensions)
    except EmbedderError as error:
        if error.code not in TEXT_FAULTS:
            # The server, the model or the network failed: other texts would fail as well.
            raise
        if len(texts) == 1:
            return [None], f"{error.message}; {error.hint}"
        if not is_half and not _can_embed(provider):
            raise
        middle = len(texts) // 2
        first_vectors, first_failure = _embed(provider, texts[:middle], is_half=True)
        other_vectors, other_failure = _embed(provider, texts[middle:], is_half=True)
        return first_vectors + other_vectors, first_failure or other_failure
    return [row.tobytes() for row in matrix], ""


def _can_embed(provider: EmbeddingProvider) -> bool:
    """Whether the model embeds a harmless text.

    If a server fails on every text, splitting would send a thousand requests per batch in vain.
    """
    try:
        unit_vectors(provider.embed_passages([PROBE_TEXT]), 1, provider.identity.dimensions)
    except EmbedderError:
        return False
    return True


# -- maintaining ------------------------------------------------------------------------------


def label(index: EmbeddingIndex) -> str:
    """``provider:model``."""
    return f"{index.identity.model.provider}:{index.identity.model.model}"


def drop_index(corpus: Corpus, name: str) -> None:
    """Remove an index that is not active.

    Args:
        corpus: open for writing.
        name: its number, ``provider:model`` or model name.

    Raises:
        UsageError: no index or several have this name, or it is active.
    """
    indexes = vector_index.all_indexes(corpus)
    matching = [i for i in indexes if name in {str(i.id), label(i), i.identity.model.model}]
    if len(matching) != 1:
        known = ", ".join(f"{index.id} ({label(index)})" for index in indexes)
        raise UsageError(
            "ambiguous_index" if matching else "unknown_index",
            f"{name!r} is the name of {'more than one' if matching else 'no'} embedding index",
            f"indexes: {known or 'none'}; use a number",
        )
    [index] = matching
    with corpus.writing():
        active = vector_index.active_index(corpus)
        if active is not None and active.id == index.id:
            problem = f"the index {index.id} ({label(index)}) is active"
            step = "activate another one first with `rolebundle corpus embed --model PROVIDER:NAME`"
            raise UsageError("index_in_use", problem, step)
        vector_index.delete_index(corpus, index)


# -- the default model --
#
# The contextual model that a corpus has by default, and how far its index is.
#
# A corpus begins with the static model, which takes no time. all-MiniLM-L6-v2 knows English, so it
# is the default where at least nine tenths of the text are English; else multilingual-e5-small. A
# model whose extra is not installed is passed over: all-MiniLM-L6-v2 also knows most of a text that
# is mostly English. Without any the static model stays.


MOSTLY_ENGLISH, ENGLISH_ENOUGH = 0.6, 0.9
MODEL_ENVIRONMENT = "ROLEBUNDLE_MODEL"
"""Names the default model, ``PROVIDER[:NAME]``. With ``static`` no other is a default."""

_SAMPLE = 400
"""Chunks in which languages are looked for."""

Choice = tuple[ProviderSpec | None, str]
"""The contextual model of a corpus, ``None`` if it has none, and the reason in words."""


def contextual_model(corpus: Corpus) -> Choice:
    """The model in this process that a corpus has, or the one that it is to have."""
    active = vector_index.active_index(corpus)
    if active is None:
        return None, "no passage was embedded yet"
    model = active.identity.model
    if active.connection != NO_CONNECTION or model.provider not in ("static", "onnx"):
        in_process = model.provider in IN_PROCESS
        spec = spec_from_json(active.connection, model) if in_process else None
        return spec, "its owner chose it"
    named = os.environ.get(MODEL_ENVIRONMENT, "")
    provider, _, name = named.partition(":")
    if provider == "static" == model.provider:
        return None, f"{MODEL_ENVIRONMENT}=static"
    if provider not in ("", "static"):
        if provider not in PROVIDERS or not (name or provider == "onnx"):
            problem = f"{MODEL_ENVIRONMENT}={named[:80]}: no model has this name"
            step = "name one as for `corpus embed --model`, such as ollama:nomic-embed-text"
            raise ConfigurationError("unknown_model", problem, step)
        return parse_spec(named if name else f"onnx:{MINILM.name}"), f"{MODEL_ENVIRONMENT}={named}"
    share = english_share(sampled_contents(corpus, _SAMPLE))
    of_text = f"{share:.0%} of the text is English"
    candidates = [E5, MINILM] if share >= MOSTLY_ENGLISH or model.model == MINILM.name else [E5]
    if share >= ENGLISH_ENOUGH and model.model != E5.name:
        candidates.reverse()
    best = candidates[0]
    chosen = next((candidate for candidate in candidates if candidate.is_installed), None)
    if chosen is not best:
        of_text += f", and {best.name} is not installed: {best.install}"
        of_text += ", then `rolebundle corpus embed`"
    return ProviderSpec("onnx", chosen.name) if chosen else None, of_text


def missing_model(corpus: Corpus) -> str:
    """What is to be installed for a text that is not English; empty if nothing is."""
    _, reason = contextual_model(corpus)
    return reason if E5.install in reason else ""


def is_due(corpus: Corpus, spec: ProviderSpec) -> bool:
    """Whether the index of a contextual model is not active yet, or chunks wait for it."""
    index = index_of(corpus, spec)
    # A process that was killed may have embedded everything and not yet activated the index.
    is_done = index is not None and index.active and not count_waiting(corpus, index)
    return bool(corpus_counts(corpus).chunks) and not is_done


def building_note(corpus: Corpus) -> str:
    """Which index is to take the place of the active one, and how; empty if none is."""
    spec, reason = contextual_model(corpus)
    active, chunks = vector_index.active_index(corpus), corpus_counts(corpus).chunks
    if active is None:
        return ""
    index = index_of(corpus, spec) if spec else active
    for other in vector_index.all_indexes(corpus):
        is_chosen = other.id > active.id and other.connection != NO_CONNECTION
        if is_chosen and count_waiting(corpus, other):
            index = other  # Its owner chose it, and it is not complete.
    if index is None and spec:
        is_named = reason.startswith(MODEL_ENVIRONMENT)
        better = reason if is_named else f"{spec.name}, which gives better answers"
        return f"the index is of {label(active)}; `rolebundle corpus embed` builds that of {better}"
    if index is None or index.active:
        return ""
    model = "" if index.connection == NO_CONNECTION else f" --model {index.identity.model.choice}"
    return (
        f"the index of {label(index)} has {chunks - count_waiting(corpus, index):,} of {chunks:,} "
        f"passages; until `rolebundle corpus embed{model}` completes it, {label(active)} answers"
    )


def index_of(corpus: Corpus, spec: ProviderSpec) -> EmbeddingIndex | None:
    """The newest index of a model."""
    # Ollama adds the tag to a name without one.
    names = {f"{spec.provider}:{spec.name}", f"{spec.provider}:{spec.name}:latest"}
    newest = reversed(vector_index.all_indexes(corpus))
    return next((index for index in newest if label(index) in names), None)
