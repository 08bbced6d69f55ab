"""Reranking: a cross-encoder reads the task with each of the best candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import tanh
from time import perf_counter
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import RerankState
from rolebundle.contracts.documents import Passage
from rolebundle.embedding.provider import (
    QUERY_DEADLINE_SECONDS,
    TEXT_FAULTS,
    ProviderSpec,
    batches,
    embedding_text,
)
from rolebundle.embedding.registry import cross_encoder_for
from rolebundle.errors import EmbedderError
from rolebundle.retrieval.rank import MAX_RERANKED
from rolebundle.retrieval.values import Candidate, Reranking
from rolebundle.storage.passages import indexed_title

if TYPE_CHECKING:
    from rolebundle.embedding.folder import FolderCrossEncoder
    from rolebundle.embedding.servers import RerankServer

MAX_RERANKED_IN_PROCESS = 20
"""How many passages a model in this process reads: a small one takes 0.1 to 0.2 s for each."""
PASSAGES_PER_CALL = 4
"""How many a call of the model has: a small one may take a second for each on a busy processor."""
DEADLINE_SHARE = 0.3
"""The model is asked until this part of the deadline has passed. A call may take as long again."""


class Reranker:
    """The scores of passages for one task. The model is first used when it scores.

    Args:
        spec: the model, and its server if it has one.
        task: read together with each passage; nothing of the role is added.
        raise_if_interrupted: called before each request. Raises if the request was interrupted.
        deadline: seconds that the whole request may take; ``None`` for no limit.
    """

    def __init__(
        self,
        spec: ProviderSpec,
        task: str,
        raise_if_interrupted: Callable[[], None] = lambda: None,
        deadline: float | None = None,
    ) -> None:
        self._spec, self._task, self._raise_if_interrupted = spec, task, raise_if_interrupted
        self.max_passages = MAX_RERANKED_IN_PROCESS if spec.provider == "folder" else MAX_RERANKED
        self._seconds_to_ask = QUERY_DEADLINE_SECONDS
        self._end = float("inf")
        if deadline is not None:
            self._seconds_to_ask = min(self._seconds_to_ask, DEADLINE_SHARE * deadline)
            self._end = perf_counter() + DEADLINE_SHARE * deadline
        self._scores: dict[str, float] = {}
        self._faults: dict[str, str] = {}
        """Chunk id → why the model could not read the passage."""
        self._problem = ""
        """Why the answer is not reranked at all."""
        self._seconds = 0.0

    def score(self, passages: Sequence[Passage]) -> Mapping[str, float]:
        """The scores of passages, the best first. Policy must allow each of them.

        Returns:
            Chunk id → score in [0, 1], without passages that the model could not read. Empty if the
            model is not available, or was too slow for the deadline.

        Raises:
            ConfigurationError, UsageError: the server's address is missing or malformed.
            Interrupted: the request was interrupted.
        """
        read = self._scores.keys() | self._faults.keys()
        missing = [passage for passage in passages if passage.chunk_id not in read]
        started = perf_counter()
        try:
            if missing and not self._problem:
                self._ask_all(missing)
        except EmbedderError as error:
            self._problem = f"{error.message}; {error.hint}"
        finally:
            self._seconds += perf_counter() - started
        return self.known(passages)

    def known(self, passages: Sequence[Passage]) -> Mapping[str, float]:
        """The scores of passages, of the ones that :meth:`score` has asked for before."""
        if self._problem:
            return {}
        ids = [passage.chunk_id for passage in passages if passage.chunk_id in self._scores]
        values = self._scores
        # The APIs do not say what a score is: llama.cpp sends logits, others probabilities. If any
        # is outside of [0, 1], all are taken as logits.
        if not all(0 <= score <= 1 for score in values.values()):
            values = {chunk_id: (1 + tanh(values[chunk_id] / 2)) / 2 for chunk_id in ids}
        return {chunk_id: values[chunk_id] for chunk_id in ids}

    def outcome(self, ranked: Sequence[Candidate]) -> Reranking:
        """What the model did with the candidates."""
        milliseconds, problem = round(self._seconds * 1000, 3), ""
        if self._problem:
            return Reranking(None, f"the answer is not reranked: {self._problem}", milliseconds)
        if self._faults:
            problem = (
                f"{len(self._faults)} of the best passages could not be read and keep their "
                f"score: {self._faults[min(self._faults)]}"
            )
        scored = sum(row.cross_encoder_score is not None for row in ranked)
        model = RerankState(provider=self._spec.provider, model=self._spec.name, scored=scored)
        return Reranking(model if self._scores else None, problem, milliseconds)

    def _ask_all(self, passages: Sequence[Passage]) -> None:
        model = cross_encoder_for(replace(self._spec, deadline_seconds=self._seconds_to_ask))
        for batch in batches(passages, PASSAGES_PER_CALL):
            self._ask(model, batch)
            if not self._scores:
                # The fault is the model's and not these texts'.
                [fault, *_] = self._faults.values()
                raise EmbedderError("model_failed", fault, "check the model and its server")

    def _ask(self, model: RerankServer | FolderCrossEncoder, passages: Sequence[Passage]) -> None:
        self._raise_if_interrupted()
        if perf_counter() > self._end:
            raise EmbedderError(
                "rerank_deadline", "its model is too slow for the deadline", "allow more time"
            )
        try:
            values = model.scores(self._task, [_text(passage) for passage in passages])
        except EmbedderError as error:
            if error.code not in TEXT_FAULTS:
                raise
            if len(passages) == 1:
                self._faults[passages[0].chunk_id] = error.message
                return
            for passage in passages:
                self._ask(model, [passage])
            return
        ids = [passage.chunk_id for passage in passages]
        self._scores.update(zip(ids, values, strict=True))


def _text(passage: Passage) -> str:
    document = passage.document
    title = indexed_title(document.title, passage.content)
    parts = title, passage.headings, passage.content, passage.tags
    return embedding_text(*parts, document.uri, document.updated_at)
