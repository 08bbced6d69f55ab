"""Comparing bundles."""

from __future__ import annotations

from typing import Any

from rolebundle.contracts.bundle import RetrievalBundle


def without_the_semantic_lanes_state(bundle: RetrievalBundle) -> dict[str, Any]:
    """A bundle less what says that the semantic lane could not run: all else is as without it."""
    plain = bundle.without_timings()
    plain["warnings"] = [
        warning for warning in plain["warnings"] if warning["code"] != "SEMANTIC_LANE_DEGRADED"
    ]
    for name in ("action", "message", "verdict"):
        plain["fallback"].pop(name, None)
    return plain
