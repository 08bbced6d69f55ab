"""Rules reject candidates; the others get their metadata score. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from rolebundle.contracts.documents import DocumentGroup, DocumentMetadata, Passage, Superseder
from rolebundle.contracts.overlay import SourceRule
from rolebundle.contracts.terms import FreshnessStatus, RejectionCode
from rolebundle.policy.overlays import rule_matches, rule_subject
from rolebundle.policy.trust import Labels
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.values import Candidate

BASE_SCORE = 0.5
APPLICABLE_ROLE_BOOST = 1.3
PREFERRED_SOURCE_BOOST = 1.5
MIN_METADATA_SCORE, MAX_METADATA_SCORE = 0.01, 10.0

_SECONDS_PER_DAY = 86_400.0


def filter_candidates(
    candidates: Iterable[Candidate], request: ResolvedRequest, supposed_allowed: Container[int] = ()
) -> None:
    """Write the metadata score of each candidate that may be selected, and the others' code.

    Args:
        candidates: the candidates.
        request: the resolved request.
        supposed_allowed: rowids of what counts as allowed, whatever policy says.
    """
    for row in candidates:
        row.passage = without_later_superseders(row.passage, request)
        rejection = rejection_of(row.passage, request)
        if rejection is None or row.passage.rowid in supposed_allowed:
            add_metadata_score(row, request)
        else:
            row.code, row.note = rejection


def without_later_superseders(passage: Passage, request: ResolvedRequest) -> Passage:
    """The passage at the time of the request, when later documents do not supersede it yet."""
    newer = passage.superseded_by
    if not newer:
        return passage
    valid = tuple(superseder for superseder in newer if not why_not_valid_yet(superseder, request))
    return passage._replace(superseded_by=valid)


def rejection_of(passage: Passage, request: ResolvedRequest) -> CodeAndNote | None:
    """The code and the note that reject a passage; ``None`` if it is allowed.

    ``already_seen`` comes last, so that the agent learns that a passage which it has is forbidden
    for the action, or replaced.
    """
    return policy_rejection(passage, request) or seen_rejection(passage, request)


def seen_rejection(passage: Passage, request: ResolvedRequest) -> CodeAndNote | None:
    """The code and the note for a text that the agent already has; ``None`` for another text."""
    chunk_ids = request.seen_by_hash.get(passage.content_hash)
    if not chunk_ids or passage.superseded_by:
        return None
    if passage.chunk_id in chunk_ids:
        return "already_seen", "it is in `seen`"
    return "already_seen", f"the same text as {chunk_ids[0]}, which is in `seen`"


CodeAndNote = tuple[RejectionCode, str]
"""Why something is rejected."""
PolicySubject = Passage | DocumentGroup
"""What policy looks at: a passage, or documents that policy treats alike."""


def labels_of(subject: PolicySubject) -> Labels:
    """The labels that decide what it may be used for."""
    return Labels.of(subject.document, subject.flags)


def policy_rejection(subject: PolicySubject, request: ResolvedRequest) -> CodeAndNote | None:
    """The code and the note with which policy rejects it; ``None`` if it is allowed."""
    return next(policy_rejections(subject, request), None)


def policy_rejections(subject: PolicySubject, request: ResolvedRequest) -> Iterator[CodeAndNote]:
    """Everything in the policy that rejects it: codes and notes; the first one counts.

    The order: what the role may not see, what somebody has rejected, what the purpose forbids, what
    is not valid at the time, what is too old. Whether a person has to approve comes last, so that
    people are asked only about documents that nothing else rejects (docs/decisions/0010).
    """
    document, overlay = subject.document, request.overlay
    by_trust = request.purpose.rejection(labels_of(subject))
    if overlay is not None:
        source_policy, rule_fields = overlay.source_policy, rule_subject(document, subject.path)
        forbidden = request.forbidding_rule(rule_fields)
        if forbidden is not None:
            yield "forbidden_source", _rule_text(forbidden)
        if request.allowing_rule is not None and request.allowing_rule(rule_fields) is None:
            allowed = ", ".join(rule.condition for rule in source_policy.allowed_sources)
            yield "forbidden_source", f"not one of the allowed sources: {allowed}"
        if overlay.role_id in subject.excluded_roles:
            yield "role_mismatch", f"{document.document_id} excludes the role {overlay.role_id}"
        if rejects_other_roles(request) and is_for_other_roles(subject, overlay.role_id):
            roles = ", ".join(subject.applicable_roles)
            yield "role_mismatch", f"{document.document_id} is for {roles}, not {overlay.role_id}"
    if subject.mark is not None and subject.mark.owner_state == "rejected":
        yield "rejected_by_mark", f"rejected by {subject.mark.marked_by}: {subject.mark.reason}"
    if by_trust is not None and by_trust[0] == "taint_blocked":
        yield by_trust
    begins_later = why_not_valid_yet(document, request)
    if begins_later:
        yield "not_yet_valid", begins_later
    if document.valid_until is not None and document.valid_until < request.valid_at:
        yield "expired", f"valid until {document.valid_until}, which is before {request.valid_at}"
    if rejects_by_age(request):
        age = age_days(document, request.now)
        if age is not None and age > request.stale_after_days:
            yield "stale", age_note(document, age, request.stale_after_days)
    if by_trust is not None and by_trust[0] != "taint_blocked":
        yield by_trust


def is_readable(subject: PolicySubject, request: ResolvedRequest) -> bool:
    """Whether the role may read it: neither the rules for sources nor its own roles forbid it."""
    codes = {code for code, _ in policy_rejections(subject, request)}
    return not codes & {"forbidden_source", "role_mismatch"}


def is_rejected_only_by_role(passage: Passage, request: ResolvedRequest) -> bool:
    """Whether only rules of the request's role reject it. Also true if nothing does."""
    codes = {code for code, _ in policy_rejections(passage, request)}
    of_role = {"forbidden_source", "role_mismatch", "stale"}
    return codes <= of_role and not seen_rejection(passage, request)


def why_not_valid_yet(document: DocumentMetadata | Superseder, request: ResolvedRequest) -> str:
    """Why a document is not valid yet at the time of the request; empty if it is.

    Times in the corpus are in UTC and of one form, so that they can be compared as texts.
    """
    if document.valid_from is not None and document.valid_from > request.valid_at:
        return f"valid from {document.valid_from}, which is after {request.valid_at}"
    updated_at = document.updated_at if request.echo.as_of is not None else None
    if updated_at is not None and updated_at > request.valid_at:
        return f"updated at {updated_at}, which is after {request.valid_at}"
    return ""


def rejects_by_age(request: ResolvedRequest) -> bool:
    """Whether documents that are too old are rejected, and not only ranked lower."""
    policy = request.retrieval_policy
    return policy.freshness_max_age_days is not None and policy.stale_penalty >= 1


def rejects_other_roles(request: ResolvedRequest) -> bool:
    """Whether what is for other roles is rejected, and not only ranked lower."""
    return request.overlay is not None and request.retrieval_policy.role_mismatch_penalty >= 1


def path_rules(
    request: ResolvedRequest,
) -> Callable[[DocumentMetadata, str], tuple[bool, ...]] | None:
    """Which rules that can reject a document match its path; ``None`` if none looks at paths."""
    if request.overlay is None:
        return None
    source_policy = request.overlay.source_policy
    every = (*source_policy.forbidden_sources, *source_policy.allowed_sources)
    rules = [rule for rule in every if rule.path is not None]
    if not rules:
        return None

    def matching(document: DocumentMetadata, path: str) -> tuple[bool, ...]:
        rule_fields = rule_subject(document, path)
        return tuple(rule_matches(rule, rule_fields) for rule in rules)

    return matching


def is_for_other_roles(subject: PolicySubject, role_id: str) -> bool:
    """Whether its applicable roles are given and do not include the role."""
    return bool(subject.applicable_roles) and role_id not in subject.applicable_roles


def add_metadata_score(row: Candidate, request: ResolvedRequest) -> None:
    """Write the freshness, the metadata score, and the rules that made it up.

    The score is the product of 0.5 and the factors of the policy, clamped to [0.01, 10]. A penalty
    of 1 rejects, and so it is no factor. ``why`` and the warning about forbidden sources also score
    rejected candidates: as if they were allowed.
    """
    row.freshness = freshness_of(row.passage, request)
    factors = _metadata_factors(row.passage, request)
    row.metadata_score = metadata_score(factors.values())
    if request.ranks_by_role:
        row.metadata_factors = factors


def metadata_score(factors: Iterable[float]) -> float:
    """The product of 0.5 and the factors, clamped to [0.01, 10]."""
    return min(MAX_METADATA_SCORE, max(MIN_METADATA_SCORE, math.prod(factors, start=BASE_SCORE)))


def freshness_of(passage: Passage, request: ResolvedRequest) -> FreshnessStatus:
    """Fresh under half of the request's maximum age, aging under all of it, else stale; or undated.

    A date in the future says nothing about the age, so that such a document is undated, too. Unless
    the role sets a maximum age, a year or month in the name of the file makes no document stale.
    """
    age, max_age = age_days(passage.document, request.now), request.stale_after_days
    is_limited = request.retrieval_policy.freshness_max_age_days is not None
    if age is None or age < 0:
        return "undated"
    if age < max_age / 2:
        return "fresh"
    is_rough = passage.document.dated_by == "name without a day"
    return "aging" if age < max_age or (is_rough and not is_limited) else "stale"


def age_days(document: DocumentMetadata, now: datetime) -> float | None:
    """How old a document is at ``now``, in days; ``None`` if it has no date."""
    date = document.updated_at or document.inferred_at
    if date is None:
        return None
    return (now - datetime.fromisoformat(date)).total_seconds() / _SECONDS_PER_DAY


def age_note(document: DocumentMetadata, age: float, max_age: float) -> str:
    """The age of a document and the limit, in days, for a reader."""
    by = "" if document.updated_at else ", by the date of its file"
    return f"{age:.0f} days old{by}, the limit is {max_age:g}"


def _metadata_factors(passage: Passage, request: ResolvedRequest) -> dict[str, float]:
    """The rules of the overlay that a passage meets → their factors; empty without a role."""
    factors: dict[str, float] = {}
    if request.overlay is None:
        return factors
    document, source_policy = passage.document, request.overlay.source_policy
    policy = request.retrieval_policy
    if request.role_id in passage.applicable_roles:
        factors["boost:applicable-role"] = APPLICABLE_ROLE_BOOST
    penalty = policy.role_mismatch_penalty
    if penalty < 1 and is_for_other_roles(passage, request.role_id):
        factors[f"penalty:role-mismatch(-{penalty:g})"] = 1 - penalty
    max_age, age = policy.freshness_max_age_days, age_days(document, request.now)
    if policy.stale_penalty < 1 and max_age is not None and age is not None and age > max_age:
        factors[f"penalty:stale({age:.0f}d > {max_age:g}d)"] = 1 - policy.stale_penalty
    boosts: tuple[tuple[str, str, Mapping[Any, float]], ...] = (
        ("trust-tier", document.trust_tier, source_policy.trust_tier_boosts),
        ("doc-type", document.ranked_type, source_policy.document_type_boosts),
        ("domain", document.domain, source_policy.domain_boosts),
    )
    for name, value, by_value in boosts:
        if value in by_value:
            factors[f"boost:{name}({value}×{by_value[value]:g})"] = by_value[value]
    preferred = request.preferring_rule(rule_subject(document, passage.path))
    if preferred is not None:
        boost = PREFERRED_SOURCE_BOOST if preferred.boost is None else preferred.boost
        # A boost of 1 changes nothing, and is written to stop later rules: it is no reason.
        if boost != 1:
            factors[f"boost:preferred-source({_rule_text(preferred)}×{boost:g})"] = boost
    return factors


def _rule_text(rule: SourceRule) -> str:
    return f"{rule.condition}: {rule.reason}" if rule.reason else rule.condition
