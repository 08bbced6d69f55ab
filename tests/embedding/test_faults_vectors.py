"""Faulty vectors of a model server, and the requests that are sent to it."""

from __future__ import annotations

import numpy as np
import pytest

from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.registry import ProviderSpec, provider_for
from rolebundle.errors import ConfigurationError
from support.embedding_faults import Breaks, Fault, answer, failure
from support.embedding_server import EMBED_PATHS, MODEL, EmbeddingServer, Handler, vectors

# The vectors


PAGE = "<!doctype html><title>Router login</title>"


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


def other_protocol(handler: Handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (hang_up, "embedder_down"),
        (other_protocol, "bad_response"),
        (lambda handler: handler.text(PAGE, 200, "text/html"), "bad_response"),
        (lambda handler: handler.text(PAGE, 500, "text/html"), "server_error"),
        (lambda handler: handler.text("x", 200, Content_Encoding="gzip"), "bad_response"),
        (lambda handler: answer(handler, vectors(handler)[:1]), "embedding_count"),
        (lambda handler: answer(handler, vectors(handler) * 2), "embedding_count"),
        *(
            (lambda handler, value=value: answer(handler, [[value] * 8, [1.0] * 8]), code)
            for value, code in (
                (float("nan"), "embedding_not_finite"),
                (float("inf"), "embedding_not_finite"),
                (1e300, "embedding_not_finite"),
                (0.0, "embedding_zero"),
            )
        ),
        *(
            (lambda handler, n=first, m=second: answer(handler, [[1.0] * n, [1.0] * m]),
             "embedding_dimensions")
            for first, second in ((7, 7), (8, 7), (0, 0), (8, 0))
        ),
    ],
)  # fmt: skip
def test_a_faulty_answer_is_refused(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Breaks, fault: Fault, code: str
):
    breaks(fault)
    error = failure(provider)
    assert error.code == code
    assert "Router" not in str(error)
    assert {seen.headers["accept-encoding"] for seen in server.seen} == {"identity"}


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
