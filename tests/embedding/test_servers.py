"""Servers of models and of cross-encoders: who may be asked, and what may go wrong."""

import io
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rolebundle.embedding import servers
from rolebundle.embedding.provider import TEXT_FAULTS, EmbeddingProvider, unit_vectors
from rolebundle.embedding.registry import (
    ProviderSpec,
    cross_encoder_for,
    parse_rerank_spec,
    provider_for,
)
from rolebundle.embedding.servers import (
    MAX_RESPONSE_BYTES,
    RerankServer,
    ServerProvider,
    permitted_url,
)
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from support.embedding_server import (
    DEADLINE,
    EMBED_PATHS,
    MODEL,
    RERANK_PATHS,
    ROUTES,
    Breaks,
    EmbeddingServer,
    Fault,
    Handler,
    embedding_server,
    overlap,
    vectors,
)

SHORT_DEADLINE = 0.1
"""Seconds in which a server that never answers can be waited for; an answer may take longer."""


def failure(provider: EmbeddingProvider, texts: tuple[str, ...] = ("one", "two")) -> EmbedderError:
    """Return the error that embedding raises, checks of the vectors included."""
    with pytest.raises(EmbedderError) as caught:
        unit_vectors(provider.embed_passages(texts), len(texts), provider.identity.dimensions)
    assert caught.value.hint
    return caught.value


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


def answer(handler: Handler, rows: list[object]) -> None:
    """Answer with these vectors, in the API of the request."""
    if handler.path == EMBED_PATHS["ollama"]:
        handler.json({"embeddings": rows})
    else:
        handler.json({"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]})


def closed_port() -> int:
    """Return a port on which no server listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


# -- Faults of a model server and of the connection to it, tested with real servers on loopback

# The connection


def test_a_server_that_is_down_is_reported(kind: str):
    url = f"http://127.0.0.1:{closed_port()}"
    provider = provider_for(ProviderSpec(kind, MODEL, url))
    with within(1.5), pytest.raises(EmbedderError, match="cannot be reached") as caught:
        provider.embed_queries(["text"])
    assert caught.value.code == "embedder_down"
    assert url in caught.value.message


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
def with_short_deadline(provider: ServerProvider) -> ServerProvider:
    """A provider with the short deadline from here on; it has already looked up its model."""
    provider.server.spec = replace(provider.server.spec, deadline_seconds=SHORT_DEADLINE)
    return provider


@pytest.mark.parametrize("fault", [slow, drip_headers, drip_body, late_drip])
def test_the_deadline_covers_the_whole_answer(
    with_short_deadline: ServerProvider, breaks: Breaks, fault: Fault
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
    monkeypatch.setattr(servers, "RETRY_PAUSES", (DEADLINE / 4, DEADLINE))
    breaks(lambda handler: handler.json({}, 503))
    with within(DEADLINE + 1):
        assert failure(provider).code == "server_busy"
    # At 0 and at a quarter of the deadline; the next pause ends after it.
    assert len(server.seen) == 2


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


def test_a_redirect_is_not_followed(provider: EmbeddingProvider, breaks: Breaks, kind: str):
    with embedding_server() as elsewhere:
        target = f"{elsewhere.url}{EMBED_PATHS[kind]}"
        for status in (301, 302, 303, 307, 308):
            breaks(lambda handler, status=status: handler.text("", status, Location=target))
            assert failure(provider).code == "redirect_refused"
        assert elsewhere.seen == []


# -- Texts and keys are sent only to the configured server -----------------------------------------

KEY = "sk-local-5d1f0c9a77"


# The host


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "10.0.0.8", "0.0.0.0", "gpu.example", "[2001:db8::1]"]
)
def test_another_host_is_refused_without_a_lookup(
    kind: str, host: str, monkeypatch: pytest.MonkeyPatch
):
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("a name was looked up or a connection made")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    monkeypatch.setattr(socket, "create_connection", never)
    with pytest.raises(EmbedderError) as caught:
        provider_for(ProviderSpec(kind, MODEL, f"http://{host}:11434", allow_host="other.example"))
    assert caught.value.code == "host_not_local"
    assert host.strip("[]") in caught.value.message


def test_the_allowed_host_is_used(
    kind: str, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: addresses)
    url = f"http://gpu.example:{server.port}"
    provider = provider_for(ProviderSpec(kind, MODEL, url, allow_host="GPU.example"))
    assert provider.identity.dimensions == 8
    assert {seen.headers["Host"] for seen in server.seen} == {f"gpu.example:{server.port}"}


def test_proxies_and_hosts_in_the_environment_are_ignored(
    kind: str, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    nowhere = f"http://127.0.0.1:{closed_port()}"
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, nowhere)
    assert provider_for(ProviderSpec(kind, MODEL, server.url)).identity.dimensions == 8


# The key


def test_the_key_is_sent_and_never_shown(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch):
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    monkeypatch.setattr(logging.root, "handlers", [handler])
    monkeypatch.setattr(logging.root, "level", logging.DEBUG)
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", KEY)
    provider = provider_for(ProviderSpec("openai", MODEL, server.url))
    provider.embed_queries(["text"])
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {KEY}"}

    texts = [repr(provider), repr(vars(provider)), repr(provider.identity)]
    echo = f"Incorrect API key provided: {KEY}"
    for fault in (
        lambda handler: handler.json({"error": {"message": echo}}, 401),
        lambda handler: handler.json({"error": {"message": echo}}, 400),
        lambda handler: handler.json({"odd": [echo]}, 500),
        lambda handler: handler.text(echo, 200, f"text/{KEY}"),
        lambda handler: handler.text("", 302, Location=f"http://other.example/{KEY}"),
    ):
        server.faults["/v1/embeddings"] = fault
        error = failure(provider)
        texts += [str(error), repr(error), repr(error.__cause__), repr(vars(error))]
    texts.append(log.getvalue())
    assert not [text for text in texts if KEY in text]


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_malformed_key_is_refused_and_not_shown(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, key: str
):
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", key)
    with pytest.raises(ConfigurationError) as caught:
        _ = provider_for(ProviderSpec("openai", MODEL, server.url)).identity
    assert caught.value.code == "bad_key"
    assert key not in str(caught.value)
    assert server.seen == []


# -- Faulty vectors of a model server, and the requests that are sent to it ------------------------

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
        (lambda handler: answer(handler, [[1.0] * 7] * 2), "embedding_dimensions"),
        (lambda handler: answer(handler, [[], []]), "embedding_dimensions"),
        (lambda handler: answer(handler, [[1.0] * 8, [1.0] * 7]), "bad_response"),
    ],
)  # fmt: skip
def test_a_faulty_answer_is_refused(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Breaks, fault: Fault, code: str
):
    breaks(fault)
    error = failure(provider)
    assert error.code == code
    assert "Router" not in str(error)
    assert {seen.headers["Accept-Encoding"] for seen in server.seen} == {"identity"}


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


# -- Which model servers may be contacted ----------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://localhost:8080/api/", "http://localhost:8080/api"),
        ("HTTP://LocalHost.:8080", "http://localhost:8080"),
        ("http://[::1]:11434", "http://[::1]:11434"),
        ("http://[::ffff:127.0.0.1]:11434", "http://[::ffff:127.0.0.1]:11434"),
        ("https://localhost", "https://localhost:443"),
    ],
)
def test_every_spelling_of_loopback_is_permitted(url: str, expected: str):
    assert permitted_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com:11434",
        "http://127.0.0.1.example.com",
        "http://0.0.0.0:11434",
        "http://[::]:11434",
        "http://[::ffff:192.0.2.1]:11434",
    ],
)
def test_a_host_that_only_resembles_loopback_is_refused(url: str):
    with pytest.raises(EmbedderError, match=r"\[host_not_local\]"):
        permitted_url(url)


def test_only_the_allowed_host_is_permitted_besides_this_machine():
    assert permitted_url("http://GPU.lan:8000/v1", "gpu.lan") == "http://gpu.lan:8000/v1"
    assert permitted_url("http://[2001:db8::1]:80", "[2001:db8::1]") == "http://[2001:db8::1]:80"
    for allowed_host in ("gpu", "lan", "other.gpu.lan", "gpu.lan.example", "*", ""):
        with pytest.raises(EmbedderError):
            permitted_url("http://gpu.lan:8000", allowed_host)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "http://",
        "http://ⓛocalhost:80",
        "http://127.0.0.1:99999",
        "http://127.0.0.1/?key=1",
        "http://[::1",
    ],
)
def test_a_malformed_url_is_refused(url: str):
    with pytest.raises(UsageError) as caught:
        permitted_url(url)
    assert caught.value.code == "bad_url"
    assert caught.value.hint


def test_a_password_in_the_url_is_refused_and_not_shown():
    with pytest.raises(UsageError) as caught:
        permitted_url("http://user:hunter2@127.0.0.1:80")
    assert "hunter2" not in str(caught.value)


# -- Cross-encoders of a server: the same scores through both APIs, and answers that are refused

QUESTION = "token rotation audit"
PASSAGES = ["crops", "the audit of token rotation", "a token", "\0 \ud800 audit token"]
EXPECTED = [overlap(QUESTION, passage) for passage in PASSAGES]


@pytest.fixture
def reranker(server: EmbeddingServer) -> RerankServer:
    return cross_encoder_for(ProviderSpec("rerank", MODEL, server.url, deadline_seconds=DEADLINE))


def test_scores_have_the_order_of_the_passages(reranker: RerankServer, server: EmbeddingServer):
    assert reranker.scores(QUESTION, PASSAGES) == EXPECTED == sorted(EXPECTED)[:1] + EXPECTED[1:]
    assert len(server.seen) == 1


def test_its_name_is_no_embedding_provider():
    assert parse_rerank_spec("rerank:bge:v2") == ProviderSpec("rerank", "bge:v2")
    with pytest.raises(ConfigurationError, match="no embedding provider"):
        provider_for(ProviderSpec("rerank"))
    with pytest.raises(ConfigurationError) as caught:
        parse_rerank_spec("nonsense")
    assert "rerank" in caught.value.hint
    with pytest.raises(ConfigurationError, match="needs its url"):
        cross_encoder_for(ProviderSpec("rerank", MODEL))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(n, 0.1) for n in range(5)],
        [(0, 0.1), (1, 0.2), (2, 0.3), (2, 0.3)],
        [(0, 0.1), (True, 0.2), (2, 0.3), (3, 0.3)],
        [([], 0.1), (1, 0.2), (2, 0.3), (3, 0.3)],
        [(n, float("inf")) for n in range(4)],
        [(n, 10**400) for n in range(4)],
        [(n, "0.5") for n in range(4)],
        [1, 2, 3, 4],
        {"0": 1},
    ],
    ids=range(10),
)
def test_an_answer_that_is_not_one_score_each_is_refused(
    reranker: RerankServer, server: EmbeddingServer, rows: Any
):
    if isinstance(rows, list):
        rows = [
            {"index": row[0], "relevance_score": row[1]} if isinstance(row, tuple) else row
            for row in rows
        ]
    server.faults[RERANK_PATHS["rerank"]] = lambda handler: handler.json({"results": rows})
    with pytest.raises(EmbedderError) as caught:
        reranker.scores(QUESTION, PASSAGES)
    assert caught.value.code == "bad_response"
    assert caught.value.hint


def test_a_cross_encoder_is_on_this_machine():
    with pytest.raises(EmbedderError, match=r"\[host_not_local\]"):
        cross_encoder_for(ProviderSpec("rerank", MODEL, "http://192.0.2.1:8080"))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0:11500", "http://127.0.0.1:11500"),
        ("localhost", "http://localhost:11434"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_ollama_is_where_its_own_variable_says(
    monkeypatch: pytest.MonkeyPatch, host: str, url: str
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert provider_for(ProviderSpec("ollama", MODEL)).server.url == url  # type: ignore[attr-defined]
