"""The views of `inspect` by their names in an address. Large ones have a file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from rolebundle.admin import Admin
from rolebundle.admin.records import all_marks
from rolebundle.contracts.operation_requests import MAX_ROLES
from rolebundle.errors import UsageError
from rolebundle.ingest.roots import flags_of
from rolebundle.interfaces.inspector import corpus
from rolebundle.interfaces.inspector.application import Inspector, Parameters, View
from rolebundle.interfaces.pages.answer import answer_page
from rolebundle.interfaces.pages.compare import compare_form, compare_page
from rolebundle.interfaces.pages.document import OwnerFacts, document_page
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.why import why_page
from rolebundle.retrieval.explanation.compare import compare_roles
from rolebundle.retrieval.lookups.inspection import DocumentInspection, inspect_document
from rolebundle.retrieval.lookups.lookup import ReferenceScope
from rolebundle.scan.quarantine import flagged_document


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
    roles = [
        parameters.get("role"),
        parameters.get("other"),
        *",".join(parameters.all("roles")).split(","),
    ]
    return list(dict.fromkeys(role.strip() for role in roles if role.strip()))


def document(app: Inspector, parameters: Parameters) -> str:
    """A document, by its id; ``chunk`` names a passage, ``first`` the first one of the page."""
    reference, chunk = parameters.required("id"), parameters.get("chunk")
    first = parameters.positive("first")
    site, now = app.site(parameters), datetime.now(UTC)
    admin = app.owner_of(parameters)
    if admin is None:
        agent = app.agent_of(parameters)
        inspection = app.engine.document(reference, agent, chunk=chunk, first=first)
        return document_page(inspection, now, site)
    scope = ReferenceScope(absolute=True)
    with admin.workspace.answering_corpus.reading():
        inspection = inspect_document(admin.workspace.corpus, reference, chunk, first, scope)
    return document_page(inspection, now, site, _document_facts(admin, inspection))


def _document_facts(admin: Admin, inspection: DocumentInspection) -> OwnerFacts:
    document_id = inspection.document.document_id
    try:
        flagged = flagged_document(admin.workspace.answering_corpus, document_id)
    except UsageError:
        flagged = None
    marks = [
        mark
        for mark in all_marks(admin.workspace)
        if mark.target == document_id or mark.target.startswith(f"{document_id}#")
    ]
    return OwnerFacts(flags_of(admin.workspace.corpus, inspection.location), flagged, marks)


VIEWS: Mapping[str, View] = {
    "": ask,
    "answer": answer,
    "why": why,
    "compare": compare,
    "document": document,
    "corpus": corpus.show,
}
