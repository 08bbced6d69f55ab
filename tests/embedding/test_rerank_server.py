"""Cross-encoders of a server: the same scores through both APIs, and answers that are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolebundle.embedding import servers
from rolebundle.embedding.registry import (
    ProviderSpec,
    parse_rerank_spec,
    provider_for,
    rerank_server_for,
)
from rolebundle.embedding.servers import RerankServer
from rolebundle.errors import ConfigurationError, EmbedderError
from support.embedding_faults import DEADLINE, SHORT_DEADLINE, closed_port, within
from support.embedding_server import MODEL, RERANK_PATHS, EmbeddingServer, Handler, overlap

QUESTION = "token rotation audit"
PASSAGES = ["crops", "the audit of token rotation", "a token", "\0 \ud800 audit token"]
EXPECTED = [overlap(QUESTION, passage) for passage in PASSAGES]


@pytest.fixture(params=list(RERANK_PATHS))
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def reranker(api: str, server: EmbeddingServer) -> RerankServer:
    return open_server(api, server.url)


def open_server(api: str, url: str, seconds: float = DEADLINE, **more: Any) -> RerankServer:
    return rerank_server_for(ProviderSpec(api, MODEL, url, deadline_seconds=seconds, **more))


def failure(reranker: RerankServer) -> EmbedderError:
    with pytest.raises(EmbedderError) as caught:
        reranker.scores(QUESTION, PASSAGES)
    assert caught.value.hint
    return caught.value


def results(api: str, rows: Any) -> str:
    """An answer of the API with these rows, as pairs of index and score."""
    if not isinstance(rows, list):
        return json.dumps(rows)
    named = [
        {"index": row[0], "relevance_score": row[1]} if isinstance(row, tuple) else row
        for row in rows
    ]
    return json.dumps({"results": named})


def test_scores_have_the_order_of_the_passages(reranker: RerankServer, server: EmbeddingServer):
    assert reranker.scores(QUESTION, PASSAGES) == EXPECTED == sorted(EXPECTED)[:1] + EXPECTED[1:]
    assert len(server.seen) == 1


def test_its_name_is_no_embedding_provider(api: str):
    assert parse_rerank_spec(f"{api}:bge:v2") == ProviderSpec(api, "bge:v2")
    with pytest.raises(ConfigurationError, match="no embedding provider"):
        provider_for(ProviderSpec(api))
    with pytest.raises(ConfigurationError) as caught:
        parse_rerank_spec("nonsense")
    assert api in caught.value.hint
    with pytest.raises(ConfigurationError, match="needs its url"):
        rerank_server_for(ProviderSpec(api, MODEL))


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="none"),
        pytest.param([(0, 0.1), (1, 0.2), (2, 0.3)], id="too few"),
        pytest.param([(n, 0.1) for n in range(5)], id="too many"),
        pytest.param([(0, 0.1), (1, 0.2), (2, 0.3), (2, 0.3)], id="an index twice"),
        pytest.param([(0, 0.1), (1, 0.2), (2, 0.3), (4, 0.3)], id="a wrong index"),
        pytest.param([(-1, 0.1), (1, 0.2), (2, 0.3), (3, 0.3)], id="a negative index"),
        pytest.param([(0, 0.1), (True, 0.2), (2, 0.3), (3, 0.3)], id="an index that is true"),
        pytest.param([("0", 0.1), (1, 0.2), (2, 0.3), (3, 0.3)], id="an index in words"),
        pytest.param([([], 0.1), (1, 0.2), (2, 0.3), (3, 0.3)], id="an index that is a list"),
        pytest.param([(n, float("nan")) for n in range(4)], id="NaN"),
        pytest.param([(n, float("inf")) for n in range(4)], id="infinite"),
        pytest.param([(n, 10**400) for n in range(4)], id="no float"),
        pytest.param([(n, "0.5") for n in range(4)], id="a score in words"),
        pytest.param([(n, None) for n in range(4)], id="no score"),
        pytest.param([(n, True) for n in range(4)], id="a score that is true"),
        pytest.param([1, 2, 3, 4], id="numbers"),
        pytest.param({"results": {"0": 1}}, id="an object"),
        pytest.param("text", id="a string"),
        pytest.param(None, id="null"),
    ],
)
def test_an_answer_that_is_not_one_score_each_is_refused(
    api: str, reranker: RerankServer, server: EmbeddingServer, rows: Any
):
    server.faults[RERANK_PATHS[api]] = lambda handler: handler.text(results(api, rows))
    assert failure(reranker).code == "bad_response"


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "This model's maximum context length is 512 tokens", "input_too_long"),
        (413, "`inputs` must have less than 512 tokens", "input_too_long"),
        (404, "model not found", "model_missing"),
        (401, "no", "key_refused"),
        (500, "the model broke", "server_error"),
        (400, "bad", "request_refused"),
        (307, "", "redirect_refused"),
    ],
)
def test_a_failure_has_its_code(
    api: str, reranker: RerankServer, server: EmbeddingServer, status: int, message: str, code: str
):
    server.faults[RERANK_PATHS[api]] = lambda handler: handler.json({"error": message}, status)
    assert failure(reranker).code == code


def test_time_and_size_are_limited(
    api: str, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.pour(b" ", pause=0.01)

    def flood(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.pour(b" " * 1_000_000)

    server.faults[RERANK_PATHS[api]] = drip
    with within(1):
        assert failure(open_server(api, server.url, SHORT_DEADLINE)).code == "embedder_timeout"
    server.faults[RERANK_PATHS[api]] = flood
    assert failure(open_server(api, server.url, 30)).code == "response_too_large"
    assert server.sent < 4 * servers.MAX_RESPONSE_BYTES
    assert failure(open_server(api, f"http://127.0.0.1:{closed_port()}")).code == "embedder_down"


def test_texts_and_the_key_are_sent_to_the_configured_host_only(
    api: str, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(EmbedderError) as caught:
        open_server(api, "http://192.0.2.1:8080", allow_host="other.example")
    assert caught.value.code == "host_not_local"
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", "sk-5d1f0c9a77")

    def repeat_the_key(handler: Handler) -> None:
        handler.json({"error": handler.headers["Authorization"]}, 400)

    reranker = open_server(api, server.url)
    reranker.scores(QUESTION, PASSAGES)
    assert server.seen[-1].headers["Authorization"] == "Bearer sk-5d1f0c9a77"
    server.faults[RERANK_PATHS[api]] = repeat_the_key
    assert "sk-5d1f0c9a77" not in failure(reranker).message
