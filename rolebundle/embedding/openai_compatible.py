"""Models of a server with OpenAI's embedding API, such as llama.cpp, LM Studio and vLLM.

https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.model_server import (
    bounded_client,
    error_detail,
    permitted_url,
    status_error,
    unreadable_error,
    vectors_matrix,
)
from rolebundle.embedding.provider import PROBE_TEXT, fingerprint, unit_vectors
from rolebundle.embedding.texts import Prefixes, batches, prefixes_for, prepared
from rolebundle.errors import ConfigurationError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

# The default limit of text-embeddings-inference; other servers accept as many or more.
_MAX_TEXTS_PER_REQUEST = 32


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
        response = self._client.request(method, path, json=body, headers=self._authorization())
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

    def _authorization(self) -> dict[str, str]:
        key = self._key()
        return {"Authorization": f"Bearer {key}"} if key else {}

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


class OpenAICompatibleProvider:
    """One model of one server. The server is first contacted when it is used.

    Args:
        model: its name; empty for the only model of the server.
        url: the server, with or without ``/v1`` at its end.
        allow_host: the only host besides this machine that may be the server.
        prefixes: query and passage prefix, instead of those that belong to the model's name.
        key_variable: the environment variable that may hold the server's key.
        deadline_seconds: for one request of up to 32 texts, including its retries.
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
        key_variable: str,
        deadline_seconds: float,
    ) -> None:
        self._configured_model = model
        self._configured_prefixes = prefixes
        self._server = OpenAIServer(
            url,
            allow_host=allow_host,
            key_variable=key_variable,
            deadline_seconds=deadline_seconds,
        )

    def __repr__(self) -> str:
        return f"OpenAICompatibleProvider({self._configured_model!r}, {self._server.url!r})"

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, identified by the fingerprint of its vector for a fixed text.

        The API reports neither a digest nor the dimensions, and some servers accept any name and
        use the model that they run.
        """
        vector = self._request([PROBE_TEXT], None)
        dimensions = vector.shape[1]
        return ModelIdentity(
            "openai",
            self._model,
            fingerprint(unit_vectors(vector, 1, dimensions)),
            dimensions,
            self._prefixes.query,
            self._prefixes.passage,
        )

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._prefixes.passage)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._prefixes.query)

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        import numpy as np

        dimensions = self.identity.dimensions
        rows = [
            self._request(prepared(batch, prefix), dimensions)
            for batch in batches(texts, _MAX_TEXTS_PER_REQUEST)
        ]
        return np.concatenate([np.zeros((0, dimensions), dtype=np.float32), *rows])

    @cached_property
    def _model(self) -> str:
        if self._configured_model:
            return self._configured_model
        names = self._listed_models()
        if len(names) != 1:
            raise ConfigurationError(
                "model_not_named",
                f"the server at {self._server.url} has {len(names)} models: "
                f"{', '.join(names) or 'it lists none'}",
                "name the model, as in openai:MODEL",
            )
        return names[0]

    @property
    def _prefixes(self) -> Prefixes:
        return prefixes_for(self._model, self._configured_prefixes)

    def _request(self, texts: Sequence[str], dimensions: int | None) -> Matrix:
        content = self._server.ask(
            "POST",
            "/v1/embeddings",
            {"model": self._model, "input": list(texts), "encoding_format": "float"},
            model=self._configured_model,
        )
        rows = _in_order(content.get("data"), len(texts), self._server.url)
        return vectors_matrix(rows, len(texts), dimensions, self._server.url)

    def _listed_models(self) -> list[str]:
        entries = self._server.ask("GET", "/v1/models").get("data")
        names = [entry.get("id") for entry in entries or [] if isinstance(entry, Mapping)]
        return [name for name in names if isinstance(name, str)]


def _in_order(data: object, expected: int, server: str) -> list[object]:
    """The vectors of an answer, in the order of the texts."""
    if not isinstance(data, list) or not all(isinstance(entry, Mapping) for entry in data):
        raise unreadable_error(server, "its answer has no list of vectors")
    # The caller reports a wrong count.
    if len(data) != expected:
        return data
    by_index = {str(entry.get("index")): entry.get("embedding") for entry in data}
    if by_index.keys() != set(map(str, range(expected))):
        raise unreadable_error(server, "the indexes of its vectors are not those of the texts")
    return [by_index[str(index)] for index in range(expected)]
