"""What a person decides about a quarantined document: release it or drop it."""

from __future__ import annotations

from rolebundle.errors import UsageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import quarantine, store
from rolebundle.storage.content.quarantine import Flagged
from rolebundle.storage.corpus_state import increment_generation


def flagged_document(corpus: Corpus, name: str) -> Flagged:
    """What the scan found in the document with this id or path.

    Raises:
        UsageError: there is no such document, or nothing was found in it.
    """
    document = quarantine.flagged_document(corpus, name)
    if document is None:
        raise UsageError(
            "not_flagged",
            f"{name}: no document of that id or path has findings",
            "`rolebundle corpus quarantine list --all` names those that have",
        )
    return document


def release_document(corpus: Corpus, document_id: str) -> None:
    """Release a document from quarantine for as long as its text does not change.

    Raises:
        UsageError: it is not in quarantine.
    """
    with corpus.writing():
        quarantine.release(corpus, _quarantined_document(corpus, document_id))
        increment_generation(corpus)


def drop_document(corpus: Corpus, document_id: str) -> None:
    """Remove a quarantined document. It comes back only if its file changes.

    Raises:
        UsageError: it is not in quarantine.
    """
    with corpus.writing():
        # Its file stays, so that it is not read again until it changes.
        store.remove_documents(corpus, [_quarantined_document(corpus, document_id).row])
        store.drop_unused(corpus)
        increment_generation(corpus)


def _quarantined_document(corpus: Corpus, document_id: str) -> Flagged:
    document = flagged_document(corpus, document_id)
    if document.scanned.verdict != "quarantine":
        raise UsageError(
            "not_quarantined",
            f"{document_id}: is not in quarantine but {document.scanned.verdict}",
            "`rolebundle corpus quarantine list` names those that are",
        )
    return document
