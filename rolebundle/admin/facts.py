"""The remembered facts of a corpus, as its owner files, promotes and forgets them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.facts import FactRecord, RememberedFact, RememberRequest
from rolebundle.scan.confidential import without_secrets
from rolebundle.verification import remember
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Facts:
    """The remembered facts of one corpus."""

    workspace: Workspace

    def remember(self, request: RememberRequest, remembered_by: str) -> RememberedFact:
        """File a fact with its source as the owner.

        Args:
            request: the fact and its source. Its agent is ignored.
            remembered_by: the name of the person.

        Raises:
            UsageError: the source is unknown, or nothing is left of the fact after the scan.
        """
        with self.workspace.recorded_change("remember") as (corpus, details):
            author, now = remember.Author(remembered_by), iso_utc(datetime.now(UTC))
            fact, chunk = remember.remember(corpus, corpus, request, author, now)
            details.update(_details(fact, remembered_by))
        remember.embed_passage(self.workspace, chunk)
        return fact

    def promote(self, document_id: str, promoted_by: str) -> FactRecord:
        """Raise a fact's trust; see :func:`rolebundle.verification.remember.promote`."""
        with self.workspace.recorded_change("promote") as (corpus, details):
            fact = remember.promote(corpus, document_id, promoted_by)
            details.update(_details(fact, promoted_by))
        return fact

    def forget(self, document_id: str, forgotten_by: str) -> FactRecord:
        """Remove a fact, and return it. A purge also erases its bytes.

        Raises:
            UsageError: there is no such fact.
        """
        with self.workspace.recorded_change("forget") as (corpus, details):
            fact = remember.forget(corpus, document_id)
            details.update(_details(fact, forgotten_by))
        return fact

    def all(self) -> list[FactRecord]:
        """Every remembered fact, the last filed first."""
        with self.workspace.answering_corpus.reading():
            return remember.list_facts(self.workspace.corpus)


def _details(fact: RememberedFact, name: str) -> dict[str, str]:
    """The details of the record of an act."""
    return {"state": fact.state, "by": without_secrets(name)}
