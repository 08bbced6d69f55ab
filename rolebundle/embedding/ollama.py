"""Models of a local Ollama server, through its official client.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from httpx import Request

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.model_server import (
    client_settings,
    error_detail,
    local_url,
    missing_model_error,
    permitted_url,
    status_error,
    unreadable_error,
    vectors_matrix,
)
from rolebundle.embedding.provider import PROBE_TEXT
from rolebundle.embedding.texts import batches, prefixes_for, prepared
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

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
_MAX_TEXTS_PER_REQUEST = 64

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


class OllamaProvider:
    """One model of one Ollama server. The server is first contacted when it is used.

    Args:
        model: its name, with or without a tag.
        url: the server; see :func:`default_url`.
        allow_host: the only host besides this machine that may be the server.
        prefixes: query and passage prefix, instead of those that belong to the model's name.
        deadline_seconds: for one request of up to 64 texts, including its retries.
    """

    parallel_batches = 1
    batch_size = 512

    def __init__(
        self,
        model: str,
        url: str,
        *,
        allow_host: str,
        prefixes: tuple[str, str] | None,
        deadline_seconds: float,
    ) -> None:
        self._model = model
        self._url = permitted_url(url, allow_host)
        self._prefixes = prefixes_for(model, prefixes)
        self._client = Client(
            host=self._url,
            event_hooks={"request": [_remove_key]},
            **client_settings(self._url, deadline_seconds),
        )

    def __repr__(self) -> str:
        return f"OllamaProvider({self._model!r}, {self._url!r})"

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model under its full name, with the digest that the server reports."""
        name, digest = self._listed()
        return ModelIdentity(
            "ollama",
            name,
            digest,
            self._card_number("embedding_length") or self._request([PROBE_TEXT], None).shape[1],
            self._prefixes.query,
            self._prefixes.passage,
        )

    @property
    def context_length(self) -> int | None:
        """The model's context in tokens, or None if the server does not report it."""
        return self._card_number("context_length")

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(prepared(texts, self._prefixes.passage))

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(prepared(texts, self._prefixes.query))

    def _embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        dimensions = self.identity.dimensions
        empty = np.zeros((0, dimensions), dtype=np.float32)
        if not texts:
            return empty
        rows = [
            self._request(batch, dimensions) for batch in batches(texts, _MAX_TEXTS_PER_REQUEST)
        ]
        self._check_unchanged()
        return np.concatenate([empty, *rows])

    def _request(self, texts: Sequence[str], dimensions: int | None) -> Matrix:
        # By default Ollama cuts a text that is too long, without an error.
        response = self._call(
            lambda client: client.embed(self._model, list(texts), truncate=False),
            self.context_length,
        )
        return vectors_matrix(response.embeddings, len(texts), dimensions, self._url)

    def _check_unchanged(self) -> None:
        # `ollama pull` may replace the model of that name while this process runs.
        _, digest = self._listed()
        if digest != self.identity.digest:
            raise EmbedderError(
                "model_changed",
                f"the model {self.identity.model} on {self._url} was replaced "
                f"(digest {self.identity.digest}, now {digest})",
                "run `rolebundle corpus embed` again to build an index for the new model",
            )

    def _listed(self) -> tuple[str, str]:
        name = _full_name(self._model).casefold()
        for entry in self._call(lambda client: client.list()).models:
            if entry.model and entry.digest and entry.model.casefold() == name:
                return entry.model, entry.digest
        raise missing_model_error(self._url, self._model, self._pull_hint)

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
            raise status_error(
                error.status_code,
                error_detail(_error_text(error.error)),
                server=self._url,
                model=self._model,
                missing_hint=self._pull_hint,
                context=context,
            ) from error
        # The client raises these if the answer is not JSON or not of Ollama's form.
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__} while its answer was read"
            raise unreadable_error(self._url, reason) from error


def _full_name(model: str) -> str:
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def _error_text(error: object) -> str:
    return error if isinstance(error, str) else json.dumps(error)


def _remove_key(request: Request) -> None:
    # The client sends OLLAMA_API_KEY, which is meant for ollama.com, to any host.
    request.headers.pop("authorization", None)
