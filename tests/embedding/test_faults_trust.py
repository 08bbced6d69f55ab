"""Texts and keys are sent only to the configured server."""

from __future__ import annotations

import io
import logging
import socket

import pytest

from rolebundle.embedding.registry import ProviderSpec, provider_for
from rolebundle.errors import ConfigurationError, EmbedderError
from support.embedding_faults import closed_port, failure
from support.embedding_server import (
    MODEL,
    EmbeddingServer,
)

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
