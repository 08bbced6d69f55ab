"""The records of decisions: the owner makes and ends them; none is changed."""

from __future__ import annotations

from datetime import UTC, datetime

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.memory import DecisionRecord, NewDecision
from rolebundle.errors import UsageError
from rolebundle.scan.scan import scan_text
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.decisions import DecisionKey, add_decision, add_end, decisions, parse_id
from rolebundle.workspace import Workspace


def record_decision(
    workspace: Workspace, new: NewDecision, now: datetime | None = None
) -> DecisionRecord:
    """Record a decision of the owner. The corpus file is created if it is missing.

    Args:
        workspace: of the corpus.
        new: the decision.
        now: the present. Default: that of the clock.

    Raises:
        UsageError: it supersedes a decision that does not exist, or is never valid.
    """
    now = now or datetime.now(UTC)
    valid_from = new.valid_from or iso_utc(now)
    if new.valid_until is not None and new.valid_until < valid_from:
        raise UsageError(
            "never_valid",
            f"the decision is valid until {new.valid_until}, which is before {valid_from}",
            "give a later --until, or an earlier --from",
        )
    masked = {
        "text": scan_text(new.text).text,
        "reason": scan_text(new.reason or "").text,
        "effect": new.effect or ("block" if new.commands else "warn"),
    }
    with workspace.recorded_change("decide", create=True) as (corpus, details):
        known = {record.id for record in decisions(corpus, iso_utc(now), [new.scope])}
        superseded = []
        for name in new.supersedes:
            scope, number = _key(name if "-" in name else f"{new.scope}-{name}")
            if scope != new.scope or f"{scope}-{number}" not in known:
                raise _unknown(f"{name}: the scope {new.scope} has no such decision")
            superseded.append(number)
        number = add_decision(corpus, new.model_copy(update=masked), superseded, iso_utc(now))
        increment_generation(corpus)
        record = _find(corpus, f"{new.scope}-{number}", now)
        details.update(decision=record.id, effect=record.effect, state=record.state)
    return record


def end_decision(
    workspace: Workspace, decision_id: str, ended_by: str, reason: str, now: datetime | None = None
) -> DecisionRecord:
    """End a decision. What it has superseded stays superseded.

    Args:
        workspace: of the corpus.
        decision_id: its id, or its number in the scope ``shared``.
        ended_by: the name of the person.
        reason: why.
        now: the present. Default: that of the clock.

    Raises:
        UsageError: there is no such decision, or it has ended.
    """
    now = now or datetime.now(UTC)
    with workspace.recorded_change("decide") as (corpus, details):
        record = _find(corpus, decision_id, now)
        if record.ended_at is not None:
            raise UsageError(
                "already_ended", f"{record.id}: ended at {record.ended_at}", "nothing is left to do"
            )
        add_end(corpus, _key(record.id), ended_by, scan_text(reason).text, iso_utc(now))
        increment_generation(corpus)
        record = _find(corpus, record.id, now)
        details.update(decision=record.id, state=record.state)
    return record


def all_decisions(workspace: Workspace, now: datetime | None = None) -> list[DecisionRecord]:
    """Every decision, with its state at a time, by default now; ordered by scope and number."""
    with workspace.answering_corpus.reading():
        return decisions(workspace.corpus, iso_utc(now or datetime.now(UTC)))


def _find(corpus: Corpus, decision_id: str, now: datetime) -> DecisionRecord:
    """The decision with this id, or with this number in the scope ``shared``."""
    scope, number = _key(decision_id)
    for record in decisions(corpus, iso_utc(now), [scope]):
        if record.id == f"{scope}-{number}":
            return record
    raise _unknown(f"{decision_id}: there is no such decision")


def _key(decision_id: str) -> DecisionKey:
    """The scope and the number that an id names."""
    if key := parse_id(decision_id):
        return key
    raise _unknown(f"{decision_id}: there is no such decision")


def _unknown(message: str) -> UsageError:
    return UsageError(
        "unknown_decision", message, "`rolebundle decisions list --all` shows all of them"
    )
