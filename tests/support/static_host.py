"""A static host on loopback that serves a folder with ranges, and misbehaves on request."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from support.local_server import LocalServer, serving

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


@dataclass
class StaticHost:
    """The state of a running host.

    Attributes:
        folder: what it serves as ``/``.
        faults: a file's name and what answers its requests instead of the host.
        seen: method, name and ``Range`` of each request.
        knows_ranges: whether it answers ``Range``, or sends the whole file.
    """

    folder: Path
    port: int = 0
    faults: dict[str, Callable[[Handler], None]] = field(default_factory=dict)
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    knows_ranges: bool = True
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


class Handler(BaseHTTPRequestHandler):
    """A fault gets this handler and may do anything with it."""

    protocol_version = "HTTP/1.1"
    server: LocalServer

    @property
    def host(self) -> StaticHost:
        host: StaticHost = self.server.state
        return host

    @property
    def range(self) -> str:
        return self.headers.get("Range", "")

    def do_GET(self) -> None:
        name = self.path.strip("/")
        self.host.seen.append((self.command, name, self.range))
        self.host.faults.get(name, Handler.serve)(self)

    do_HEAD = do_GET

    def serve(self) -> None:
        """Answer as a static host does."""
        try:
            content = (self.host.folder / self.path.strip("/")).read_bytes()
        except OSError:
            self.answer(404, b"not found")
            return
        requested = _RANGE.fullmatch(self.range) if self.host.knows_ranges else None
        if not requested:
            self.answer(200, content)
            return
        start, end = int(requested[1]), min(int(requested[2]) + 1, len(content))
        if start >= len(content):
            self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        place = f"bytes {start}-{end - 1}/{len(content)}"
        self.answer(206, content[start:end], {"Content-Range": place})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def pour(self, piece: bytes, pause: float = 0.0) -> None:
        """Send the same bytes again and again until the client closes the connection."""
        while not self.host.stopping.wait(pause):
            self.wfile.write(piece)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def static_host(folder: Path) -> Iterator[StaticHost]:
    """Serve a folder on a free port."""
    with serving(Handler) as server:
        host = server.state = StaticHost(folder, server.server_address[1])
        try:
            yield host
        finally:
            host.stopping.set()
