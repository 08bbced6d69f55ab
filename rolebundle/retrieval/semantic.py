"""The semantic lane: cosine with the task, a little of the role's mission mixed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rolebundle.contracts.candidate import Query, SemanticHit
from rolebundle.embedding.provider import EmbeddingProvider, HasFluency, unit_vectors
from rolebundle.errors import EmbedderError
from rolebundle.storage import vector_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import EmbeddingIndex


def usable_index(corpus: Corpus, provider: EmbeddingProvider) -> EmbeddingIndex:
    """The corpus's embedding index, if this provider may be compared with it (law 5).

    Raises:
        EmbedderError: there is no index, or its model is another one.
    """
    index = vector_index.active_index(corpus)
    if index is None:
        raise EmbedderError(
            "no_index",
            "the corpus has no embedding index",
            "run `rolebundle ingest` again without --lexical-only",
        )
    ours, theirs = provider.identity, index.identity.model
    if ours != theirs:
        raise EmbedderError(
            "model_mismatch",
            f"the index was made by {theirs.provider}:{theirs.model} "
            f"({theirs.dimensions} dimensions, digest {theirs.digest}), the query would be by "
            f"{ours.provider}:{ours.model} ({ours.dimensions} dimensions, digest {ours.digest})",
            "use the index's own model, or ingest into a new corpus file with this one",
        )
    return index


def query_vector(query: Query, provider: EmbeddingProvider) -> bytes:
    """The unit vector of the task, with the role's mission at its weight.

    The mix is of unit vectors: ``v = w_task · task + w_context · cos · mission``, at unit length
    again, where ``cos`` is the cosine of the two, at least 0: a mission has the more say the more
    the task is its business, and none where it is not. Where nothing has any, it is the task.

    Raises:
        EmbedderError: the model could not embed the query.
    """
    texts = [query.semantic_text] + ([query.context_text] if query.context_text else [])
    dimensions = provider.identity.dimensions
    vectors = unit_vectors(provider.embed_queries(texts), len(texts), dimensions)
    if len(texts) == 1:
        return bytes(vectors[0].tobytes())
    own = query.weights.semantic_task
    say = query.weights.semantic_context * max(0.0, float(vectors[0] @ vectors[1]))
    mixed = own * vectors[0] + say * vectors[1] if own + say > 0 else vectors[0]
    return bytes(unit_vectors(mixed.reshape(1, -1), 1, dimensions)[0].tobytes())


def say(query: Query, provider: EmbeddingProvider) -> float:
    """How much say the model has on this question, from 1 down to nearly 0.

    Raises:
        EmbedderError: the model is not at hand.
    """
    return provider.fluency(query.semantic_text) if isinstance(provider, HasFluency) else 1.0


def told(query: Query, say: float) -> Query:
    """The query with a rule that tells of the model's say, where it is less than usual."""
    rule = (f"semantic:say({say:.2f})",) if say < 1 else ()
    return replace(query, applied_rules=(*query.applied_rules, *rule))


def search(
    corpus: Corpus,
    index: EmbeddingIndex,
    vector: bytes,
    depth: int,
    within: Sequence[int] | None = None,
) -> list[SemanticHit]:
    """The ``depth`` nearest chunks, ordered by rowid."""
    found = vector_index.search(corpus, index, vector, depth, within)
    return [SemanticHit(rowid, cosine) for rowid, cosine in sorted(found)]


def score(
    corpus: Corpus, index: EmbeddingIndex, vector: bytes, rowids: Sequence[int]
) -> list[SemanticHit]:
    """The true cosines of chunks that the other lane proposed."""
    if not rowids:
        return []
    found = vector_index.score(corpus, index, vector, rowids)
    return [SemanticHit(rowid, cosine, proposed=False) for rowid, cosine in sorted(found.items())]
