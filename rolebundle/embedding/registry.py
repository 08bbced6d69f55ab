"""Embedding models by name: how a user names one, how a corpus stores it, what is available."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding.provider import QUERY_DEADLINE_SECONDS, EmbeddingProvider, ProviderSpec
from rolebundle.embedding.static import MODEL, StaticProvider
from rolebundle.errors import ConfigurationError

if TYPE_CHECKING:
    from rolebundle.embedding.folder import FolderCrossEncoder
    from rolebundle.embedding.servers import RerankServer


def parse_spec(text: str, url: str = "", allow_host: str = "") -> ProviderSpec:
    """The spec of a model, ``PROVIDER[:NAME]`` or ``folder:PATH``. A name may contain colons."""
    provider, _, model = text.strip().partition(":")
    if provider == "folder" and model:
        model = os.path.abspath(os.path.expanduser(model))  # noqa: PTH100, PTH111 - never raise
    return ProviderSpec(provider, model, url, allow_host)


def parse_rerank_spec(text: str, url: str = "", allow_host: str = "") -> ProviderSpec:
    """The spec of a cross-encoder in a server or in a folder.

    Args:
        text: ``rerank``, ``rerank:MODEL`` or ``folder:PATH``.
        url: the address of its server.
        allow_host: the only host besides this machine that may be that server.

    Raises:
        ConfigurationError: ``unknown_provider``.
    """
    spec = parse_spec(text, url, allow_host)
    if spec.provider not in ("rerank", "folder"):
        raise ConfigurationError(
            "unknown_provider",
            f"{spec.provider!r} cannot rerank",
            "name a cross-encoder in a folder, folder:PATH, or in a server: rerank, or with its "
            "model rerank:bge-reranker-v2-m3",
        )
    return spec


def cross_encoder_for(spec: ProviderSpec) -> RerankServer | FolderCrossEncoder:
    """The cross-encoder for a spec, from its folder or its server, which is not contacted yet.

    Raises:
        ConfigurationError: a setting is missing.
        EmbedderError: the server's host is not permitted, or the folder cannot be used.
    """
    if spec.provider == "folder":
        from rolebundle.embedding.folder import cross_encoder

        _require(spec, "model", "folder:models/ms-marco-MiniLM-L6-v2")
        return cross_encoder(spec.model)
    from rolebundle.embedding.servers import RerankServer

    _require(spec, "url", "ROLEBUNDLE_RERANK_URL=http://127.0.0.1:8080")
    return RerankServer(spec)


def provider_for(spec: ProviderSpec) -> EmbeddingProvider:
    """The provider for a spec. No model is loaded and no server is contacted.

    Raises:
        ConfigurationError: the provider is unknown, or a setting is missing.
        EmbedderError: the server's host is not permitted.
    """
    # The others are imported here, and with each of them a heavy library.
    match spec.provider:
        case "static":
            _check_model(spec, MODEL)
            return StaticProvider()
        case "onnx":
            from rolebundle.embedding.packaged import MINILM, MODELS, PackagedProvider

            _check_model(spec, *MODELS)
            return PackagedProvider(spec.model or MINILM.name)
        case "folder":
            from rolebundle.embedding.folder import sentence_model
            from rolebundle.embedding.packaged import EncoderProvider

            _require(spec, "model", "folder:models/bge-small-en-v1.5")
            return EncoderProvider(lambda: sentence_model(Path(spec.model)))
        case "ollama":
            from rolebundle.embedding.ollama import OllamaProvider

            _require(spec, "model", "ollama:nomic-embed-text")
            return OllamaProvider(spec)
        case "openai":
            from rolebundle.embedding.servers import OpenAICompatibleProvider

            example = "http://127.0.0.1:8080 (llama.cpp; LM Studio: 1234, vLLM: 8000)"
            _require(spec, "url", f"ROLEBUNDLE_EMBED_URL={example}")
            _require(spec, "model", "openai:nomic-embed-text")
            return OpenAICompatibleProvider(spec)
    raise ConfigurationError(
        "unknown_provider",
        f"there is no embedding provider {spec.provider!r}",
        f"use one of: {', '.join(PROVIDERS)}",
    )


PROVIDERS = ("static", "onnx", "folder", "ollama", "openai")
IN_PROCESS = frozenset({"onnx", "folder"})
"""The providers whose contextual models run in this process."""
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


def spec_to_json(spec: ProviderSpec) -> str:
    """What the corpus stores of a spec. Keys and permitted hosts are not stored."""
    stored = {"provider": spec.provider, "model": spec.model}
    stored |= {"url": spec.url} if spec.url else {}
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
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    stored = value.items() if isinstance(value, dict) else ()
    texts = {name: item for name, item in stored if isinstance(item, str)}
    provider = texts.get("provider") or model.provider
    name = "" if model.provider == "static" else texts.get("model") or model.model
    if provider not in SERVED:
        # This provider has no server, so the user's url and allow_host do not apply.
        return ProviderSpec(provider, name)
    return ProviderSpec(provider, name, url or texts.get("url", ""), allow_host, deadline_seconds)
