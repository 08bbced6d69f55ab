"""Compare bundles."""

from typing import Any

from rolebundle.contracts.bundle import RetrievalBundle


def messages(bundle: RetrievalBundle, code: str) -> list[str]:
    """The messages of the warnings with this code."""
    return [warning.message or "" for warning in bundle.warnings if warning.code == code]


def rejection_codes(bundle: RetrievalBundle) -> dict[str, str]:
    """Rejected chunk → its code."""
    return {rejection.chunk_id: rejection.reason for rejection in bundle.rejected}


def without_semantic_state(bundle: RetrievalBundle) -> dict[str, Any]:
    """Return a bundle without the fields that report a degraded semantic lane."""
    plain = bundle.without_timings()
    plain["warnings"] = [
        warning for warning in plain["warnings"] if warning["code"] != "SEMANTIC_LANE_DEGRADED"
    ]
    for name in ("action", "message", "verdict"):
        plain["fallback"].pop(name, None)
    return plain


def without_timings(value: Any) -> Any:
    """The same values without the timings."""
    if isinstance(value, dict):
        return {
            key: without_timings(item)
            for key, item in value.items()
            if key not in {"latency_ms", "lexical_ms", "semantic_ms", "rerank_ms"}
        }
    return [without_timings(item) for item in value] if isinstance(value, list) else value
