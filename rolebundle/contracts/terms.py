"""The closed vocabularies of the contracts, and what each rejection and warning means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

TrustTier = Literal["authoritative", "preferred", "general", "untrusted"]
Sensitivity = Literal["public", "group", "internal", "confidential"]
AccessLevel = Literal["denied", "public", "group", "internal", "confidential"]
"""The highest sensitivity that an agent sees, the lowest first."""
Origin = Literal["internal", "external", "agent", "untrusted"]
"""The most trusted first."""
Action = Literal["read", "analyze", "suggest", "execute", "external_send"]
Ruling = Literal["allowed", "requires_approval", "taint_blocked"]
"""Whether a passage may be used for an action, the mildest first."""
WriteKind = Literal["mark", "remember"]
"""What a policy can allow an agent to write."""
MarkState = Literal["rejected", "disputed", "tool_verified", "supervisor_verified"]
"""What a mark says of a passage. A passage without a mark is unverified."""
HidingRule = Literal[
    "agent", "scope", "access_level", "deny_pattern", "quarantine", "role", "trust", "mark",
    "validity",
]  # fmt: skip
"""What keeps a passage from an agent. The first five hide that it exists."""
Authority = Literal["owner", "agent"]
"""Who states something about the corpus: its owner, or an agent whose policy allows it."""
DecisionEffect = Literal["warn", "require_approval", "block"]
"""What a decision does at most to an intent that it applies to, the mildest first."""
MatchKind = Literal["command", "about", "likeness", "near"]
"""By what a decision was found; what is only near is quoted, and nothing follows."""
ContentType = Literal["paragraph", "table", "list", "code", "excerpt"]
DatedBy = Literal["name", "name without a day", "name and format", "text", "format"]
"""What tells a date that is not declared: the name of the file, the beginning of its text, or its
format: the header of a mail, the start of an event, the properties of an office file. A name may
have a year or a month only; then the day is from the format, or the date is the first day."""
FreshnessStatus = Literal["fresh", "aging", "stale", "undated"]
TrustPosture = Literal["strong", "mixed", "weak", "undeclared"]
FreshnessPosture = Literal["fresh", "mixed", "stale"]
Lane = Literal["lexical", "semantic"]
Fusion = Literal["weighted", "rrf"]
EvidenceNeed = Literal["optional", "required"]
Detail = Literal["ids", "compact", "full"]

RejectionCode = Literal[
    "forbidden_source", "role_mismatch", "rejected_by_mark", "taint_blocked", "not_yet_valid",
    "expired", "stale", "requires_approval", "low_score", "duplicate",
    "other_version", "conflict_downrank", "budget_cut", "already_seen", "quarantined",
]  # fmt: skip
MAY_BE_ASKED_FOR: frozenset[RejectionCode] = frozenset(
    {"low_score", "duplicate", "other_version", "budget_cut", "already_seen"}
)
"""The codes of passages that an agent may ask for: others came first, or it has them."""
WarningCode = Literal[
    "NO_HIGH_TRUST_MATCH", "ONLY_SHARED_CORPUS", "STALE_DOMINANT", "FORBIDDEN_SOURCE_HIT",
    "ACTION_RESTRICTED", "APPROVAL_REFUSED", "LOW_DIVERSITY", "CONFLICTING_EVIDENCE",
    "SUPERSEDE_IGNORED", "EVIDENCE_KIND_MISSING", "SEMANTIC_LANE_DEGRADED", "INDEX_STALE",
    "RERANK_DEGRADED", "REPLICA_STALE", "SEEN_UNKNOWN", "WEAK_EVIDENCE", "WORDS_MISSING",
    "WORDS_CORRECTED", "SOURCE_CHANGED", "SOURCE_UNCHECKED",
    "DATABASE_UNREACHABLE", "MAY_BE_REPLACED",
]  # fmt: skip
SelectedFor = Literal["task", "role"]
"""What a passage is selected for."""
TaskSupport = Literal["supported", "weak", "off_topic"]
"""How much of the task the visible corpus has."""
FallbackState = Literal[
    "no_strong_match", "forbidden_hit", "conflicting", "stale_dominant", "no_overlay", "healthy"
]
"""The worst first."""
FallbackAction = Literal["continue", "warn", "degrade", "block"]
"""The mildest first."""
EmptyReason = Literal[
    "corpus_empty", "nothing_matches_where", "over_budget", "lane_down", "nothing_found",
    "no_evidence", "all_below_floor", "all_forbidden", "all_taint_blocked", "approval_needed",
    "none_valid", "all_stale", "all_superseded", "all_seen", "rejected_by_policy",
]  # fmt: skip
"""Why nothing was selected; see :func:`rolebundle.retrieval.verdict.empty_verdict`."""

TRUST_TIERS: tuple[TrustTier, ...] = get_args(TrustTier)
TRUSTED_TIERS: frozenset[TrustTier] = frozenset({"authoritative", "preferred"})
"""What only a declaration gives."""
ACCESS_LEVELS: tuple[AccessLevel, ...] = get_args(AccessLevel)
LANES: tuple[Lane, ...] = get_args(Lane)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
DECISION_EFFECTS: tuple[DecisionEffect, ...] = get_args(DecisionEffect)
ACTIONS: tuple[Action, ...] = get_args(Action)
REJECTION_CODES: tuple[RejectionCode, ...] = get_args(RejectionCode)
FALLBACK_STATES: tuple[FallbackState, ...] = get_args(FallbackState)
FALLBACK_ACTIONS: tuple[FallbackAction, ...] = get_args(FallbackAction)

DEFAULT_SCOPE = "shared"
"""The scope of what declares none."""

DEFAULT_MAX_AGE_DAYS = 365
"""Maximum age of a chunk in days, if the overlay has none."""

FACTS_PER_DAY = 100
"""How many new facts an agent may file on a day, unless its rule says otherwise."""


def trust_rank(tier: TrustTier) -> int:
    """Return the rank of a trust tier: a higher rank means more trust."""
    return -TRUST_TIERS.index(tier)


def level_rank(level: str) -> int:
    """The rank of an access level or a sensitivity, from 0 for ``denied`` up."""
    return ACCESS_LEVELS.index(level)


class RejectionRow(NamedTuple):
    """What a rejection means.

    Attributes:
        step: what rejects: rules (``filter``), or ``select`` in ``retrieval/select.py`` (``cut``).
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
    # Also all passages if evidence is withheld, and facts that are not about the task.
    "low_score": _Row("cut", "all_below_floor", "score too low"),
    # A copy is rejected together with its original, which was scored.
    "duplicate": _Row("cut", "all_below_floor", "the same text as a better passage"),
    "other_version": _Row("cut", "all_below_floor", "an older version of a page of the answer"),
    # Not ranked lower: superseded.
    "conflict_downrank": _Row("cut", "all_superseded", "replaced by a newer document"),
    # Past the limit of the request, of tokens, or of the role for its source.
    "budget_cut": _Row("cut", "over_budget", "after the last passage shown"),
    "already_seen": _Row("filter", "all_seen", "the caller already has it"),
    "quarantined": _Row(
        "filter", "rejected_by_policy", "kept back, because the scan found something dangerous"
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
        shown: to whom: in texts: in the caution before the first passage, as a note of its own, to
            the owner alone, or by the message of the fallback, which says the same. JSON has all.
        limitation: how it limits the answer; ``None`` if it does not.
    """

    advice: str
    shown: Literal["caution", "note", "owner", "message"] = "caution"
    limitation: Limitation | None = None


WARNINGS: Mapping[WarningCode, WarningRow] = {
    "WEAK_EVIDENCE": WarningRow("Say so, and state no more than the passages do.", "message"),
    "WORDS_MISSING": WarningRow(
        "Unless a passage says it in other words, say that the documents do not mention them.",
        "message",
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
    "MAY_BE_REPLACED": WarningRow("Find out which document is valid, and say so.", "note"),
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
