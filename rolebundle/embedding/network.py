"""Network access with limits on every operation of the socket, and which hosts are this machine."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from time import monotonic
from typing import Any

import httpcore


@dataclass
class Limits:
    """The time and the bytes that are left for what is sent and received.

    Attributes:
        deadline: by :func:`time.monotonic`.
        late: what is raised after it.
        most_bytes: how many may be received.
        large: what is raised beyond that.
        received: how many bytes were received.
    """

    deadline: float
    late: Exception
    most_bytes: int
    large: Exception
    received: int = 0

    def time_left(self) -> float:
        """Seconds that the next operation may take. Raise an error if there are none."""
        seconds_left = self.deadline - monotonic()
        if seconds_left <= 0:
            raise self.late
        return seconds_left

    def count(self, size: int) -> None:
        """Count received bytes. Raise an error if there are too many."""
        self.received += size
        if self.received > self.most_bytes:
            raise self.large


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
    """httpcore's network access with limits on every operation of the socket."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to a host in the time that is left."""
        seconds_left = self._limits.time_left()
        stream = super().connect_tcp(host, port, seconds_left, local_address, socket_options or [])
        return _BoundedStream(stream, self._limits)


class _BoundedStream(httpcore.NetworkStream):
    """A connection whose every operation ends by the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, limits: Limits) -> None:
        self._stream = stream
        self._limits = limits

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        received = self._stream.read(max_bytes, self._limits.time_left())
        self._limits.count(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._limits.time_left())

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        seconds_left = self._limits.time_left()
        secured = self._stream.start_tls(ssl_context, server_hostname, seconds_left)
        return _BoundedStream(secured, self._limits)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()
