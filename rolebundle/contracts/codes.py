"""The table of codes: what each rejection and each warning means, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from rolebundle.contracts.terms import (
    EmptyReason,
    FallbackAction,
    FallbackState,
    HidingRule,
    RejectionCode,
    WarningCode,
)


class RejectionRow(NamedTuple):
    """What a rejection means.

    Attributes:
        step: the step that rejects: the filter, or the selection (``cut``).
        verdict: on an empty answer, if this rejected everything relevant.
        plain: what is the matter with the passage, for people.
        rule: the kind of the owner's rule that keeps the passage from an agent; ``None`` if it is
            none.
    """

    step: Literal["filter", "cut"]
    verdict: EmptyReason
    plain: str
    rule: HidingRule | None = None


_Row = RejectionRow
REJECTIONS: Mapping[RejectionCode, RejectionRow] = {
    "forbidden_source": _Row(
        "filter", "all_forbidden", "from a source that this role may not use", "role"
    ),
    "role_mismatch": _Row("filter", "rejected_by_policy", "written for other roles", "role"),
    "rejected_by_mark": _Row("filter", "rejected_by_policy", "marked as wrong", "mark"),
    "taint_blocked": _Row(
        "filter", "all_taint_blocked", "not trusted enough for this action", "trust"
    ),
    "not_yet_valid": _Row("filter", "none_valid", "not valid yet", "validity"),
    "expired": _Row("filter", "none_valid", "no longer valid", "validity"),
    "stale": _Row("filter", "all_stale", "older than this role accepts", "validity"),
    "requires_approval": _Row(
        "filter", "approval_needed", "needs an approval for this action", "trust"
    ),
    "low_score": _Row("cut", "all_below_floor", "score too low"),
    # A copy is rejected together with its original, which was scored.
    "duplicate": _Row("cut", "all_below_floor", "the same text as a better passage"),
    "conflict_downrank": _Row("cut", "all_superseded", "replaced by a newer document"),
    "budget_cut": _Row("cut", "over_budget", "below the last place of the answer"),
    "already_seen": _Row("filter", "all_seen", "the caller already has it"),
    "quarantined": _Row(
        "filter",
        "rejected_by_policy",
        "in quarantine, because the scan found something dangerous",
    ),
}


class Limitation(NamedTuple):
    """One thing that limits the use of an answer.

    Attributes:
        state: the state that holds; ``None`` if the limitation is no state of its own.
        action: what the caller should do because of it.
        sentence: the reason, for the message; empty if it needs none.
    """

    state: FallbackState | None
    action: FallbackAction
    sentence: str = ""


class WarningRow(NamedTuple):
    """What a warning means. Its condition is in ``retrieval/warnings.py``.

    Attributes:
        advice: what a model should do.
        shown: to whom: in the caution before the first passage, as a note about a sound answer, to
            the owner alone, or by the message of the fallback, which says the same.
        limitation: how it limits the answer; ``None`` if it does not.
    """

    advice: str
    shown: Literal["caution", "note", "owner", "message"] = "caution"
    limitation: Limitation | None = None


WARNINGS: Mapping[WarningCode, WarningRow] = {
    "WEAK_EVIDENCE": WarningRow("Say so, and state no more than the passages do.", "message"),
    "WORDS_MISSING": WarningRow(
        "If the task is about them, say that the documents do not mention them.", "message"
    ),
    "ACTION_RESTRICTED": WarningRow("Do not act on what they may say; ask a person."),
    "APPROVAL_REFUSED": WarningRow("Do not act before a person approves."),
    "FORBIDDEN_SOURCE_HIT": WarningRow(
        "Do not guess what they say, and do not ask with another role.",
        limitation=Limitation(
            "forbidden_hit",
            "continue",
            "a source that is forbidden to the role would have answered, and was left out",
        ),
    ),
    "CONFLICTING_EVIDENCE": WarningRow(
        "Name both sides and their dates, and do not choose silently.",
        limitation=Limitation(
            "conflicting", "warn", "documents of equal trust disagree; say so, and name both"
        ),
    ),
    "STALE_DOMINANT": WarningRow(
        "Give the dates, and say that it may no longer hold.",
        "message",
        Limitation(
            "stale_dominant",
            "warn",
            "most of the evidence is older than it should be; check before relying on it",
        ),
    ),
    "REPLICA_STALE": WarningRow(
        "Say how old it is: documents may have been changed or withdrawn since.",
        limitation=Limitation(None, "warn", "the replica was not renewed in time"),
    ),
    "DATABASE_UNREACHABLE": WarningRow(
        "Say how old it is, and ask again later.",
        limitation=Limitation(None, "warn", "a replica answers in place of the database"),
    ),
    "NO_HIGH_TRUST_MATCH": WarningRow(
        "Say so, and have it confirmed before anyone acts on it.",
        "message",
        Limitation(
            "no_strong_match",
            "degrade",
            "no authoritative or preferred source matched; treat the passages as hints",
        ),
    ),
    "EVIDENCE_KIND_MISSING": WarningRow(
        "Say that it is missing, and do not fill it in from other knowledge.", "note"
    ),
    "SUPERSEDE_IGNORED": WarningRow("Treat neither document as replaced, and name both."),
    "SOURCE_CHANGED": WarningRow("Read the file before you rely on its passage."),
    "SOURCE_UNCHECKED": WarningRow("The files may have changed."),
    "SEMANTIC_LANE_DEGRADED": WarningRow("Relevant passages in other words may be missing."),
    "INDEX_STALE": WarningRow("Relevant passages may be missing."),
    "LOW_DIVERSITY": WarningRow("Say that the answer rests on one source.", "owner"),
    "ONLY_SHARED_CORPUS": WarningRow("Do not present the answer as the view of a role.", "owner"),
    "WORDS_CORRECTED": WarningRow(""),
    "SEEN_UNKNOWN": WarningRow("Passages that you have may be here again."),
    "RERANK_DEGRADED": WarningRow("The best passage may not be the first.", "owner"),
}
"""The most important first."""


def shown_as(*kinds: str) -> frozenset[WarningCode]:
    """The warnings that are shown in one of these ways."""
    return frozenset(code for code, row in WARNINGS.items() if row.shown in kinds)
