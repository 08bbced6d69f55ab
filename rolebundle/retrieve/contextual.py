"""Asking the model that reranks: cosines of the task with passages, remembered beside the corpus.

A passage's vector is a pure function of the model and of the text, whoever asks, whatever else is
asked for with it, and whether it comes from the cache: each text is given to the model alone, since
what else stands in a batch changes the last bits, and what is scored are the float32 bytes that are
kept. So an answer depends on the cache in nothing but its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import RerankState
from rolebundle.contracts.document import Passage
from rolebundle.corpus import rerank_cache
from rolebundle.embed.fingerprint import PROBE
from rolebundle.embed.provider import TEXT_FAULTS, EmbeddingProvider, unit_vectors
from rolebundle.errors import EmbedderError, RolebundleError
from rolebundle.ingest.embedding import embedding_text

if TYPE_CHECKING:
    from rolebundle.contracts.index import ModelIdentity
    from rolebundle.contracts.terms import WarningCode

DECIMALS = 9
"""Of a cosine: another order of summing gives the same."""


class Contextual:
    """One request's cosines by the model that reranks. Nothing is asked before it is needed.

    Args:
        provider: the model.
        task: what the passages are compared with, with the model's query prefix; the role's
            mission has no part in it.
        cache: the file of the vectors, which need not be there; ``None`` keeps nothing.
        refuse_if_over: called before each passage; raises where the request's time is over.
    """

    def __init__(
        self,
        provider: EmbeddingProvider,
        task: str,
        cache: Path | None = None,
        refuse_if_over: Callable[[], None] = lambda: None,
    ) -> None:
        self._provider, self._task, self._cache = provider, task, cache
        self._refuse_if_over = refuse_if_over
        self._model: ModelIdentity | None = None
        self._query = b""
        self._vectors: dict[str, bytes] = {}
        self._faults: dict[str, str] = {}
        self._problem = self._cache_problem = ""
        self._embeds_at_all = False
        self.embedded = self.cached = 0
        self.seconds = 0.0

    def cosines(self, passages: Sequence[Passage]) -> dict[str, float]:
        """The cosines of passages, each of which policy must allow: they are sent to the model.

        Returns:
            Chunk id → cosine in [−1, 1]. A passage that the model cannot embed is left out; where
            the model cannot be asked, all are. :meth:`warnings` says so.

        Raises:
            Interrupted: the request's time is over. What was embedded is kept.
        """
        started = perf_counter()
        try:
            hashes = {one.chunk_id: _input_hash(one) for one in passages}
            if passages and not self._problem:
                self._prepare()
                self._embed(passages, hashes)
        except EmbedderError as error:
            self._problem = f"{error.message}; {error.hint}"
        finally:
            self.seconds += perf_counter() - started
        return {} if self._problem else self.known(passages)

    def known(self, passages: Iterable[Passage]) -> dict[str, float]:
        """The cosines of those passages that were asked for before; no model is asked."""
        if self._problem:
            return {}
        hashes = {one.chunk_id: _input_hash(one) for one in passages}
        wanted = sorted({one for one in hashes.values() if one in self._vectors})
        if not wanted:
            return {}
        import numpy as np

        query = np.frombuffer(self._query, dtype="<f4").astype(np.float64)
        matrix = np.frombuffer(b"".join(self._vectors[one] for one in wanted), dtype="<f4")
        # Row by row: what else is asked for must not change how a row is summed.
        found = (matrix.reshape(len(wanted), -1).astype(np.float64) * query).sum(axis=1)
        by_hash = dict(zip(wanted, found.round(DECIMALS).clip(-1, 1).tolist(), strict=True))
        return {name: by_hash[one] for name, one in hashes.items() if one in by_hash}

    def state(self, scored: int) -> RerankState | None:
        """Which model re-scored so many candidates; ``None`` where it could not."""
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
        """What did not go as it should: codes and messages, in a fixed order."""
        found: list[tuple[WarningCode, str]] = []
        if self._problem:
            found.append(("RERANK_DEGRADED", f"the answer is not reranked: {self._problem}"))
        elif self._faults:
            first = self._faults[min(self._faults)]
            found.append(
                (
                    "RERANK_DEGRADED",
                    f"{len(self._faults)} of the best passages could not be embedded and keep "
                    f"their score: {first}",
                )
            )
        return found

    @property
    def note(self) -> str:
        """Why the cache could not be used; empty where it could."""
        return self._cache_problem and f"passages are embedded anew: {self._cache_problem}"

    def _prepare(self) -> None:
        if self._model is None:
            model = self._provider.identity
            vector = unit_vectors(self._provider.embed_queries([self._task]), 1, model.dimensions)
            self._query, self._model = vector[0].tobytes(), model

    def _embed(self, passages: Sequence[Passage], hashes: dict[str, str]) -> None:
        texts = {hashes[one.chunk_id]: one for one in passages}
        wanted = sorted(texts.keys() - self._vectors.keys() - self._faults.keys())
        recalled = self._recalled(wanted)
        self._vectors |= recalled
        self.cached += len(recalled)
        made: dict[str, bytes] = {}
        try:
            for input_hash in wanted:
                if input_hash not in recalled:
                    self._refuse_if_over()
                    self._embed_one(input_hash, _text(texts[input_hash]), made)
        finally:
            # Also where the time is over: the next one goes on from here.
            self._vectors |= made
            self.embedded += len(made)
            self._keep(made)

    def _embed_one(self, input_hash: str, text: str, made: dict[str, bytes]) -> None:
        assert self._model is not None
        try:
            vector = unit_vectors(self._provider.embed_passages([text]), 1, self._model.dimensions)
        except EmbedderError as error:
            if error.code not in TEXT_FAULTS:
                raise
            # Is it this text's fault? What the cache holds must have no say in that.
            self._see_that_it_embeds()
            self._faults[input_hash] = error.message
        else:
            made[input_hash] = vector[0].tobytes()

    def _see_that_it_embeds(self) -> None:
        if not self._embeds_at_all:
            assert self._model is not None
            unit_vectors(self._provider.embed_passages([PROBE]), 1, self._model.dimensions)
            self._embeds_at_all = True

    def _recalled(self, wanted: Sequence[str]) -> dict[str, bytes]:
        if self._cache is None or self._model is None:
            return {}
        try:
            return rerank_cache.recall(self._cache, self._model, wanted)
        except RolebundleError as error:
            self._say(error)
            return {}

    def _keep(self, made: dict[str, bytes]) -> None:
        if self._cache is None or self._model is None or self._cache_problem:
            return
        try:
            rerank_cache.keep(self._cache, self._model, made)
        except RolebundleError as error:
            self._say(error)

    def _say(self, error: RolebundleError) -> None:
        # Where it lies on this machine is no agent's business.
        assert self._cache is not None
        said = f"{error.message}; {error.hint}"
        self._cache_problem = said.replace(str(self._cache), self._cache.name)


def _text(passage: Passage) -> str:
    return embedding_text(passage.document.title, passage.headings, passage.content)


def _input_hash(passage: Passage) -> str:
    return blake2b(_text(passage).encode(), digest_size=16).hexdigest()
