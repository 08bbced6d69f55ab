"""Asking the model that reranks: cosines of the task with passages, remembered beside the corpus.

A vector is a pure function of the model and of the text, whoever asks, whatever else is asked for
with it, and whether it comes from the cache: each text is given to the model alone, since what else
stands in a batch changes the last bits, and what is scored are the float32 bytes that are kept. So
an answer depends on the cache in nothing but its time.

The question's vector is kept as the passages' are, where the model is one of this process's own:
asked again, a question then needs no model, which is known by its files and not loaded. A server
is asked for the question every time: that is how it is noticed that it has another model now, or
none that works, and an answer must not depend on whether somebody has asked the same before. What
is left of that: a model whose files are all there, and that cannot be loaded for want of memory,
is only missed by who asks for something new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import RerankState
from rolebundle.contracts.document import Passage
from rolebundle.embedding.provider import (
    PROBE_TEXT,
    TEXT_FAULTS,
    EmbeddingProvider,
    KnownByFiles,
    unit_vectors,
)
from rolebundle.errors import EmbedderError, RolebundleError
from rolebundle.ingest.embedding import embedding_text
from rolebundle.storage import rerank_cache
from rolebundle.storage.store import indexed_title

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
        self._of_this_process = isinstance(provider, KnownByFiles)
        self._question = _question_hash(task)
        self._learns = ""
        """By what the model is to be recognized from now on."""
        self._is_told = False
        """Whether the cache alone says what the model is: it is not loaded."""
        self._query = b""
        self._vectors: dict[str, bytes] = {}
        self._faults: dict[str, str] = {}
        self._problem = self._cache_problem = ""
        self._embeds_at_all = False
        self.embedded = self.cached = 0
        """How many passages the model was asked for, and how many it need not be asked for."""
        self.question_embedded: bool | None = None
        """Whether the model was asked for the question's vector; ``None`` before it is needed."""
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
            if passages and not self._problem:
                self._embed({_input_hash(one): one for one in passages})
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

    def _embed(self, texts: Mapping[str, Passage]) -> None:
        if self._model is None:
            self._model = self._recognized() or self._provider.identity
        wanted = sorted(texts.keys() - self._vectors.keys() - self._faults.keys())
        asks = self._of_this_process and not self._query
        recalled = self._recalled([*wanted, self._question] if asks else wanted)
        if found := recalled.pop(self._question, b""):
            self._query, self.question_embedded = found, False
        self._vectors |= recalled
        self.cached += len(recalled)
        made: dict[str, bytes] = {}
        kept: dict[str, bytes] = {}
        try:
            if not self._query:
                self._embed_question(kept)
            for input_hash in wanted:
                if input_hash not in recalled:
                    self._refuse_if_over()
                    self._embed_one(input_hash, _text(texts[input_hash]), made)
        finally:
            # Also where the time is over: the next one goes on from here.
            self._vectors |= made
            self.embedded += len(made)
            self._keep(made | kept)

    def _embed_question(self, kept: dict[str, bytes]) -> None:
        model = self._loaded()
        vector = unit_vectors(self._provider.embed_queries([self._task]), 1, model.dimensions)
        self._query, self.question_embedded = vector[0].tobytes(), True
        if self._of_this_process:
            kept[self._question] = self._query

    def _embed_one(self, input_hash: str, text: str, made: dict[str, bytes]) -> None:
        model = self._loaded()
        try:
            vector = unit_vectors(self._provider.embed_passages([text]), 1, model.dimensions)
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
            unit_vectors(self._provider.embed_passages([PROBE_TEXT]), 1, self._model.dimensions)
            self._embeds_at_all = True

    def _recognized(self) -> ModelIdentity | None:
        """What the model turned out to be when it was loaded before; ``None`` where it was not."""
        if self._cache is None or not isinstance(self._provider, KnownByFiles):
            return None
        self._learns = self._provider.recognition()
        try:
            found = rerank_cache.recognized(self._cache, self._learns)
        except RolebundleError as error:
            self._say(error)
            return None
        self._is_told = found is not None
        return found

    def _loaded(self) -> ModelIdentity:
        """What the model is, before it is asked: now it is loaded, and tells it itself."""
        assert self._model is not None
        if self._is_told:
            told, self._model, self._is_told = self._model, self._provider.identity, False
            if told != self._model:
                # What the one made is not compared with what the other makes. The truth is kept.
                raise EmbedderError(
                    "model_changed",
                    f"the model {self._model.model} is not what it was when it was last loaded",
                    "ask again",
                )
        return self._model

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
            # Kept anew whenever it was loaded, so that it is not the oldest, which go first.
            learnt = "" if self._is_told else self._learns
            rerank_cache.keep(self._cache, self._model, made, learnt)
            self._learns = ""
        except RolebundleError as error:
            self._say(error)

    def _say(self, error: RolebundleError) -> None:
        # Where it lies on this machine is no agent's business.
        assert self._cache is not None
        said = f"{error.message}; {error.hint}"
        self._cache_problem = said.replace(str(self._cache), self._cache.name)


def _text(passage: Passage) -> str:
    title = indexed_title(passage.document.title, passage.content)
    return embedding_text(title, passage.headings, passage.content, passage.tags)


def _input_hash(passage: Passage) -> str:
    return blake2b(_text(passage).encode(), digest_size=16).hexdigest()


def _question_hash(task: str) -> str:
    # Not the form of a passage's: the two are embedded with different prefixes.
    return "question:" + blake2b(task.encode(errors="surrogatepass"), digest_size=16).hexdigest()
