"""Bounds on a report, for CI: ``METRIC=VALUE``.

A metric is one of the measures (``ndcg@10``), of the governed result or of ``SYSTEM.ndcg@10``, a
rate of governance, or one of the costs, for which less is better and the bound is an upper one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

from rolebundle.contracts.evaluation import EvalReport, Floor
from rolebundle.errors import UsageError
from rolebundle.evaluation.evaluation import SYSTEMS
from rolebundle.evaluation.metrics import METRICS

RATES = ("rejection_accuracy", "posture_accuracy", "own_share", "own_first")
COSTS = ("leak_rate", "harm", "overlap", "latency_p50", "latency_p95", "seconds")
NAMES = (*METRICS, *(f"{system}.{name}" for system in SYSTEMS for name in METRICS), *RATES, *COSTS)


def parse_floors(pairs: Iterable[str]) -> dict[str, float]:
    """The bounds of ``METRIC=VALUE`` texts.

    Raises:
        UsageError: ``bad_floor``.
    """
    bounds: dict[str, float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not equals or not isfinite(value):
            raise _bad(f"--fail-under {pair}: write METRIC=VALUE")
        bounds[name.strip().lower()] = value
    return check_floors(bounds, "--fail-under")


def check_floors(bounds: Mapping[str, float], where: str) -> dict[str, float]:
    """The bounds, if every name of them is known.

    Raises:
        UsageError: ``bad_floor``.
    """
    for name in bounds:
        if name not in NAMES:
            raise _bad(f"{where}: {name}: there is no such metric")
    return dict(bounds)


def with_floors(report: EvalReport, bounds: Mapping[str, float]) -> EvalReport:
    """The report, with what became of the bounds. Whatever leaked fails it without being asked."""
    floors = [_floor(report, name, bound) for name, bound in bounds.items()]
    leaked = report.governance is not None and bool(report.governance.leak_rate)
    passed = all(floor.held for floor in floors) and not leaked
    return report.model_copy(update={"floors": floors, "passed": passed})


def _floor(report: EvalReport, name: str, bound: float) -> Floor:
    value = value_of(report, name)
    at_most = name in COSTS
    # What was not measured did not hold: a floor that nothing is put on would pass for ever.
    held = value is not None and (value <= bound if at_most else value >= bound)
    return Floor(metric=name, bound=bound, at_most=at_most, value=value, held=held)


def value_of(report: EvalReport, name: str) -> float | None:
    """What the report says of a metric; ``None`` where it was not measured."""
    system, dot, measure = name.partition(".")
    if not dot:
        system, measure = "governed", name
    if measure in METRICS:
        return next((one.metrics[measure] for one in report.systems if one.system == system), None)
    if name in ("leak_rate", "rejection_accuracy", "posture_accuracy"):
        rate: float | None = getattr(report.governance, name, None)
        return rate
    if name == "harm":
        # The worst overlay's loss, as a share: 0.02 is 2%.
        return max((max(0.0, -one.relative) for one in report.harm), default=None)
    apart = report.distinctiveness
    if name in ("own_share", "own_first", "overlap"):
        if apart is None:
            return None
        if name == "overlap":
            return apart.mean_overlap
        shares: list[float] = [getattr(one, name) for one in apart.roles]
        return min(shares)
    costs = {
        "latency_p50": report.latency_ms.p50,
        "latency_p95": report.latency_ms.p95,
        "seconds": report.seconds.total,
    }
    return costs.get(name)


def _bad(message: str) -> UsageError:
    known = ", ".join((*METRICS, *RATES, *COSTS))
    return UsageError(
        "bad_floor", message, f"metrics: {known}; a system's own: lexical.ndcg@10 and so on"
    )
