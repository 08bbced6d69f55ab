"""The semantic lane: the cosine of a chunk's vector with the task's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from rolebundle.contracts.documents import ModelIdentity, Noise
from rolebundle.contracts.terms import Lane
from rolebundle.contracts.why import SearchAim
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.errors import EmbedderError
from rolebundle.retrieval.passage_text import CosinesWithTask
from rolebundle.retrieval.values import POOL_DEPTH, Query
from rolebundle.storage import compartments, vector_index, vector_search
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.stored_values import DAMAGE_HINT
from rolebundle.storage.vector_index import EmbeddingIndex, vectors_problem

NON_STATIC_EXPONENT = 2.0
"""The power to which the words' factor is raised for a model that is not static. Such a model also
finds other wordings, so that a low factor is made lower."""


@dataclass(frozen=True, slots=True)
class SemanticLane:
    """The vectors of a corpus, ready to be compared with those of one query.

    Attributes:
        corpus: an open corpus, in a read transaction.
        index: the embedding index.
        vector: the query's unit vector, float32.
        vectors_by_wording: the unit vectors of its wordings, if there are several.
        query_fluency: how well the model reads the query, in (0, 1]; its scores are multiplied with
            this.
        noise: what the model's cosines mean.
        shortlist: rowids of the chunks of documents, not of facts, that may be among the
            ``POOL_DEPTH`` nearest; ``None`` if they are not known.
        only_facts: whether it searches remembered facts, and not documents.
    """

    aim: ClassVar[SearchAim] = "meaning"
    lane: ClassVar[Lane] = "semantic"
    corpus: Corpus
    index: EmbeddingIndex
    vector: bytes
    vectors_by_wording: Sequence[bytes]
    query_fluency: float
    noise: Noise
    shortlist: Sequence[int] | None = None
    only_facts: bool = False

    @property
    def words_exponent(self) -> float:
        """The power of the factor of the words; see :meth:`Evidence.with_scores`."""
        is_static = self.index.identity.model.provider == "static"
        return self.query_fluency * (1.0 if is_static else NON_STATIC_EXPONENT)

    def propose(self, depth: int, within: Sequence[int] | None = None) -> dict[int, float]:
        """Rowid → cosine of the nearest chunks."""
        is_first = depth == POOL_DEPTH and not self.only_facts
        return vector_search.search(
            self.corpus,
            self.index,
            self.vector,
            depth,
            within,
            only_facts=self.only_facts,
            shortlist=self.shortlist if is_first else None,
        )

    def score(self, rowids: Sequence[int]) -> dict[int, float]:
        """Rowid → cosine, of the chunks that have a vector."""
        if not rowids:
            return {}
        return self.corpus.vectors.cosines(self.corpus, self.index.id, self.vector, rowids)

    def with_shortlist(self) -> SemanticLane:
        """The same lane with its shortlist.

        A database reads the vectors of the shortlist together with the next statement.
        """
        shortlist = vector_search.shortlist_in_memory(
            self.corpus, self.index, self.vector, POOL_DEPTH
        )
        self.corpus.vectors.prefetch(self.corpus, self.index.id, shortlist or ())
        return replace(self, shortlist=shortlist)

    def without_vector(self) -> int:
        """How many chunks it cannot find, because they have no vector yet."""
        vectors = vector_index.current_counts(self.corpus, self.index.id)
        return sum(
            compartment.chunks - vectors.get(compartment.id, 0)
            for compartment in compartments.searchable_compartments(self.corpus, with_facts=True)
            if compartment.is_of_facts is self.only_facts
        )


def open_semantic_lane(corpus: Corpus, query: Query, provider: EmbeddingProvider) -> SemanticLane:
    """The semantic lane for a query.

    Raises:
        EmbedderError: the index has no such vectors, or the model cannot be used.
    """
    index = usable_index(corpus, provider)
    if problem := vectors_problem(corpus, index):
        raise EmbedderError("vectors_damaged", problem, DAMAGE_HINT)
    corpus.load_vector_functions()
    vector, *vectors = query_vectors(query, provider)
    fluency, noise = query_fluency(query, provider), noise_for(index, provider)
    return SemanticLane(corpus, index, vector, vectors, query_fluency=fluency, noise=noise)


def noise_for(index: EmbeddingIndex | None, provider: EmbeddingProvider) -> Noise:
    """What a provider's cosines mean: as the index of its model knows it, or measured now.

    Raises:
        EmbedderError: it could not be measured.
    """
    if index is not None and index.noise and index.identity.model == provider.identity:
        return index.noise
    return noise_of(provider)


def usable_index(corpus: Corpus, provider: EmbeddingProvider) -> EmbeddingIndex:
    """The corpus's embedding index, if its vectors may be compared with this provider's (law 5).

    Raises:
        EmbedderError: there is no index, or another model made it.
    """
    index = vector_index.active_index(corpus)
    if index is None:
        raise EmbedderError(
            "no_index", "the corpus has no embedding index", "run `rolebundle corpus embed`"
        )
    query_model, index_model = provider.identity, index.identity.model
    if query_model != index_model:
        raise EmbedderError(
            "model_mismatch",
            f"the index was made by {_described(index_model)}, the query would be by "
            f"{_described(query_model)}",
            f"run `rolebundle corpus embed --model {query_model.choice}` "
            "to build an index of this model, or use the index's own model",
        )
    return index


def _described(model: ModelIdentity) -> str:
    return f"{model.provider}:{model.model} ({model.dimensions} dimensions, digest {model.digest})"


def query_vectors(query: Query, provider: EmbeddingProvider) -> list[bytes]:
    """The unit vector of the task, as float32 bytes.

    With other wordings: the unit vector of the mean of all, then the vector of each.

    Raises:
        EmbedderError: the model could not embed the query.
    """
    texts = [task.text for task in query.wordings]
    vectors = unit_vectors(provider.embed_queries(texts), len(texts), provider.identity.dimensions)
    if len(texts) > 1:
        mean = unit_vectors(vectors.mean(axis=0)[None], 1, provider.identity.dimensions)
        return [bytes(vector.tobytes()) for vector in (*mean, *vectors)]
    return [bytes(vectors[0].tobytes())]


def cosines_with_task(query: Query, provider: EmbeddingProvider) -> CosinesWithTask:
    """Compares sentences with the task, to choose the part of a long passage that answers.

    Args:
        query: the task and its other wordings.
        provider: of a fast model, because each sentence is embedded.
    """
    # A vector of a text without a word is zero, which is near nothing.
    task_vector = provider.embed_queries([task.text for task in query.wordings]).mean(axis=0)

    @cache
    def cosines(texts: tuple[str, ...]) -> list[float]:
        return [float(cosine) for cosine in provider.embed_passages(texts) @ task_vector]

    return lambda texts: cosines(tuple(texts))


def query_fluency(query: Query, provider: EmbeddingProvider) -> float:
    """How well the model reads the query, in (0, 1].

    Raises:
        EmbedderError: the model cannot be used.
    """
    fluency = getattr(provider, "fluency", None)  # Only some models can tell.
    return float(fluency(query.task.text)) if fluency else 1.0
