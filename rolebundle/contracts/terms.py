"""The closed vocabularies of the contracts."""

from __future__ import annotations

from typing import Literal, get_args

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
FreshnessStatus = Literal["fresh", "aging", "stale", "undated"]
TrustPosture = Literal["strong", "mixed", "weak", "undeclared"]
FreshnessPosture = Literal["fresh", "mixed", "stale"]
Lane = Literal["lexical", "semantic"]
Fusion = Literal["weighted", "rrf"]
EvidenceNeed = Literal["optional", "required"]
Detail = Literal["ids", "compact", "full"]

RejectionCode = Literal[
    "forbidden_source", "role_mismatch", "rejected_by_mark", "taint_blocked", "not_yet_valid",
    "expired", "stale", "requires_approval", "low_score", "duplicate", "conflict_downrank",
    "budget_cut", "already_seen", "quarantined",
]  # fmt: skip
RANKED_LOWER: frozenset[RejectionCode] = frozenset(
    {"low_score", "duplicate", "budget_cut", "already_seen"}
)
"""The codes of passages that others preceded. All other codes are decisions of the owner."""
WarningCode = Literal[
    "NO_HIGH_TRUST_MATCH", "ONLY_SHARED_CORPUS", "STALE_DOMINANT", "FORBIDDEN_SOURCE_HIT",
    "ACTION_RESTRICTED", "APPROVAL_REFUSED", "LOW_DIVERSITY", "CONFLICTING_EVIDENCE",
    "SUPERSEDE_IGNORED", "EVIDENCE_KIND_MISSING", "SEMANTIC_LANE_DEGRADED", "INDEX_STALE",
    "RERANK_DEGRADED", "REPLICA_STALE", "SEEN_UNKNOWN", "WEAK_EVIDENCE", "WORDS_MISSING",
    "WORDS_CORRECTED", "SOURCE_CHANGED", "SOURCE_UNCHECKED", "DATABASE_UNREACHABLE",
]  # fmt: skip
Evidence = Literal["task", "role"]
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
"""Why nothing was selected; see :func:`rolebundle.retrieval.warnings.empty_verdict`."""

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
