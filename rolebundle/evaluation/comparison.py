"""Thresholds of a report, and two reports compared question by question.

A threshold is ``METRIC=VALUE``. METRIC is a measure (``ndcg@10``) of the governed result or of a
system (``lexical.ndcg@10``), a rate of governance, or a cost. A cost must be at most VALUE, any
other metric at least VALUE. The field ``floors`` of a report holds the checked thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path

from pydantic import ValidationError

from rolebundle.contracts.evaluation import (
    EvalComparison,
    EvalReport,
    Floor,
    MetricChange,
    QuestionChange,
    QuestionResult,
)
from rolebundle.contracts.mistakes import dotted, mistakes_in
from rolebundle.errors import UsageError
from rolebundle.evaluation.evaluation import SYSTEMS
from rolebundle.evaluation.metrics import METRICS, difference, mean
from rolebundle.text.strict_json import NotStrictError, parse_strict

MAX_REPORT_BYTES = 256 << 20
MAX_QUESTIONS_SHOWN = 20
RATES = ("rejection_accuracy", "posture_accuracy", "own_share", "own_first")
COSTS = ("leak_rate", "harm", "overlap", "latency_p50", "latency_p95", "seconds")
_COMPARED_RATES = ("leak_rate", "rejection_accuracy", "posture_accuracy", "harm")
NAMES = (*METRICS, *(f"{system}.{name}" for system in SYSTEMS for name in METRICS), *RATES, *COSTS)


def parse_thresholds(pairs: Iterable[str]) -> dict[str, float]:
    """Parse ``METRIC=VALUE`` texts into thresholds.

    Raises:
        UsageError: ``bad_floor``.
    """
    thresholds: dict[str, float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not equals or not isfinite(value):
            raise _bad_floor(f"--fail-under {pair}: write METRIC=VALUE")
        thresholds[name.strip().lower()] = value
    return check_thresholds(thresholds, "--fail-under")


def check_thresholds(thresholds: Mapping[str, float], place: str) -> dict[str, float]:
    """Return the thresholds if there is a metric for each name.

    Raises:
        UsageError: ``bad_floor``.
    """
    for name in thresholds:
        if name not in NAMES:
            raise _bad_floor(f"{place}: {name}: there is no such metric")
    return dict(thresholds)


def with_thresholds(report: EvalReport, thresholds: Mapping[str, float]) -> EvalReport:
    """Return the report with checked thresholds. A leak fails it, also without a threshold."""
    floors = [
        _floor(name, threshold, value_of(report, name)) for name, threshold in thresholds.items()
    ]
    has_leak = report.governance is not None and bool(report.governance.leak_rate)
    passed = all(floor.held for floor in floors) and not has_leak
    return report.model_copy(update={"floors": floors, "passed": passed})


def _floor(name: str, threshold: float, value: float | None) -> Floor:
    at_most = name in COSTS
    # A metric that was not measured fails; otherwise a threshold that is never checked would pass.
    held = value is not None and (value <= threshold if at_most else value >= threshold)
    return Floor(metric=name, bound=threshold, at_most=at_most, value=value, held=held)


def value_of(report: EvalReport, name: str) -> float | None:
    """Return the report's value of a metric; ``None`` if it was not measured."""
    system, dot, measure = name.partition(".")
    if not dot:
        system, measure = "governed", name
    if measure in METRICS:
        return next((s.metrics[measure] for s in report.systems if s.system == system), None)
    if name in ("leak_rate", "rejection_accuracy", "posture_accuracy"):
        rate: float | None = getattr(report.governance, name, None)
        return rate
    if name == "harm":
        # The largest loss of an overlay, as a share: 0.02 is 2%.
        return max((max(0.0, -harm.relative) for harm in report.harm), default=None)
    distinctiveness = report.distinctiveness
    if name in ("own_share", "own_first", "overlap"):
        if distinctiveness is None:
            return None
        if name == "overlap":
            return distinctiveness.mean_overlap
        shares: list[float] = [getattr(role, name) for role in distinctiveness.roles]
        return min(shares)
    costs = {
        "latency_p50": report.latency_ms.p50,
        "latency_p95": report.latency_ms.p95,
        "seconds": report.seconds.total,
    }
    return costs.get(name)


def _bad_floor(message: str) -> UsageError:
    known = ", ".join((*METRICS, *RATES, *COSTS))
    return UsageError(
        "bad_floor", message, f"metrics: {known}; a system's own: lexical.ndcg@10 and so on"
    )


def load_report(path: Path) -> EvalReport:
    """Read a report that ``eval --json`` wrote.

    Raises:
        UsageError: ``report_malformed``.
    """
    try:
        if path.stat().st_size > MAX_REPORT_BYTES:
            raise _bad_report(path, f"is over {MAX_REPORT_BYTES >> 20} MiB")
        return EvalReport.model_validate(parse_strict(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise _bad_report(path, error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise _bad_report(path, f"is not UTF-8 at byte {error.start}") from error
    except NotStrictError as error:
        raise _bad_report(path, f"is not JSON: {error}") from error
    except ValidationError as error:
        mistake = mistakes_in(error, EvalReport)[0]
        place = dotted(mistake.place)
        raise _bad_report(
            path, f"{place}: {mistake.message}" if place else mistake.message
        ) from error


def compare(before: EvalReport, after: EvalReport, names: tuple[str, str]) -> EvalComparison:
    """Compare two reports over the judged questions that both have.

    Raises:
        UsageError: ``nothing_in_common``.
    """
    shared = shared_questions(before, after)
    if not shared:
        raise UsageError(
            "nothing_in_common",
            f"{names[0]} and {names[1]} have no judged question in common",
            "compare two reports on the same collection or golden set",
        )
    pairs = [_question_change(first, second) for first, second in shared]
    moved = [pair for pair in pairs if pair.before != pair.after]
    moved.sort(key=lambda change: (-abs(change.after - change.before), change.id))
    return EvalComparison(
        before=names[0],
        after=names[1],
        questions=len(shared),
        only_before=_judged(before) - len(shared),
        only_after=_judged(after) - len(shared),
        changes=_metric_changes([first for first, _ in shared], [second for _, second in shared]),
        moved=moved[:MAX_QUESTIONS_SHOWN],
        latency_p50=[before.latency_ms.p50, after.latency_ms.p50],
        governance={
            name: [value_of(before, name), value_of(after, name)]
            for name in _COMPARED_RATES
            if value_of(before, name) is not None or value_of(after, name) is not None
        },
    )


def shared_questions(
    before: EvalReport, after: EvalReport
) -> list[tuple[QuestionResult, QuestionResult]]:
    """The judged questions that two reports have in common, in the order of the first one."""
    second = {question.id: question for question in after.questions if question.scores}
    return [
        (question, second[question.id])
        for question in before.questions
        if question.scores and question.id in second and second[question.id].task == question.task
    ]


def _judged(report: EvalReport) -> int:
    return sum(bool(question.scores) for question in report.questions)


def with_change_thresholds(
    comparison: EvalComparison, after: EvalReport, thresholds: Mapping[str, float]
) -> EvalComparison:
    """Return the comparison with checked thresholds of the change between the reports.

    ``ndcg@10=-0.005`` allows a loss of half a point. For costs and rates the threshold is that of
    the value in the second report.
    """
    floors = []
    for name, threshold in thresholds.items():
        system, dot, measure = name.rpartition(".")
        system = system if dot else "governed"
        change = next(
            (
                change.change
                for change in comparison.changes
                if change.system == system and change.metric == measure
            ),
            None,
        )
        value = change if change is not None else value_of(after, name)
        floors.append(_floor(name, threshold, value))
    return comparison.model_copy(
        update={"floors": floors, "passed": all(floor.held for floor in floors)}
    )


def _metric_changes(
    first: list[QuestionResult], second: list[QuestionResult]
) -> list[MetricChange]:
    changes = []
    for system in SYSTEMS:
        if not all(system in question.scores for question in (*first, *second)):
            continue
        for metric in METRICS:
            before = [question.scores[system][metric] for question in first]
            after = [question.scores[system][metric] for question in second]
            change = difference(metric, before, after)
            changes.append(
                MetricChange(
                    system=system,
                    metric=metric,
                    before=mean(before),
                    after=mean(after),
                    change=change.mean,
                    p_value=change.p_value,
                    wins=change.wins,
                    losses=change.losses,
                    ties=change.ties,
                )
            )
    return changes


def _question_change(first: QuestionResult, second: QuestionResult) -> QuestionChange:
    return QuestionChange(
        id=first.id,
        task=first.task,
        before=first.scores["governed"]["ndcg@10"],
        after=second.scores["governed"]["ndcg@10"],
    )


def _bad_report(path: Path, reason: str) -> UsageError:
    return UsageError(
        "report_malformed",
        f"{path} is not a report: {reason}",
        "give two files that `rolebundle eval PATH --json` wrote",
    )
