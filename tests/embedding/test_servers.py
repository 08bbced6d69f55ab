"""Servers of models and of cross-encoders: who may be asked, and what may go wrong."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import subprocess
import sys
from typing import Any

import httpx
import numpy as np
import pytest

from rolebundle.embedding import servers
from rolebundle.embedding.ollama import default_url
from rolebundle.embedding.provider import TEXT_FAULTS, EmbeddingProvider
from rolebundle.embedding.registry import (
    ProviderSpec,
    parse_rerank_spec,
    provider_for,
    rerank_server_for,
)
from rolebundle.embedding.servers import (
    MAX_RESPONSE_BYTES,
    BoundedTransport,
    RerankServer,
    permitted_url,
)
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from support.embedding_faults import (
    DEADLINE,
    SHORT_DEADLINE,
    Breaks,
    Fault,
    answer,
    closed_port,
    failure,
    within,
)
from support.embedding_server import (
    EMBED_PATHS,
    MODEL,
    RERANK_PATHS,
    ROUTES,
    EmbeddingServer,
    Handler,
    embedding_server,
    overlap,
    vectors,
)

# -- Faults of a model server and of the connection to it, tested with real servers on loopback

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
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OLLAMA_HOST"):
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


# -- Which model servers may be contacted ----------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://127.9.8.7:1234/", "http://127.9.8.7:1234"),
        ("http://localhost:8080/api/", "http://localhost:8080/api"),
        ("HTTP://LocalHost.:8080", "http://localhost:8080"),
        ("http://[::1]:11434", "http://[::1]:11434"),
        ("http://[::ffff:127.0.0.1]:11434", "http://[::ffff:127.0.0.1]:11434"),
        ("https://localhost", "https://localhost:443"),
        ("http://localhost", "http://localhost:80"),
    ],
)
def test_every_spelling_of_loopback_is_permitted(url: str, expected: str):
    assert permitted_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com:11434",
        "http://localhost.example.com:11434",
        "http://127.0.0.1.example.com",
        "http://2130706433:11434",
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
        "file:///etc/passwd",
        "http://",
        "http://:80",
        "http://ⓛocalhost:80",
        "http://127.0.0.1:99999",
        "http://127.0.0.1/?key=1",
        "http://127.0.0.1/#here",
        "http://[::1",
        "//127.0.0.1:11434",
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


# -- `OLLAMA_HOST` names the server, as it does for Ollama itself ----------------------------------


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        (" '127.0.0.1' ", "http://127.0.0.1:11434/"),
        ("localhost:8080", "http://localhost:8080/"),
        ("localhost:", "http://localhost:11434/"),
        (":8080", "http://127.0.0.1:8080/"),
        ("0.0.0.0", "http://127.0.0.1:11434/"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/"),
        ("[::]", "http://[::1]:11434/"),
        ("::", "http://[::1]:11434/"),
        ("[::]:8080", "http://[::1]:8080/"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("http://0.0.0.0", "http://127.0.0.1:80"),
        ("https://models.example/path", "https://models.example/path"),
        ("models.example/path", "http://models.example:11434/path"),
    ],
)
def test_the_forms_of_an_address(monkeypatch: pytest.MonkeyPatch, value: str, url: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert default_url() == url


@pytest.mark.parametrize(
    "value", ["a b", "user:key@host", "host:port", "ftp://host", "[", "host:1:2"]
)
def test_what_is_no_address(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    with pytest.raises((UsageError, EmbedderError)):
        provider_for(ProviderSpec("ollama", MODEL))


@pytest.mark.slow
def test_the_package_of_ollama_does_not_read_the_address() -> None:
    # In a process of its own, because the package reads the variable when it is imported.
    code = "import os, rolebundle.embedding.ollama; print(os.environ['OLLAMA_HOST'])"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OLLAMA_HOST": "::1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.strip() == "::1"


def test_another_machine_must_be_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "192.0.2.1")
    with pytest.raises(EmbedderError, match=r"\[host_not_local\]"):
        provider_for(ProviderSpec("ollama", MODEL))
    provider_for(ProviderSpec("ollama", MODEL, allow_host="192.0.2.1"))


def test_the_server_that_it_names_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with embedding_server() as server, embedding_server() as named:
        monkeypatch.setenv("OLLAMA_HOST", f"0.0.0.0:{server.port}")
        assert provider_for(ProviderSpec("ollama", MODEL)).identity.provider == "ollama"
        assert server.seen
        # An address that the user or the corpus names comes first.
        assert provider_for(ProviderSpec("ollama", MODEL, named.url)).identity
        assert named.seen


# -- Cross-encoders of a server: the same scores through both APIs, and answers that are refused

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


def failure_rerank(reranker: RerankServer) -> EmbedderError:
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
    assert failure_rerank(reranker).code == "bad_response"


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
    assert failure_rerank(reranker).code == code


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
        assert (
            failure_rerank(open_server(api, server.url, SHORT_DEADLINE)).code == "embedder_timeout"
        )
    server.faults[RERANK_PATHS[api]] = flood
    assert failure_rerank(open_server(api, server.url, 30)).code == "response_too_large"
    assert server.sent < 4 * servers.MAX_RESPONSE_BYTES
    assert (
        failure_rerank(open_server(api, f"http://127.0.0.1:{closed_port()}")).code
        == "embedder_down"
    )


def test_texts_and_the_key_are_sent_to_the_configured_host_only(
    api: str, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(EmbedderError, match=r"\[host_not_local\]"):
        open_server(api, "http://192.0.2.1:8080", allow_host="other.example")
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", "sk-5d1f0c9a77")

    def repeat_the_key(handler: Handler) -> None:
        handler.json({"error": handler.headers["Authorization"]}, 400)

    reranker = open_server(api, server.url)
    reranker.scores(QUESTION, PASSAGES)
    assert server.seen[-1].headers["Authorization"] == "Bearer sk-5d1f0c9a77"
    server.faults[RERANK_PATHS[api]] = repeat_the_key
    assert "sk-5d1f0c9a77" not in failure_rerank(reranker).message
