"""A person decides about what the scan at the door keeps back."""

from __future__ import annotations

from rolebundle.errors import UsageError
from rolebundle.storage import quarantine, store
from rolebundle.storage.connection import Corpus
from rolebundle.storage.quarantine import Flagged


def found(corpus: Corpus, document_id: str) -> Flagged:
    """What the scan found in a document.

    Raises:
        UsageError: there is no such document, or nothing was found in it.
    """
    flagged = quarantine.flagged_document(corpus, document_id)
    if flagged is None:
        raise UsageError(
            "not_flagged",
            f"{document_id}: no document of that id has findings",
            "`rolebundle quarantine list --all` names those that have",
        )
    return flagged


def release(corpus: Corpus, document_id: str) -> None:
    """Let a quarantined document be seen, as long as its text stays what it is.

    Raises:
        UsageError: it is not in quarantine.
    """
    with corpus.writing():
        quarantine.release(corpus, _kept_back(corpus, document_id))
        store.increment_generation(corpus)


def drop(corpus: Corpus, document_id: str) -> None:
    """Remove a quarantined document; it comes back only when its file changes.

    Raises:
        UsageError: it is not in quarantine.
    """
    with corpus.writing():
        store.remove_document(corpus, _kept_back(corpus, document_id).row)
        store.drop_unused(corpus)
        store.increment_generation(corpus)


def _kept_back(corpus: Corpus, document_id: str) -> Flagged:
    flagged = found(corpus, document_id)
    if flagged.scanned.verdict != "quarantine":
        raise UsageError(
            "not_quarantined",
            f"{document_id}: is not in quarantine but {flagged.scanned.verdict}",
            "`rolebundle quarantine list` names those that are",
        )
    return flagged
