"""Step 3: policy. What a role must not see is rejected, the rest gets its metadata score. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rolebundle.contracts.candidate import Candidate, Filtered, Rejected
from rolebundle.contracts.document import DocumentMetadata, Passage
from rolebundle.contracts.overlay import Overlay, SourceRule
from rolebundle.contracts.terms import DEFAULT_MAX_AGE_DAYS, FreshnessStatus, RejectionCode
from rolebundle.policy.trust import Purpose

BASE_SCORE = 0.5
APPLICABLE_ROLE_BOOST = 1.3
PREFERRED_SOURCE_BOOST = 1.5
LOWEST, HIGHEST = 0.01, 10.0

_SECONDS_A_DAY = 86_400.0


def filter_candidates(
    candidates: Iterable[Candidate], overlay: Overlay | None, now: datetime, purpose: Purpose
) -> tuple[list[Filtered], list[Rejected]]:
    """Part the candidates into those that policy allows, with their metadata score, and the rest.

    Args:
        candidates: what the lanes proposed.
        overlay: the role's policy; ``None`` for none.
        now: the time that ages are measured against.
        purpose: what the passages are wanted for.

    Returns:
        The allowed ones and the rejected ones, each in the order they came in.
    """
    allowed: list[Filtered] = []
    rejected: list[Rejected] = []
    for candidate in candidates:
        passage = candidate.passage
        verdict = rejection(passage.document, passage.excluded_roles, overlay, now, purpose)
        if verdict is None:
            allowed.append(_scored(candidate, overlay, now))
        else:
            rejected.append(Rejected(passage, *verdict, candidate))
    return allowed, rejected


def rejection(
    document: DocumentMetadata,
    excluded_roles: Sequence[str],
    overlay: Overlay | None,
    now: datetime,
    purpose: Purpose,
) -> tuple[RejectionCode, str] | None:
    """The code and the note with which policy rejects a document, or ``None``.

    In this order: what the role may not see, what the purpose forbids, what is too old. A person is
    asked last, and so only for what nothing else stands against (docs/decisions/0010).
    """
    trust = purpose.rejection(document.origin)
    if overlay is None:
        return trust
    policy = overlay.source_policy
    forbidden = _first_match(policy.forbidden_sources, document)
    if forbidden is not None:
        return "forbidden_source", _named(forbidden)
    if policy.allowed_sources and _first_match(policy.allowed_sources, document) is None:
        patterns = ", ".join(rule.pattern for rule in policy.allowed_sources)
        return "forbidden_source", f"not one of the allowed sources: {patterns}"
    if overlay.role_id in excluded_roles:
        return "role_mismatch", f"{document.document_id} excludes the role {overlay.role_id}"
    if trust is not None and trust[0] == "taint_blocked":
        return trust
    maximum = overlay.retrieval_policy.freshness_max_age_days
    if maximum is not None and rejects_by_age(overlay):
        age = age_days(document, now)
        if age is not None and age > maximum:
            return "stale", f"{age:.0f} days old, the limit is {maximum:g}"
    return trust


def rejects_by_age(overlay: Overlay | None) -> bool:
    """Whether what is too old is rejected, and not only ranked lower."""
    if overlay is None:
        return False
    policy = overlay.retrieval_policy
    return policy.freshness_max_age_days is not None and policy.stale_penalty >= 1


def freshness_of(passage: Passage, overlay: Overlay | None, now: datetime) -> FreshnessStatus:
    """Fresh under half of the maximum age, aging under all of it, else stale; or undated."""
    age = age_days(passage.document, now)
    if age is None:
        return "undated"
    maximum = max_age_days(overlay)
    if age < maximum / 2:
        return "fresh"
    return "aging" if age < maximum else "stale"


def max_age_days(overlay: Overlay | None) -> float:
    """The overlay's maximum age, or the default."""
    named = overlay.retrieval_policy.freshness_max_age_days if overlay else None
    return named if named is not None else DEFAULT_MAX_AGE_DAYS


def _scored(candidate: Candidate, overlay: Overlay | None, now: datetime) -> Filtered:
    passage = candidate.passage
    score = BASE_SCORE
    hits: list[str] = []
    if overlay is not None:
        for factor, hit in _factors(passage, overlay, now):
            score *= factor
            hits.append(hit)
    return Filtered(
        candidate=candidate,
        metadata_score=min(HIGHEST, max(LOWEST, score)),
        freshness=freshness_of(passage, overlay, now),
        overlay_hits=tuple(hits),
    )


def _factors(passage: Passage, overlay: Overlay, now: datetime) -> list[tuple[float, str]]:
    document, policy, limits = passage.document, overlay.source_policy, overlay.retrieval_policy
    found: list[tuple[float, str]] = []
    if overlay.role_id in passage.applicable_roles:
        found.append((APPLICABLE_ROLE_BOOST, "boost:applicable-role"))
    elif passage.applicable_roles:
        penalty = limits.role_mismatch_penalty
        found.append((1 - penalty, f"penalty:role-mismatch(-{penalty:g})"))
    maximum, age = limits.freshness_max_age_days, age_days(document, now)
    if maximum is not None and age is not None and age > maximum:
        found.append((1 - limits.stale_penalty, f"penalty:stale({age:.0f}d > {maximum:g}d)"))
    boost = policy.trust_tier_boosts.get(document.trust_tier)
    if boost is not None:
        found.append((boost, f"boost:trust-tier({document.trust_tier}×{boost:g})"))
    boost = policy.document_type_boosts.get(document.document_type)
    if boost is not None:
        found.append((boost, f"boost:doc-type({document.document_type}×{boost:g})"))
    boost = policy.domain_boosts.get(document.domain)
    if boost is not None:
        found.append((boost, f"boost:domain({document.domain}×{boost:g})"))
    preferred = _first_match(policy.preferred_sources, document)
    if preferred is not None:
        boost = PREFERRED_SOURCE_BOOST if preferred.boost is None else preferred.boost
        found.append((boost, f"boost:preferred-source({_named(preferred)}×{boost:g})"))
    return found


def matching(rules: Iterable[SourceRule], document: DocumentMetadata) -> Iterator[SourceRule]:
    """Those of the rules that a document falls under, in their order."""
    names = [
        name.casefold() for name in (document.source_id, document.document_type, document.domain)
    ]
    for rule in rules:
        pattern = rule.pattern.casefold()
        # A plain substring: linear time, whatever the pattern is.
        if any(pattern in name for name in names):
            yield rule


def _first_match(rules: Iterable[SourceRule], document: DocumentMetadata) -> SourceRule | None:
    return next(matching(rules, document), None)


def _named(rule: SourceRule) -> str:
    return f"{rule.pattern}: {rule.reason}" if rule.reason else rule.pattern


def age_days(document: DocumentMetadata, now: datetime) -> float | None:
    """How old a document is at ``now``, in days; ``None`` where it has no date."""
    if document.updated_at is None:
        return None
    return (now - datetime.fromisoformat(document.updated_at)).total_seconds() / _SECONDS_A_DAY
