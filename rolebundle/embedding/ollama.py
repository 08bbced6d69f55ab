"""Models of a local Ollama server.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rolebundle.contracts.models import ModelIdentity
from rolebundle.embedding.provider import PROBE_TEXT, ProviderSpec, prefixes_for
from rolebundle.embedding.servers import (
    ModelServer,
    ServerProvider,
    local_url,
    server_error,
    unreadable_error,
)
from rolebundle.errors import EmbedderError

HOST_ENVIRONMENT = "OLLAMA_HOST"
"""The environment variable with the server's address, as Ollama itself reads it."""

_PORT = 11434
DEFAULT_URL = f"http://127.0.0.1:{_PORT}"


def default_url() -> str:
    """The server that ``$OLLAMA_HOST`` names, or else Ollama's own address on this machine.

    The variable holds ``HOST``, ``HOST:PORT`` or a URL. The port of a URL is that of its scheme if
    it names none. An address that means every address of a machine, such as ``0.0.0.0``, means
    this machine.

    Raises:
        UsageError: ``bad_url``.
    """
    host = os.environ.get(HOST_ENVIRONMENT, "").strip()
    if not host or "://" in host:
        return local_url(host) if host else DEFAULT_URL
    address, slash, path = host.partition("/")
    name, colon, port = address.rpartition(":")
    if address.endswith("]") or not colon:
        name, port = address, ""
    return local_url(f"http://{name or '127.0.0.1'}:{port or _PORT}{slash}{path}")


class OllamaProvider(ServerProvider):
    """One model of one Ollama server. The server is first contacted when it is used.

    Args:
        spec: its name, with or without a tag, and the server; see :func:`default_url`.
    """

    texts_per_request = 64

    def __init__(self, spec: ProviderSpec) -> None:
        self._model = spec.model
        self._prefixes = prefixes_for(spec.model, spec.prefixes)
        # Without a key: OLLAMA_API_KEY is meant for ollama.com.
        self.server = ModelServer(
            spec.url or default_url(),
            allow_host=spec.allow_host,
            deadline_seconds=spec.deadline_seconds,
        )

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model under its full name, with the digest that the server reports."""
        name, digest = self._listed()
        dimensions = self._card_number("embedding_length") or self._request([PROBE_TEXT]).shape[1]
        return ModelIdentity("ollama", name, digest, dimensions, *self._prefixes)

    @property
    def context_length(self) -> int | None:
        """The model's context in tokens, or None if the server does not report it."""
        return self._card_number("context_length")

    def _rows(self, texts: Sequence[str]) -> object:
        # By default Ollama cuts a text that is too long, without an error.
        body = {"model": self._model, "input": list(texts), "truncate": False}
        return self._ask("POST", "/api/embed", body, self.context_length).get("embeddings")

    def _check_unchanged(self) -> None:
        # `ollama pull` may replace the model of that name while this process runs.
        _, digest = self._listed()
        if digest != self.identity.digest:
            raise EmbedderError(
                "model_changed",
                f"the model {self.identity.model} on {self.server.url} was replaced "
                f"(digest {self.identity.digest}, now {digest})",
                "run `rolebundle corpus embed` again to build an index for the new model",
            )

    def _listed(self) -> tuple[str, str]:
        """The model's full name, and its digest."""
        entries = self._ask("GET", "/api/tags").get("models")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise unreadable_error(self.server.url, "it has no list of models")
        name = _full_name(self._model).casefold()
        for entry in entries:
            if str(entry.get("model")).casefold() == name and entry.get("digest"):
                return str(entry["model"]), str(entry["digest"])
        what = f"has no model {self._model}"
        raise server_error("model_missing", self.server.url, what, self._pull_hint)

    @cached_property
    def _model_card(self) -> Mapping[str, Any]:
        card = self._ask("POST", "/api/show", {"model": self._model}).get("model_info")
        return card if isinstance(card, dict) else {}

    def _card_number(self, name: str) -> int | None:
        # The key of the model's own architecture: the card of a multimodal model has others too.
        value = self._model_card.get(f"{self._model_card.get('general.architecture')}.{name}")
        return value if isinstance(value, int) and value > 0 else None

    @property
    def _pull_hint(self) -> str:
        return f"run `ollama pull {self._model}`"

    def _ask(
        self, method: str, path: str, body: object = None, context: int | None = None
    ) -> Mapping[str, Any]:
        return self.server.ask(
            method, path, body, model=self._model, missing_hint=self._pull_hint, context=context
        )


def _full_name(model: str) -> str:
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"
