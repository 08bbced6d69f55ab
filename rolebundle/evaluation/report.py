"""An evaluation report, or a comparison of two, as tables and lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rolebundle.contracts.evaluation import (
    Difference,
    EvalComparison,
    EvalReport,
    Floor,
    QuestionResult,
    SystemResult,
)

if TYPE_CHECKING:
    from rich.table import Table

MAX_EXTREMES = 5
MAX_TASK_CHARS = 80
SIGNIFICANT = 0.05


def tables(report: EvalReport) -> Iterator[Table | str]:
    """Yield the tables and lines of a report, from top to bottom."""
    yield headline(report)
    if report.degraded:
        yield f"! semantic lane degraded: {report.degraded}"
    if report.systems:
        yield _systems(report)
    yield from _extremes(report)
    yield from _governance(report)
    if report.distinctiveness:
        yield from _roles(report)
    if report.harm:
        yield _harm(report)
    latency, size = report.latency_ms, report.answer_characters
    yield (
        f"governed answers: p50 {latency.p50:.1f} ms, p95 {latency.p95:.1f} ms, "
        f"p99 {latency.p99:.1f} ms · {report.passages.mean:.1f} passages and "
        f"{size.mean:,.0f} characters on average (p95 {size.p95:,.0f})"
    )
    seconds = report.seconds
    yield (
        f"{seconds.total:.1f} s: {seconds.ingest:.1f} to ingest, "
        f"{seconds.questions:.1f} for the questions"
    )
    yield from (f"! {note}" for note in report.notes)
    yield from _thresholds(report.floors)


def headline(report: EvalReport) -> str:
    """One line: name, number of questions, corpus, model and role."""
    index = report.corpus.index
    model = f"{index.provider}:{index.model}" if index else "no embeddings"
    more = f" ({report.unjudged} more not judged)" if report.unjudged else ""
    role = report.role or ("of each question" if report.kind == "golden" else "none")
    return (
        f"{report.name}: {report.judged} judged questions{more}, "
        f"{report.corpus.documents:,} documents, {report.corpus.chunks:,} chunks, {model}, "
        f"role {role}"
    )


def _systems(report: EvalReport) -> Table:
    table = _table("", *report.metrics, "nDCG@10 − lexical", "p", "won/lost")
    for system in report.systems:
        against = against_lexical(system)
        cells = [f"{system.metrics[name]:.4f}" for name in report.metrics]
        if against is None:
            table.add_row(system.system, *cells, "", "", "")
        else:
            relative = f" ({against.relative:+.1%})" if against.relative is not None else ""
            table.add_row(
                system.system,
                *cells,
                f"{against.mean:+.4f}{relative}",
                p_text(against.p_value),
                f"{against.wins}/{against.losses}",
            )
    return table


def against_lexical(system: SystemResult) -> Difference | None:
    """The difference of nDCG@10 from the lexical lane; None for the lexical lane itself."""
    return next((diff for diff in system.against_lexical if diff.metric == "ndcg@10"), None)


def p_text(value: float) -> str:
    """Format a p-value, with a star if it is below 0.05."""
    return ("<0.001" if value < 0.001 else f"{value:.3f}") + ("*" if value < SIGNIFICANT else "")


def gain(question: QuestionResult) -> float:
    """nDCG@10 of the governed answer minus that of the lexical lane."""
    return question.scores["governed"]["ndcg@10"] - question.scores["lexical"]["ndcg@10"]


def extremes(report: EvalReport, count: int) -> tuple[list[QuestionResult], list[QuestionResult]]:
    """Return the ``count`` questions with the largest gains, and those with the largest losses."""
    judged = [question for question in report.questions if question.scores]
    ordered = sorted(judged, key=lambda question: (-gain(question), question.id))
    won = [question for question in ordered[:count] if gain(question) > 0]
    lost = [question for question in reversed(ordered[-count:]) if gain(question) < 0]
    return won, lost


def _extremes(report: EvalReport) -> Iterator[Table]:
    won, lost = extremes(report, MAX_EXTREMES)
    for title, questions in (("largest gains (governed − lexical)", won), ("largest losses", lost)):
        if questions:
            table = _table(title, "nDCG@10", "change", "task")
            for question in questions:
                score = question.scores["governed"]["ndcg@10"]
                task = one_line(question.task, MAX_TASK_CHARS)
                table.add_row(question.id, f"{score:.3f}", f"{gain(question):+.3f}", task)
            yield table


def one_line(text: str, max_chars: int) -> str:
    """Put a text on one line, replace control characters, and cut it to ``max_chars``."""
    plain = "".join(char if char.isprintable() else "�" for char in " ".join(text.split()))
    return plain if len(plain) <= max_chars else f"{plain[: max_chars - 1]}…"


def _governance(report: EvalReport) -> Iterator[Table | str]:
    governance = report.governance
    if governance is None:
        return
    rates = (
        ("leak rate", governance.leak_rate),
        ("rejection codes right", governance.rejection_accuracy),
        ("postures right", governance.posture_accuracy),
    )
    yield "governance: " + " · ".join(f"{name} {rate_text(rate)}" for name, rate in rates)
    failed = [check for check in governance.checks if not check.held]
    if failed:
        table = _table("question", "check", "about", "expected", "found")
        for check in failed:
            cells = (check.kind, check.about, check.expected, check.found)
            table.add_row(check.question, *(one_line(cell, MAX_TASK_CHARS) for cell in cells))
        yield table


def rate_text(rate: float | None) -> str:
    """Format a fraction as a percentage, or as a dash if it was not measured."""
    return "–" if rate is None else f"{rate:.1%}"


def _roles(report: EvalReport) -> Iterator[Table | str]:
    distinctiveness = report.distinctiveness
    assert distinctiveness is not None
    table = _table("role", "own domains", "own share", "own first")
    for role in distinctiveness.roles:
        names = ", ".join(role.domains) or "–"
        table.add_row(role.role_id, names, f"{role.own_share:.1%}", f"{role.own_first:.1%}")
    yield table
    table = _table("roles", "documents in common")
    for pair in distinctiveness.pairs:
        table.add_row(f"{pair.first}, {pair.second}", f"{pair.overlap:.1%}")
    yield table


def _harm(report: EvalReport) -> Table:
    table = _table("overlay", "nDCG@10 without", "with", "change", "p", "won/lost")
    for harm in report.harm:
        table.add_row(
            harm.role_id,
            f"{harm.without:.4f}",
            f"{harm.with_overlay:.4f}",
            f"{harm.relative:+.2%}",
            p_text(harm.p_value),
            f"{harm.wins}/{harm.losses}",
        )
    return table


def _thresholds(floors: Sequence[Floor]) -> Iterator[str]:
    for floor in floors:
        value, threshold = threshold_texts(floor)
        yield f"{'met' if floor.held else 'NOT MET'}: {floor.metric} {value}, {threshold}"


def threshold_texts(floor: Floor) -> tuple[str, str]:
    """The measured value and the threshold, as texts."""
    value = "not measured" if floor.value is None else f"{floor.value:.4f}"
    return value, f"{'at most' if floor.at_most else 'at least'} {floor.bound:g}"


def comparison_tables(comparison: EvalComparison) -> Iterator[Table | str]:
    """Yield the tables and lines of a comparison, from top to bottom."""
    only = comparison.only_before + comparison.only_after
    yield (
        f"{comparison.before} → {comparison.after}: {comparison.questions} questions in common"
        + (f", {only} in one of them only" if only else "")
    )
    table = _table("system", "metric", "before", "after", "change", "p", "won/lost/same")
    for change in comparison.changes:
        table.add_row(
            change.system,
            change.metric,
            f"{change.before:.4f}",
            f"{change.after:.4f}",
            f"{change.change:+.4f}",
            p_text(change.p_value),
            f"{change.wins}/{change.losses}/{change.ties}",
        )
    yield table
    if comparison.moved:
        table = _table("question", "before", "after", "change", "task")
        for question in comparison.moved:
            table.add_row(
                question.id,
                f"{question.before:.3f}",
                f"{question.after:.3f}",
                f"{question.after - question.before:+.3f}",
                one_line(question.task, MAX_TASK_CHARS),
            )
        yield table
    for name, (before, after) in comparison.governance.items():
        yield f"{name}: {rate_text(before)} → {rate_text(after)}"
    first, second = comparison.latency_p50
    yield f"latency p50: {first:.1f} ms → {second:.1f} ms"
    yield from _thresholds(comparison.floors)


def _table(first: str, *other_names: str) -> Table:
    from rich.table import Table

    table = Table(pad_edge=False, show_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in other_names:
        table.add_column(name, justify="left" if name in _LEFT_COLUMNS else "right")
    return table


_LEFT_COLUMNS = ("task", "metric", "check", "about", "expected", "found", "own domains")
