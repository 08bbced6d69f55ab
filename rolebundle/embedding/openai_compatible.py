"""Models of a server with OpenAI's embedding API, such as llama.cpp, LM Studio and vLLM.

https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.model_server import (
    ServerProvider,
    bounded_client,
    error_detail,
    permitted_url,
    status_error,
    unreadable_error,
)
from rolebundle.embedding.provider import PROBE_TEXT, ProviderSpec, fingerprint, unit_vectors
from rolebundle.embedding.texts import prefixes_for
from rolebundle.errors import ConfigurationError


class OpenAIServer:
    """A server with OpenAI's API. It is first contacted when it is asked.

    The key is read from the environment for each request and not stored.

    Args:
        url: the server, with or without ``/v1`` at its end.
        allow_host: the only host besides this machine that may be the server.
        key_variable: the environment variable that may hold the server's key; empty for none.
        deadline_seconds: for one request, including its retries.

    Raises:
        UsageError: ``bad_url``.
        EmbedderError: ``host_not_local``.
    """

    def __init__(
        self, url: str, *, allow_host: str, key_variable: str, deadline_seconds: float
    ) -> None:
        self.url = permitted_url(url.rstrip("/").removesuffix("/v1"), allow_host)
        self._key_variable = key_variable
        self._client = bounded_client(self.url, deadline_seconds)

    def ask(
        self, method: str, path: str, body: object = None, *, model: str = ""
    ) -> Mapping[str, Any]:
        """The JSON object that the server answers.

        Args:
            method: of HTTP.
            path: from the server's root.
            body: sent as JSON.
            model: the model, for messages; empty for the server's only one.

        Raises:
            EmbedderError: the server failed, or did not answer with an object.
            ConfigurationError: ``bad_key``.
        """
        key = self._key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        response = self._client.request(method, path, json=body, headers=headers)
        if not response.is_success:
            raise status_error(
                response.status_code,
                self._without_key(error_detail(response.text)),
                server=self.url,
                model=model or "its only model",
                missing_hint="load the model in the server, or name one of its /v1/models",
                context=None,
            )
        try:
            content = response.json()
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no content type")
            raise unreadable_error(self.url, f"not JSON ({self._without_key(kind)})") from None
        if not isinstance(content, dict):
            raise unreadable_error(self.url, "JSON, but not an object")
        return content

    def _key(self) -> str:
        key = os.environ.get(self._key_variable, "").strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigurationError(
                "bad_key",
                f"{self._key_variable} holds characters that an HTTP header cannot contain",
                f"set {self._key_variable} to the key alone",
            )
        return key

    def _without_key(self, text: str) -> str:
        # A server may repeat the key in its error.
        key = self._key()
        return text.replace(key, "[key]") if key else text


class OpenAICompatibleProvider(ServerProvider):
    """One model of one server. The server is first contacted when it is used.

    Args:
        spec: its name, empty for the only model of the server; and the server, with or without
            ``/v1`` at its end.
    """

    # The default limit of text-embeddings-inference; other servers accept as many or more.
    texts_per_request = 32

    def __init__(self, spec: ProviderSpec) -> None:
        self._spec = spec
        self._server = server_of(spec)
        self.url = self._server.url

    def __repr__(self) -> str:
        return f"OpenAICompatibleProvider({self._spec.model!r}, {self.url!r})"

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, identified by the fingerprint of its vector for a fixed text.

        The API reports neither a digest nor the dimensions, and some servers accept any name and
        use the model that they run.
        """
        vector = self._request([PROBE_TEXT])
        dimensions = vector.shape[1]
        digest = fingerprint(unit_vectors(vector, 1, dimensions))
        prefixes = prefixes_for(self._model, self._spec.prefixes)
        return ModelIdentity("openai", self._model, digest, dimensions, *prefixes)

    @cached_property
    def _model(self) -> str:
        if self._spec.model:
            return self._spec.model
        entries = self._server.ask("GET", "/v1/models").get("data")
        ids = [entry.get("id") for entry in entries or [] if isinstance(entry, Mapping)]
        names = [name for name in ids if isinstance(name, str)]
        if len(names) != 1:
            raise ConfigurationError(
                "model_not_named",
                f"the server at {self.url} has {len(names)} models: "
                f"{', '.join(names) or 'it lists none'}",
                "name the model, as in openai:MODEL",
            )
        return names[0]

    def _rows(self, texts: Sequence[str]) -> object:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        answer = self._server.ask("POST", "/v1/embeddings", body, model=self._spec.model)
        data = answer.get("data")
        if isinstance(data, list) and len(data) != len(texts):
            return data  # Whoever reads them reports the wrong count.
        return in_order(data, "embedding", len(texts), self.url, "vectors")


def server_of(spec: ProviderSpec) -> OpenAIServer:
    """The server of a spec. It is not contacted."""
    return OpenAIServer(
        spec.url,
        allow_host=spec.allow_host,
        key_variable=spec.key_variable,
        deadline_seconds=spec.deadline_seconds,
    )


def in_order(data: object, key: str, expected: int, server: str, name: str) -> list[object]:
    """The values of the entries of an answer, by their ``index``, which begins with 0.

    Raises:
        EmbedderError: the answer has not exactly one entry for each index.
    """
    if not isinstance(data, list) or not all(isinstance(entry, Mapping) for entry in data):
        raise unreadable_error(server, f"its answer has no list of {name}")
    if len(data) != expected:
        raise unreadable_error(server, f"it has {len(data)} {name} for {expected} texts")
    places = [entry.get("index") for entry in data]
    if not all(type(place) is int for place in places) or sorted(places) != [*range(expected)]:
        raise unreadable_error(server, f"the indexes of its {name} are not those of the texts")
    by_place = dict(zip(places, (entry.get(key) for entry in data), strict=True))
    return [by_place[place] for place in range(expected)]
