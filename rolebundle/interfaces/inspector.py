"""The application behind `inspect`: a request for a view in, a page out; and its HTTP server.

It has one thread per connection, for this machine only, and a token in each address. The token is
the first part of the path. So the browser keeps it in its history; the server ends with the
command, and each start has another token.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from traceback import print_exc
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from rolebundle.admin import Admin
from rolebundle.contracts.request import MAX_ROLES, ListRequest, RetrievalRequest
from rolebundle.contracts.upkeep import CorpusStatus
from rolebundle.engine import Engine
from rolebundle.errors import (
    AccessDenied,
    ConfigurationError,
    CorpusBusy,
    Interrupted,
    OverlayError,
    RolebundleError,
    UsageError,
)
from rolebundle.interfaces.pages.views import (
    Site,
    answer_page,
    compare_page,
    content_policy,
    document_page,
    render,
    why_page,
)
from rolebundle.interfaces.parse import names_in, parsed, request_from
from rolebundle.interfaces.servers.loopback import ADDRESS, Guard
from rolebundle.interfaces.servers.operations import internal_error
from rolebundle.interfaces.servers.worker import server_is_ending
from rolebundle.interfaces.signals import on_end
from rolebundle.policy.overlays import list_overlays
from rolebundle.policy.trust import UNRESTRICTED_VIEW
from rolebundle.retrieval.compare import compare_roles
from rolebundle.status import owner_status
from rolebundle.storage.partition import Flagged, flagged_documents

DEADLINE_MS = 30_000
"""How long an answer may take."""
MAX_TASK_BYTES = 4_000
"""The task is in the address of each link of an answer, which may have hundreds of them."""
REQUEST_FIELDS = ("task", "role", "agent", "action", "limit", "as_of", "now", "lexical_only")
"""The fields of a request that a view's address can have."""
_STATUS: Mapping[type[RolebundleError], HTTPStatus] = {
    UsageError: HTTPStatus.BAD_REQUEST,
    OverlayError: HTTPStatus.BAD_REQUEST,
    ConfigurationError: HTTPStatus.BAD_REQUEST,
    AccessDenied: HTTPStatus.FORBIDDEN,
    CorpusBusy: HTTPStatus.SERVICE_UNAVAILABLE,
    Interrupted: HTTPStatus.SERVICE_UNAVAILABLE,
}
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")


class Response(NamedTuple):
    """A page, with its HTTP status."""

    status: HTTPStatus
    page: str


class Parameters:
    """The parameters of a view's address.

    Args:
        pairs: names and values, in their order; a name can come several times.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)

    def get(self, name: str) -> str:
        """The first value of a name; empty if there is none."""
        return next((value for key, value in self.pairs if key == name), "").strip()

    def all(self, name: str) -> list[str]:
        """All values of a name that are not empty."""
        return [value.strip() for key, value in self.pairs if key == name and value.strip()]

    def required(self, name: str) -> str:
        """The value of a name.

        Raises:
            UsageError: it is missing.
        """
        value = self.get(name)
        if not value:
            raise UsageError(
                "parameter_missing", f"the address has no {name}", "go back and choose again"
            )
        return value

    def request(self) -> dict[str, str]:
        """The fields of a request that are given, as they are in the address."""
        return {name: self.get(name) for name in REQUEST_FIELDS if self.get(name)}

    def positive(self, name: str) -> int:
        """The whole number of a name, at least 1; 1 if there is none.

        Raises:
            UsageError: it is something else, or has more than nine digits.
        """
        value = self.get(name) or "1"
        if not _WHOLE_NUMBER.fullmatch(value) or int(value) == 0:
            raise UsageError(
                "bad_parameter",
                f"{name} is no whole number of at least 1",
                "use the links of the pages",
            )
        return int(value)


class Inspector:
    """The views over one engine, which answers one request at a time.

    Args:
        engine: answers for its agent, or for the owner of the corpus.
        base: the path that all views share, with the token and a slash at its end.
    """

    def __init__(self, engine: Engine, base: str) -> None:
        self.engine = engine
        self.admin = Admin(engine.workspace) if engine.agent is None else None
        self._base = base
        self._lock = Lock()
        self._is_closed = False

    def answer(self, name: str, parameters: Parameters) -> Response:
        """The page of a view, or of the error that happened.

        Args:
            name: of the view.
            parameters: the parameters of its address.
        """
        with self._lock:
            try:
                if self._is_closed:
                    raise server_is_ending()
                self.engine.refresh()
                return Response(HTTPStatus.OK, self._page(name, parameters))
            except RolebundleError as error:
                return self._error(error)
            except Exception as error:
                if os.environ.get("ROLEBUNDLE_DEBUG"):
                    print_exc()
                return self._error(internal_error(error), HTTPStatus.INTERNAL_SERVER_ERROR)

    def _page(self, name: str, parameters: Parameters) -> str:
        view = VIEWS.get(name)
        if view is None:
            raise UsageError("no_view", "there is no such view", "use the links of the pages")
        with self.engine.access.recording_refusals(parameters.get("agent") or None):
            return view(self, parameters)

    def _error(self, error: RolebundleError, status: HTTPStatus | None = None) -> Response:
        if status is None:
            statuses = (status for kind, status in _STATUS.items() if isinstance(error, kind))
            status = next(statuses, HTTPStatus.INTERNAL_SERVER_ERROR)
        if error.code in ("not_found", "no_view"):
            status = HTTPStatus.NOT_FOUND
        site = Site(base=self._base, is_owner=self.admin is not None)
        return Response(status, render("error", site, error=error))

    def agent_of(self, parameters: Parameters) -> str | None:
        """The agent in whose name a view is shown; ``None`` for the owner.

        Raises:
            AccessDenied: the application is for another agent.
        """
        agent = parameters.get("agent") or None
        if self.engine.agent is not None and agent not in (None, self.engine.agent):
            self.engine.access.view_of(agent)
        return agent

    def owner_of(self, parameters: Parameters) -> Admin | None:
        """The owner's methods; ``None`` if the view is shown in the name of an agent."""
        return None if self.agent_of(parameters) else self.admin

    def site(self, parameters: Parameters) -> Site:
        """The application around a page with these parameters.

        Raises:
            AccessDenied: the agent may see nothing.
        """
        # The owner sees everything, even if the policy gives nothing without an agent's name.
        view = (
            UNRESTRICTED_VIEW
            if self.owner_of(parameters)
            else self.engine.access.view_of(self.agent_of(parameters))
        )
        return Site(
            base=self._base,
            request=parameters.request(),
            is_owner=self.admin is not None,
            roles=[
                overlay.role_id
                for overlay in list_overlays(self.engine.overlay_folders)
                if not overlay.problem and view.allows_role(overlay.role_id)
            ],
        )

    def status(self, parameters: Parameters) -> CorpusStatus:
        """What the corpus contains, for the owner or for the agent of the view.

        Raises:
            AccessDenied: the agent may see nothing.
        """
        if admin := self.owner_of(parameters):
            return owner_status(admin.workspace.corpus)
        return self.engine.status(self.agent_of(parameters))

    def request(self, parameters: Parameters, **changes: object) -> RetrievalRequest:
        """The retrieval request of a view's address.

        Raises:
            UsageError: a field has a bad value, or the task is missing or too long.
        """
        task = parameters.required("task")
        if len(task.encode("utf-8", "surrogatepass")) > MAX_TASK_BYTES:
            raise UsageError(
                "task_too_long",
                f"the task is longer than {MAX_TASK_BYTES:,} bytes",
                "make it shorter, or use `rolebundle retrieve TASK --html FILE`",
            )
        fields: dict[str, object] = {**parameters.request()}
        if limit := parameters.get("limit"):
            fields["limit"] = int(limit) if _WHOLE_NUMBER.fullmatch(limit) else limit
        if "lexical_only" in fields:
            fields["lexical_only"] = True
        return request_from({"deadline_ms": DEADLINE_MS, **fields, **changes})

    def close(self) -> None:
        """End the request that runs now, and close the corpus. Later requests are refused."""
        self._is_closed = True
        self.engine.interrupt()
        with self._lock:
            self.engine.close()


View = Callable[[Inspector, Parameters], str]
"""Makes the page of a view."""


MAX_DOCUMENTS = 200
MAX_ROWS = 100


def ask(app: Inspector, parameters: Parameters) -> str:
    """The form for a question."""
    site = app.site(parameters)
    return render("ask", site, status=app.status(parameters))


def answer(app: Inspector, parameters: Parameters) -> str:
    """The answer to the task of the address."""
    site = app.site(parameters)
    return answer_page(app.engine.retrieve(app.request(parameters)), site)


def why(app: Inspector, parameters: Parameters) -> str:
    """Why the passage ``id`` is in the answer to the task of the address, or is not."""
    site = app.site(parameters)
    return why_page(app.engine.why(app.request(parameters), parameters.required("id")), site)


def compare(app: Inspector, parameters: Parameters) -> str:
    """What each of the chosen roles gets for the task; the form to choose them if two are missing.

    Raises:
        UsageError: there are too many roles.
    """
    site = app.site(parameters)
    roles = _roles(parameters)
    if len(roles) > MAX_ROLES:
        raise UsageError(
            "too_many_roles", f"{len(roles)} roles are too many", f"choose at most {MAX_ROLES}"
        )
    if len(roles) < 2 or not parameters.get("task"):
        return render("compare", site, comparison=None, chosen=roles)
    request = app.request(parameters, role=None)
    return compare_page(
        compare_roles(app.engine.retrieve_for_roles(request, roles, without_role=True)), site
    )


def _roles(parameters: Parameters) -> list[str]:
    """The roles of `role`, `other` and `roles`, which is a list with commas or comes repeatedly."""
    single = [parameters.get("role"), parameters.get("other")]
    return names_in(",".join([*single, *parameters.all("roles")]))


def document(app: Inspector, parameters: Parameters) -> str:
    """A document, by its id; ``chunk`` names a passage, ``first`` the first one of the page."""
    reference, chunk = parameters.required("id"), parameters.get("chunk")
    first, site = parameters.positive("first"), app.site(parameters)
    lookup = app.engine.get(reference, app.agent_of(parameters))
    return document_page(lookup, datetime.now(UTC), site, chunk=chunk, first=first)


def corpus(app: Inspector, parameters: Parameters) -> str:
    """The corpus, and one page of its documents."""
    site, admin, status = app.site(parameters), app.owner_of(parameters), app.status(parameters)
    flagged: list[tuple[Flagged, list[str]]] = []
    if admin:
        found = flagged_documents(admin.workspace.corpus, "quarantine", MAX_ROWS)
        flagged = [(entry, json.loads(entry.scanned.kinds)) for entry in found]
    return render(
        "corpus",
        site,
        status=status,
        documents=_documents(app, parameters),
        sources=sorted(status.sources, key=lambda source: (-source.documents, source.source_id)),
        is_owner=admin is not None,
        flagged=flagged,
        max_rows=MAX_ROWS,
    )


def _documents(app: Inspector, parameters: Parameters) -> dict[str, Any]:
    """One page of the documents, or why there is none."""
    prefix, after = parameters.get("prefix"), parameters.get("after")
    shown: dict[str, Any] = {"prefix": prefix, "after": after, "listing": None, "problem": ""}
    fields = {
        "prefix": prefix or None,
        "after": after or None,
        "agent": app.agent_of(parameters),
        "limit": MAX_DOCUMENTS,
    }
    try:
        return shown | {"listing": app.engine.ls(parsed(ListRequest, fields))}
    except (UsageError, AccessDenied) as error:
        return shown | {"problem": f"{error.message}; {error.hint}"}


VIEWS: Mapping[str, View] = {
    "": ask,
    "answer": answer,
    "why": why,
    "compare": compare,
    "document": document,
    "corpus": corpus,
}


# -- HTTP ------------------------------------------------------------------------------------------

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
        """Answer a view, or refuse the request."""
        headers = [
            (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in self.headers.items()
        ]
        if refused := self.server.guard.address_refusal(headers):
            return self._refuse(HTTPStatus(refused[0]), refused[1])
        try:
            parts = urlsplit(self.path)
            pairs = parse_qsl(parts.query, errors="surrogatepass", max_num_fields=MAX_FIELDS)
        except ValueError:
            error = UsageError("bad_address", "the address cannot be read", "use the links")
            return self._refuse(HTTPStatus.BAD_REQUEST, error)
        token, slash, view = parts.path.removeprefix("/").partition("/")
        presented_token = token.encode("utf-8", "surrogateescape")
        if not slash or not hmac.compare_digest(presented_token, self.server.token):
            if slash and not view and self.server.take_ticket(presented_token):
                first_view = f"/{self.server.token.decode()}/"
                return self._send(Response(HTTPStatus.SEE_OTHER, ""), location=first_view)
            denied = AccessDenied(
                "token_required",
                "the address has no valid token",
                "open the address that `rolebundle inspect` printed",
            )
            return self._refuse(HTTPStatus.FORBIDDEN, denied)
        return self._send(self.server.app.answer(view, Parameters(pairs)))

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
        elif code == HTTPStatus.NOT_IMPLEMENTED:
            error = UsageError("no_method", "the view has no such method", "use GET")
        else:
            error = UsageError("bad_request", "this is no request for a page", "use the links")
        self._refuse(HTTPStatus(code), error)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: an address has the token."""


def address_of(listener: socket.socket, token: str) -> str:
    """The address of the first view."""
    return f"http://{ADDRESS}:{listener.getsockname()[1]}/{token}/"
