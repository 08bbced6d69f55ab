"""Compare bundles."""

from typing import Any

from rolebundle.contracts.bundle import RetrievalBundle


def without_semantic_state(bundle: RetrievalBundle) -> dict[str, Any]:
    """Return a bundle without the fields that report a degraded semantic lane."""
    plain = bundle.without_timings()
    plain["warnings"] = [
        warning for warning in plain["warnings"] if warning["code"] != "SEMANTIC_LANE_DEGRADED"
    ]
    for name in ("action", "message", "verdict"):
        plain["fallback"].pop(name, None)
    return plain
