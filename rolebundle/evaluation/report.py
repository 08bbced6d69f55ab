"""A report: its thresholds, and tables for a terminal.

A threshold is ``METRIC=VALUE``. METRIC is a measure (``ndcg@10``), a rate of governance, or a cost.
A cost must be at most VALUE, any other metric at least VALUE. The field ``floors`` of a report has
the checked thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

from rich.table import Table

from rolebundle.contracts.evaluation import EvalReport, Floor
from rolebundle.errors import UsageError
from rolebundle.evaluation.evaluation import METRICS
from rolebundle.retrieval.passage_text import one_line

RATES = ("rejection_accuracy", "posture_accuracy")
COSTS = ("leak_rate", "latency_p50", "latency_p95", "seconds")
_GOVERNANCE = ("leak_rate", "rejection_accuracy", "posture_accuracy")
NAMES = (*METRICS, *RATES, *COSTS)


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
    values: dict[str, float | None] = {
        "latency_p50": report.latency_ms.p50,
        "latency_p95": report.latency_ms.p95,
        "seconds": report.seconds["total"],
    }
    for system in report.systems:
        values |= system.metrics
    if report.governance:
        values |= {rate: getattr(report.governance, rate) for rate in _GOVERNANCE}
    return values.get(name)


def _bad_floor(message: str) -> UsageError:
    return UsageError("bad_floor", message, f"metrics: {', '.join(NAMES)}")


MAX_NOTES = 20
MAX_TASK_CHARS = 80
_LEFT_COLUMNS = ("task", "metric", "check", "about", "expected", "found")


def tables(report: EvalReport) -> Iterator[Table | str]:
    """Yield the tables and lines of a report, from top to bottom."""
    yield headline(report)
    if report.degraded:
        yield f"! semantic lane degraded: {report.degraded}"
    rows = (map("{:.4f}".format, system.metrics.values()) for system in report.systems)
    yield from _table(report.metrics, rows)
    if governance := report.governance:
        yield (
            f"governance: leak rate {rate_text(governance.leak_rate)} · rejection codes right "
            f"{rate_text(governance.rejection_accuracy)} · postures right "
            f"{rate_text(governance.posture_accuracy)}"
        )
        failed = [check for check in governance.checks if not check.held]
        yield from _table(
            ("question", "check", "about", "expected", "found"),
            ((c.question, c.kind, c.about, c.expected, c.found) for c in failed),
        )
    latency, size = report.latency_ms, report.answer_characters
    yield (
        f"governed answers: p50 {latency.p50:.1f} ms, p95 {latency.p95:.1f} ms, "
        f"p99 {latency.p99:.1f} ms · {report.passages.mean:.1f} passages and "
        f"{size.mean:,.0f} characters on average (p95 {size.p95:,.0f})"
    )
    seconds = report.seconds
    yield (
        f"{seconds['total']:.1f} s: {seconds['ingest']:.1f} to ingest, "
        f"{seconds['questions']:.1f} for the questions"
    )
    yield from (f"! {note}" for note in report.notes[:MAX_NOTES])
    if len(report.notes) > MAX_NOTES:
        yield f"! and {len(report.notes) - MAX_NOTES} more notes"
    yield from _thresholds(report.floors)


def headline(report: EvalReport) -> str:
    """The first line of a report: what was evaluated."""
    index = report.corpus.index
    model = f"{index.provider}:{index.model}" if index else "no embeddings"
    more = f" ({report.unjudged} more not judged)" if report.unjudged else ""
    role = report.role or "of each question"
    return (
        f"{report.name}: {report.judged} judged questions{more}, "
        f"{report.corpus.documents:,} documents, {report.corpus.chunks:,} chunks, {model}, "
        f"role {role}"
    )


def rate_text(rate: float | None) -> str:
    """Format a fraction as a percentage, or as a dash if it was not measured."""
    return "–" if rate is None else f"{rate:.1%}"


def _thresholds(floors: Sequence[Floor]) -> Iterator[str]:
    for floor in floors:
        value = "not measured" if floor.value is None else f"{floor.value:.4f}"
        threshold = f"{'at most' if floor.at_most else 'at least'} {floor.bound:g}"
        yield f"{'met' if floor.held else 'NOT MET'}: {floor.metric} {value}, {threshold}"


def _table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[Table]:
    """A table of these columns; nothing if there are no rows."""
    table = Table(pad_edge=False, show_edge=False, header_style="bold")
    table.add_column(columns[0], no_wrap=True)
    for name in columns[1:]:
        table.add_column(name, justify="left" if name in _LEFT_COLUMNS else "right")
    for first, *others in rows:
        table.add_row(first, *(one_line(cell, MAX_TASK_CHARS) for cell in others))
    if table.row_count:
        yield table
