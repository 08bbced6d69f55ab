"""Everything that can go wrong with a model server, against real servers on loopback."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from rolebundle.embed import http_guard
from rolebundle.embed.address import permitted
from rolebundle.embed.provider import TEXT_FAULTS, EmbeddingProvider, unit_vectors
from rolebundle.embed.registry import ProviderSpec, provider_for
from rolebundle.errors import ConfigurationError, EmbedderError
from support.embedding_server import (
    EMBED_PATHS,
    MODEL,
    ROUTES,
    EmbeddingServer,
    Handler,
    embedding_server,
    vectors,
)

DEADLINE = 0.6
KEY = "sk-local-5d1f0c9a77"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture(params=list(EMBED_PATHS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def provider(kind: str, server: EmbeddingServer) -> EmbeddingProvider:
    """A provider that knows its model already: what goes wrong from here on, goes wrong later."""
    made = provider_for(ProviderSpec(kind, MODEL, server.url, deadline_seconds=DEADLINE))
    assert made.identity.dimensions == 8
    server.seen.clear()
    return made


Break = Callable[[Callable[[Handler], None]], None]


@pytest.fixture
def breaks(kind: str, server: EmbeddingServer) -> Break:
    """Makes the server answer requests for vectors in some other way."""

    def on_embed(fault: Callable[[Handler], None]) -> None:
        server.faults[EMBED_PATHS[kind]] = fault

    return on_embed


def failure(provider: EmbeddingProvider, texts: tuple[str, ...] = ("one", "two")) -> EmbedderError:
    """The coded error of embedding, soundness of the vectors included."""
    with pytest.raises(EmbedderError) as caught:
        unit_vectors(provider.embed_passages(texts), len(texts), provider.identity.dimensions)
    assert caught.value.hint
    return caught.value


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


def answer(handler: Handler, rows: list[object]) -> None:
    if handler.path == EMBED_PATHS["ollama"]:
        handler.json({"embeddings": rows})
    else:
        handler.json({"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]})


# The way to the server


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_server_that_is_down(kind: str):
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


def test_a_connection_reset_is_retried_then_said(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Break
):
    breaks(Handler.reset)
    assert failure(provider).code == "embedder_down"
    assert len(server.seen) == 3


def test_a_hang_up_without_an_answer_is_as_down(provider: EmbeddingProvider, breaks: Break):
    def hang_up(handler: Handler) -> None:
        handler.close_connection = True

    breaks(hang_up)
    assert failure(provider).code == "embedder_down"


def test_an_answer_that_breaks_off(provider: EmbeddingProvider, breaks: Break):
    def half(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"embeddings": [[0.1, ')
        handler.close_connection = True

    breaks(half)
    assert failure(provider).code == "bad_response"


def test_an_answer_that_is_not_http(provider: EmbeddingProvider, breaks: Break):
    def other_protocol(handler: Handler) -> None:
        handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        handler.close_connection = True

    breaks(other_protocol)
    assert failure(provider).code == "bad_response"


def test_localhost_is_reached_wherever_it_listens(kind: str, server: EmbeddingServer):
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
    # One byte just before the deadline must not buy the time of another read.
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.pour(b" ", pause=DEADLINE * 0.9)


@pytest.mark.parametrize("fault", [slow, drip_headers, drip_body, late_drip])
def test_the_deadline_covers_the_whole_answer(
    provider: EmbeddingProvider, breaks: Break, fault: Callable[[Handler], None]
):
    breaks(fault)
    with within(DEADLINE + 1):
        error = failure(provider)
    assert error.code == "embedder_timeout"
    assert f"{DEADLINE:g} seconds" in error.message


def test_the_deadline_covers_a_request_that_nobody_reads():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = permitted(f"http://127.0.0.1:{listener.getsockname()[1]}")
        client = http_guard.guarded_client(address, DEADLINE)
        with within(DEADLINE + 1), pytest.raises(EmbedderError) as caught:
            client.post("/v1/embeddings", content=b"x" * 50_000_000)
    assert caught.value.code == "embedder_timeout"


def test_the_deadline_covers_retries_and_their_pauses(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Break
):
    breaks(lambda handler: handler.json({}, 503))
    with within(DEADLINE + 1):
        assert failure(provider).code == "server_busy"
    # At 0, 0.1 and 0.4 seconds; the next would be past the deadline.
    assert 2 <= len(server.seen) <= 3


# What is worth another try


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Break, kind: str, status: int
):
    def busy_once(handler: Handler) -> None:
        path = EMBED_PATHS[kind]
        if len(server.asked(path)) == 1:
            handler.json({"error": "busy"}, status)
        else:
            ROUTES[path](handler)

    breaks(busy_once)
    assert provider.embed_passages(["one", "two"]).shape == (2, 8)
    assert len(server.seen) == (3 if kind == "ollama" else 2)  # with the check for a new digest


def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Break
):
    breaks(lambda handler: handler.json({"error": "busy"}, 429, Retry_After="30"))
    with within(0.3):
        assert failure(provider).code == "server_busy"
    assert len(server.seen) == 1


# The answer


@pytest.mark.parametrize("status", [200, 500])
def test_html(provider: EmbeddingProvider, breaks: Break, status: int):
    page = "<!doctype html><title>Router login</title>"
    breaks(lambda handler: handler.text(page, status, "text/html"))
    error = failure(provider)
    assert error.code == ("bad_response" if status == 200 else "server_error")
    assert "Router" not in str(error)


def test_status_500(server: EmbeddingServer, provider: EmbeddingProvider, breaks: Break):
    breaks(lambda handler: handler.json({"error": "runner\nprocess has\x1b[31m terminated"}, 500))
    error = failure(provider)
    assert error.code == "server_error"
    assert "runner process has [31m terminated" in error.message
    assert len(server.seen) == 1


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
def test_answers_that_are_no_vectors(
    provider: EmbeddingProvider, breaks: Break, body: str, status: int
):
    breaks(lambda handler: handler.text(body, status, "application/json"))
    expected = {"bad_response"} if status == 200 else {"bad_response", "request_refused"}
    assert failure(provider).code in expected


def test_garbage_where_the_model_is_asked_for(kind: str, server: EmbeddingServer):
    for path in ROUTES:
        server.faults[path] = lambda handler: handler.text('{"models": 3, "data": [3]}')
    provider = provider_for(ProviderSpec(kind, MODEL, server.url))
    assert failure(provider).code == "bad_response"


def test_an_endless_body_is_cut_off(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Break
):
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.pour(b" " * 65536)

    provider.__dict__.pop("_client", None)
    provider._deadline_seconds = 10.0
    breaks(endless)
    assert failure(provider).code == "response_too_large"
    # What was sent and not taken lay in the sockets' buffers.
    assert server.sent < http_guard.MOST_BYTES + (16 << 20)


def test_a_compressed_answer_is_refused(
    server: EmbeddingServer, provider: EmbeddingProvider, breaks: Break
):
    breaks(lambda handler: handler.text("x", 200, Content_Encoding="gzip"))
    assert failure(provider).code == "bad_response"
    assert {seen.headers["accept-encoding"] for seen in server.seen} == {"identity"}


def test_a_missing_model(kind: str, server: EmbeddingServer):
    provider = provider_for(ProviderSpec(kind, "bge-m3", server.url))
    error = failure(provider)
    assert error.code == "model_missing"
    assert "bge-m3" in error.message
    if kind == "ollama":
        assert error.hint == "run `ollama pull bge-m3`"


def test_a_model_that_goes_missing(provider: EmbeddingProvider, breaks: Break):
    breaks(lambda handler: handler.json({"error": f'model "{MODEL}" not found'}, 404))
    assert failure(provider).code == "model_missing"


def test_a_url_that_is_no_model_server(provider: EmbeddingProvider, breaks: Break):
    breaks(lambda handler: handler.text("404 page not found", 404))
    assert failure(provider).code == "request_refused"


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
def test_a_text_over_the_context(
    provider: EmbeddingProvider, breaks: Break, kind: str, status: int, words: str
):
    told = words if kind == "ollama" else {"message": words}
    breaks(lambda handler: handler.json({"error": told}, status))
    error = failure(provider)
    assert error.code == "input_too_long"
    assert error.code in TEXT_FAULTS
    assert ("2048 tokens" in error.message) == (kind == "ollama")


def test_a_redirect_is_not_followed(provider: EmbeddingProvider, breaks: Break, kind: str):
    with embedding_server() as elsewhere:
        target = f"{elsewhere.url}{EMBED_PATHS[kind]}"
        for status in (301, 302, 303, 307, 308):
            breaks(lambda handler, status=status: handler.text("", status, Location=target))
            assert failure(provider).code == "redirect_refused"
        assert elsewhere.seen == []


# The vectors


def test_fewer_vectors_than_texts(provider: EmbeddingProvider, breaks: Break):
    breaks(lambda handler: answer(handler, vectors(handler)[:1]))
    error = failure(provider)
    assert error.code == "embedding_count"
    assert "1 vectors for 2 texts" in error.message


def test_more_vectors_than_texts(provider: EmbeddingProvider, breaks: Break):
    breaks(lambda handler: answer(handler, vectors(handler) * 2))
    assert failure(provider).code == "embedding_count"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_a_vector_that_is_not_finite(provider: EmbeddingProvider, breaks: Break, value: float):
    breaks(lambda handler: answer(handler, [[value] * 8, [1.0] * 8]))
    assert failure(provider).code == "embedding_not_finite"


def test_null_for_a_number(provider: EmbeddingProvider, breaks: Break):
    breaks(lambda handler: answer(handler, [[None] * 8, [1.0] * 8]))
    assert failure(provider).code in {"embedding_not_finite", "bad_response"}


def test_a_zero_vector(provider: EmbeddingProvider, breaks: Break):
    breaks(lambda handler: answer(handler, [[1.0] * 8, [0.0] * 8]))
    assert failure(provider).code == "embedding_zero"


@pytest.mark.parametrize("lengths", [(7, 7), (8, 7), (0, 0), (8, 0)])
def test_a_wrong_dimension(provider: EmbeddingProvider, breaks: Break, lengths: tuple[int, int]):
    breaks(lambda handler: answer(handler, [[1.0] * length for length in lengths]))
    assert failure(provider).code == "embedding_dimensions"


def test_another_model_behind_the_same_name(kind: str, server: EmbeddingServer):
    spec = ProviderSpec(kind, MODEL, server.url)
    before = provider_for(spec).identity
    server.digest = "f" * 64
    server.faults["/v1/embeddings"] = lambda handler: answer(
        handler, [vector[::-1] for vector in vectors(handler)]
    )
    after = provider_for(spec).identity
    assert before.digest != after.digest
    assert before.model == after.model


def test_a_model_that_changes_while_the_process_runs(server: EmbeddingServer):
    provider = provider_for(ProviderSpec("ollama", MODEL, server.url))
    provider.embed_queries(["text"])
    server.digest = "f" * 64
    assert failure(provider).code == "model_changed"


# Where it may go


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "10.0.0.8", "0.0.0.0", "gpu.example", "[2001:db8::1]"]
)
def test_another_host_is_refused_without_a_question(
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


def test_a_localhost_that_lies_is_refused_without_a_connection(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: elsewhere)
    monkeypatch.setattr(
        socket, "create_connection", lambda *args, **kwargs: pytest.fail("connected")
    )
    provider = provider_for(ProviderSpec(kind, MODEL, "http://localhost:11434"))
    assert failure(provider).code == "host_not_local"


def test_the_host_that_the_configuration_names_is_used(
    kind: str, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    here = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: here)
    url = f"http://gpu.example:{server.port}"
    provider = provider_for(ProviderSpec(kind, MODEL, url, allow_host="GPU.example"))
    assert provider.identity.dimensions == 8
    assert {seen.headers["Host"] for seen in server.seen} == {f"gpu.example:{server.port}"}


def test_no_proxy_and_no_host_from_the_environment(
    kind: str, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    nowhere = f"http://127.0.0.1:{closed_port()}"
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OLLAMA_HOST"):
        monkeypatch.setenv(name, nowhere)
    assert provider_for(ProviderSpec(kind, MODEL, server.url)).identity.dimensions == 8


# The key


def test_the_key_is_sent_and_never_shown(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", KEY)
    provider = provider_for(ProviderSpec("openai", MODEL, server.url))
    provider.embed_queries(["text"])
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {KEY}"}

    shown = [repr(provider), repr(vars(provider)), repr(provider.identity), caplog.text]
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
        shown += [str(error), repr(error), repr(error.__cause__), repr(vars(error))]
    assert not [text for text in shown if KEY in text]


def test_the_key_is_read_anew_for_each_request(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTHER_KEY", KEY)
    provider = provider_for(ProviderSpec("openai", MODEL, server.url, key_variable="OTHER_KEY"))
    _ = provider.identity
    monkeypatch.delenv("OTHER_KEY")
    provider.embed_queries(["text"])
    assert "Authorization" not in server.seen[-1].headers


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_may_carry_is_not_shown_either(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, key: str
):
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", key)
    with pytest.raises(ConfigurationError) as caught:
        _ = provider_for(ProviderSpec("openai", MODEL, server.url)).identity
    assert caught.value.code == "bad_key"
    assert key not in str(caught.value)
    assert server.seen == []


def test_a_refused_key(server: EmbeddingServer):
    server.faults["/v1/embeddings"] = lambda handler: handler.json({"error": "no"}, 401)
    provider = provider_for(ProviderSpec("openai", MODEL, server.url))
    assert failure(provider).code == "key_refused"


def test_ollamas_own_key_goes_to_no_local_server(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    provider_for(ProviderSpec("ollama", MODEL, server.url)).embed_queries(["text"])
    assert not [seen for seen in server.seen if "authorization" in map(str.lower, seen.headers)]


# Requests


def test_requests_are_batched_and_prefixed(
    kind: str, server: EmbeddingServer, provider: EmbeddingProvider
):
    texts = [f"text {'again ' * number}" for number in range(70)]
    found = provider.embed_passages(texts)
    sent = [body["input"] for body in server.asked(EMBED_PATHS[kind])]
    assert [len(batch) for batch in sent] == ([64, 6] if kind == "ollama" else [32, 32, 6])
    assert [text for batch in sent for text in batch] == [f"search_document: {t}" for t in texts]
    assert np.array_equal(found[65:66], provider.embed_passages(texts[65:66]))


def test_the_only_model_of_a_server_needs_no_name(server: EmbeddingServer):
    provider = provider_for(ProviderSpec("openai", url=f"{server.url}/v1/"))
    assert provider.identity.model == MODEL
    server.faults["/v1/models"] = lambda handler: handler.json({"data": [{"id": "a"}, {"id": "b"}]})
    with pytest.raises(ConfigurationError, match="2 models: a, b"):
        _ = provider_for(ProviderSpec("openai", url=server.url)).identity


def test_one_provider_may_be_used_by_many_threads(provider: EmbeddingProvider):
    from concurrent.futures import ThreadPoolExecutor

    texts = [f"text {'again ' * number}" for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: provider.embed_queries([text])[0], texts))
    assert np.array_equal(np.array(rows), provider.embed_queries(texts))
