"""Models of servers: requests, embeddings by OpenAI's API, reranking by Jina's."""

from __future__ import annotations

import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from ipaddress import ip_address
from math import inf
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding.provider import (
    PROBE_TEXT,
    Matrix,
    ProviderSpec,
    batches,
    fingerprint,
    prefixes_for,
    prepared,
    unit_vectors,
)
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from rolebundle.lazy import numpy as np
from rolebundle.text.words import counted

MAX_RESPONSE_BYTES = 32 << 20
"""The largest answer that is read: 64 vectors of 8,192 dimensions are 13 MB as JSON."""

RETRY_PAUSES = (0.1, 0.3, 0.9, 2.7)
"""Seconds after which a busy server is asked again."""
_BUSY_STATUSES = frozenset({429, 502, 503, 504})

_PORTS = {"http": 80, "https": 443}
KEY = "ROLEBUNDLE_OPENAI_KEY"
"""The environment variable that may hold the key of a server."""
OLLAMA_HOST = "OLLAMA_HOST"
"""The environment variable with the address of an Ollama, as Ollama itself reads it."""
_MAX_DETAIL_CHARS = 200

_START_HINT = "start the model server and run the same command again, or use --lexical-only"
_BUSY_HINT = (
    "wait until the model server is ready and run the same command again, or use --lexical-only"
)
_URL_HINT = "check that the URL is that of an embedding server"
_VECTORS_HINT = "check the model and its server, then run the same command again"

# Servers agree neither on the status (400, 413, 422, 500) nor on the words:
# Ollama: "the input length exceeds the context length" (400; 500 in some versions)
# llama.cpp: "input is too large to process. increase the physical batch size", "input is larger
#   than the max context size. skipping" (500), "exceed_context_size_error" (400)
# vLLM: "This model's maximum context length is 512 tokens" (400)
# text-embeddings-inference: "`inputs` must have less than 512 tokens" (413, 422)
_OVER_CONTEXT = re.compile(
    r"context.(length|size|window)|maximum context|too large to process"
    r"|(less|more|fewer) than \d+ tokens|too many tokens",
    re.IGNORECASE,
)


def permitted_url(url: str, allow_host: str = "") -> str:
    """The URL of a model server with its port and without a final slash, if it is permitted.

    No name is looked up and no connection is made.

    Args:
        url: ``http://host:port`` or ``https://host:port``, with a path if the server has one.
        allow_host: the only host besides this machine that is permitted, by its name or address
            as the URL writes it.

    Raises:
        UsageError: ``bad_url``.
        EmbedderError: ``host_not_local``, if the host is neither this machine nor ``allow_host``.
    """
    parts, port = parse_url(url)
    host = (parts.hostname or "").rstrip(".")
    if not is_loopback(host) and host != allow_host.casefold().strip("[]").rstrip("."):
        raise EmbedderError(
            "host_not_local",
            f"the model server at {host} is not on this machine; documents would be sent to it",
            f"use an address on 127.0.0.1, or permit it: ROLEBUNDLE_EMBED_ALLOW_HOST={host}",
        )
    shown_host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown_host}:{port}{parts.path.rstrip('/')}"


def ollama_url() -> str:
    """The Ollama that ``$OLLAMA_HOST`` names as a URL or ``HOST:PORT``, or else its own address."""
    # An address that means every address of a machine means this machine.
    host = os.environ.get(OLLAMA_HOST, "").strip().replace("0.0.0.0", "127.0.0.1")
    if "://" in host:
        return host
    name, _, port = host.partition(":")
    return f"http://{name or '127.0.0.1'}:{port or 11434}"


def parse_url(url: str) -> tuple[SplitResult, int]:
    """The parts of a model server's URL, and its port.

    Raises:
        UsageError: ``bad_url``.
    """
    hint = "write it as http://127.0.0.1:PORT"
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise UsageError("bad_url", f"the model server's URL: {error}", hint) from None
    # The URL is not repeated here: it may hold a password.
    if "@" in parts.netloc:
        raise UsageError(
            "bad_url",
            "the model server's URL contains a user name or a password",
            "remove it; put a key into an environment variable",
        )
    host = (parts.hostname or "").strip(".")
    is_http = parts.scheme in _PORTS and port and host and host.isascii()
    if not is_http or parts.query or parts.fragment:
        raise UsageError("bad_url", f"not the URL of a model server: {url!r}", hint)
    return parts, port


class ModelServer:
    """A server of models. It is first contacted when it is asked.

    The key is read from the environment for each request and not stored. Nothing else in the
    environment, such as a proxy, applies. No state is held between requests, so threads may share
    it.

    Args:
        spec: the server, with or without ``/v1`` at the end of its address; and the model's name,
            for messages; empty for the server's only one.

    Raises:
        UsageError: ``bad_url``.
        EmbedderError: ``host_not_local``.
    """

    def __init__(self, spec: ProviderSpec) -> None:
        self.url = permitted_url(spec.url.rstrip("/").removesuffix("/v1"), spec.allow_host)
        self.spec = spec

    def error(self, code: str, what: str, hint: str = _URL_HINT) -> EmbedderError:
        """The error for what the server does, with the next step."""
        return EmbedderError(code, f"the model server at {self.url} {what}", hint)

    def unreadable(self, reason: str) -> EmbedderError:
        """The error for an answer that does not follow the API."""
        return self.error("bad_response", f"did not answer as its API says: {reason}")

    def ask(self, path: str, body: object) -> Mapping[str, Any]:
        """The JSON object that the server answers to a request with a JSON body.

        Args:
            path: from the server's root.
            body: sent as JSON.

        Raises:
            EmbedderError: the server failed, or did not answer with an object.
            ConfigurationError: ``bad_key``.
        """
        key = self._key()
        response = self.response("POST", path, json.dumps(body).encode(), key)
        text = response.content.decode("utf-8", "replace")
        # A server may repeat the key in its error.
        text = text.replace(key, "[key]") if key else text
        if not 200 <= response.status < 300:
            hint = "load the model in the server, or name one of its /v1/models"
            raise self.status_error(response.status, text, hint)
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            raise self.unreadable("its answer is not JSON") from None
        if not isinstance(answer, dict):
            raise self.unreadable("its answer is JSON, but not an object")
        return answer

    def response(
        self, method: str, path: str, content: bytes | None = None, key: str = ""
    ) -> httpcore.Response:
        """The whole answer, also one with the status of an error. A busy server is asked again.

        Raises:
            EmbedderError: the server failed.
        """
        deadline = time.monotonic() + self.spec.deadline_seconds
        headers: dict[bytes | str, bytes | str] = {
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        headers |= {"Content-Type": "application/json"} if content else {}
        for pause in (*RETRY_PAUSES, inf):
            response = self._send(method, path, headers, content, deadline)
            if response.status not in _BUSY_STATUSES:
                break
            if time.monotonic() + pause >= deadline:
                what = f"is busy or not ready (status {response.status})"
                raise self.error("server_busy", what, _BUSY_HINT)
            time.sleep(pause)
        if 300 <= response.status < 400:
            raise self.error(
                "redirect_refused",
                f"answered with a redirect (status {response.status}), "
                "and redirects are not followed: texts would be sent to another address",
                "give the URL that the server itself listens on",
            )
        return response

    def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[bytes | str, bytes | str],
        content: bytes | None,
        deadline: float,
    ) -> httpcore.Response:
        late = self.error(
            "embedder_timeout",
            f"did not finish its answer in {self.spec.deadline_seconds:g} seconds",
            "try again when it is less busy, or use a faster model, or --lexical-only",
        )
        most = f"sent more than {MAX_RESPONSE_BYTES >> 20} MiB in one answer"
        large = self.error("response_too_large", most)
        backend = BoundedBackend(deadline, late, large)
        try:
            with httpcore.ConnectionPool(network_backend=backend) as pool:
                return pool.request(method, self.url + path, headers=headers, content=content)
        except httpcore.TimeoutException as error:
            raise late from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            if isinstance(error, httpcore.ProtocolError) and backend.received:
                what = f"sent an answer that was cut off or is not HTTP ({error})"
                look = f"{_URL_HINT}, and look at its log"
                raise self.error("bad_response", what, look) from error
            what = f"cannot be reached ({error})"
            raise self.error("embedder_down", what, _START_HINT) from error

    def in_order(self, data: object, key: str, expected: int, name: str) -> list[object]:
        """The values of the entries of an answer, by their ``index``, which begins with 0.

        Raises:
            EmbedderError: the answer has not exactly one entry for each index.
        """
        if not isinstance(data, list) or not all(isinstance(entry, Mapping) for entry in data):
            raise self.unreadable(f"its answer has no list of {name}")
        if len(data) != expected:
            raise self.unreadable(f"it has {len(data)} {name} for {expected} texts")
        places = [entry.get("index") for entry in data]
        if not all(type(place) is int for place in places) or sorted(places) != [*range(expected)]:
            raise self.unreadable(f"the indexes of its {name} are not those of the texts")
        return [entry.get(key) for entry in sorted(data, key=lambda entry: entry["index"])]

    def status_error(self, status: int, body: str, missing_hint: str) -> EmbedderError:
        """The error for an HTTP status that is not a success.

        Args:
            status: the HTTP status.
            body: the answer, which may have the server's own description.
            missing_hint: how to put a missing model on this server.
        """
        detail, model = _error_detail(body), self.spec.model or "its only model"
        if _OVER_CONTEXT.search(detail):
            return EmbedderError(
                "input_too_long",
                f"a text is longer than the context of {model}: {_one_line(detail)}",
                "ingest again with smaller chunks (--chunk-size 400), or use a "
                "model with a longer context",
            )
        if status == 404 and "model" in detail.casefold():
            return self.error("model_missing", f"has no model {model}", missing_hint)
        what = f"failed (status {status}): {_one_line(detail)}".rstrip(": ")
        if status in {401, 403}:
            hint = f"put the key of the server into the environment variable {KEY}"
            return self.error("key_refused", f"refused access (status {status})", hint)
        if status >= 500:
            hint = "look at the server's log, then run the same command again"
            return self.error("server_error", what, hint)
        hint = "check the URL, and that this server and model can embed"
        return self.error("request_refused", what, hint)

    def _key(self) -> str:
        # Ollama has no keys.
        key = "" if self.spec.provider == "ollama" else os.environ.get(KEY, "").strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigurationError(
                "bad_key",
                f"{KEY} holds characters that an HTTP header cannot contain",
                f"set {KEY} to the key alone",
            )
        return key


def _error_detail(body: str) -> str:
    """The server's own description of a failure.

    Servers send ``{"error": "…"}``, ``{"error": {"message": "…"}}``, ``{"message": "…"}``,
    ``{"detail": "…"}`` or plain text. Any other JSON is returned as it is, and HTML as an empty
    text.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return "" if "<" in body[:100] else body
    # Each key that exists leads one level down; the order is that of the nested shape.
    for key in ("error", "message", "detail"):
        if isinstance(content, dict):
            content = content.get(key, content)
    return content if isinstance(content, str) else json.dumps(content)


class ServerProvider(ABC):
    """One model of one server: what all such models have in common.

    A provider gives the identity of its model, and ``_rows``. The server is first contacted when it
    is used.

    Args:
        spec: the model's name; and the server, with or without ``/v1`` at its end.
    """

    parallel_batches = 1
    batch_size = 512
    texts_per_request: int

    def __init__(self, spec: ProviderSpec) -> None:
        self._model, self.server = spec.model, ModelServer(spec)

    @property
    @abstractmethod
    def identity(self) -> ModelIdentity:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""

    @abstractmethod
    def _rows(self, texts: Sequence[str]) -> object:
        """The vectors that the server returns for prepared texts."""

    def _check_unchanged(self) -> None:  # noqa: B027 - not every server can tell
        """Raise EmbedderError if the server has another model of this name by now."""

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self.identity.passage_prefix)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self.identity.query_prefix)

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        dimensions = self.identity.dimensions
        rows = [
            self._request(prepared(batch, prefix), dimensions)
            for batch in batches(texts, self.texts_per_request)
        ]
        if rows:
            self._check_unchanged()
        return np.concatenate([np.zeros((0, dimensions), dtype=np.float32), *rows])

    def _request(self, texts: Sequence[str], dimensions: int | None = None) -> Matrix:
        """The server's vectors of some texts as a float32 matrix, a row for each.

        :func:`rolebundle.embedding.provider.unit_vectors` checks the values.

        Args:
            texts: prepared texts.
            dimensions: the length of the model's vectors, or None if it is not known yet.

        Raises:
            EmbedderError: what was returned is not vectors of numbers, or their count or length is
                wrong.
        """
        rows, server = self._rows(texts), self.server
        if isinstance(rows, list) and len(rows) != len(texts):
            what = f"returned {counted(len(rows), 'vector')} for {counted(len(texts), 'text')}"
            raise server.error("embedding_count", what, _VECTORS_HINT)
        no_vectors = server.unreadable("its vectors are not lists of numbers")
        try:
            # A number too large for float32 becomes infinite here; unit_vectors refuses it.
            with np.errstate(over="ignore"):
                matrix: Matrix = np.array(rows, dtype=np.float64).astype(np.float32)
        except (ValueError, TypeError, OverflowError) as error:
            raise no_vectors from error
        if matrix.ndim != 2:
            raise no_vectors
        found = matrix.shape[1]
        if not found or found != (dimensions or found):
            what = f"returned vectors of {found} dimensions"
            what += f", the model has {dimensions}" if dimensions else ""
            raise server.error("embedding_dimensions", what, _VECTORS_HINT)
        return matrix


def _one_line(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(printable.split())
    return line if len(line) <= _MAX_DETAIL_CHARS else line[:_MAX_DETAIL_CHARS] + " …"


class OpenAICompatibleProvider(ServerProvider):
    """One model of one server that has OpenAI's API."""

    # The default limit of text-embeddings-inference; other servers accept as many or more.
    texts_per_request = 32

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, identified by the fingerprint of its vector for a fixed text.

        The API reports neither a digest nor the dimensions, and some servers accept any name and
        use the model that they run.
        """
        vector = self._request([PROBE_TEXT])
        dimensions = vector.shape[1]
        digest = fingerprint(unit_vectors(vector, 1, dimensions))
        return ModelIdentity("openai", self._model, digest, dimensions, *prefixes_for(self._model))

    def _rows(self, texts: Sequence[str]) -> object:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        data = self.server.ask("/v1/embeddings", body).get("data")
        if isinstance(data, list) and len(data) != len(texts):
            return data  # Whoever reads them reports the wrong count.
        return self.server.in_order(data, "embedding", len(texts), "vectors")


class RerankServer:
    """One cross-encoder of one server. The server is first contacted when it scores.

    Args:
        spec: the model's name, empty for the server's only one; and the server.

    Raises:
        UsageError: ``bad_url``.
        EmbedderError: ``host_not_local``.
    """

    def __init__(self, spec: ProviderSpec) -> None:
        self._server = ModelServer(spec)

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """The scores of passages, in their order: finite, of any range.

        Args:
            question: the task.
            passages: a few of them. A passage is read whole or refused, if the server
                lets its client decide.

        Raises:
            EmbedderError: the server failed, or its answer is not one score for each passage.
            ConfigurationError: ``bad_key``.
        """
        [query, *texts], model = prepared([question, *passages], ""), self._server.spec.model
        body = {"model": model, "query": query, "documents": texts, "top_n": len(texts)}
        results = self._server.ask("/v1/rerank", body).get("results")
        found = self._server.in_order(results, "relevance_score", len(texts), "scores")
        return [self._score(value) for value in found]

    def _score(self, value: object) -> float:
        # Neither NaN, infinite nor an integer beyond every float.
        if isinstance(value, int | float) and abs(value) < 2**63:
            return float(value)
        raise self._server.unreadable("a score is not a finite number")


# -- bounded network access ------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or the name localhost."""
    # No name but localhost is looked up: the lookup itself would leave this machine.
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


class BoundedBackend(httpcore.SyncBackend):
    """httpcore's network access with limits on every operation of the socket.

    Args:
        deadline: by :func:`time.monotonic`.
        late: what is raised after it.
        large: what is raised if more than ``MAX_RESPONSE_BYTES`` are received.
    """

    def __init__(self, deadline: float, late: Exception, large: Exception) -> None:
        self._deadline, self._late, self._large = deadline, late, large
        self.received = 0
        """How many bytes were received."""

    def time_left(self) -> float:
        """Seconds that the next operation may take. Raise an error if there are none."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise self._late
        return seconds_left

    def count(self, size: int) -> None:
        """Count received bytes. Raise an error if there are too many."""
        self.received += size
        if self.received > MAX_RESPONSE_BYTES:
            raise self._large

    def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
        """Connect to a host in the time that is left. httpcore passes ``timeout`` by its name."""
        options["timeout"] = self.time_left()
        return _BoundedStream(super().connect_tcp(*args, **options), self)


class _BoundedStream(httpcore.NetworkStream):
    """A connection whose every operation ends by the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, limits: BoundedBackend) -> None:
        self._stream = stream
        self._limits = limits

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        received = self._stream.read(max_bytes, self._limits.time_left())
        self._limits.count(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._limits.time_left())

    def start_tls(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
        options["timeout"] = self._limits.time_left()
        return _BoundedStream(self._stream.start_tls(*args, **options), self._limits)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()
