"""The decisions of the owner of a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from rolebundle.contracts.decisions import DecisionRecord, NewDecision
from rolebundle.verification.decisions import records
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Decisions:
    """The decisions that are recorded in one corpus."""

    workspace: Workspace

    def record(self, new: NewDecision) -> DecisionRecord:
        """Record a decision of the owner. The corpus file is created if it is missing.

        Raises:
            UsageError: it supersedes a decision that does not exist, or is never valid.
        """
        with self.workspace.recorded_change("decide", create=True) as (corpus, details):
            record = records.record_decision(corpus, new, datetime.now(UTC))
            details.update(decision=record.id, effect=record.effect, state=record.state)
        return record

    def end(self, decision_id: str, ended_by: str, reason: str) -> DecisionRecord:
        """See :func:`rolebundle.verification.decisions.records.end_decision`."""
        with self.workspace.recorded_change("decide") as (corpus, details):
            now = datetime.now(UTC)
            record = records.end_decision(corpus, decision_id, ended_by, reason, now)
            details.update(decision=record.id, state=record.state)
        return record

    def all(self) -> list[DecisionRecord]:
        """Every decision, with its present state, ordered by scope and number."""
        with self.workspace.answering_corpus.reading():
            return records.list_decisions(self.workspace.corpus, datetime.now(UTC))
