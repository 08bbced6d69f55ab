"""Cross-encoders of a model server: they read a question together with each passage.

The API is that of Jina, llama.cpp, vLLM and infinity. Addresses, deadlines, sizes and keys are
guarded as for embeddings.

https://jina.ai/reranker (``/v1/rerank``)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.model_server import unreadable_error
from rolebundle.embedding.openai_compatible import in_order, server_of
from rolebundle.embedding.provider import ProviderSpec
from rolebundle.embedding.texts import prepared

MAX_PASSAGES = 4
"""Passages of one request. On a busy processor a small cross-encoder may take a second for each."""


class RerankServer:
    """One cross-encoder of one server. The server is first contacted when it scores.

    Args:
        spec: the model's name, empty for the server's only one; and the server.

    Raises:
        UsageError: ``bad_url``.
        EmbedderError: ``host_not_local``.
    """

    def __init__(self, spec: ProviderSpec) -> None:
        self._server = server_of(spec)
        # The API reports no version of the model. It has no vectors, so no dimensions either.
        self.identity = ModelIdentity("rerank", spec.model, digest="", dimensions=0)

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
        [query, *texts], model = prepared([question, *passages], ""), self.identity.model
        body = {"model": model, "query": query, "documents": texts, "top_n": len(texts)}
        results = self._server.ask("POST", "/v1/rerank", body, model=model).get("results")
        found = in_order(results, "relevance_score", len(texts), self._server.url, "scores")
        return [self._score(value) for value in found]

    def _score(self, value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                if isfinite(value):
                    return float(value)
            except OverflowError:  # an integer beyond every float
                pass
        raise unreadable_error(self._server.url, "a score is not a finite number")
