"""Models of a local Ollama server, through its official client.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding import replies
from rolebundle.embedding.address import permitted
from rolebundle.embedding.fingerprint import PROBE
from rolebundle.embedding.prefixes import prefixes_for
from rolebundle.embedding.texts import batches, prepared
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from httpx import Request
    from ollama import Client

    from rolebundle.embedding.provider import Matrix

DEFAULT_URL = "http://127.0.0.1:11434"
_TEXTS_A_REQUEST = 64

T = TypeVar("T")


class OllamaProvider:
    """One model of one Ollama server. Nothing is contacted before the first question.

    Args:
        model: its name, with or without a tag.
        url: the server; OLLAMA_HOST is not read.
        allow_host: the one host off this machine that may be it.
        prefixes: query and passage prefix, instead of those that the model's name implies.
        deadline_seconds: for one request of up to 64 texts, its retries included.
    """

    at_once = 1

    def __init__(
        self,
        model: str,
        url: str = DEFAULT_URL,
        *,
        allow_host: str = "",
        prefixes: tuple[str, str] | None = None,
        deadline_seconds: float = 60.0,
    ) -> None:
        self._model = model
        self._address = permitted(url, allow_host)
        self._prefixes = prefixes_for(model, prefixes)
        self._deadline_seconds = deadline_seconds

    def __repr__(self) -> str:
        return f"OllamaProvider({self._model!r}, {self._address.url!r})"

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model under its full name, with the digest that the server has for it."""
        name, digest = self._listed()
        return ModelIdentity(
            "ollama",
            name,
            digest,
            self._told("embedding_length") or self._request([PROBE], None).shape[1],
            self._prefixes.query,
            self._prefixes.passage,
        )

    @property
    def context_length(self) -> int | None:
        """How many tokens the model was made for, where the server tells it."""
        return self._told("context_length")

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
        rows = [self._request(batch, dimensions) for batch in batches(texts, _TEXTS_A_REQUEST)]
        self._check_unchanged()
        return np.concatenate([empty, *rows])

    def _request(self, texts: Sequence[str], dimensions: int | None) -> Matrix:
        # The default would cut a text that is too long, and say nothing.
        answer = self._ask(
            lambda client: client.embed(self._model, list(texts), truncate=False),
            self.context_length,
        )
        return replies.as_matrix(answer.embeddings, len(texts), dimensions, self._address.url)

    def _check_unchanged(self) -> None:
        # `ollama pull` may put another model behind the name while this process runs.
        _, digest = self._listed()
        if digest != self.identity.digest:
            raise EmbedderError(
                "model_changed",
                f"another model took the name {self.identity.model} on {self._address.url} "
                f"(digest {self.identity.digest}, now {digest})",
                "start again; an index of the old model has to be built anew for this one",
            )

    def _listed(self) -> tuple[str, str]:
        wanted = _full_name(self._model).casefold()
        for entry in self._ask(lambda client: client.list()).models:
            if entry.model and entry.digest and entry.model.casefold() == wanted:
                return entry.model, entry.digest
        raise replies.missing(self._address.url, self._model, self._pull_hint)

    @cached_property
    def _card(self) -> Mapping[str, Any]:
        return self._ask(lambda client: client.show(self._model)).modelinfo or {}

    def _told(self, what: str) -> int | None:
        # Under the model's own architecture: a multimodal card also has, say, a vision length.
        value = self._card.get(f"{self._card.get('general.architecture')}.{what}")
        return value if isinstance(value, int) and value > 0 else None

    @property
    def _pull_hint(self) -> str:
        return f"run `ollama pull {self._model}`"

    @cached_property
    def _client(self) -> Client:
        from ollama import Client

        from rolebundle.embedding.http_guard import client_settings

        return Client(
            host=self._address.url,
            event_hooks={"request": [_without_key]},
            **client_settings(self._address, self._deadline_seconds),
        )

    def _ask(self, question: Callable[[Client], T], context: int | None = None) -> T:
        from ollama import ResponseError

        try:
            return question(self._client)
        except ResponseError as error:
            raise replies.refusal(
                error.status_code,
                replies.detail_of(_words(error.error)),
                server=self._address.url,
                model=self._model,
                missing_hint=self._pull_hint,
                context=context,
            ) from error
        # What the client meets when it takes any other JSON, or none, for an answer of Ollama's.
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__} while its answer was read"
            raise replies.unreadable(self._address.url, reason) from error


def _full_name(model: str) -> str:
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def _words(error: object) -> str:
    return error if isinstance(error, str) else json.dumps(error)


def _without_key(request: Request) -> None:
    # The client sends OLLAMA_API_KEY, which is meant for ollama.com, to any host it is given.
    request.headers.pop("authorization", None)
