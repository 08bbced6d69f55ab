"""Decisions: how they are recorded, found and ended."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from rolebundle.contracts.decisions import DecisionRecord, NewDecision
from rolebundle.contracts.document import iso_utc
from rolebundle.errors import UsageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import increment_generation
from rolebundle.storage.records import decisions as storage
from rolebundle.storage.records.decisions import DecisionKey
from rolebundle.verification.statements import checked_statement


def record_decision(corpus: Corpus, new: NewDecision, now: datetime) -> DecisionRecord:
    """Record a decision of the owner, and return it with its id.

    Raises:
        UsageError: it supersedes a decision that does not exist, or is never valid.
    """
    valid_from = new.valid_from or iso_utc(now)
    if new.valid_until is not None and new.valid_until < valid_from:
        raise UsageError(
            "never_valid",
            f"the decision is valid until {new.valid_until}, which is before {valid_from}",
            "give a later --until, or an earlier --from",
        )
    masked = {
        "text": checked_statement(new.text, "owner"),
        "reason": checked_statement(new.reason or "", "owner"),
        "effect": new.effect or ("block" if new.commands else "warn"),
    }
    with corpus.writing():
        known = {record.id for record in list_decisions(corpus, now, [new.scope])}
        superseded = []
        for name in new.supersedes:
            scope, number = parse_id(name if "-" in name else f"{new.scope}-{name}")
            if scope != new.scope or f"{scope}-{number}" not in known:
                raise _unknown(f"{name}: the scope {new.scope} has no such decision")
            superseded.append(number)
        stored = new.model_copy(update=masked)
        number = storage.add_decision(corpus, stored, superseded, iso_utc(now))
        increment_generation(corpus)
        return find_decision(corpus, f"{new.scope}-{number}", now)


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
        reason = checked_statement(reason, "owner")
        storage.add_end(corpus, parse_id(record.id), ended_by, reason, iso_utc(now))
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
    raise _unknown(f"{decision_id}: there is no such decision")


def list_decisions(
    corpus: Corpus, now: datetime, scopes: Collection[str] | None = None
) -> list[DecisionRecord]:
    """The decisions of these scopes, or of all, with their states at a time."""
    return storage.decisions(corpus, iso_utc(now), scopes)


def parse_id(decision_id: str) -> DecisionKey:
    """The scope and the number that an id names.

    Raises:
        UsageError: it is no id of a decision.
    """
    if key := storage.parse_id(decision_id):
        return key
    raise _unknown(f"{decision_id}: there is no such decision")


def _unknown(message: str) -> UsageError:
    return UsageError(
        "unknown_decision", message, "`rolebundle decisions list --all` shows all of them"
    )
