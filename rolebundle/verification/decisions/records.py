"""Decisions: how they are recorded and ended, and which of them have an effect."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from rolebundle.contracts.decisions import DecisionRecord, DecisionState, NewDecision
from rolebundle.contracts.document import iso_utc
from rolebundle.errors import UsageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import increment_generation
from rolebundle.storage.records import decisions as storage
from rolebundle.storage.records.decisions import DecisionKey, StoredDecision, StoredEnd
from rolebundle.verification.decisions.matching import is_prohibition
from rolebundle.verification.statements import checked_statement


def record_decision(corpus: Corpus, new: NewDecision, now: datetime) -> DecisionRecord:
    """Record a decision of the owner, and return it with its id.

    Args:
        corpus: open for writing.
        new: the decision.
        now: when it is recorded.

    Raises:
        UsageError: it supersedes a decision that does not exist, or is never valid.
    """
    recorded_at = iso_utc(now)
    valid_from = new.valid_from or recorded_at
    if new.valid_until is not None and new.valid_until < valid_from:
        raise UsageError(
            "never_valid",
            f"the decision is valid until {new.valid_until}, which is before {valid_from}",
            "give a later --until, or an earlier --from",
        )
    with corpus.writing():
        known = {decision.number: decision for decision in storage.decisions(corpus, [new.scope])}
        superseded = [_superseded_number(new.scope, name, known) for name in new.supersedes]
        decision = StoredDecision(
            scope=new.scope,
            number=storage.next_number(corpus, new.scope),
            content=checked_statement(new.text, "owner"),
            reason=checked_statement(new.reason, "owner") if new.reason else "",
            status=new.status,
            effect=new.effect or ("block" if is_prohibition(new.text) else "warn"),
            action=new.action,
            about=tuple(dict.fromkeys(new.about)),
            supersedes=tuple(sorted(set(superseded))),
            decided_by=new.decided_by,
            authority="owner",
            valid_from=valid_from,
            valid_until=new.valid_until,
            recorded_at=recorded_at,
        )
        storage.add_decision(corpus, decision)
        increment_generation(corpus)
    [record] = _records([decision], {}, recorded_at)
    return record


def end_decision(
    corpus: Corpus, decision_id: str, ended_by: str, reason: str, now: datetime
) -> DecisionRecord:
    """End a decision. What it has superseded stays superseded.

    Raises:
        UsageError: there is no such decision, or it has ended.
    """
    with corpus.writing():
        record = find_decision(corpus, decision_id, now)
        if record.ended_at is not None:
            raise UsageError(
                "already_ended", f"{record.id}: ended at {record.ended_at}", "nothing is left to do"
            )
        end = StoredEnd(ended_by, checked_statement(reason, "owner"), iso_utc(now))
        storage.add_end(corpus, parse_id(record.id), end)
        increment_generation(corpus)
        return find_decision(corpus, decision_id, now)


def find_decision(corpus: Corpus, decision_id: str, now: datetime) -> DecisionRecord:
    """The decision with this id, or with this number in the scope ``shared``.

    Raises:
        UsageError: there is no such decision.
    """
    scope, number = parse_id(decision_id)
    for record in list_decisions(corpus, now, [scope]):
        if record.id == f"{scope}-{number}":
            return record
    raise _unknown(decision_id)


def list_decisions(
    corpus: Corpus, now: datetime, scopes: Collection[str] | None = None
) -> list[DecisionRecord]:
    """The decisions of these scopes, or of all, with their states at a time."""
    return _records(storage.decisions(corpus, scopes), storage.ends(corpus), iso_utc(now))


def active_decisions(
    corpus: Corpus, at: str, scopes: Collection[str] | None
) -> list[DecisionRecord]:
    """The decisions of these scopes, or of all, that have an effect at a time (ISO 8601 in UTC)."""
    records = _records(storage.decisions(corpus, scopes), storage.ends(corpus), at)
    return [record for record in records if record.state == "active"]


def parse_id(decision_id: str) -> DecisionKey:
    """The scope and the number that an id names.

    Raises:
        UsageError: it is no id of a decision.
    """
    key = storage.parse_id(decision_id)
    if key is None:
        raise _unknown(decision_id)
    return key


def _superseded_number(scope: str, name: str, known: Collection[int]) -> int:
    named_scope, number = parse_id(name if "-" in name else f"{scope}-{name}")
    if named_scope != scope or number not in known:
        raise UsageError(
            "unknown_decision",
            f"{name}: the scope {scope} has no such decision",
            "a decision supersedes decisions of its own scope: `rolebundle decisions list`",
        )
    return number


def _records(
    stored: list[StoredDecision], ends: dict[DecisionKey, StoredEnd], at: str
) -> list[DecisionRecord]:
    superseded = {
        (decision.scope, number)
        for decision in stored
        if _has_taken_effect(decision, ends, at)
        for number in decision.supersedes
    }
    return [
        _record(decision, ends.get(decision[:2]), _state(decision, ends, superseded, at))
        for decision in stored
    ]


def _has_taken_effect(
    decision: StoredDecision, ends: dict[DecisionKey, StoredEnd], at: str
) -> bool:
    """Whether a decision has an effect at a time, or had one before."""
    if decision.status != "active" or decision.valid_from > at:
        return False
    end = ends.get(decision[:2])
    return end is None or end.ended_at >= decision.valid_from


def _state(
    decision: StoredDecision,
    ends: dict[DecisionKey, StoredEnd],
    superseded: Collection[DecisionKey],
    at: str,
) -> DecisionState:
    end = ends.get(decision[:2])
    if not decision.content:
        return "erased"
    if end is not None and end.ended_at <= at:
        return "ended"
    if decision[:2] in superseded:
        return "superseded"
    if decision.status == "proposed":
        return "proposed"
    if decision.valid_from > at:
        return "not_yet_valid"
    if decision.valid_until is not None and decision.valid_until < at:
        return "expired"
    return "active"


def _record(
    decision: StoredDecision, end: StoredEnd | None, state: DecisionState
) -> DecisionRecord:
    return DecisionRecord(
        id=f"{decision.scope}-{decision.number}",
        text=decision.content,
        scope=decision.scope,
        state=state,
        effect=decision.effect,
        action=decision.action,
        about=list(decision.about),
        reason=decision.reason,
        supersedes=[f"{decision.scope}-{number}" for number in decision.supersedes],
        decided_by=decision.decided_by,
        authority=decision.authority,
        valid_from=decision.valid_from,
        valid_until=decision.valid_until,
        recorded_at=decision.recorded_at,
        ended_by=end.ended_by if end else None,
        end_reason=end.reason if end else None,
        ended_at=end.ended_at if end else None,
    )


def _unknown(decision_id: str) -> UsageError:
    return UsageError(
        "unknown_decision",
        f"{decision_id}: there is no such decision",
        "`rolebundle decisions list --all` shows all of them",
    )
