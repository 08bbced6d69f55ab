"""The view `corpus`."""

from __future__ import annotations

from datetime import UTC, datetime

from rolebundle.admin import Admin
from rolebundle.admin.audit import audit_rows
from rolebundle.admin.records import all_decisions, all_marks
from rolebundle.contracts.audit import AuditRow, AuditSettings
from rolebundle.contracts.lookup import Listing
from rolebundle.contracts.operation_requests import ListRequest
from rolebundle.doctor import examine
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.pages.corpus import MAX_ROWS, Documents, OwnerFacts, corpus_page
from rolebundle.interfaces.parse import parsed
from rolebundle.retrieval.lookups.listing import list_documents
from rolebundle.retrieval.lookups.lookup import ReferenceScope
from rolebundle.storage.content import documents
from rolebundle.storage.content.quarantine import count_flagged, flagged_names
from rolebundle.storage.records import roots

MAX_DOCUMENTS = 200
MAX_AUDIT_ROWS = 2_000
"""Of so many of the last records the agents and questions are counted."""


def show(app: Inspector, parameters: Parameters) -> str:
    """The corpus, and one page of its documents; ``check`` examines it first."""
    site, now, admin = app.site(parameters), datetime.now(UTC), app.owner_of(parameters)
    facts = _owner_facts(admin, is_checked=bool(parameters.get("check"))) if admin else None
    return corpus_page(app.status(parameters), _documents(app, parameters), now, site, facts)


def _documents(app: Inspector, parameters: Parameters) -> Documents:
    prefix, after, agent = (
        parameters.get("prefix"),
        parameters.get("after"),
        app.agent_of(parameters),
    )
    fields = {"prefix": prefix or None, "after": after or None, "agent": agent}
    request = parsed(ListRequest, {**fields, "limit": MAX_DOCUMENTS})
    admin = app.owner_of(parameters)
    try:
        listing = _owners_listing(admin, request) if admin else app.engine.ls(request)
        return Documents(listing, prefix, after)
    except UsageError as error:
        if error.code != "not_found":
            raise
        return Documents(None, prefix, after, f"{error.message}; {error.hint}")


def _owners_listing(admin: Admin, request: ListRequest) -> Listing:
    """The documents, also those in quarantine, a page at a time."""
    with admin.workspace.answering_corpus.reading():
        return list_documents(admin.workspace.corpus, request, ReferenceScope(absolute=True))


def _owner_facts(admin: Admin, *, is_checked: bool) -> OwnerFacts:
    settings: AuditSettings | None = None
    records: list[AuditRow] = []
    problem = ""
    try:
        settings, records = audit_rows(admin.workspace, MAX_AUDIT_ROWS)
    except RolebundleError as error:
        problem = error.message
    corpus = admin.workspace.corpus
    return OwnerFacts(
        dates=documents.source_dates(corpus),
        months=documents.documents_by_month(corpus),
        flagged=flagged_names(corpus, "quarantine", MAX_ROWS),
        verdicts=count_flagged(corpus),
        roots=roots.load(corpus),
        marks=all_marks(admin.workspace),
        decisions=all_decisions(admin.workspace),
        audit=settings,
        audit_problem=problem,
        records=records,
        report=examine(admin.workspace.path) if is_checked else None,
    )
