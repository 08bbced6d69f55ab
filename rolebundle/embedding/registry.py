"""From the name of a model to its provider, importing that provider's module and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolebundle.errors import ConfigurationError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import EmbeddingProvider


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """What a configuration says about an embedding model.

    Args:
        provider: one of :data:`PROVIDERS`.
        model: its name there; a folder for ``sentence-transformers``.
        url: the model server, where the provider has one.
        allow_host: the one host off this machine that may be that server.
        prefixes: query and passage prefix, instead of those that the model's name implies.
        key_variable: the environment variable that may hold the server's key.
        deadline_seconds: for one request to the server, its retries included.
    """

    provider: str
    model: str = ""
    url: str = ""
    allow_host: str = ""
    prefixes: tuple[str, str] | None = None
    key_variable: str = "ROLEBUNDLE_OPENAI_KEY"
    deadline_seconds: float = 60.0


def parse_spec(text: str) -> ProviderSpec:
    """The spec that ``PROVIDER`` or ``PROVIDER:MODEL`` names; a model's name may hold colons.

    Raises:
        ConfigurationError: there is no such provider.
    """
    provider, _, model = text.strip().partition(":")
    spec = ProviderSpec(provider, model)
    _factory(spec)
    return spec


def provider_for(spec: ProviderSpec) -> EmbeddingProvider:
    """The provider of a spec. No model is loaded and no server contacted yet.

    Raises:
        ConfigurationError: no such provider, or a setting that it needs or does not know.
        EmbedderError: a server on a host that is not permitted.
    """
    return _factory(spec)(spec)


def names_folder(text: str) -> bool:
    """Whether ``PROVIDER:MODEL`` names a folder of this machine, and no model that comes packaged.

    Raises:
        ConfigurationError: there is no such provider.
    """
    spec = parse_spec(text)
    if spec.provider != "sentence-transformers":
        return False
    from rolebundle.embedding.sentence_transformers import PACKAGED

    return spec.model not in PACKAGED


def _factory(spec: ProviderSpec) -> Callable[[ProviderSpec], EmbeddingProvider]:
    try:
        return _FACTORIES[spec.provider]
    except KeyError:
        raise ConfigurationError(
            "unknown_provider",
            f"there is no embedding provider {spec.provider!r}",
            f"use one of: {', '.join(PROVIDERS)}; with its model, as in ollama:nomic-embed-text",
        ) from None


def _static(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.static import MODEL, StaticProvider

    _refuse(spec, "prefixes", "url", "allow_host")
    if spec.model not in {"", MODEL}:
        raise ConfigurationError(
            "unknown_model",
            f"the provider static has no model {spec.model!r}",
            f"leave the model out, or name {MODEL}",
        )
    return StaticProvider()


def _ollama(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.ollama import DEFAULT_URL, OllamaProvider

    _require(spec, "model", "ollama:nomic-embed-text")
    return OllamaProvider(
        spec.model,
        spec.url or DEFAULT_URL,
        allow_host=spec.allow_host,
        prefixes=spec.prefixes,
        deadline_seconds=spec.deadline_seconds,
    )


def _openai(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.openai_compatible import OpenAICompatibleProvider

    _require(spec, "url", "http://127.0.0.1:8080 (llama.cpp), :1234 (LM Studio), :8000 (vLLM)")
    return OpenAICompatibleProvider(
        spec.model,
        spec.url,
        allow_host=spec.allow_host,
        prefixes=spec.prefixes,
        key_variable=spec.key_variable,
        deadline_seconds=spec.deadline_seconds,
    )


def _sentence_transformers(spec: ProviderSpec) -> EmbeddingProvider:
    from rolebundle.embedding.sentence_transformers import SentenceTransformersProvider

    _refuse(spec, "url", "allow_host")
    _require(spec, "model", "sentence-transformers:all-MiniLM-L6-v2")
    return SentenceTransformersProvider(spec.model, prefixes=spec.prefixes)


_FACTORIES: dict[str, Callable[[ProviderSpec], EmbeddingProvider]] = {
    "static": _static,
    "ollama": _ollama,
    "openai": _openai,
    "sentence-transformers": _sentence_transformers,
}

PROVIDERS = tuple(_FACTORIES)
SERVED = frozenset({"ollama", "openai"})
"""Those whose models run in a server."""


def _require(spec: ProviderSpec, setting: str, example: str) -> None:
    if not getattr(spec, setting):
        raise ConfigurationError(
            "provider_setting",
            f"the provider {spec.provider} needs its {setting}",
            f"for example {example}",
        )


def _refuse(spec: ProviderSpec, *settings: str) -> None:
    # A setting that nobody reads would be a promise not kept.
    for setting in settings:
        if getattr(spec, setting):
            raise ConfigurationError(
                "provider_setting",
                f"the provider {spec.provider} has no {setting.replace('_', ' ')}",
                f"take the setting {setting} away, or use another provider",
            )
