"""What the quarantine keeps back from an answer, for the owner of a corpus without a policy."""

from __future__ import annotations

import json
from shlex import quote

from rolebundle.contracts.bundle import KeptBack
from rolebundle.errors import UsageError
from rolebundle.retrieval.lexical import match_expression
from rolebundle.retrieval.lookups.lookup import ReferenceScope
from rolebundle.retrieval.query import build_query
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import quarantine
from rolebundle.storage.content.quarantine import Flagged
from rolebundle.storage.indexes import compartments, lexical_index
from rolebundle.text.references import may_be_stored, named_document

MAX_NAMED = 5
"""So many documents are named; `rolebundle corpus quarantine list` has all."""
_MAX_PASSAGES = 50


def kept_back(corpus: Corpus, task: str) -> list[KeptBack]:
    """The quarantined documents that have the task's words, best first; ties by id.

    Args:
        corpus: the whole corpus, with its quarantine.
        task: the task of the request.
    """
    scores: dict[int, float] = {}
    with corpus.reading():
        quarantined = [
            compartment.id
            for compartment in compartments.visible_compartments(corpus)
            if compartment.quarantined and compartment.chunks
        ]
        terms = build_query(task, None).task_terms if quarantined else ()
        if not terms:
            return []
        match = match_expression(terms)
        for compartment in quarantined:
            scores |= lexical_index.search(corpus, compartment, match, _MAX_PASSAGES)
        documents = quarantine.quarantined_with(corpus, scores)
    return [
        KeptBack(document_id=document.document_id, kinds=_kinds(document))
        for document in documents[:MAX_NAMED]
    ]


def _kinds(document: Flagged) -> list[str]:
    kinds: list[str] = json.loads(document.scanned.kinds)
    return kinds


def quarantined_error(corpus: Corpus, reference: str, scope: ReferenceScope) -> UsageError | None:
    """The error for a reference that names a quarantined document; ``None`` if it names none."""
    if not may_be_stored(reference):
        return None
    name = named_document(reference)
    with corpus.reading():
        document = quarantine.quarantined_named(corpus, reference, name, scope.locations(name))
    if document is None:
        return None
    return UsageError(
        "quarantined",
        f"{reference}: quarantined: {', '.join(_kinds(document))}",
        f"rolebundle corpus quarantine show {quote(document.document_id)}",
    )
