"""Access to a model server: permitted addresses, limits of time and size, errors, vectors.

A server must be on this machine, unless the user permits its host. One deadline covers a
request from the first connect to the last byte, including its retries and pauses. httpx limits each
read by itself, so a server that sends one byte at a time never exceeds its timeouts. The time and
the size are therefore limited at the socket, which covers headers, body and TLS alike.

Redirects, proxies, compression (a small body could unpack into a huge one) and kept connections
are not used.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import httpcore
import httpx

from rolebundle.embedding.network import BoundedBackend, is_loopback
from rolebundle.errors import EmbedderError, UsageError
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

MAX_RESPONSE_BYTES = 32 << 20
"""The largest answer that is read: 64 vectors of 8,192 dimensions are 13 MB as JSON."""

# A refused connection is tried twice more, in case the server is restarting. A busy server is tried
# more often. Each pause is three times as long as the one before.
_FIRST_PAUSE = 0.1
_MAX_RETRIES_DOWN = 2
_MAX_RETRIES_BUSY = 4
_BUSY_STATUSES = frozenset({429, 502, 503, 504})

_PORTS = {"http": 80, "https": 443}
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
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
    if parts.username is not None or parts.password is not None:
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


def local_url(url: str) -> str:
    """The URL with an address of this machine in place of one that means every address.

    Raises:
        UsageError: ``bad_url``.
    """
    parts, port = parse_url(url)
    replaced = _LOOPBACK_OF.get(parts.hostname or "")
    return url if replaced is None else f"{parts.scheme}://{replaced}:{port}{parts.path}"


def bounded_client(url: str, deadline_seconds: float) -> httpx.Client:
    """An httpx client for the server at a permitted URL."""
    return httpx.Client(base_url=url, **client_settings(url, deadline_seconds))


def client_settings(url: str, deadline_seconds: float) -> dict[str, Any]:
    """The arguments that make an ``httpx.Client`` a bounded one."""
    return {
        "transport": BoundedTransport(url, deadline_seconds),
        "follow_redirects": False,
        "trust_env": False,
        # Only the transport's deadline applies.
        "timeout": None,
    }


class BoundedTransport(httpx.BaseTransport):
    """Send a request and return its whole answer, or raise a coded error.

    It holds no state between requests, so threads may share it.

    Args:
        server: the server's URL, for messages.
        deadline_seconds: for one request, including its retries.
    """

    def __init__(self, server: str, deadline_seconds: float) -> None:
        self._server = server
        self._deadline_seconds = deadline_seconds

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read its answer to the end.

        Raises:
            EmbedderError: ``embedder_down``, ``embedder_timeout``, ``server_busy``,
                ``redirect_refused``, ``response_too_large``, ``bad_response``.
        """
        deadline = time.monotonic() + self._deadline_seconds
        attempt = 0
        while True:
            try:
                return self._send(request, deadline)
            except _TransientError as failure:
                pause = max(_FIRST_PAUSE * 3**attempt, failure.min_pause)
                if attempt >= failure.max_retries or time.monotonic() + pause >= deadline:
                    raise failure.error from failure.__cause__
            time.sleep(pause)
            attempt += 1

    def _send(self, request: httpx.Request, deadline: float) -> httpx.Response:
        limits = _Limits(self._server, self._deadline_seconds, deadline)
        try:
            with httpcore.ConnectionPool(network_backend=BoundedBackend(limits)) as pool:
                response = pool.request(
                    request.method,
                    str(request.url),
                    headers=_plain_headers(request),
                    content=request.read(),
                )
        except httpcore.TimeoutException as error:
            raise limits.timeout_error() from error
        except httpcore.NetworkError as error:
            raise _down_error(self._server, error) from error
        except httpcore.ProtocolError as error:
            if not limits.bytes_received:
                raise _down_error(self._server, error) from error
            raise _broken_error(self._server, error) from error
        return _checked_response(response, self._server)


class _Limits:
    """The time and the bytes that are left for one attempt."""

    def __init__(self, server: str, seconds: float, deadline: float) -> None:
        self._server = server
        self._seconds = seconds
        self._deadline = deadline
        self.bytes_received = 0

    def time_left(self) -> float:
        """Seconds until the deadline. Raise EmbedderError if it has passed."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise self.timeout_error()
        return seconds_left

    def timeout_error(self) -> EmbedderError:
        """The error for a deadline that has passed."""
        return EmbedderError(
            "embedder_timeout",
            f"the model server at {self._server} did not finish its answer in "
            f"{self._seconds:g} seconds",
            "try again when it is less busy, or use a faster model, or --lexical-only",
        )

    def count(self, size: int) -> None:
        """Count received bytes. Raise EmbedderError if there are too many."""
        self.bytes_received += size
        if self.bytes_received > MAX_RESPONSE_BYTES:
            raise EmbedderError(
                "response_too_large",
                f"the model server at {self._server} sent more than {MAX_RESPONSE_BYTES >> 20} MiB "
                "in one answer",
                _URL_HINT,
            )


class _TransientError(Exception):
    """A failure that may be over in a moment.

    Args:
        error: what to raise if it is not.
        max_retries: how often the request is worth sending again.
        min_pause: seconds to wait before the next attempt.
    """

    def __init__(self, error: EmbedderError, max_retries: int, min_pause: float = 0.0) -> None:
        super().__init__(error.code)
        self.error = error
        self.max_retries = max_retries
        self.min_pause = min_pause


def _plain_headers(request: httpx.Request) -> list[tuple[bytes, bytes]]:
    """The request's headers, asking for no compression and no kept connection."""
    fixed = {b"accept-encoding": b"identity", b"connection": b"close"}
    other_headers = [
        (name, value) for name, value in request.headers.raw if name.lower() not in fixed
    ]
    return [*other_headers, *fixed.items()]


def _checked_response(response: httpcore.Response, server: str) -> httpx.Response:
    headers = httpx.Headers(response.headers)
    if 300 <= response.status < 400:
        raise EmbedderError(
            "redirect_refused",
            f"the model server at {server} answered with a redirect (status {response.status}), "
            "and redirects are not followed: texts would be sent to another address",
            "give the URL that the server itself listens on",
        )
    if response.status in _BUSY_STATUSES:
        raise _busy_error(server, response.status, headers.get("retry-after", ""))
    if headers.get("content-encoding", "identity").casefold() != "identity":
        raise EmbedderError(
            "bad_response",
            f"the model server at {server} sent a compressed answer, which was not asked for",
            _URL_HINT,
        )
    kind = {"content-type": headers["content-type"]} if "content-type" in headers else None
    return httpx.Response(response.status, headers=kind, content=response.content)


def _down_error(server: str, error: Exception) -> _TransientError:
    return _TransientError(
        EmbedderError(
            "embedder_down",
            f"the model server at {server} cannot be reached ({error})",
            _START_HINT,
        ),
        _MAX_RETRIES_DOWN,
    )


def _broken_error(server: str, error: Exception) -> _TransientError:
    return _TransientError(
        EmbedderError(
            "bad_response",
            f"the answer of the model server at {server} was cut off or is not HTTP ({error})",
            f"{_URL_HINT}, and look at its log",
        ),
        _MAX_RETRIES_DOWN,
    )


def _busy_error(server: str, status: int, retry_after: str) -> _TransientError:
    error = EmbedderError(
        "server_busy",
        f"the model server at {server} is busy or not ready (status {status})",
        _BUSY_HINT,
    )
    # The header may hold a date instead of seconds; then the growing pauses are enough.
    min_pause = float(retry_after) if retry_after.isdecimal() else 0.0
    return _TransientError(error, _MAX_RETRIES_BUSY, min_pause)


def error_detail(body: str) -> str:
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


def status_error(
    status: int, detail: str, *, server: str, model: str, missing_hint: str, context: int | None
) -> EmbedderError:
    """The error for an HTTP status that is not a success.

    Args:
        status: the HTTP status.
        detail: the server's own description, or an empty text.
        server: its URL.
        model: the requested model.
        missing_hint: how to put a missing model on this server.
        context: the model's context in tokens, if known.
    """
    detail_text = f": {_one_line(detail)}" if detail.strip() else ""
    if _OVER_CONTEXT.search(detail):
        limit = f" of {context} tokens" if context else ""
        return EmbedderError(
            "input_too_long",
            f"a text is longer than the context{limit} of {model}{detail_text}",
            "ingest again with smaller chunks (--chunk-size 400), or use a "
            "model with a longer context",
        )
    if status == 404 and "model" in detail.casefold():
        return missing_model_error(server, model, missing_hint)
    if status in {401, 403}:
        return EmbedderError(
            "key_refused",
            f"the model server at {server} refused access (status {status})",
            "put the key of an OpenAI-compatible server into the environment variable "
            "ROLEBUNDLE_OPENAI_KEY",
        )
    if status >= 500:
        return EmbedderError(
            "server_error",
            f"the model server at {server} failed (status {status}){detail_text}",
            "look at the server's log, then run the same command again",
        )
    return EmbedderError(
        "request_refused",
        f"the model server at {server} refused the request (status {status}){detail_text}",
        "check the URL, and that this server and model can embed",
    )


def missing_model_error(server: str, model: str, hint: str) -> EmbedderError:
    """The error for a model that the server does not have."""
    return EmbedderError(
        "model_missing", f"the model server at {server} has no model {model}", hint
    )


def unreadable_error(server: str, reason: str) -> EmbedderError:
    """The error for an answer that does not follow the API."""
    return EmbedderError(
        "bad_response",
        f"the model server at {server} did not answer as its API says: {reason}",
        _URL_HINT,
    )


def vectors_matrix(rows: object, expected: int, dimensions: int | None, server: str) -> Matrix:
    """A server's vectors as a float32 matrix of shape ``(expected, dimensions)``.

    :func:`rolebundle.embedding.provider.unit_vectors` checks the values.

    Args:
        rows: the vectors as they were parsed from JSON.
        expected: how many texts were sent.
        dimensions: the length of the model's vectors, or None if it is not known yet.
        server: its URL.

    Raises:
        EmbedderError: the rows are not vectors of numbers, or their count or length is wrong.
    """
    import numpy as np

    if not isinstance(rows, Sequence) or len(rows) != expected:
        count = len(rows) if isinstance(rows, Sequence) else 0
        raise EmbedderError(
            "embedding_count",
            f"the model server at {server} returned {counted(count, 'vector')} for "
            f"{counted(expected, 'text')}",
            _VECTORS_HINT,
        )
    lengths = {len(row) if isinstance(row, Sequence) else 0 for row in rows}
    is_expected = lengths == {dimensions} if dimensions else len(lengths) == 1
    if not is_expected or 0 in lengths:
        raise EmbedderError(
            "embedding_dimensions",
            f"the model server at {server} returned vectors of {sorted(lengths)} dimensions"
            + (f", the model has {dimensions}" if dimensions else ""),
            _VECTORS_HINT,
        )
    try:
        # A number too large for float32 becomes infinite here; unit_vectors refuses it.
        with np.errstate(over="ignore"):
            matrix = np.array(rows, dtype=np.float64).astype(np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise unreadable_error(server, "its vectors are not lists of numbers") from error
    if matrix.ndim != 2:
        raise unreadable_error(server, "its vectors are not lists of numbers")
    return matrix


def _one_line(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(printable.split())
    return line if len(line) <= _MAX_DETAIL_CHARS else line[:_MAX_DETAIL_CHARS] + " …"
