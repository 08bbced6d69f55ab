"""How far an answer can be trusted, and how current it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rolebundle.contracts.bundle import SelectedChunk
from rolebundle.contracts.terms import FreshnessPosture, TrustPosture


def trust_posture(selected: Sequence[SelectedChunk], *, is_declared: bool = True) -> TrustPosture:
    """Strong with any authoritative passage, mixed with any preferred one, else weak.

    For the answer, of the passages that are evidence for the task. ``undeclared`` if nobody
    declared any trust for what is visible.
    """
    if not is_declared:
        return "undeclared"
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
