"""The marks on passages and documents, as the owner of a corpus sets them."""

from __future__ import annotations

from dataclasses import dataclass

from rolebundle.contracts.marks import MarkRecord
from rolebundle.contracts.terms import MarkState
from rolebundle.verification.marks import list_marks, mark_as_owner, remove_mark_as_owner
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Marks:
    """The marks of one corpus."""

    workspace: Workspace

    def put(self, reference: str, state: MarkState, marked_by: str, reason: str) -> MarkRecord:
        """See :func:`rolebundle.verification.marks.mark_as_owner`."""
        with self.workspace.recorded_change("mark") as (corpus, details):
            record = mark_as_owner(corpus, reference, state, marked_by, reason)
            details["state"] = state
        return record

    def remove(self, target: str) -> MarkRecord:
        """See :func:`rolebundle.verification.marks.remove_mark_as_owner`."""
        with self.workspace.recorded_change("mark") as (corpus, details):
            record = remove_mark_as_owner(corpus, target)
            details["state"] = "unverified"
        return record

    def all(self) -> list[MarkRecord]:
        """Every mark, also those that have ended because the text changed."""
        with self.workspace.answering_corpus.reading():
            return list_marks(self.workspace.corpus)
