"""How a model scores passages for a task: by the cosine of two vectors, or by reading both.

A scorer yields its results one by one, so that it can be stopped between two of them. It may run
in a thread of its own, and touches nothing of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import tanh
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rolebundle.embedding.provider import (
    PROBE_TEXT,
    TEXT_FAULTS,
    EmbeddingProvider,
    unit_vectors,
)
from rolebundle.embedding.texts import batches
from rolebundle.errors import EmbedderError, RolebundleError
from rolebundle.storage.indexes import rerank_cache
from rolebundle.text.paths import conceal_paths

if TYPE_CHECKING:
    from rolebundle.contracts.index import ModelIdentity
    from rolebundle.embedding.rerank_server import RerankServer

COSINE_DECIMALS = 9
"""Cosines are rounded, so that the order of summing does not change them."""

MayStore = Callable[[], AbstractContextManager[bool]]
CheckTime = Callable[[], None]
"""Called before each use of the model. Raises if it is not to be used any more."""


class Score(NamedTuple):
    """The score of one text.

    Attributes:
        text_hash: its hash; see :func:`rolebundle.embedding.texts.input_hash`.
        value: ``None`` if the model could not read the text.
        fault: why it could not.
        is_cached: whether the text was not given to the model.
    """

    text_hash: str
    value: float | None
    fault: str = ""
    is_cached: bool = False


class Scorer(Protocol):
    """A model that scores texts for one task."""

    @property
    def note(self) -> str:
        """Why the cache could not be used; empty if it could, or if there is none."""
        ...

    def begin(self) -> ModelIdentity:
        """Load the model, and read the task.

        Raises:
            EmbedderError: the model is not available.
        """
        ...

    def scores(self, texts: Mapping[str, str], check_time: CheckTime) -> Iterator[Score]:
        """The scores of texts (hash → text), in their order, after :meth:`begin`.

        Raises:
            EmbedderError: the model is not available.
        """
        ...

    def scaled(self, scores: Mapping[str, float]) -> Mapping[str, float]:
        """All scores of one request, in the range of the bundle's ``contextual``."""
        ...


class CosineScorer:
    """Cosines of the task's vector with those of passages, which are cached.

    A vector depends on the model and on its text alone. Each text is therefore given to the model
    by itself, because the other texts of a batch change the last bits of a vector, and the cosine
    is computed from the float32 bytes that the cache stores. So the cache changes the duration of
    an answer and nothing else.

    Args:
        provider: the model.
        task: compared with the passages. The model's query prefix is added, but nothing of the
            role.
        cache: the file of the vectors, which may be missing; ``None`` for no cache.
        may_store: a block in which vectors are stored, and whether they may be. A purge deletes
            the cache, and the thread that embeds may be at work after the answer.
    """

    def __init__(
        self,
        provider: EmbeddingProvider,
        task: str,
        cache: Path | None,
        may_store: MayStore = lambda: nullcontext(True),
    ) -> None:
        self._provider, self._task, self._cache = provider, task, cache
        self._may_store = may_store
        self._model: ModelIdentity | None = None
        self._query = b""
        self._cache_problem = ""
        self._embeds_at_all = False

    @property
    def note(self) -> str:
        """See :class:`Scorer`."""
        return self._cache_problem and f"passages are embedded anew: {self._cache_problem}"

    def begin(self) -> ModelIdentity:
        """See :class:`Scorer`."""
        # Embedded for each request. So a server that has stopped, or has another model now, is
        # noticed even if every passage is cached.
        self._model = self._provider.identity
        vectors = self._provider.embed_queries([self._task])
        self._query = unit_vectors(vectors, 1, self._model.dimensions)[0].tobytes()
        return self._model

    def scores(self, texts: Mapping[str, str], check_time: CheckTime) -> Iterator[Score]:
        """See :class:`Scorer`. What was embedded is cached at the end, however it ends."""
        cached = self._load(list(texts))
        embedded: dict[str, bytes] = {}
        try:
            for text_hash, text in texts.items():
                if text_hash in cached:
                    yield Score(text_hash, self._cosine(cached[text_hash]), is_cached=True)
                    continue
                check_time()
                try:
                    embedded[text_hash] = passage_vector(self._provider, text)
                except EmbedderError as error:
                    self._raise_unless_by_text(error)
                    yield Score(text_hash, None, error.message)
                else:
                    self._embeds_at_all = True
                    yield Score(text_hash, self._cosine(embedded[text_hash]))
        finally:
            self._store(embedded)

    def scaled(self, scores: Mapping[str, float]) -> Mapping[str, float]:
        """See :class:`Scorer`. Cosines are in [−1, 1] already."""
        return scores

    def _cosine(self, vector: bytes) -> float:
        import numpy as np

        query, passage = (
            np.frombuffer(stored, dtype="<f4").astype(np.float64)
            for stored in (self._query, vector)
        )
        return min(1.0, max(-1.0, round(float((passage * query).sum()), COSINE_DECIMALS)))

    def _raise_unless_by_text(self, error: EmbedderError) -> None:
        if error.code not in TEXT_FAULTS:
            raise error
        if not self._embeds_at_all:
            # Raises if the fault is the model's and not this text's.
            passage_vector(self._provider, PROBE_TEXT)
            self._embeds_at_all = True

    def _load(self, hashes: Sequence[str]) -> dict[str, bytes]:
        if self._cache is None or self._model is None:
            return {}
        try:
            return rerank_cache.load(self._cache, self._model, hashes)
        except RolebundleError as error:
            self._cache_problem = self._describe(error)
            return {}

    def _store(self, vectors: Mapping[str, bytes]) -> None:
        if self._cache is None or self._model is None or self._cache_problem or not vectors:
            return
        try:
            with self._may_store() as may_store:
                if may_store:
                    rerank_cache.store(self._cache, self._model, vectors)
        except RolebundleError as error:
            self._cache_problem = self._describe(error)

    def _describe(self, error: RolebundleError) -> str:
        assert self._cache is not None
        return conceal_paths(f"{error.message}; {error.hint}", [self._cache])


def passage_vector(provider: EmbeddingProvider, text: str) -> bytes:
    """The vector of one passage, as the rerank cache stores it.

    Raises:
        EmbedderError: the model could not embed it.
    """
    dimensions = provider.identity.dimensions
    return bytes(unit_vectors(provider.embed_passages([text]), 1, dimensions)[0].tobytes())


class ServerScorer:
    """Scores by a cross-encoder in a server. They depend on the task, so they are not cached.

    Args:
        server: the cross-encoder.
        task: read together with each passage; nothing of the role is added.
    """

    note = ""

    def __init__(self, server: RerankServer, task: str) -> None:
        self._server, self._task = server, task
        self._scores_at_all = False

    def begin(self) -> ModelIdentity:
        """See :class:`Scorer`. The server is contacted with the first passages."""
        return self._server.identity

    def scores(self, texts: Mapping[str, str], check_time: CheckTime) -> Iterator[Score]:
        """See :class:`Scorer`."""
        # Imported here: its HTTP client takes as long as an answer, and other models need none.
        from rolebundle.embedding.rerank_server import MAX_PASSAGES

        items = list(texts.items())
        # The best alone, so that it is scored within a short deadline. The requests do not depend
        # on the time, because the other texts of one may change the last bits of a score.
        for batch in (items[:1], *batches(items[1:], MAX_PASSAGES)):
            yield from self._scores_of(batch, check_time)

    def scaled(self, scores: Mapping[str, float]) -> Mapping[str, float]:
        """See :class:`Scorer`. In [0, 1].

        The APIs do not say what a score is: llama.cpp sends logits, others probabilities. If any
        score of the request is outside of [0, 1], all are taken as logits.
        """
        if all(0 <= score <= 1 for score in scores.values()):
            return scores
        return {text_hash: (1 + tanh(score / 2)) / 2 for text_hash, score in scores.items()}

    def _scores_of(
        self, batch: Sequence[tuple[str, str]], check_time: CheckTime
    ) -> Iterator[Score]:
        check_time()
        try:
            values = self._server.scores(self._task, [text for _, text in batch])
        except EmbedderError as error:
            if error.code not in TEXT_FAULTS:
                raise
            if not self._scores_at_all:
                # Raises if the fault is the model's and not these texts'.
                self._server.scores(PROBE_TEXT, [PROBE_TEXT])
                self._scores_at_all = True
            if len(batch) == 1:
                yield Score(batch[0][0], None, error.message)
                return
            for text in batch:
                yield from self._scores_of([text], check_time)
            return
        self._scores_at_all = True
        for (text_hash, _), value in zip(batch, values, strict=True):
            yield Score(text_hash, value)
