"""HTTP servers on loopback, in a thread of the test."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LocalServer(ThreadingHTTPServer):
    """``state`` is what the test and the handlers share."""

    daemon_threads = True
    block_on_close = False
    state: Any

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that close the connection are expected.
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handle_error(request, client_address)


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], port: int = 0) -> Iterator[LocalServer]:
    """Run a server on ``port``, or on a free port if it is 0."""
    with LocalServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.002,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
