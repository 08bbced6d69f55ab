"""Cross-encoders of a model server: they read a question together with each passage.

The API is that of Jina, llama.cpp, vLLM and infinity. Addresses, deadlines, sizes and keys are
guarded as for embeddings.

https://jina.ai/reranker (``/v1/rerank``)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.model_server import unreadable_error
from rolebundle.embedding.openai_compatible import OpenAIServer
from rolebundle.embedding.texts import prepared

MAX_PASSAGES = 4
"""Passages of one request. On a busy processor a small cross-encoder may take a second for each."""


class RerankServer:
    """One cross-encoder of one server. The server is first contacted when it scores.

    Args:
        model: its name; empty for the server's only one.
        url: the server, with or without ``/v1`` at its end.
        allow_host: the only host besides this machine that may be the server.
        key_variable: the environment variable that may hold the server's key.
        deadline_seconds: for one request, including its retries.

    Raises:
        UsageError: ``bad_url``.
        EmbedderError: ``host_not_local``.
    """

    def __init__(
        self,
        model: str,
        url: str,
        *,
        allow_host: str,
        key_variable: str,
        deadline_seconds: float,
    ) -> None:
        self._model = model
        self._server = OpenAIServer(
            url,
            allow_host=allow_host,
            key_variable=key_variable,
            deadline_seconds=deadline_seconds,
        )
        # The API reports no version of the model. It has no vectors, so no dimensions either.
        self.identity = ModelIdentity("rerank", model, digest="", dimensions=0)

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """The scores of passages, in their order: finite, of any range.

        Args:
            question: the task.
            passages: at most ``MAX_PASSAGES``. A passage is read whole or refused, if the server
                lets its client decide.

        Raises:
            EmbedderError: the server failed, or its answer is not one score for each passage.
            ConfigurationError: ``bad_key``.
        """
        [query], texts = prepared([question], ""), prepared(passages, "")
        body = {"model": self._model, "query": query, "documents": texts, "top_n": len(texts)}
        answer = self._server.ask("POST", "/v1/rerank", body, model=self._model)
        return self._in_order(answer.get("results"), len(texts))

    def _in_order(self, results: object, expected: int) -> list[float]:
        """The scores of an answer, which comes best first, in the order of the passages."""
        if not isinstance(results, list) or not all(
            isinstance(result, Mapping) for result in results
        ):
            raise self._unreadable("its answer has no list of scores")
        if len(results) != expected:
            raise self._unreadable(f"it has {len(results)} scores for {expected} passages")
        by_index = {
            _plain_integer(result.get("index")): result.get("relevance_score") for result in results
        }
        if by_index.keys() != set(range(expected)):
            raise self._unreadable("the indexes of its scores are not those of the passages")
        return [self._score(by_index[number]) for number in range(expected)]

    def _score(self, value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                if isfinite(value):
                    return float(value)
            except OverflowError:  # an integer beyond every float
                pass
        raise self._unreadable("a score is not a finite number")

    def _unreadable(self, reason: str) -> Exception:
        return unreadable_error(self._server.url, reason)


def _plain_integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
