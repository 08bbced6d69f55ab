"""Faulty vectors of a model server, and the requests that are sent to it."""

from __future__ import annotations

import numpy as np
import pytest

from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.registry import ProviderSpec, provider_for
from rolebundle.errors import ConfigurationError
from support.embedding_faults import Breaks, answer, failure
from support.embedding_server import (
    EMBED_PATHS,
    MODEL,
    EmbeddingServer,
    vectors,
)

# The vectors


def test_fewer_vectors_than_texts_are_refused(provider: EmbeddingProvider, breaks: Breaks):
    breaks(lambda handler: answer(handler, vectors(handler)[:1]))
    error = failure(provider)
    assert error.code == "embedding_count"
    assert "1 vector for 2 texts" in error.message


def test_more_vectors_than_texts_are_refused(provider: EmbeddingProvider, breaks: Breaks):
    breaks(lambda handler: answer(handler, vectors(handler) * 2))
    assert failure(provider).code == "embedding_count"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_a_vector_that_is_not_finite_is_refused(
    provider: EmbeddingProvider, breaks: Breaks, value: float
):
    breaks(lambda handler: answer(handler, [[value] * 8, [1.0] * 8]))
    assert failure(provider).code == "embedding_not_finite"


def test_a_zero_vector_is_refused(provider: EmbeddingProvider, breaks: Breaks):
    breaks(lambda handler: answer(handler, [[1.0] * 8, [0.0] * 8]))
    assert failure(provider).code == "embedding_zero"


@pytest.mark.parametrize("lengths", [(7, 7), (8, 7), (0, 0), (8, 0)])
def test_a_wrong_dimension_is_refused(
    provider: EmbeddingProvider, breaks: Breaks, lengths: tuple[int, int]
):
    breaks(lambda handler: answer(handler, [[1.0] * length for length in lengths]))
    assert failure(provider).code == "embedding_dimensions"


def test_a_model_that_is_replaced_while_the_process_runs_is_reported(server: EmbeddingServer):
    provider = provider_for(ProviderSpec("ollama", MODEL, server.url))
    provider.embed_queries(["text"])
    server.digest = "f" * 64
    assert failure(provider).code == "model_changed"


# Requests


def test_requests_are_batched_and_prefixed(
    kind: str, server: EmbeddingServer, provider: EmbeddingProvider
):
    texts = [f"text {'again ' * number}" for number in range(70)]
    found = provider.embed_passages(texts)
    sent = [body["input"] for body in server.bodies_for(EMBED_PATHS[kind])]
    assert [len(batch) for batch in sent] == ([64, 6] if kind == "ollama" else [32, 32, 6])
    assert [text for batch in sent for text in batch] == [f"search_document: {t}" for t in texts]
    assert np.array_equal(found[65:66], provider.embed_passages(texts[65:66]))


def test_the_only_model_of_a_server_may_be_left_unnamed(server: EmbeddingServer):
    provider = provider_for(ProviderSpec("openai", url=f"{server.url}/v1/"))
    assert provider.identity.model == MODEL
    server.faults["/v1/models"] = lambda handler: handler.json({"data": [{"id": "a"}, {"id": "b"}]})
    with pytest.raises(ConfigurationError, match="2 models: a, b"):
        _ = provider_for(ProviderSpec("openai", url=server.url)).identity
