"""A report, or a comparison of two, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rolebundle.contracts.evaluation import EvalComparison, EvalReport, Floor, QuestionResult

if TYPE_CHECKING:
    from rich.table import Table

EXTREMES = 5
SIGNIFICANT = 0.05


def tables(report: EvalReport) -> Iterator[Table | str]:
    """What a terminal shows of a report, from the top."""
    yield _headline(report)
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
        f"{size.mean:,.0f} characters in the mean (p95 {size.p95:,.0f})"
    )
    took = report.seconds
    yield f"{took.total:.1f} s: {took.ingest:.1f} to ingest, {took.questions:.1f} to ask"
    yield from (f"! {note}" for note in report.notes)
    yield from _floors(report.floors)


def _headline(report: EvalReport) -> str:
    text = headline(report)
    return text + (f"\n! semantic lane degraded: {report.degraded}" if report.degraded else "")


def headline(report: EvalReport) -> str:
    """What was measured, in one line."""
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
    for one in report.systems:
        against = next((d for d in one.against_lexical if d.metric == "ndcg@10"), None)
        cells = [f"{one.metrics[name]:.4f}" for name in report.metrics]
        if against is None:
            table.add_row(one.system, *cells, "", "", "")
        else:
            relative = f" ({against.relative:+.1%})" if against.relative is not None else ""
            table.add_row(
                one.system,
                *cells,
                f"{against.mean:+.4f}{relative}",
                p_text(against.p_value),
                f"{against.wins}/{against.losses}",
            )
    return table


def p_text(value: float) -> str:
    """A p-value, with a star where it is under 0.05."""
    return ("<0.001" if value < 0.001 else f"{value:.3f}") + ("*" if value < SIGNIFICANT else "")


def gain(question: QuestionResult) -> float:
    """What governance and fusion brought to a question over the lexical lane, in nDCG@10."""
    return question.scores["governed"]["ndcg@10"] - question.scores["lexical"]["ndcg@10"]


def extremes(report: EvalReport, count: int) -> tuple[list[QuestionResult], list[QuestionResult]]:
    """The questions that won most and those that lost most against the lexical lane."""
    judged = [one for one in report.questions if one.scores]
    ordered = sorted(judged, key=lambda one: (-gain(one), one.id))
    won = [one for one in ordered[:count] if gain(one) > 0]
    lost = [one for one in reversed(ordered[-count:]) if gain(one) < 0]
    return won, lost


def _extremes(report: EvalReport) -> Iterator[Table]:
    won, lost = extremes(report, EXTREMES)
    for title, questions in (("won most (governed − lexical)", won), ("lost most", lost)):
        if questions:
            table = _table(title, "nDCG@10", "change", "task")
            for one in questions:
                score = one.scores["governed"]["ndcg@10"]
                table.add_row(one.id, f"{score:.3f}", f"{gain(one):+.3f}", one_line(one.task, 80))
            yield table


def one_line(text: str, most: int) -> str:
    """A text on one line, without what would steer a terminal, cut to a length."""
    plain = "".join(one if one.isprintable() else "�" for one in " ".join(text.split()))
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def _governance(report: EvalReport) -> Iterator[Table | str]:
    found = report.governance
    if found is None:
        return
    rates = (
        ("leak rate", found.leak_rate),
        ("rejection codes right", found.rejection_accuracy),
        ("postures right", found.posture_accuracy),
    )
    yield "governance: " + " · ".join(f"{name} {rate_text(rate)}" for name, rate in rates)
    failed = [one for one in found.checks if not one.held]
    if failed:
        table = _table("question", "check", "about", "expected", "found")
        for one in failed:
            cells = (one.kind, one.about, one.expected, one.found)
            table.add_row(one.question, *(one_line(cell, 80) for cell in cells))
        yield table


def rate_text(rate: float | None) -> str:
    """A share as a percentage, or that it was not measured."""
    return "–" if rate is None else f"{rate:.1%}"


def _roles(report: EvalReport) -> Iterator[Table | str]:
    apart = report.distinctiveness
    assert apart is not None
    table = _table("role", "own domains", "own share", "own first")
    for role in apart.roles:
        names = ", ".join(role.domains) or "–"
        table.add_row(role.role_id, names, f"{role.own_share:.1%}", f"{role.own_first:.1%}")
    yield table
    table = _table("roles", "documents in common")
    for pair in apart.pairs:
        table.add_row(f"{pair.first}, {pair.second}", f"{pair.overlap:.1%}")
    yield table


def _harm(report: EvalReport) -> Table:
    table = _table("overlay", "nDCG@10 without", "with", "change", "p", "won/lost")
    for one in report.harm:
        table.add_row(
            one.role_id,
            f"{one.without:.4f}",
            f"{one.with_overlay:.4f}",
            f"{one.relative:+.2%}",
            p_text(one.p_value),
            f"{one.wins}/{one.losses}",
        )
    return table


def _floors(floors: Sequence[Floor]) -> Iterator[str]:
    for one in floors:
        value = "not measured" if one.value is None else f"{one.value:.4f}"
        bound = f"{'at most' if one.at_most else 'at least'} {one.bound:g}"
        yield f"{'held' if one.held else 'NOT HELD'}: {one.metric} {value}, {bound}"


def comparison_tables(found: EvalComparison) -> Iterator[Table | str]:
    """What a terminal shows of a comparison."""
    only = found.only_before + found.only_after
    yield (
        f"{found.before} → {found.after}: {found.questions} questions in common"
        + (f", {only} in one of them only" if only else "")
    )
    table = _table("system", "metric", "before", "after", "change", "p", "won/lost/same")
    for one in found.changes:
        table.add_row(
            one.system,
            one.metric,
            f"{one.before:.4f}",
            f"{one.after:.4f}",
            f"{one.change:+.4f}",
            p_text(one.p_value),
            f"{one.wins}/{one.losses}/{one.ties}",
        )
    yield table
    if found.moved:
        table = _table("question", "before", "after", "change", "task")
        for moved in found.moved:
            table.add_row(
                moved.id,
                f"{moved.before:.3f}",
                f"{moved.after:.3f}",
                f"{moved.after - moved.before:+.3f}",
                one_line(moved.task, 80),
            )
        yield table
    for name, (before, after) in found.governance.items():
        yield f"{name}: {rate_text(before)} → {rate_text(after)}"
    first, second = found.latency_p50
    yield f"latency p50: {first:.1f} ms → {second:.1f} ms"
    yield from _floors(found.floors)


def _table(first: str, *others: str) -> Table:
    from rich.table import Table

    table = Table(pad_edge=False, show_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="left" if name in _WORDS else "right")
    return table


_WORDS = ("task", "metric", "check", "about", "expected", "found", "own domains")
