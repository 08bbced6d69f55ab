"""An evaluation report, or a comparison of two, as tables and lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from rolebundle.contracts.evaluation import (
    EvalComparison,
    EvalReport,
    Floor,
    QuestionResult,
    SystemResult,
)
from rolebundle.retrieval.answer.passage_text import one_line

MAX_EXTREMES = 5
MAX_TASK_CHARS = 80
SIGNIFICANT = 0.05
_LEFT_COLUMNS = ("task", "metric", "check", "about", "expected", "found", "own domains")


def tables(report: EvalReport) -> Iterator[Table | str]:
    """Yield the tables and lines of a report, from top to bottom."""
    yield headline(report)
    if report.degraded:
        yield f"! semantic lane degraded: {report.degraded}"
    columns = ("", *report.metrics, "nDCG@10 − lexical", "p", "won/lost")
    yield from _table(columns, map(_system_row, report.systems))
    won, lost = extremes(report, MAX_EXTREMES)
    for title, questions in (("largest gains (governed − lexical)", won), ("largest losses", lost)):
        yield from _table(
            (title, "nDCG@10", "change", "task"),
            (
                (
                    question.id,
                    f"{question.scores['governed']['ndcg@10']:.3f}",
                    f"{gain(question):+.3f}",
                    question.task,
                )
                for question in questions
            ),
        )
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
    if distinctiveness := report.distinctiveness:
        yield from _table(
            ("role", "own domains", "own share", "own first"),
            (
                (
                    role.role_id,
                    ", ".join(role.domains) or "–",
                    f"{role.own_share:.1%}",
                    f"{role.own_first:.1%}",
                )
                for role in distinctiveness.roles
            ),
        )
        yield from _table(
            ("roles", "documents in common"),
            ((f"{p.first}, {p.second}", f"{p.overlap:.1%}") for p in distinctiveness.pairs),
        )
    yield from _table(
        ("overlay", "nDCG@10 without", "with", "change", "p", "won/lost"),
        (
            (
                harm.role_id,
                f"{harm.without:.4f}",
                f"{harm.with_overlay:.4f}",
                f"{harm.relative:+.2%}",
                p_text(harm.p_value),
                f"{harm.wins}/{harm.losses}",
            )
            for harm in report.harm
        ),
    )
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
    """The first line of a report: what was evaluated."""
    index = report.corpus.index
    model = f"{index.provider}:{index.model}" if index else "no embeddings"
    more = f" ({report.unjudged} more not judged)" if report.unjudged else ""
    role = report.role or ("of each question" if report.kind == "golden" else "none")
    return (
        f"{report.name}: {report.judged} judged questions{more}, "
        f"{report.corpus.documents:,} documents, {report.corpus.chunks:,} chunks, {model}, "
        f"role {role}"
    )


def _system_row(system: SystemResult) -> Iterator[str]:
    """The means of a system, and how it differs from the lexical lane by nDCG@10."""
    yield system.system
    yield from (f"{value:.4f}" for value in system.metrics.values())
    against = next((diff for diff in system.against_lexical if diff.metric == "ndcg@10"), None)
    if against is not None:
        relative = f" ({against.relative:+.1%})" if against.relative is not None else ""
        yield f"{against.mean:+.4f}{relative}"
        yield p_text(against.p_value)
        yield f"{against.wins}/{against.losses}"


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


def rate_text(rate: float | None) -> str:
    """Format a fraction as a percentage, or as a dash if it was not measured."""
    return "–" if rate is None else f"{rate:.1%}"


def _thresholds(floors: Sequence[Floor]) -> Iterator[str]:
    for floor in floors:
        value = "not measured" if floor.value is None else f"{floor.value:.4f}"
        threshold = f"{'at most' if floor.at_most else 'at least'} {floor.bound:g}"
        yield f"{'met' if floor.held else 'NOT MET'}: {floor.metric} {value}, {threshold}"


def comparison_tables(comparison: EvalComparison) -> Iterator[Table | str]:
    """Yield the tables and lines of a comparison, from top to bottom."""
    only = comparison.only_before + comparison.only_after
    yield (
        f"{comparison.before} → {comparison.after}: {comparison.questions} questions in common"
        + (f", {only} in one of them only" if only else "")
    )
    yield from _table(
        ("system", "metric", "before", "after", "change", "p", "won/lost/same"),
        (
            (
                change.system,
                change.metric,
                f"{change.before:.4f}",
                f"{change.after:.4f}",
                f"{change.change:+.4f}",
                p_text(change.p_value),
                f"{change.wins}/{change.losses}/{change.ties}",
            )
            for change in comparison.changes
        ),
    )
    yield from _table(
        ("question", "before", "after", "change", "task"),
        (
            (q.id, f"{q.before:.3f}", f"{q.after:.3f}", f"{q.after - q.before:+.3f}", q.task)
            for q in comparison.moved
        ),
    )
    for name, (before, after) in comparison.governance.items():
        yield f"{name}: {rate_text(before)} → {rate_text(after)}"
    first, second = comparison.latency_p50
    yield f"latency p50: {first:.1f} ms → {second:.1f} ms"
    yield from _thresholds(comparison.floors)


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
