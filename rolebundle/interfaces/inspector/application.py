"""The application behind `inspect`: a request for a view in, a page out. HTTP is in `server.py`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from threading import Lock
from traceback import print_exc
from typing import Any, NamedTuple

from rolebundle.admin import Admin
from rolebundle.contracts.method_requests import MAX_ROLES, ListRequest
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.status import CorpusStatus
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
from rolebundle.interfaces.pages.page import Site, render
from rolebundle.interfaces.pages.views import (
    answer_page,
    compare_form,
    compare_page,
    document_page,
    why_page,
)
from rolebundle.interfaces.parse import names_in, parsed, request_from
from rolebundle.interfaces.servers.operations import internal_error
from rolebundle.interfaces.servers.worker import server_is_ending
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
        return compare_form(site, roles)
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
