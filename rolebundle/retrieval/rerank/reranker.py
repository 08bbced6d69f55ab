"""The models that rerank: how a model's scores of the best passages come into one answer.

Without a deadline all passages are scored, and equal requests have equal answers. With one, the
model works in a thread of its own, the best passages first, and the answer takes what was ready in
time. It says so, because it depends on the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import perf_counter
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import RerankState
from rolebundle.contracts.document import Passage
from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.provider import Unavailable
from rolebundle.embedding.registry import (
    QUERY_DEADLINE_SECONDS,
    RERANK_SERVERS,
    SERVED,
    ProviderSpec,
    parse_rerank_spec,
    provider_for,
    rerank_server_for,
)
from rolebundle.embedding.texts import embedding_text, input_hash
from rolebundle.errors import EmbedderError
from rolebundle.retrieval.rerank.scorers import CosineScorer, Score, Scorer, ServerScorer
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.chunks import indexed_title
from rolebundle.storage.corpus_state import true_generation
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.opening import open_reader

if TYPE_CHECKING:
    from rolebundle.contracts.terms import WarningCode

MAX_MODELS = 2
"""How many models stay loaded. Requests name the model, so memory must be bounded."""
RESERVED_SHARE = 0.4
"""The part of a request's deadline that is left for what follows the reranking."""


class RerankModels:
    """The models that rerank the answers from one corpus file.

    Args:
        path: the corpus file. The cache of vectors lies beside it.
        url: the address of the model's server, instead of its provider's usual one.
        allow_host: the only other machine that may be that server.
    """

    def __init__(self, path: Path, url: str, allow_host: str) -> None:
        self._path, self._url, self._allow_host = path, url, allow_host
        self._models: dict[str, Callable[[str, int], Scorer]] = {}
        """Name of a model → makes its scorer for a task and the corpus's generation."""
        self._lock = Lock()

    @staticmethod
    def check_model(model: str) -> None:
        """Check that a model, ``PROVIDER:MODEL``, has a known provider.

        Raises:
            ConfigurationError: the provider is unknown.
        """
        parse_rerank_spec(model)

    def reranker(
        self,
        corpus: Corpus,
        model: str,
        task: str,
        deadline: float | None = None,
        started: float | None = None,
    ) -> Reranker:
        """The reranker of one request.

        If the model is not available, its first use raises the error, so that the request can be
        answered without it.

        Args:
            corpus: asked whether the request was interrupted. If it is written before the vectors
                are stored, they are not: they may be of a text that was purged.
            model: ``PROVIDER:MODEL``.
            task: of the request.
            deadline: seconds that the request may take; ``None`` for no limit.
            started: when the request began, by ``perf_counter``; ``None`` for now.

        Raises:
            ConfigurationError: the name is malformed, or lacks what its provider requires.
        """
        # Engines in several threads may share the models.
        with self._lock:
            if model not in self._models:
                opened = self._open(model)
                while len(self._models) >= MAX_MODELS:
                    del self._models[next(iter(self._models))]
                self._models[model] = opened
            scorer = self._models[model](task, true_generation(corpus))
        is_served = parse_rerank_spec(model).provider in SERVED
        return Reranker(scorer, corpus.raise_if_interrupted, deadline, started, is_served=is_served)

    def _open(self, model: str) -> Callable[[str, int], Scorer]:
        spec = self._spec(model)
        try:
            if spec.provider in RERANK_SERVERS:
                server = rerank_server_for(spec)
                return lambda task, _generation: ServerScorer(server, task)
            provider = provider_for(spec)
        except EmbedderError as error:
            provider = Unavailable(error)
        cache = rerank_cache_path(self._path)
        return lambda task, generation: CosineScorer(
            provider, task, cache, partial(_is_unchanged, self._path, generation)
        )

    def _spec(self, model: str) -> ProviderSpec:
        spec = parse_rerank_spec(model, self._url, self._allow_host)
        return replace(spec, deadline_seconds=QUERY_DEADLINE_SECONDS)


@contextmanager
def _is_unchanged(path: Path, generation: int) -> Iterator[bool]:
    """Whether a corpus has this generation. If so, no purge ends before the block does."""
    with open_reader(path, verify=False) as corpus, corpus.reading():
        yield true_generation(corpus) == generation


class Reranker:
    """The scores of passages for one task. The model is loaded at the first use.

    Args:
        scorer: the model, with the task.
        check_time: called before each use of the model, if there is no deadline. Raises if the
            request was interrupted.
        deadline: seconds that the whole request may take; ``None`` for no limit.
        started: when the request began, by ``perf_counter``; ``None`` for now.
        is_served: whether the model is in a server. The process does not wait for it when it ends.

    Attributes:
        embedded: how many passages were given to the model.
        cached: how many scores came from the cache.
        question_embedded: ``True`` once the task was embedded; ``None`` before, and for a model
            that does not embed.
        seconds: the time spent.
    """

    def __init__(
        self,
        scorer: Scorer,
        check_time: Callable[[], None] = lambda: None,
        deadline: float | None = None,
        started: float | None = None,
        *,
        is_served: bool = False,
    ) -> None:
        self._scorer, self._check_time = scorer, check_time
        self._is_served = is_served
        self._started = perf_counter() if started is None else started
        self._end = None if deadline is None else self._started + deadline
        self._until: float | None = None
        self._model: ModelIdentity | None = None
        self._scores: dict[str, float] = {}
        self._faults: dict[str, str] = {}
        """Hash of a text → why the model could not read it."""
        self._problem = ""
        """Why the model cannot be used at all."""
        self._missed = 0
        """How many of the best passages the deadline left out."""
        self.embedded = self.cached = 0
        self.question_embedded: bool | None = None
        self.seconds = 0.0

    def cosines(self, passages: Sequence[Passage]) -> dict[str, float]:
        """The scores of passages, computed if necessary. Policy must allow each of them.

        Args:
            passages: the best first.

        Returns:
            Chunk id → cosine in [−1, 1], or a cross-encoder's score in [0, 1]. Passages that the
            model cannot read, and those that the deadline left out, are missing. All are missing
            if the model is not available. :meth:`warnings` has the reason.

        Raises:
            Interrupted: the request was interrupted. What was embedded is cached.
        """
        started = perf_counter()
        texts = {_hash(passage): _text(passage) for passage in passages}
        missing = {
            text_hash: text
            for text_hash, text in texts.items()
            if text_hash not in self._scores and text_hash not in self._faults
        }
        if self._end is not None and self._until is None:
            # Beside the passage that the model has begun, and the busier the machine is, what
            # follows takes up to three times as long as what came before.
            share = RESERVED_SHARE * (self._end - self._started)
            self._until = self._end - max(share, 3 * (started - self._started))
        try:
            if missing and not self._problem:
                self._score(missing)
        except EmbedderError as error:
            self._problem = f"{error.message}; {error.hint}"
        finally:
            self.seconds += perf_counter() - started
        self._missed = len(texts.keys() - self._scores.keys() - self._faults.keys())
        return self.known(passages)

    def known(self, passages: Iterable[Passage]) -> dict[str, float]:
        """The scores of those passages that :meth:`cosines` has computed before."""
        if self._problem or not self._scores:
            return {}
        scaled = self._scorer.scaled(self._scores)
        hashes = {passage.chunk_id: _hash(passage) for passage in passages}
        return {
            chunk_id: scaled[text_hash]
            for chunk_id, text_hash in hashes.items()
            if text_hash in scaled
        }

    def state(self, scored: int) -> RerankState | None:
        """The model and how many candidates it scored; ``None`` if it was not available."""
        if self._problem or self._model is None:
            return None
        return RerankState(
            provider=self._model.provider,
            model=self._model.model,
            digest=self._model.digest,
            dimensions=self._model.dimensions,
            scored=scored,
            complete=not self._missed,
        )

    def warnings(self) -> list[tuple[WarningCode, str]]:
        """Code and message of what failed."""
        if self._problem:
            return [("RERANK_DEGRADED", f"the answer is not reranked: {self._problem}")]
        messages = []
        if self._missed:
            messages.append(
                f"within the deadline {len(self._scores)} of the best passages were scored in "
                f"context, and {self._missed} were not; a repeated answer may differ"
            )
        if self._faults:
            messages.append(
                f"{len(self._faults)} of the best passages could not be read and keep their "
                f"score: {self._faults[min(self._faults)]}"
            )
        return [("RERANK_DEGRADED", message) for message in messages]

    @property
    def note(self) -> str:
        """Why the cache could not be used; empty if it could."""
        return self._scorer.note

    def _score(self, texts: Mapping[str, str]) -> None:
        results = (
            self._results(texts, self._check_time)
            if self._until is None
            else self._results_in_time(texts, self._until)
        )
        for result in results:
            if isinstance(result, Score):
                self._add_score(result)
            else:
                self._model = result
                self.question_embedded = True if result.dimensions else None

    def _add_score(self, score: Score) -> None:
        if score.value is None:
            self._faults[score.text_hash] = score.fault
            return
        self._scores[score.text_hash] = score.value
        if score.is_cached:
            self.cached += 1
        else:
            self.embedded += 1

    def _results(
        self, texts: Mapping[str, str], check_time: Callable[[], None]
    ) -> Iterator[ModelIdentity | Score]:
        if self._model is None:
            yield self._scorer.begin()
        yield from self._scorer.scores(texts, check_time)

    def _results_in_time(
        self, texts: Mapping[str, str], until: float
    ) -> Iterator[ModelIdentity | Score]:
        """The results that are there in time. The model continues with what it has begun."""
        if perf_counter() >= until:
            return
        results: SimpleQueue[ModelIdentity | Score | Exception | None] = SimpleQueue()
        is_over = Event()

        def check_time() -> None:
            if is_over.is_set():
                raise _DeadlineError

        def work() -> None:
            end: Exception | None = None
            try:
                for result in self._results(texts, check_time):
                    results.put(result)
            except Exception as error:
                end = error
            results.put(end)

        Thread(target=work, name="rerank", daemon=self._is_served).start()
        try:
            while (result := results.get(timeout=max(0.0, until - perf_counter()))) is not None:
                if isinstance(result, Exception):
                    raise result
                yield result
        except Empty:
            return
        finally:
            is_over.set()


class _DeadlineError(Exception):
    """The deadline has passed, and nobody waits for the results."""


def _text(passage: Passage) -> str:
    title = indexed_title(passage.document.title, passage.content)
    return embedding_text(title, passage.headings, passage.content, passage.tags)


def _hash(passage: Passage) -> str:
    return input_hash(_text(passage))
