"""HTTP for `inspect`: one thread per connection, this machine only, with a token in each address.

The token is the first part of the path. So the browser keeps it in its history; the server ends
with the command, and each start has another token.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rolebundle.errors import AccessDenied, RolebundleError, UsageError
from rolebundle.interfaces.inspector.application import Inspector, Parameters, Response
from rolebundle.interfaces.pages.views import content_policy, render
from rolebundle.interfaces.servers.loopback import ADDRESS, Guard
from rolebundle.interfaces.servers.operations import internal_error
from rolebundle.interfaces.signals import on_end

MAX_FIELDS = 200
IDLE_SECONDS = 10.0
"""How long a connection may be silent before it is closed."""
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": f"{content_policy(is_live=True)}; frame-ancestors 'none'",
    "Connection": "close",
}


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(32)


class InspectServer(ThreadingHTTPServer):
    """Serves an application on a socket that already listens.

    Args:
        app: the views.
        listener: listens on an address of this machine.
        token: the first part of every path.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, app: Inspector, listener: socket.socket, token: str) -> None:
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.app = app
        self.token = token.encode("ascii")
        self.guard = Guard(listener.getsockname()[1], token)
        self._tickets: list[bytes] = []

    def address_for_browser(self) -> str:
        """An address that leads to the first view once.

        Other users of the machine can read it among the arguments of the browser's process.
        """
        ticket = new_token()
        self._tickets.append(ticket.encode("ascii"))
        return address_of(self.socket, ticket)

    def take_ticket(self, presented_ticket: bytes) -> bool:
        """Whether the ticket is valid. It is valid once."""
        for ticket in self._tickets:
            if hmac.compare_digest(presented_ticket, ticket):
                # Of two threads with the same ticket, the later one fails.
                with suppress(ValueError):
                    self._tickets.remove(ticket)
                    return True
        return False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of our own. A connection that the browser closed early is no error."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, (ConnectionError, TimeoutError)):
            print(f"error: {internal_error(error)}", file=sys.stderr)

    def serve_until_signal(self) -> list[int]:
        """Serve until SIGINT or SIGTERM.

        Returns:
            The signals that came.
        """
        signals: list[int] = []
        # `shutdown` waits for the loop, which runs in this thread.
        on_end(signals, lambda: Thread(target=self.shutdown, daemon=True).start())
        self.serve_forever(poll_interval=0.1)
        return signals


class _Handler(BaseHTTPRequestHandler):
    """One request of a connection."""

    server: InspectServer
    timeout = IDLE_SECONDS
    server_version = "rolebundle"
    sys_version = ""
    # In HTTP/0.9 an answer has no status and no headers.
    default_request_version = "HTTP/1.0"

    def do_GET(self) -> None:
        """Answer a view."""
        if request := self._view_and_parameters():
            self._send(self.server.app.answer(*request))

    def refuse_method(self) -> None:
        """Refuse a method that no view has."""
        if self._view_and_parameters() is not None:
            error = UsageError("no_method", "the view has no such method", "use GET")
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, error)

    def _view_and_parameters(self) -> tuple[str, Parameters] | None:
        """The view and its parameters; ``None`` if the request was refused."""
        headers = [
            (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in self.headers.items()
        ]
        if refused := self.server.guard.address_refusal(headers):
            self._refuse(HTTPStatus(refused[0]), refused[1])
            return None
        try:
            parts = urlsplit(self.path)
            pairs = parse_qsl(parts.query, errors="surrogatepass", max_num_fields=MAX_FIELDS)
        except ValueError:
            error = UsageError("bad_address", "the address cannot be read", "use the links")
            self._refuse(HTTPStatus.BAD_REQUEST, error)
            return None
        token, slash, view = parts.path.removeprefix("/").partition("/")
        presented_token = token.encode("utf-8", "surrogateescape")
        if not slash or not hmac.compare_digest(presented_token, self.server.token):
            if (
                self.command == "GET"
                and slash
                and not view
                and self.server.take_ticket(presented_token)
            ):
                first_view = f"/{self.server.token.decode()}/"
                self._send(Response(HTTPStatus.SEE_OTHER, ""), location=first_view)
                return None
            denied = AccessDenied(
                "token_required",
                "the address has no valid token",
                "open the address that `rolebundle inspect` printed",
            )
            self._refuse(HTTPStatus.FORBIDDEN, denied)
            return None
        return view, Parameters(pairs)

    def _refuse(self, status: HTTPStatus, error: RolebundleError) -> None:
        self._send(Response(status, render("error", error=error)))

    def _send(self, response: Response, *, location: str = "") -> None:
        body = response.page.encode("utf-8")
        self.send_response(response.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no HTTP request, without repeating any of it."""
        if code == HTTPStatus.REQUEST_URI_TOO_LONG:
            error = UsageError("address_too_long", "the address is longer than 64 KB", "shorten it")
        else:
            error = UsageError("bad_request", "this is no request for a page", "use the links")
        self._refuse(HTTPStatus(code), error)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: an address has the token."""


for _method in ("HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"):
    setattr(_Handler, f"do_{_method}", _Handler.refuse_method)


def address_of(listener: socket.socket, token: str) -> str:
    """The address of the first view."""
    return f"http://{ADDRESS}:{listener.getsockname()[1]}/{token}/"
