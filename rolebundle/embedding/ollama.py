"""Models of a local Ollama server, through its official client.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from httpx import Request

from rolebundle.contracts.models import ModelIdentity
from rolebundle.embedding.provider import PROBE_TEXT, ProviderSpec, prefixes_for
from rolebundle.embedding.servers import (
    ServerProvider,
    client_settings,
    error_detail,
    local_url,
    permitted_url,
    server_error,
    status_error,
    unreadable_error,
)
from rolebundle.errors import EmbedderError

HOST_ENVIRONMENT = "OLLAMA_HOST"
"""The environment variable with the server's address, as Ollama itself reads it."""

# On import the package sets up a client of its own for this address, which is not used, and fails
# if it does not understand the address, for example `::1`.
_host = os.environ.pop(HOST_ENVIRONMENT, None)
try:
    from ollama import Client, ResponseError
finally:
    if _host is not None:
        os.environ[HOST_ENVIRONMENT] = _host

_PORT = 11434
DEFAULT_URL = f"http://127.0.0.1:{_PORT}"

T = TypeVar("T")


def default_url() -> str:
    """The server that ``$OLLAMA_HOST`` names, or else Ollama's own address on this machine.

    The variable holds ``HOST``, ``HOST:PORT`` or a URL. The port of a URL is that of its scheme if
    it names none. An address that means every address of a machine, such as ``0.0.0.0``, means
    this machine.

    Raises:
        UsageError: ``bad_url``.
    """
    host = os.environ.get(HOST_ENVIRONMENT, "").strip().strip("\"'")
    if not host:
        return DEFAULT_URL
    if "://" not in host:
        address, _, path = host.partition("/")
        if address.count(":") > 1 and not address.startswith("["):
            address = f"[{address}]"
        name, colon, port = address.rpartition(":")
        if not colon or not (port.isdecimal() or not port):
            name, port = address, ""
        host = f"http://{name or '127.0.0.1'}:{port or _PORT}/{path}"
    return local_url(host)


class OllamaProvider(ServerProvider):
    """One model of one Ollama server. The server is first contacted when it is used.

    Args:
        spec: its name, with or without a tag, and the server; see :func:`default_url`.
    """

    texts_per_request = 64

    def __init__(self, spec: ProviderSpec) -> None:
        self._model = spec.model
        self.url = permitted_url(spec.url or default_url(), spec.allow_host)
        self._prefixes = prefixes_for(spec.model, spec.prefixes)
        self._client = Client(
            host=self.url,
            event_hooks={"request": [_remove_key]},
            **client_settings(self.url, spec.deadline_seconds),
        )

    def __repr__(self) -> str:
        return f"OllamaProvider({self._model!r}, {self.url!r})"

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
        return self._call(
            lambda client: client.embed(self._model, list(texts), truncate=False),
            self.context_length,
        ).embeddings

    def _check_unchanged(self) -> None:
        # `ollama pull` may replace the model of that name while this process runs.
        _, digest = self._listed()
        if digest != self.identity.digest:
            raise EmbedderError(
                "model_changed",
                f"the model {self.identity.model} on {self.url} was replaced "
                f"(digest {self.identity.digest}, now {digest})",
                "run `rolebundle corpus embed` again to build an index for the new model",
            )

    def _listed(self) -> tuple[str, str]:
        name = _full_name(self._model).casefold()
        for entry in self._call(lambda client: client.list()).models:
            if entry.model and entry.digest and entry.model.casefold() == name:
                return entry.model, entry.digest
        raise server_error(
            "model_missing", self.url, f"has no model {self._model}", self._pull_hint
        )

    @cached_property
    def _model_card(self) -> Mapping[str, Any]:
        return self._call(lambda client: client.show(self._model)).modelinfo or {}

    def _card_number(self, name: str) -> int | None:
        # The key of the model's own architecture: the card of a multimodal model has others too.
        value = self._model_card.get(f"{self._model_card.get('general.architecture')}.{name}")
        return value if isinstance(value, int) and value > 0 else None

    @property
    def _pull_hint(self) -> str:
        return f"run `ollama pull {self._model}`"

    def _call(self, call: Callable[[Client], T], context: int | None = None) -> T:
        try:
            return call(self._client)
        except ResponseError as error:
            text = error.error if isinstance(error.error, str) else json.dumps(error.error)
            raise status_error(
                error.status_code,
                error_detail(text),
                server=self.url,
                model=self._model,
                missing_hint=self._pull_hint,
                context=context,
            ) from error
        # The client raises these if the answer is not JSON or not of Ollama's form.
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__} while its answer was read"
            raise unreadable_error(self.url, reason) from error


def _full_name(model: str) -> str:
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def _remove_key(request: Request) -> None:
    # The client sends OLLAMA_API_KEY, which is meant for ollama.com, to any host.
    request.headers.pop("authorization", None)
