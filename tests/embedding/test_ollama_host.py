"""`OLLAMA_HOST` names the server, as it does for Ollama itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rolebundle.embedding.ollama import default_url
from rolebundle.embedding.registry import ProviderSpec, available_models, provider_for
from rolebundle.errors import EmbedderError, UsageError
from support.embedding_server import MODEL, embedding_server


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
    with pytest.raises(EmbedderError) as caught:
        provider_for(ProviderSpec("ollama", MODEL))
    assert caught.value.code == "host_not_local"
    assert available_models() is not None
    provider_for(ProviderSpec("ollama", MODEL, allow_host="192.0.2.1"))


def test_the_server_that_it_names_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with embedding_server() as server, embedding_server() as named:
        monkeypatch.setenv("OLLAMA_HOST", f"0.0.0.0:{server.port}")
        assert provider_for(ProviderSpec("ollama", MODEL)).identity.provider == "ollama"
        assert available_models()
        assert server.seen
        # An address that the user or the corpus names comes first.
        assert provider_for(ProviderSpec("ollama", MODEL, named.url)).identity
        assert named.seen
