"""Faults of a model server and of the connection to it, tested with real servers on loopback."""

from __future__ import annotations

import httpx
import pytest

from rolebundle.embedding import servers
from rolebundle.embedding.provider import TEXT_FAULTS, EmbeddingProvider
from rolebundle.embedding.registry import ProviderSpec, provider_for
from rolebundle.embedding.servers import MAX_RESPONSE_BYTES, BoundedTransport
from rolebundle.errors import EmbedderError
from support.embedding_faults import (
    DEADLINE,
    SHORT_DEADLINE,
    Breaks,
    Fault,
    closed_port,
    failure,
    within,
)
from support.embedding_server import (
    EMBED_PATHS,
    MODEL,
    ROUTES,
    EmbeddingServer,
    Handler,
    embedding_server,
)

# The connection


def test_a_server_that_is_down_is_reported(kind: str):
    url = f"http://127.0.0.1:{closed_port()}"
    provider = provider_for(ProviderSpec(kind, MODEL, url))
    with within(1.5), pytest.raises(EmbedderError, match="cannot be reached") as caught:
        provider.embed_queries(["text"])
    assert caught.value.code == "embedder_down"
    assert url in caught.value.message


def test_a_server_that_comes_back_is_used(kind: str):
    port = closed_port()
    provider = provider_for(ProviderSpec(kind, MODEL, f"http://127.0.0.1:{port}"))
    with pytest.raises(EmbedderError, match="cannot be reached"):
        provider.embed_queries(["text"])
    with embedding_server(port):
        assert provider.embed_queries(["text"]).shape == (1, 8)


def test_localhost_is_reached_by_either_address(kind: str, server: EmbeddingServer):
    url = f"http://localhost:{server.port}"
    assert provider_for(ProviderSpec(kind, MODEL, url)).identity.dimensions == 8


# Time


def slow(handler: Handler) -> None:
    handler.state.stopping.wait(5)


def drip_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    handler.pour(b"x", pause=0.05)


def drip_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.pour(b" ", pause=0.05)


def late_drip(handler: Handler) -> None:
    # One byte just before the deadline must not start the time of another read.
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.pour(b" ", pause=SHORT_DEADLINE * 0.9)


@pytest.fixture
def with_short_deadline(
    provider: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> EmbeddingProvider:
    """A provider with the short deadline from here on; it has already looked up its model."""
    send = BoundedTransport.handle_request

    def send_with_short_deadline(
        transport: BoundedTransport, request: httpx.Request
    ) -> httpx.Response:
        transport._deadline_seconds = SHORT_DEADLINE
        return send(transport, request)

    monkeypatch.setattr(BoundedTransport, "handle_request", send_with_short_deadline)
    return provider


@pytest.mark.parametrize("fault", [slow, drip_headers, drip_body, late_drip])
def test_the_deadline_covers_the_whole_answer(
    with_short_deadline: EmbeddingProvider, breaks: Breaks, fault: Fault
):
    breaks(fault)
    with within(SHORT_DEADLINE + 1):
        error = failure(with_short_deadline)
    assert error.code == "embedder_timeout"
    assert f"{SHORT_DEADLINE:g} seconds" in error.message


def test_the_deadline_covers_retries_and_their_pauses(
    server: EmbeddingServer,
    provider: EmbeddingProvider,
    breaks: Breaks,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(servers, "_FIRST_PAUSE", DEADLINE / 4)
    breaks(lambda handler: handler.json({}, 503))
    with within(DEADLINE + 1):
        assert failure(provider).code == "server_busy"
    # At 0 and at a quarter of the deadline; the next pause ends after it.
    assert len(server.seen) == 2


# Retries


def test_a_retry_after_the_deadline_is_not_waited_for(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Breaks
):
    breaks(lambda handler: handler.json({"error": "busy"}, 429, Retry_After="30"))
    with within(0.3):
        error = failure(provider)
    assert error.code == "server_busy"
    assert error.hint.startswith("wait")
    assert len(server.seen) == 1


# The answer


def test_status_500_is_reported_with_the_servers_words(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Breaks
):
    breaks(lambda handler: handler.json({"error": "runner\nprocess has\x1b[31m terminated"}, 500))
    error = failure(provider)
    assert error.code == "server_error"
    assert "runner process has [31m terminated" in error.message
    assert len(server.seen) == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "body",
    [
        "",
        "no JSON",
        "[]",
        "null",
        "42",
        "{}",
        '{"embeddings": 1, "data": 1}',
        '{"embeddings": null, "data": null}',
        '{"embeddings": ["AAAA", "AAAA"], "data": [{"embedding": "AAAA"}, {}]}',
        '{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}',
        "[" * 100_000,
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    ],
    ids=lambda body: ascii(body[:30]),
)
@pytest.mark.parametrize("status", [200, 400])
def test_answers_without_vectors_are_refused(
    provider: EmbeddingProvider, breaks: Breaks, body: str, status: int
):
    breaks(lambda handler: handler.text(body, status, "application/json"))
    expected = {"bad_response"} if status == 200 else {"bad_response", "request_refused"}
    assert failure(provider).code in expected


def test_garbage_in_the_list_of_models_is_refused(kind: str, server: EmbeddingServer):
    for path in ROUTES:
        server.faults[path] = lambda handler: handler.text('{"models": 3, "data": [3]}')
    provider = provider_for(ProviderSpec(kind, MODEL, server.url))
    assert failure(provider).code == "bad_response"


def test_an_endless_body_is_refused_after_a_bounded_read(
    server: EmbeddingServer, kind: str, breaks: Breaks
):
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.pour(b" " * 65536)

    provider = provider_for(ProviderSpec(kind, MODEL, server.url, deadline_seconds=10.0))
    assert provider.identity.dimensions == 8
    breaks(endless)
    assert failure(provider).code == "response_too_large"
    # The rest was sent but not read: it is in the sockets' buffers.
    assert server.sent < MAX_RESPONSE_BYTES + (16 << 20)


def test_a_missing_model_is_reported(kind: str, server: EmbeddingServer):
    provider = provider_for(ProviderSpec(kind, "bge-m3", server.url))
    error = failure(provider)
    assert error.code == "model_missing"
    assert "bge-m3" in error.message
    if kind == "ollama":
        assert error.hint == "run `ollama pull bge-m3`"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "the input length exceeds the context length"),
        (500, "the input length exceeds the context length"),
        (500, "input is too large to process. increase the physical batch size"),
        (500, "input is larger than the max context size. skipping"),
        (400, "This model's maximum context length is 512 tokens."),
        (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 785"),
    ],
)
def test_a_text_over_the_context_is_refused(
    provider: EmbeddingProvider, breaks: Breaks, kind: str, status: int, words: str
):
    error_body = words if kind == "ollama" else {"message": words}
    breaks(lambda handler: handler.json({"error": error_body}, status))
    error = failure(provider)
    assert error.code == "input_too_long"
    assert error.code in TEXT_FAULTS
    assert ("2048 tokens" in error.message) == (kind == "ollama")


def test_a_redirect_is_not_followed(provider: EmbeddingProvider, breaks: Breaks, kind: str):
    with embedding_server() as elsewhere:
        target = f"{elsewhere.url}{EMBED_PATHS[kind]}"
        for status in (301, 302, 303, 307, 308):
            breaks(lambda handler, status=status: handler.text("", status, Location=target))
            assert failure(provider).code == "redirect_refused"
        assert elsewhere.seen == []
