"""A static host that serves the folder of :mod:`rolebundle.replication.transports.folder`.

Only what differs is asked for, with ``Range``. A host that does not know ``Range`` sends all of the
replica. Redirects, proxies and compression are not used. Whatever a host sends, a request ends:
time is limited at the socket, and no more is read than was asked for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpcore

from rolebundle.embedding.network import BoundedBackend, is_loopback
from rolebundle.errors import StorageError, UsageError
from rolebundle.replication.transports.blocks import (
    BLOCK_BYTES,
    BLOCKS,
    DATABASE,
    MANIFEST,
    MAX_BLOCKS_BYTES,
    MAX_MANIFEST_BYTES,
    Source,
    Span,
    make_equal,
    manifest_too_large,
    nothing_published,
)
from rolebundle.replication.transports.transport import Transport

# A fetch may take this long, and longer for what is large: a host that is slower is refused.
_BASE_SECONDS = 60.0
_MIN_BYTES_PER_SECOND = 32 << 10
_MAX_WAIT_SECONDS = 20.0
"""For the next bytes, or for a connection."""

# A request costs a round trip. In this time about so much arrives.
_GAP = 2 * BLOCK_BYTES

_NUMBER = re.compile(r"[0-9]{1,18}")
_MISSING = (404, 410)
_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416
_HINT = "check the address and the host, then run the same command again; it goes on from here"


class HttpTransport(Transport):
    """Replicas of a static host. They are only read.

    Args:
        target: ``https://host/path/`` of the folder, or ``http://`` of this machine.

    Raises:
        UsageError: ``bad_target``, ``plain_http``.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._base = _base_url(target)

    def push(self, replica: Path, manifest: bytes) -> int:
        """Raise UsageError: see :meth:`Transport.push`."""
        raise UsageError(
            "transport_reads_only",
            f"{self.target}: replicas can be read over HTTP, not published",
            "publish to the folder that this host serves",
        )

    def manifest(self) -> bytes | None:
        """See :meth:`Transport.manifest`."""
        with self._connected() as host:
            content = host.content(MANIFEST, MAX_MANIFEST_BYTES)
            if content is None:
                host.size()
            elif len(content) > MAX_MANIFEST_BYTES:
                raise manifest_too_large(self.target)
            return content

    def fetch(self, copy: Path) -> int:
        """See :meth:`Transport.fetch`. Headers are not counted."""
        read = 0

        @contextmanager
        def opened() -> Iterator[Source]:
            nonlocal read
            with self._connected() as host:
                size = host.size()
                digests = host.content(BLOCKS, MAX_BLOCKS_BYTES) or b""
                read += len(digests)
                yield Source(size, digests, host.reader(size), _GAP)

        return make_equal(copy, opened, self.target) + read

    @contextmanager
    def _connected(self) -> Iterator[_Host]:
        limits = _Limits(self.target)
        with httpcore.ConnectionPool(
            max_connections=1, network_backend=BoundedBackend(limits)
        ) as pool:
            yield _Host(self.target, self._base, pool, limits)


class _Limits:
    """The time that is left for one fetch. The code that reads a body limits its bytes."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._deadline = time.monotonic() + _BASE_SECONDS

    def extend(self, size: int) -> None:
        """Give more time for content of this size."""
        self._deadline += size / _MIN_BYTES_PER_SECOND

    def time_left(self) -> float:
        """See :class:`Limits`. Raise StorageError if the time is over."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise _too_slow(self._target)
        return min(seconds_left, _MAX_WAIT_SECONDS)

    def count(self, size: int) -> None:
        pass


class _Host:
    """A connection to a host."""

    def __init__(
        self, target: str, base: str, pool: httpcore.ConnectionPool, limits: _Limits
    ) -> None:
        self._target = target
        self._base = base
        self._pool = pool
        self._limits = limits

    def size(self) -> int:
        """The size of the replica in bytes.

        Raises:
            UsageError: ``nothing_published``.
            StorageError: the host does not report it.
        """
        with self._answer("HEAD", DATABASE) as answer:
            length = _header(answer, b"content-length")
            if answer.status in _MISSING:
                raise nothing_published(self._target)
            if answer.status != _OK or not _NUMBER.fullmatch(length):
                raise self._bad_response("it does not report the size of the replica")
        size = int(length)
        self._limits.extend(size)
        return size

    def content(self, name: str, limit: int) -> bytes | None:
        """At least ``limit + 1`` bytes of a file if it has as many; ``None`` if there is none."""
        with self._answer("GET", name) as answer:
            if answer.status in _MISSING:
                return None
            content = bytearray()
            for piece in answer.iter_stream():
                content += piece
                if len(content) > limit:
                    break
            return bytes(content)

    def reader(self, size: int) -> Callable[[int, int], AbstractContextManager[Span]]:
        """What reads from a replica of this size: see :class:`Source`."""

        @contextmanager
        def read(start: int, end: int) -> Iterator[Span]:
            is_part = (start, end) != (0, size)
            with self._answer("GET", DATABASE, (start, end) if is_part else None) as answer:
                if answer.status == _PARTIAL:
                    is_requested_range = (
                        _header(answer, b"content-range") == f"bytes {start}-{end - 1}/{size}"
                    )
                else:
                    start, end = 0, size
                    length = _header(answer, b"content-length") or str(size)
                    is_requested_range = answer.status == _OK and length == str(size)
                # Without content the caller knows that another file has come.
                yield Span(start, end, answer.iter_stream() if is_requested_range else iter(()))

        return read

    @contextmanager
    def _answer(
        self, method: str, name: str, part: tuple[int, int] | None = None
    ) -> Iterator[httpcore.Response]:
        headers = [("Accept-Encoding", "identity"), ("Cache-Control", "no-cache")]
        if part:
            headers.append(("Range", f"bytes={part[0]}-{part[1] - 1}"))
        try:
            with self._pool.stream(method, self._base + name, headers=headers) as answer:
                self._check(answer, is_part=part is not None)
                yield answer
        except httpcore.TimeoutException as error:
            raise _too_slow(self._target) from error
        except httpcore.NetworkError as error:
            raise StorageError(
                "host_unreachable",
                f"{self._target}: the connection to the host failed ({error})",
                _HINT,
            ) from error
        except httpcore.ProtocolError as error:
            raise self._bad_response(f"it was cut off or is not HTTP ({error})") from error

    def _check(self, answer: httpcore.Response, *, is_part: bool) -> None:
        status = answer.status
        if 300 <= status < 400:
            raise StorageError(
                "redirect_refused",
                f"{self._target}: the host answered with a redirect (status {status}); "
                "redirects are not followed",
                "give the address that the host itself serves the folder at",
            )
        expected = (_OK, *_MISSING, *((_PARTIAL, _UNSATISFIABLE) if is_part else ()))
        if status not in expected:
            raise StorageError(
                "host_failed", f"{self._target}: the host answered with status {status}", _HINT
            )
        if (_header(answer, b"content-encoding") or "identity").casefold() != "identity":
            raise self._bad_response("it is compressed, which was not asked for")

    def _bad_response(self, reason: str) -> StorageError:
        return StorageError(
            "bad_response", f"{self._target}: the answer of the host is not usable: {reason}", _HINT
        )


def _too_slow(target: str) -> StorageError:
    return StorageError(
        "host_too_slow", f"{target}: the host did not send its answer in time", _HINT
    )


def _header(answer: httpcore.Response, name: bytes) -> str:
    values = [value for key, value in answer.headers if key.lower() == name]
    return values[0].decode("latin-1").strip() if values else ""


def _base_url(target: str) -> str:
    """The URL of the folder, with a slash at its end.

    Raises:
        UsageError: ``bad_target``, ``plain_http``.
    """
    try:
        parts = urlsplit(target)
        host, port = (parts.hostname or "").rstrip("."), parts.port
        is_plain = parts.scheme == "http"
        is_url = host and host.isascii() and not (parts.query or parts.fragment)
    except ValueError:
        is_url = False
    if not is_url:
        raise UsageError(
            "bad_target",
            f"{target.partition('?')[0]}: is not the URL of a folder",
            "write it as https://host/path/, without a query",
        )
    if is_plain and not is_loopback(host):
        raise UsageError(
            "plain_http",
            f"{target}: over http:// everyone on the way could read the replica",
            "use https://, or forward a port of this machine to the host with `ssh -L`",
        )
    shown_host = f"[{host}]" if ":" in host else host
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    return f"{parts.scheme}://{shown_host}{f':{port}' if port else ''}{path}/"
