"""The one way to a model server: bounded in time, in bytes, and in where it may lead.

httpx bounds each read by itself, and a server that drips one byte at a time keeps to that for
ever. Here one deadline covers a request from its first connect to its last byte, retries and
pauses included, and bytes are counted where they come in: at the socket, so that headers, TLS and
body all fall under it. Everything else that httpx would do by itself is left out: no redirects, no
proxies, no compression (a small body could unpack into a huge one), no kept connections (a
loopback connect takes 50 µs, a stale connection an error).

Transport failures leave here as coded errors; what an answer means is the providers' business.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

from rolebundle.embedding.address import Address
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    import ssl

MOST_BYTES = 32 << 20
"""The largest answer taken: 64 vectors of 8,192 dimensions are 13 MB as JSON."""

# A refused connection is tried twice more, in case the server is just being restarted; one that
# says it is busy is worth waiting for. Pauses grow threefold.
_FIRST_PAUSE = 0.1
_RETRIES_DOWN = 2
_RETRIES_BUSY = 4

_BUSY = frozenset({429, 502, 503, 504})
_START_HINT = "start the model server and run the same command again, or use --lexical-only"


def guarded_client(address: Address, deadline_seconds: float, **settings: Any) -> httpx.Client:
    """An httpx client that reaches this address and no other."""
    return httpx.Client(
        base_url=address.url, **client_settings(address, deadline_seconds), **settings
    )


def client_settings(address: Address, deadline_seconds: float) -> dict[str, Any]:
    """What makes an httpx client a guarded one, for clients that others construct."""
    return {
        "transport": GuardedTransport(address, deadline_seconds),
        "follow_redirects": False,
        "trust_env": False,
        # The guard's deadline is the only clock; httpx's own per-read timeouts are not consulted.
        "timeout": None,
    }


class GuardedTransport(httpx.BaseTransport):
    """Sends each request to one address and returns its whole answer, or raises a coded error.

    It keeps nothing between requests, so threads may share it.

    Args:
        address: where every request goes, whatever its own URL says.
        deadline_seconds: for one request, its retries included.
        most_bytes: the largest answer taken.
    """

    def __init__(
        self, address: Address, deadline_seconds: float, most_bytes: int = MOST_BYTES
    ) -> None:
        self._address = address
        self._seconds = deadline_seconds
        self._most_bytes = most_bytes

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The server's answer, read to its end.

        Raises:
            EmbedderError: ``embedder_down``, ``embedder_timeout``, ``server_busy``,
                ``redirect_refused``, ``response_too_large``, ``bad_response``, ``host_not_local``.
        """
        until = time.monotonic() + self._seconds
        attempt = 0
        while True:
            try:
                return self._send(request, until)
            except _Transient as trouble:
                pause = max(_FIRST_PAUSE * 3**attempt, trouble.at_least)
                if attempt >= trouble.retries or time.monotonic() + pause >= until:
                    raise trouble.error from trouble.__cause__
            time.sleep(pause)
            attempt += 1

    def _send(self, request: httpx.Request, until: float) -> httpx.Response:
        address = self._address
        bounds = _Bounds(address.url, self._seconds, until, self._most_bytes)
        origin = httpcore.Origin(address.scheme.encode(), address.host.encode(), address.port)
        target = httpcore.URL(
            scheme=origin.scheme,
            host=origin.host,
            port=origin.port,
            target=request.url.raw_path,
        )
        try:
            with httpcore.HTTPConnection(
                origin, network_backend=_BoundedBackend(address, bounds)
            ) as connection:
                answer = connection.request(
                    request.method, target, headers=_headers(request), content=request.read()
                )
        except httpcore.NetworkError as error:
            raise _down(address.url, error) from error
        except httpcore.ProtocolError as error:
            raise _broken(address.url, error, bounds.received) from error
        return _checked(answer, address.url)


@dataclass
class _Bounds:
    """What one attempt may still take."""

    server: str
    seconds: float
    until: float
    most_bytes: int
    received: int = 0

    def time_left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise self.overdue()
        return left

    def overdue(self) -> EmbedderError:
        return EmbedderError(
            "embedder_timeout",
            f"the model server at {self.server} did not finish its answer in "
            f"{self.seconds:g} seconds",
            "try again when it is less busy, or allow it more time with a longer deadline",
        )

    def take(self, size: int) -> None:
        self.received += size
        if self.received > self.most_bytes:
            raise EmbedderError(
                "response_too_large",
                f"the model server at {self.server} sent more than {self.most_bytes >> 20} MiB "
                "in one answer",
                "check that the URL is that of an embedding server",
            )

    @contextmanager
    def mapping(self, failure: type[httpcore.NetworkError]) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise self.overdue() from error
        except OSError as error:
            raise failure(str(error)) from error


class _BoundedBackend(httpcore.NetworkBackend):
    """Connects to addresses that were checked just before."""

    def __init__(self, address: Address, bounds: _Bounds) -> None:
        self._address = address
        self._bounds = bounds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        with self._bounds.mapping(httpcore.ConnectError):
            return _BoundedStream(self._connect(), self._bounds)

    def _connect(self) -> socket.socket:
        # localhost is often ::1 first, and a server that listens on 127.0.0.1 alone refuses that.
        refusal = OSError("the name has no address")
        for ip in self._address.resolve():
            try:
                return socket.create_connection(
                    (ip, self._address.port), timeout=self._bounds.time_left()
                )
            except OSError as error:
                refusal = error
        raise refusal


class _BoundedStream(httpcore.NetworkStream):
    """A socket whose every operation ends by the deadline."""

    def __init__(self, connected: socket.socket, bounds: _Bounds) -> None:
        self._socket = connected
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._bounds.mapping(httpcore.ReadError):
            self._socket.settimeout(self._bounds.time_left())
            received = self._socket.recv(max_bytes)
        self._bounds.take(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        with self._bounds.mapping(httpcore.WriteError):
            while rest:
                self._socket.settimeout(self._bounds.time_left())
                rest = rest[self._socket.send(rest) :]

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        with self._bounds.mapping(httpcore.ConnectError):
            self._socket.settimeout(self._bounds.time_left())
            secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        return _BoundedStream(secured, self._bounds)

    def get_extra_info(self, info: str) -> Any:
        return None

    def close(self) -> None:
        self._socket.close()


class _Transient(Exception):
    """A failure that may be over in a moment."""

    def __init__(self, error: EmbedderError, retries: int, at_least: float = 0.0) -> None:
        super().__init__(error.code)
        self.error = error
        self.retries = retries
        self.at_least = at_least


def _headers(request: httpx.Request) -> list[tuple[bytes, bytes]]:
    ours = {b"accept-encoding": b"identity", b"connection": b"close"}
    kept = [(name, value) for name, value in request.headers.raw if name.lower() not in ours]
    return [*kept, *ours.items()]


def _checked(answer: httpcore.Response, server: str) -> httpx.Response:
    headers = httpx.Headers(answer.headers)
    if 300 <= answer.status < 400:
        raise EmbedderError(
            "redirect_refused",
            f"the model server at {server} answered with a redirect (status {answer.status}), "
            "and redirects are not followed: texts would go to where it points",
            "give the URL that the server itself listens on",
        )
    if answer.status in _BUSY:
        raise _busy(server, answer.status, headers.get("retry-after", ""))
    if headers.get("content-encoding", "identity").casefold() != "identity":
        raise EmbedderError(
            "bad_response",
            f"the model server at {server} sent a compressed answer, which was not asked for",
            "check that the URL is that of an embedding server",
        )
    kind = {"content-type": headers["content-type"]} if "content-type" in headers else None
    return httpx.Response(answer.status, headers=kind, content=answer.content)


def _down(server: str, error: Exception) -> _Transient:
    return _Transient(
        EmbedderError(
            "embedder_down",
            f"the model server at {server} cannot be reached ({error})",
            _START_HINT,
        ),
        _RETRIES_DOWN,
    )


def _broken(server: str, error: Exception, received: int) -> _Transient:
    if not received:
        return _down(server, error)
    return _Transient(
        EmbedderError(
            "bad_response",
            f"the answer of the model server at {server} broke off or is not HTTP ({error})",
            "check that the URL is that of an embedding server, and its log",
        ),
        _RETRIES_DOWN,
    )


def _busy(server: str, status: int, retry_after: str) -> _Transient:
    error = EmbedderError(
        "server_busy",
        f"the model server at {server} is busy or not ready (status {status})",
        _START_HINT,
    )
    # The header may also hold a date; the growing pauses do for that.
    return _Transient(error, _RETRIES_BUSY, float(retry_after) if retry_after.isdecimal() else 0)
