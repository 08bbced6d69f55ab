"""The view `document`."""

from __future__ import annotations

from datetime import UTC, datetime

from rolebundle.admin import Admin
from rolebundle.errors import UsageError
from rolebundle.ingest.run_flags import flags_of
from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.pages.document import OwnerFacts, document_page
from rolebundle.retrieval.lookups.inspection import DocumentInspection


def show(app: Inspector, parameters: Parameters) -> str:
    """A document, by its id; ``chunk`` names a passage, ``first`` the first one of the page."""
    reference, chunk = parameters.required("id"), parameters.get("chunk")
    first = parameters.positive("first")
    site, now = app.site(parameters), datetime.now(UTC)
    admin = app.owner_of(parameters)
    if admin is None:
        agent = app.agent_of(parameters)
        inspection = app.engine.document(reference, agent, chunk=chunk, first=first)
        return document_page(inspection, now, site)
    inspection = admin.documents.inspect(reference, chunk=chunk, first=first)
    return document_page(inspection, now, site, _owner_facts(admin, inspection))


def _owner_facts(admin: Admin, inspection: DocumentInspection) -> OwnerFacts:
    document_id = inspection.document.document_id
    try:
        flagged = admin.quarantine.find(document_id)
    except UsageError:
        flagged = None
    marks = [
        mark
        for mark in admin.marks.all()
        if mark.target == document_id or mark.target.startswith(f"{document_id}#")
    ]
    return OwnerFacts(flags_of(admin.workspace.corpus, inspection.location), flagged, marks)
