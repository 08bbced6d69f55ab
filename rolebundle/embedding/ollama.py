"""Models of a local Ollama server, through its official client.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import httpx

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding.provider import PROBE_TEXT, ProviderSpec, prefixes_for
from rolebundle.embedding.servers import OLLAMA_HOST, ModelServer, ServerProvider, ollama_url
from rolebundle.errors import EmbedderError

# On import the package sets up a client of its own for this address, which is not used, and fails
# if it does not understand the address.
_host = os.environ.pop(OLLAMA_HOST, None)
try:
    from ollama import Client, ResponseError
finally:
    if _host is not None:
        os.environ[OLLAMA_HOST] = _host

T = TypeVar("T")


class OllamaProvider(ServerProvider):
    """One model of one Ollama server. The server is first contacted when it is used.

    Args:
        spec: its name, with or without a tag, and the server; default: :func:`ollama_url`.
    """

    texts_per_request = 64

    def __init__(self, spec: ProviderSpec) -> None:
        super().__init__(replace(spec, url=spec.url or ollama_url()))
        self._pull_hint = f"run `ollama pull {spec.model}`"
        self._client = Client(self.server.url, transport=_Transport(self.server))

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model under its full name, with the digest that the server reports."""
        name, digest = self._listed()
        dimensions = self._request([PROBE_TEXT]).shape[1]
        return ModelIdentity("ollama", name, digest, dimensions, *prefixes_for(self._model))

    def _rows(self, texts: Sequence[str]) -> object:
        # By default Ollama cuts a text that is too long, without an error.
        return self._call(lambda: self._client.embed(self._model, texts, truncate=False)).embeddings

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
        has_tag = ":" in self._model.rpartition("/")[2]
        name = (self._model if has_tag else f"{self._model}:latest").casefold()
        for entry in self._call(self._client.list).models:
            if entry.model and entry.digest and entry.model.casefold() == name:
                return entry.model, entry.digest
        raise self.server.error("model_missing", f"has no model {self._model}", self._pull_hint)

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except ResponseError as error:
            raise self.server.status_error(
                error.status_code, str(error.error), self._pull_hint
            ) from error
        # The client raises these if the answer is not JSON or not of Ollama's form.
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__} while its answer was read"
            raise self.server.unreadable(reason) from error


class _Transport(httpx.BaseTransport):
    """Sends a client's requests as all model servers are asked: bounded, and without its headers.

    The client would send OLLAMA_API_KEY, which is meant for ollama.com, to any host.
    """

    def __init__(self, server: ModelServer) -> None:
        self._server = server

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        answer = self._server.response(request.method, path, request.read() or None)
        return httpx.Response(answer.status, content=answer.content)
