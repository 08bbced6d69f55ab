"""The view `corpus`."""

from __future__ import annotations

from rolebundle.admin import Admin
from rolebundle.contracts.lookup import Listing
from rolebundle.contracts.operation_requests import ListRequest
from rolebundle.doctor import examine
from rolebundle.errors import UsageError
from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.pages.corpus import MAX_ROWS, Documents, OwnerFacts, corpus_page
from rolebundle.interfaces.parse import parsed
from rolebundle.retrieval.lookups.listing import list_documents
from rolebundle.retrieval.lookups.lookup import ReferenceScope
from rolebundle.storage.content.quarantine import count_flagged, flagged_documents

MAX_DOCUMENTS = 200


def show(app: Inspector, parameters: Parameters) -> str:
    """The corpus, and one page of its documents; ``check`` examines it first."""
    site, admin = app.site(parameters), app.owner_of(parameters)
    facts = _owner_facts(admin, is_checked=bool(parameters.get("check"))) if admin else None
    return corpus_page(app.status(parameters), _documents(app, parameters), site, facts)


def _documents(app: Inspector, parameters: Parameters) -> Documents:
    prefix, after = parameters.get("prefix"), parameters.get("after")
    request = parsed(
        ListRequest,
        {
            "prefix": prefix or None,
            "after": after or None,
            "agent": app.agent_of(parameters),
            "limit": MAX_DOCUMENTS,
        },
    )
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
    corpus = admin.workspace.corpus
    return OwnerFacts(
        flagged=flagged_documents(corpus, "quarantine", MAX_ROWS),
        quarantined=count_flagged(corpus).get("quarantine", 0),
        report=examine(admin.workspace.path) if is_checked else None,
    )
