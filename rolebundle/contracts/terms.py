"""The closed vocabularies of the contracts, and what each rejection and warning means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from rolebundle.resources import data_file

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
    "DATABASE_UNREACHABLE", "MAY_BE_REPLACED", "OTHER_LANGUAGES",
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


_TABLE = data_file(__file__, "terms.toml")
REJECTIONS: Mapping[RejectionCode, RejectionRow] = {
    code: RejectionRow(**row) for code, row in _TABLE["rejections"].items()
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


def _warning(advice: str, shown: Any = "caution", **limits: Any) -> WarningRow:
    return WarningRow(advice, shown, Limitation(**{"state": None, **limits}) if limits else None)


WARNINGS: Mapping[WarningCode, WarningRow] = {
    code: _warning(**row) for code, row in _TABLE["warnings"].items()
}
"""The most important first."""


def shown_as(*kinds: str) -> frozenset[WarningCode]:
    """The warnings that are shown in one of these ways."""
    return frozenset(code for code, row in WARNINGS.items() if row.shown in kinds)
