"""Models of a server with OpenAI's embedding API: llama.cpp, LM Studio, vLLM, and their like.

https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding import replies
from rolebundle.embedding.address import permitted
from rolebundle.embedding.fingerprint import PROBE, fingerprint
from rolebundle.embedding.prefixes import Prefixes, prefixes_for
from rolebundle.embedding.provider import unit_vectors
from rolebundle.embedding.texts import batches, prepared
from rolebundle.errors import ConfigurationError

if TYPE_CHECKING:
    from httpx import Client, Response

    from rolebundle.embedding.provider import Matrix

KEY_VARIABLE = "ROLEBUNDLE_OPENAI_KEY"

# The default limit of text-embeddings-inference; the other servers take as many or more.
_TEXTS_A_REQUEST = 32


class OpenAICompatibleProvider:
    """One model of one server. Nothing is contacted before the first question.

    The key is read from the environment for each request and kept nowhere.

    Args:
        model: its name; empty for the only one that the server has.
        url: the server, with or without ``/v1`` at its end.
        allow_host: the one host off this machine that may be it.
        prefixes: query and passage prefix, instead of those that the model's name implies.
        key_variable: the environment variable that may hold the server's key.
        deadline_seconds: for one request of up to 32 texts, its retries included.
    """

    at_once = 1

    def __init__(
        self,
        model: str,
        url: str,
        *,
        allow_host: str = "",
        prefixes: tuple[str, str] | None = None,
        key_variable: str = KEY_VARIABLE,
        deadline_seconds: float = 60.0,
    ) -> None:
        self._named = model
        self._address = permitted(url.rstrip("/").removesuffix("/v1"), allow_host)
        self._override = prefixes
        self._key_variable = key_variable
        self._deadline_seconds = deadline_seconds

    def __repr__(self) -> str:
        return f"OpenAICompatibleProvider({self._named!r}, {self._address.url!r})"

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, told apart by its vector of one fixed text.

        The API has no digest and no dimensions, and some servers answer to any name with the
        model that they happen to run.
        """
        probed = self._request([PROBE], None)
        dimensions = probed.shape[1]
        return ModelIdentity(
            "openai",
            self._model,
            fingerprint(unit_vectors(probed, 1, dimensions)),
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
            for batch in batches(texts, _TEXTS_A_REQUEST)
        ]
        return np.concatenate([np.zeros((0, dimensions), dtype=np.float32), *rows])

    @cached_property
    def _model(self) -> str:
        if self._named:
            return self._named
        offered = self._offered()
        if len(offered) != 1:
            raise ConfigurationError(
                "model_not_named",
                f"the server at {self._address.url} has {len(offered)} models: "
                f"{', '.join(offered) or 'it lists none'}",
                "name the model, as in openai:MODEL",
            )
        return offered[0]

    @property
    def _prefixes(self) -> Prefixes:
        return prefixes_for(self._model, self._override)

    def _request(self, texts: Sequence[str], dimensions: int | None) -> Matrix:
        answer = self._ask(
            "POST",
            "/v1/embeddings",
            {"model": self._model, "input": list(texts), "encoding_format": "float"},
        )
        rows = _in_order(answer.get("data"), len(texts), self._address.url)
        return replies.as_matrix(rows, len(texts), dimensions, self._address.url)

    def _offered(self) -> list[str]:
        entries = self._ask("GET", "/v1/models").get("data")
        named = [entry.get("id") for entry in entries or [] if isinstance(entry, Mapping)]
        return [name for name in named if isinstance(name, str)]

    @cached_property
    def _client(self) -> Client:
        from rolebundle.embedding.http_guard import guarded_client

        return guarded_client(self._address, self._deadline_seconds)

    def _ask(self, method: str, path: str, body: object = None) -> Mapping[str, Any]:
        answer = self._client.request(method, path, json=body, headers=self._authorization())
        if not answer.is_success:
            raise replies.refusal(
                answer.status_code,
                self._without_key(replies.detail_of(answer.text)),
                server=self._address.url,
                model=self._named,
                missing_hint="load the model in the server, or name one of its /v1/models",
                context=None,
            )
        return self._object(answer)

    def _object(self, answer: Response) -> Mapping[str, Any]:
        try:
            told = answer.json()
        except (ValueError, RecursionError):
            kind = answer.headers.get("content-type", "no content type")
            raise replies.unreadable(
                self._address.url, f"not JSON ({self._without_key(kind)})"
            ) from None
        if not isinstance(told, dict):
            raise replies.unreadable(self._address.url, "JSON, and not an object")
        return told

    def _authorization(self) -> dict[str, str]:
        key = self._key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _key(self) -> str:
        key = os.environ.get(self._key_variable, "").strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigurationError(
                "bad_key",
                f"{self._key_variable} holds characters that no HTTP header may carry",
                f"set {self._key_variable} to the key alone",
            )
        return key

    def _without_key(self, text: str) -> str:
        # A server may quote the key back at us.
        key = self._key()
        return text.replace(key, "[key]") if key else text


def _in_order(data: object, expected: int, server: str) -> list[object]:
    """The vectors of an answer, in the order of the texts."""
    if not isinstance(data, list) or not all(isinstance(entry, Mapping) for entry in data):
        raise replies.unreadable(server, "its answer has no list of vectors")
    # A wrong count is for the caller to say; an order that is not told is not guessed at.
    if len(data) != expected:
        return data
    by_index = {str(entry.get("index")): entry.get("embedding") for entry in data}
    if by_index.keys() != set(map(str, range(expected))):
        raise replies.unreadable(server, "the indexes of its vectors are not those of the texts")
    return [by_index[str(index)] for index in range(expected)]
