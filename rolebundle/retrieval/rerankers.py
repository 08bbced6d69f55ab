"""The models that requests name for reranking: made when they are asked for, and kept loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.embedding.provider import EmbeddingProvider, Unavailable
from rolebundle.embedding.registry import SERVED, parse_spec, provider_for
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.retrieval.contextual import Contextual
    from rolebundle.storage.connection import Corpus

KEPT = 2
"""Whoever asks chooses the model; so many are kept, so that memory is bounded."""


class Rerankers:
    """What reranks the answers from one corpus file.

    Args:
        path: the corpus file; the cache of the vectors lies beside it.
        default: the model, ``PROVIDER:MODEL``, for requests that name none; empty or ``none``
            for none.
        embed_url: the model's server, instead of its provider's usual one.
        allow_host: the one host off this machine that may be that server.

    Raises:
        ConfigurationError: ``default`` names no known provider.
    """

    def __init__(self, path: Path, default: str, embed_url: str, allow_host: str) -> None:
        self.default = "" if default == NO_RERANK else default
        if self.default:
            parse_spec(self.default)
        self._path, self._embed_url, self._allow_host = path, embed_url, allow_host
        self._made: dict[str, EmbeddingProvider] = {}

    def settled(self, request: RetrievalRequest) -> RetrievalRequest:
        """The request with the model that reranks it in truth, or ``None``."""
        named = request.rerank or self.default
        return replace(request, rerank=None if named in ("", NO_RERANK) else named)

    def contextual(self, corpus: Corpus, request: RetrievalRequest) -> Contextual | None:
        """What scores the best candidates of a settled request again; ``None`` where nothing does.

        A server that may not be asked says so when it is, so that the answer is made without it.

        Raises:
            ConfigurationError: the name is malformed, or lacks what its provider needs.
        """
        if request.rerank is None:
            return None
        from rolebundle.retrieval.contextual import Contextual
        from rolebundle.storage.location import rerank_cache_path

        provider = self._provider(request.rerank)
        cache = rerank_cache_path(self._path)
        return Contextual(provider, request.task, cache, corpus.raise_if_interrupted)

    def _provider(self, named: str) -> EmbeddingProvider:
        if named not in self._made:
            made = self._new(named)
            while len(self._made) >= KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[named] = made
        return self._made[named]

    def _new(self, named: str) -> EmbeddingProvider:
        from rolebundle.embedding.registry import QUERY_DEADLINE_SECONDS

        spec = parse_spec(named)
        if spec.provider in SERVED:
            spec = replace(
                spec,
                url=self._embed_url,
                allow_host=self._allow_host,
                deadline_seconds=QUERY_DEADLINE_SECONDS,
            )
        try:
            return provider_for(spec)
        except EmbedderError as error:
            return Unavailable(error)
