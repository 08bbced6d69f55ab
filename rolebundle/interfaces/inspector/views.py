"""The views of `inspect` by their names in an address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rolebundle.admin import Admin
from rolebundle.admin.records import all_marks
from rolebundle.contracts.operation_requests import MAX_ROLES, ListRequest
from rolebundle.doctor import examine
from rolebundle.errors import UsageError
from rolebundle.ingest.roots import flags_of
from rolebundle.interfaces.inspector.application import Inspector, Parameters, View
from rolebundle.interfaces.pages.answer import answer_page
from rolebundle.interfaces.pages.compare import compare_form, compare_page
from rolebundle.interfaces.pages.document import document_page
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.why import why_page
from rolebundle.interfaces.parse import parsed
from rolebundle.retrieval.explanation.compare import compare_roles
from rolebundle.retrieval.lookups.inspection import DocumentInspection, inspect_document
from rolebundle.retrieval.lookups.listing import list_documents
from rolebundle.retrieval.lookups.lookup import ReferenceScope
from rolebundle.scan.quarantine import flagged_document
from rolebundle.storage.content.quarantine import count_flagged, flagged_documents

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
    return document_page(inspection, now, site, **_owner_facts(admin, inspection))


def _owner_facts(admin: Admin, inspection: DocumentInspection) -> dict[str, Any]:
    """What only the owner sees of a document."""
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
    flags = flags_of(admin.workspace.corpus, inspection.location)
    return {"flags": flags, "flagged": flagged, "marks": marks}


def corpus(app: Inspector, parameters: Parameters) -> str:
    """The corpus, and one page of its documents; ``check`` examines it first."""
    site, admin, status = app.site(parameters), app.owner_of(parameters), app.status(parameters)
    owner: dict[str, Any] = {}
    if admin:
        file = admin.workspace.corpus
        owner = {
            "flagged": [
                (name, json.loads(name.scanned.kinds))
                for name in flagged_documents(file, "quarantine", MAX_ROWS)
            ],
            "quarantined": count_flagged(file).get("quarantine", 0),
            "report": examine(admin.workspace.path) if parameters.get("check") else None,
        }
    return render(
        "corpus",
        site,
        status=status,
        documents=_documents(app, parameters, admin),
        sources=sorted(status.sources, key=lambda source: (-source.documents, source.source_id)),
        owner=owner,
        max_rows=MAX_ROWS,
    )


def _documents(app: Inspector, parameters: Parameters, admin: Admin | None) -> dict[str, Any]:
    """One page of the documents, or why there is none."""
    prefix, after = parameters.get("prefix"), parameters.get("after")
    shown: dict[str, Any] = {"prefix": prefix, "after": after, "listing": None, "problem": ""}
    fields = {
        "prefix": prefix or None,
        "after": after or None,
        "agent": app.agent_of(parameters),
        "limit": MAX_DOCUMENTS,
    }
    request = parsed(ListRequest, fields)
    try:
        if admin is None:
            return shown | {"listing": app.engine.ls(request)}
        # Also those in quarantine.
        with admin.workspace.answering_corpus.reading():
            scope = ReferenceScope(absolute=True)
            return shown | {"listing": list_documents(admin.workspace.corpus, request, scope)}
    except UsageError as error:
        if error.code != "not_found":
            raise
        return shown | {"problem": f"{error.message}; {error.hint}"}


VIEWS: Mapping[str, View] = {
    "": ask,
    "answer": answer,
    "why": why,
    "compare": compare,
    "document": document,
    "corpus": corpus,
}
