"""The models that rerank: cosines of the task with passages, with a cache of passage vectors.

A vector depends on the model and on its text alone. Each text is therefore given to the model by
itself, because the other texts of a batch change the last bits of a vector, and the cosine is
computed from the float32 bytes that the cache stores. So the cache changes the duration of an
answer and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import RerankState
from rolebundle.contracts.document import Passage
from rolebundle.embedding.provider import (
    PROBE_TEXT,
    TEXT_FAULTS,
    EmbeddingProvider,
    Unavailable,
    unit_vectors,
)
from rolebundle.embedding.registry import (
    QUERY_DEADLINE_SECONDS,
    SERVED,
    parse_spec,
    provider_for,
)
from rolebundle.embedding.texts import embedding_text, input_hash
from rolebundle.errors import EmbedderError, RolebundleError
from rolebundle.storage import rerank_cache
from rolebundle.storage.connection import Corpus
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.store import indexed_title
from rolebundle.text.paths import conceal_paths

if TYPE_CHECKING:
    from rolebundle.contracts.index import ModelIdentity
    from rolebundle.contracts.terms import WarningCode

MAX_MODELS = 2
"""How many models stay loaded. Requests name the model, so memory must be bounded."""
COSINE_DECIMALS = 9
"""Cosines are rounded, so that the order of summing does not change them."""


class RerankModels:
    """The models that rerank the answers from one corpus file.

    Args:
        path: the corpus file. The cache of vectors lies beside it.
        embed_url: the address of the model's server, instead of its provider's usual one.
        allow_host: the only other machine that may be that server.
    """

    def __init__(self, path: Path, embed_url: str, allow_host: str) -> None:
        self._path, self._embed_url, self._allow_host = path, embed_url, allow_host
        self._providers: dict[str, EmbeddingProvider] = {}

    @staticmethod
    def check_model(model: str) -> None:
        """Check that a model, ``PROVIDER:MODEL``, has a known provider.

        Raises:
            ConfigurationError: the provider is unknown.
        """
        parse_spec(model)

    def reranker(self, corpus: Corpus, model: str, task: str) -> Reranker:
        """The reranker of one request.

        If the model is not available, its first use raises the error, so that the request can be
        answered without it.

        Raises:
            ConfigurationError: the name is malformed, or lacks what its provider requires.
        """
        if model not in self._providers:
            provider = self._open(model)
            while len(self._providers) >= MAX_MODELS:
                del self._providers[next(iter(self._providers))]
            self._providers[model] = provider
        cache = rerank_cache_path(self._path)
        return Reranker(self._providers[model], task, cache, corpus.raise_if_interrupted)

    def _open(self, model: str) -> EmbeddingProvider:
        spec = parse_spec(model)
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


class Reranker:
    """The cosines of one task with passages. The model is loaded at the first use.

    Args:
        provider: the model.
        task: compared with the passages. The model's query prefix is added, but nothing of the
            role.
        cache: the file of the vectors, which may be missing; ``None`` for no cache.
        check_deadline: called before each passage. Raises if the request's time has passed.

    Attributes:
        embedded: how many passages the model has embedded.
        cached: how many vectors came from the cache.
        question_embedded: ``True`` once the task was embedded; ``None`` before.
        seconds: the time spent.
    """

    def __init__(
        self,
        provider: EmbeddingProvider,
        task: str,
        cache: Path | None = None,
        check_deadline: Callable[[], None] = lambda: None,
    ) -> None:
        self._provider, self._task, self._cache = provider, task, cache
        self._check_deadline = check_deadline
        self._model: ModelIdentity | None = None
        self._query = b""
        self._vectors: dict[str, bytes] = {}
        self._faults: dict[str, str] = {}
        """Hash of a text → why the model could not embed it."""
        self._problem = ""
        """Why the model cannot be used at all."""
        self._cache_problem = ""
        self._embeds_at_all = False
        self.embedded = self.cached = 0
        self.question_embedded: bool | None = None
        self.seconds = 0.0

    def cosines(self, passages: Sequence[Passage]) -> dict[str, float]:
        """The cosines of passages, embedded if necessary. Policy must allow each of them.

        Returns:
            Chunk id → cosine in [−1, 1]. Passages that the model cannot embed are missing. All are
            missing if it is not available. :meth:`warnings` has the reason.

        Raises:
            Interrupted: the request's time has passed. What was embedded is cached.
        """
        started = perf_counter()
        try:
            if passages and not self._problem:
                self._embed({_hash(passage): passage for passage in passages})
        except EmbedderError as error:
            self._problem = f"{error.message}; {error.hint}"
        finally:
            self.seconds += perf_counter() - started
        return self.known(passages)

    def known(self, passages: Iterable[Passage]) -> dict[str, float]:
        """The cosines of those passages that :meth:`cosines` has computed before."""
        if self._problem:
            return {}
        hashes = {passage.chunk_id: _hash(passage) for passage in passages}
        scored = sorted(set(hashes.values()) & self._vectors.keys())
        if not scored:
            return {}
        import numpy as np

        query = np.frombuffer(self._query, dtype="<f4").astype(np.float64)
        matrix = np.frombuffer(b"".join(self._vectors[text] for text in scored), dtype="<f4")
        # Row by row, so that the sum of a row does not depend on the other rows.
        products = (matrix.reshape(len(scored), -1).astype(np.float64) * query).sum(axis=1)
        cosines = products.round(COSINE_DECIMALS).clip(-1, 1).tolist()
        by_hash = dict(zip(scored, cosines, strict=True))
        return {chunk_id: by_hash[text] for chunk_id, text in hashes.items() if text in by_hash}

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
        )

    def warnings(self) -> list[tuple[WarningCode, str]]:
        """Code and message of what failed."""
        if self._problem:
            return [("RERANK_DEGRADED", f"the answer is not reranked: {self._problem}")]
        if self._faults:
            reason = self._faults[min(self._faults)]
            return [
                (
                    "RERANK_DEGRADED",
                    f"{len(self._faults)} of the best passages could not be embedded and keep "
                    f"their score: {reason}",
                )
            ]
        return []

    @property
    def note(self) -> str:
        """Why the cache could not be used; empty if it could."""
        return self._cache_problem and f"passages are embedded anew: {self._cache_problem}"

    def _embed(self, passages: Mapping[str, Passage]) -> None:
        if self._model is None:
            self._model = self._provider.identity
        missing = sorted(passages.keys() - self._vectors.keys() - self._faults.keys())
        cached = self._load(missing)
        self._vectors |= cached
        self.cached += len(cached)
        if not self._query:
            # Embedded for each request. So a server that has stopped, or has another model now, is
            # noticed even if every passage is cached.
            vectors = self._provider.embed_queries([self._task])
            self._query = unit_vectors(vectors, 1, self._model.dimensions)[0].tobytes()
            self.question_embedded = True
        embedded: dict[str, bytes] = {}
        try:
            for text_hash in missing:
                if text_hash not in cached:
                    self._check_deadline()
                    if vector := self._embed_passage(text_hash, _text(passages[text_hash])):
                        embedded[text_hash] = vector
        finally:
            # Also if the time has passed, so that the next request continues from here.
            self._vectors |= embedded
            self.embedded += len(embedded)
            self._store(embedded)

    def _embed_passage(self, text_hash: str, text: str) -> bytes | None:
        assert self._model is not None
        try:
            vectors = unit_vectors(self._provider.embed_passages([text]), 1, self._model.dimensions)
        except EmbedderError as error:
            if error.code not in TEXT_FAULTS:
                raise
            if not self._embeds_at_all:
                # Raises if the fault is the model's and not this text's.
                unit_vectors(self._provider.embed_passages([PROBE_TEXT]), 1, self._model.dimensions)
                self._embeds_at_all = True
            self._faults[text_hash] = error.message
            return None
        return bytes(vectors[0].tobytes())

    def _load(self, hashes: Sequence[str]) -> dict[str, bytes]:
        if self._cache is None or self._model is None:
            return {}
        try:
            return rerank_cache.load(self._cache, self._model, hashes)
        except RolebundleError as error:
            self._cache_problem = self._describe(error)
            return {}

    def _store(self, vectors: Mapping[str, bytes]) -> None:
        if self._cache is None or self._model is None or self._cache_problem:
            return
        try:
            rerank_cache.store(self._cache, self._model, vectors)
        except RolebundleError as error:
            self._cache_problem = self._describe(error)

    def _describe(self, error: RolebundleError) -> str:
        assert self._cache is not None
        return conceal_paths(f"{error.message}; {error.hint}", [self._cache])


def _text(passage: Passage) -> str:
    title = indexed_title(passage.document.title, passage.content)
    return embedding_text(title, passage.headings, passage.content, passage.tags)


def _hash(passage: Passage) -> str:
    return input_hash(_text(passage))
