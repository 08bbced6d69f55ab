"""Embedding models by name: how a user names one, how a corpus stores it, what is available."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rolebundle.contracts.index import ModelIdentity
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import EmbeddingProvider
    from rolebundle.embedding.rerank_server import RerankServer

QUERY_DEADLINE_SECONDS = 10.0
"""For one request while a query waits. After that only the lexical lane answers."""
PASSAGES_DEADLINE_SECONDS = 60.0
"""For one request with a batch of passages."""

_OLLAMA_PORT = 11434
_OLLAMA_PROBE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """The configuration of an embedding model.

    Args:
        provider: one of :data:`PROVIDERS`.
        model: its name there.
        url: the model server, if the provider has one.
        allow_host: the only host besides this machine that may be that server.
        prefixes: query and passage prefix, instead of those that belong to the model's name.
        key_variable: the environment variable that may hold the server's key.
        deadline_seconds: for one request to the server, including its retries.
    """

    provider: str
    model: str = ""
    url: str = ""
    allow_host: str = ""
    prefixes: tuple[str, str] | None = None
    key_variable: str = "ROLEBUNDLE_OPENAI_KEY"
    deadline_seconds: float = PASSAGES_DEADLINE_SECONDS


def parse_rerank_spec(text: str, url: str = "", allow_host: str = "") -> ProviderSpec:
    """The spec of a cross-encoder in a server.

    Args:
        text: ``rerank`` or ``rerank:MODEL``. A model's name may contain colons.
        url: the address of its server.
        allow_host: the only host besides this machine that may be that server.

    Raises:
        ConfigurationError: ``unknown_provider``.
    """
    provider, _, model = text.strip().partition(":")
    if provider != "rerank":
        raise ConfigurationError(
            "unknown_provider",
            f"{provider!r} cannot rerank",
            "name a cross-encoder in a server: rerank, or with its model rerank:bge-reranker-v2-m3",
        )
    return ProviderSpec(provider, model, url, allow_host)


def rerank_server_for(spec: ProviderSpec) -> RerankServer:
    """The cross-encoder for a spec. No server is contacted.

    Raises:
        ConfigurationError: a setting is missing.
        EmbedderError: the server's host is not permitted.
    """
    from rolebundle.embedding.rerank_server import RerankServer

    _require(spec, "url", "ROLEBUNDLE_RERANK_URL=http://127.0.0.1:8080")
    return RerankServer(
        spec.model,
        spec.url,
        allow_host=spec.allow_host,
        key_variable=spec.key_variable,
        deadline_seconds=spec.deadline_seconds,
    )


def provider_for(spec: ProviderSpec) -> EmbeddingProvider:
    """The provider for a spec. No model is loaded and no server is contacted.

    Raises:
        ConfigurationError: the provider is unknown, or a setting is missing or has no effect.
        EmbedderError: the server's host is not permitted.
    """
    return _factory(spec)(spec)


def _factory(spec: ProviderSpec) -> Callable[[ProviderSpec], EmbeddingProvider]:
    try:
        return _FACTORIES[spec.provider]
    except KeyError:
        raise ConfigurationError(
            "unknown_provider",
            f"there is no embedding provider {spec.provider!r}",
            f"use one of: {', '.join(PROVIDERS)}",
        ) from None


# Each factory imports its provider's module, and with it a heavy library.


def _static(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.static import MODEL, StaticProvider

    _refuse(spec, "prefixes", "url", "allow_host")
    _check_model(spec, MODEL)
    return StaticProvider()


def _onnx(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.onnx import MINILM, MODELS, OnnxProvider

    _refuse(spec, "url", "allow_host")
    _check_model(spec, *MODELS)
    return OnnxProvider(spec.model or MINILM.name, prefixes=spec.prefixes)


def _ollama(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.ollama import OllamaProvider, default_url

    _require(spec, "model", "ollama:nomic-embed-text")
    return OllamaProvider(
        spec.model,
        spec.url or default_url(),
        allow_host=spec.allow_host,
        prefixes=spec.prefixes,
        deadline_seconds=spec.deadline_seconds,
    )


def _openai(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.openai_compatible import OpenAICompatibleProvider

    _require(
        spec,
        "url",
        "ROLEBUNDLE_EMBED_URL=http://127.0.0.1:8080 (llama.cpp; LM Studio: 1234, vLLM: 8000)",
    )
    return OpenAICompatibleProvider(
        spec.model,
        spec.url,
        allow_host=spec.allow_host,
        prefixes=spec.prefixes,
        key_variable=spec.key_variable,
        deadline_seconds=spec.deadline_seconds,
    )


_FACTORIES: dict[str, Callable[[ProviderSpec], EmbeddingProvider]] = {
    "static": _static,
    "onnx": _onnx,
    "ollama": _ollama,
    "openai": _openai,
}

PROVIDERS = tuple(_FACTORIES)
SERVED = frozenset({"ollama", "openai"})
"""The providers whose models run in a server."""


def _check_model(spec: ProviderSpec, *names: str) -> None:
    if spec.model not in {"", *names}:
        raise ConfigurationError(
            "unknown_model",
            f"the provider {spec.provider} has no model {spec.model!r}",
            f"leave the model out, or name {' or '.join(names)}",
        )


def _require(spec: ProviderSpec, setting: str, example: str) -> None:
    if not getattr(spec, setting):
        raise ConfigurationError(
            "provider_setting",
            f"the provider {spec.provider} needs its {setting}",
            f"for example {example}",
        )


def _refuse(spec: ProviderSpec, *settings: str) -> None:
    for setting in settings:
        if getattr(spec, setting):
            raise ConfigurationError(
                "provider_setting",
                f"the provider {spec.provider} has no {setting.replace('_', ' ')}",
                f"remove the setting {setting}, or use another provider",
            )


def spec_to_json(spec: ProviderSpec) -> str:
    """What the corpus stores of a spec. Keys and permitted hosts are not stored."""
    stored: dict[str, object] = {"provider": spec.provider, "model": spec.model}
    if spec.url:
        stored["url"] = spec.url
    if spec.prefixes is not None:
        stored["prefixes"] = list(spec.prefixes)
    return json.dumps(stored, ensure_ascii=False)


def spec_from_json(
    text: str,
    model: ModelIdentity,
    *,
    url: str = "",
    allow_host: str = "",
    deadline_seconds: float = QUERY_DEADLINE_SECONDS,
) -> ProviderSpec:
    """The spec for the model of an index.

    A stored text that is not a JSON object, and stored values of a wrong type, are ignored.

    Args:
        text: what :func:`spec_to_json` stored. The corpus file may come from elsewhere, so nothing
            in it can permit a host besides this machine.
        model: the index's model, for what ``text`` leaves out.
        url: the user's own setting of the server; it takes precedence.
        allow_host: the only host besides this machine that the user permits.
        deadline_seconds: for one request to the server.
    """
    stored = _json_object(text)
    spec = ProviderSpec(
        provider=_text(stored, "provider") or model.provider,
        model="" if model.provider == "static" else _text(stored, "model") or model.model,
        prefixes=_prefixes(stored),
    )
    if spec.provider not in SERVED:
        # This provider has no server, so the user's url and allow_host do not apply.
        return spec
    return replace(
        spec,
        url=url or _text(stored, "url"),
        allow_host=allow_host,
        deadline_seconds=deadline_seconds,
    )


def _json_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(stored: dict[str, object], name: str) -> str:
    value = stored.get(name)
    return value if isinstance(value, str) else ""


def _prefixes(stored: dict[str, object]) -> tuple[str, str] | None:
    value = stored.get("prefixes")
    if isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value):
        return value[0], value[1]
    return None


@dataclass(frozen=True, slots=True)
class AvailableModel:
    """A model that could be used now.

    Args:
        provider: one of :data:`PROVIDERS`.
        model: its name there.
        chunks_per_second: measured or assumed on two cores without a GPU; for estimates only.
        benefit: its measured effect, for the user.
    """

    provider: str
    model: str
    chunks_per_second: float
    benefit: str


_CONTEXTUAL_CHUNKS_PER_SECOND = 25.0
"""The speed of all-MiniLM-L6-v2, which is assumed for the models of a server as well."""


def available_models() -> list[AvailableModel]:
    """Embedding models of an Ollama on this machine."""
    # A bare connection first: most machines have no Ollama, and the HTTP client is slow to import.
    try:
        if not os.environ.get("OLLAMA_HOST"):
            socket.create_connection(("127.0.0.1", _OLLAMA_PORT), _OLLAMA_PROBE_SECONDS).close()
    except OSError:
        return []
    from rolebundle.embedding.model_server import bounded_client, permitted_url
    from rolebundle.embedding.ollama import default_url

    try:
        # Only this machine is asked.
        with bounded_client(permitted_url(default_url()), _OLLAMA_PROBE_SECONDS) as client:
            listed = client.get("/api/tags").json()
        names = [str(model["name"]) for model in listed["models"]]
    except (EmbedderError, UsageError, ValueError, KeyError, TypeError):
        return []
    return [
        AvailableModel(
            "ollama",
            name,
            _CONTEXTUAL_CHUNKS_PER_SECOND,
            "a contextual model; neither its quality nor its speed was measured",
        )
        for name in names
        if any(word in name for word in ("embed", "minilm", "bge", "arctic"))
    ]
