"""The quarantine of a corpus: what the scan found, and what its owner does about it."""

from __future__ import annotations

from dataclasses import dataclass

from rolebundle.scan import quarantine
from rolebundle.storage.content.quarantine import (
    Flagged,
    FlaggedName,
    flagged_documents,
    flagged_names,
)
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Quarantine:
    """The documents of one corpus with findings of the scan."""

    workspace: Workspace

    def documents(self, verdict: str = "quarantine") -> list[Flagged]:
        """The documents with findings of the scan.

        Args:
            verdict: the scan's verdict ``quarantine``, ``released`` or ``label``; empty for all.
        """
        return flagged_documents(self.workspace.answering_corpus, verdict)

    def names(self, limit: int, verdict: str = "quarantine") -> list[FlaggedName]:
        """The first documents with this verdict of the scan, without their texts."""
        return flagged_names(self.workspace.answering_corpus, verdict, limit)

    def find(self, document_id: str) -> Flagged:
        """See :func:`rolebundle.scan.quarantine.flagged_document`."""
        return quarantine.flagged_document(self.workspace.answering_corpus, document_id)

    def release(self, document_id: str) -> None:
        """See :func:`rolebundle.scan.quarantine.release_document`."""
        with self.workspace.recorded_change("release") as (corpus, _):
            quarantine.release_document(corpus, document_id)

    def drop(self, document_id: str) -> None:
        """See :func:`rolebundle.scan.quarantine.drop_document`."""
        with self.workspace.recorded_change("drop") as (corpus, _):
            quarantine.drop_document(corpus, document_id)
