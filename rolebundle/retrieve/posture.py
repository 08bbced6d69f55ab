"""How far a selection can be trusted: postures, warnings and the fallback decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rolebundle.contracts.bundle import BundleWarning, CorpusState, Fallback, SelectedChunk
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import (
    HIGH_TRUST,
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
    WarningCode,
)

_LOW_DIVERSITY_FROM = 3


def trust_posture(selected: Sequence[SelectedChunk]) -> TrustPosture:
    """Strong with any authoritative passage, mixed with any preferred one, else weak."""
    tiers = {chunk.metadata.trust_tier for chunk in selected}
    if "authoritative" in tiers:
        return "strong"
    return "mixed" if "preferred" in tiers else "weak"


def freshness_posture(selected: Sequence[SelectedChunk]) -> FreshnessPosture:
    """Fresh with fresh and no stale passages, stale with stale and no fresh ones, else mixed."""
    statuses = {chunk.metadata.freshness.status for chunk in selected}
    if "fresh" in statuses and "stale" not in statuses:
        return "fresh"
    return "stale" if "stale" in statuses and "fresh" not in statuses else "mixed"


def warnings_for(
    selected: Sequence[SelectedChunk],
    codes: Mapping[RejectionCode, int],
    conflicts: Sequence[Passage],
    overlay: Overlay | None,
    degraded: str,
    waiting: int,
    doubt: str = "",
) -> list[BundleWarning]:
    """What the reader of the bundle should know, in a fixed order.

    Args:
        selected: the passages of the answer.
        codes: how many candidates each code rejected.
        conflicts: superseded passages that would have been selected.
        overlay: the role's, or ``None``.
        degraded: why the semantic lane did not run, or empty.
        waiting: how many chunks have no vector yet.
        doubt: why the fast index does not answer, or empty.
    """
    found: list[tuple[WarningCode, str]] = []
    if trust_posture(selected) == "weak":
        found.append(("NO_HIGH_TRUST_MATCH", "no authoritative or preferred passage was selected"))
    if overlay is None:
        found.append(("ONLY_SHARED_CORPUS", "no role was given, so no overlay shaped the answer"))
    elif selected and not any(_role_specific(chunk) for chunk in selected):
        found.append(("ONLY_SHARED_CORPUS", "no passage has anything of the role's own"))
    rejected_stale = codes.get("stale", 0)
    stale = rejected_stale + sum(one.metadata.freshness.status == "stale" for one in selected)
    considered = rejected_stale + len(selected)
    if stale * 2 > considered:
        found.append(("STALE_DOMINANT", f"{stale} of {considered} passages are stale"))
    if forbidden := codes.get("forbidden_source"):
        found.append(
            ("FORBIDDEN_SOURCE_HIT", f"{forbidden} candidates came from forbidden sources")
        )
    sources = {chunk.source_id for chunk in selected}
    if len(sources) == 1 and len(selected) >= _LOW_DIVERSITY_FROM:
        found.append(("LOW_DIVERSITY", f"every passage comes from {sources.pop()}"))
    pairs = conflicting(conflicts)
    if pairs:
        found.append(("CONFLICTING_EVIDENCE", f"high-trust documents disagree: {pairs}"))
    if degraded:
        found.append(("SEMANTIC_LANE_DEGRADED", degraded))
    if waiting:
        found.append(
            ("INDEX_STALE", f"{waiting} chunks wait for their vector; run `rolebundle embed`")
        )
    if doubt:
        found.append(
            ("INDEX_STALE", f"exact search answers: {doubt}; run `rolebundle embed --optimize`")
        )
    return [BundleWarning(code=code, message=message) for code, message in found]


def conflicting(conflicts: Sequence[Passage]) -> str:
    """Pairs of high-trust documents of which one supersedes the other, as text; or empty."""
    pairs = {
        f"{passage.document.document_id} is superseded by {newer.document_id}"
        for passage in conflicts
        if passage.document.trust_tier in HIGH_TRUST
        for newer in passage.superseded_by
        if newer.trust_tier in HIGH_TRUST
    }
    return "; ".join(sorted(pairs))


def decide_fallback(
    selected: Sequence[SelectedChunk],
    codes: Mapping[RejectionCode, int],
    warnings: Sequence[BundleWarning],
    overlay: Overlay | None,
    corpus: CorpusState,
    degraded: str,
) -> Fallback:
    """What the caller should do with the answer; the first state that fits, worst first."""
    said: set[WarningCode] = {warning.code for warning in warnings}
    if not selected:
        return Fallback(state="no_strong_match", action="block", message=_why_empty(codes, corpus))
    if "CONFLICTING_EVIDENCE" in said:
        return Fallback(
            state="conflicting",
            action="warn",
            message="trusted documents disagree; the superseded one was left out, say so",
        )
    if "STALE_DOMINANT" in said:
        return Fallback(
            state="stale_dominant",
            action="warn",
            message="most of the evidence is older than it should be; check before relying on it",
        )
    if overlay is None:
        return Fallback(
            state="no_overlay",
            action="degrade" if degraded else "continue",
            message="no role was given: shared corpus only, no role policy was applied",
        )
    if "NO_HIGH_TRUST_MATCH" in said:
        return Fallback(
            state="no_strong_match",
            action="degrade",
            message="no authoritative or preferred source matched; treat the passages as hints",
        )
    if "FORBIDDEN_SOURCE_HIT" in said:
        return Fallback(
            state="forbidden_hit",
            action="degrade" if degraded else "continue",
            message="forbidden sources matched and were left out",
        )
    if degraded:
        return Fallback(
            state="healthy",
            action="degrade",
            message="the evidence is sound, but the semantic lane did not run",
        )
    return Fallback(state="healthy", action="continue", message="trusted, current evidence")


def _why_empty(codes: Mapping[RejectionCode, int], corpus: CorpusState) -> str:
    if corpus.chunks == 0:
        return "the corpus is empty: ingest documents first"
    total = sum(codes.values())
    if total == 0:
        return "nothing in the corpus has the task's words or its meaning"
    reasons = ", ".join(f"{count} {code}" for code, count in codes.items() if count)
    return f"all {total} candidates were rejected: {reasons}"


def _role_specific(chunk: SelectedChunk) -> bool:
    kinds = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred", "vocab:")
    return any(hit.startswith(kinds) for hit in chunk.overlay_hits)
