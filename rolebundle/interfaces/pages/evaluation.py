"""The evaluation page: a report with plots, in which each question opens to its documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from markupsafe import Markup

from rolebundle.contracts.evaluation import (
    Check,
    Difference,
    EvalReport,
    ListedResult,
    QuestionResult,
)
from rolebundle.evaluation.evaluation import MAX_MISSED
from rolebundle.evaluation.report import (
    SIGNIFICANT,
    against_lexical,
    gain,
    headline,
    one_line,
    p_text,
    rate_text,
    threshold_texts,
)
from rolebundle.evaluation.runner import MAX_BEST
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.page import render, signed
from rolebundle.interfaces.pages.plots import Bar, Mark, bar_plot, gain_plot, histogram
from rolebundle.interfaces.pages.site import FILE, Site

MAX_TASK_CHARS = 140
MAX_SHOWN = 15
"""How many questions of a group are listed before a fold."""
Row = TypeVar("Row")


class QuestionRow(NamedTuple):
    """A question of the report.

    Attributes:
        before: nDCG@10 of the lexical lane; ``None`` if the question has no grades.
        after: nDCG@10 of the governed answer, likewise.
        missed: relevant documents that are not among the first ten.
        failed: the expectations of the question that are not met.
    """

    question: QuestionResult
    before: float | None
    after: float | None
    documents: Sequence[ListedResult]
    missed: int
    failed: Sequence[Check]

    @property
    def title(self) -> str:
        """The task on one line."""
        return one_line(self.question.task, MAX_TASK_CHARS)


class QuestionGroup(NamedTuple, Generic[Row]):
    """Questions with a common outcome. ``folded``: those that are listed in a fold."""

    name: str
    rows: Sequence[Row]
    folded: Sequence[Row]

    @property
    def total(self) -> int:
        """How many questions there are."""
        return len(self.rows) + len(self.folded)


def group(name: str, rows: Sequence[Row]) -> QuestionGroup[Row]:
    """A group whose first questions can be seen at once."""
    return QuestionGroup(name, rows[:MAX_SHOWN], rows[MAX_SHOWN:])


def evaluation_page(report: EvalReport, site: Site = FILE) -> str:
    """The page of a report."""
    judged = [question for question in report.questions if question.scores]
    won, lost = sum(gain(q) > 0 for q in judged), sum(gain(q) < 0 for q in judged)
    return render(
        "evaluation",
        site,
        report=report,
        headline=headline(report).removeprefix(f"{report.name}: "),
        systems=[(system, against_lexical(system)) for system in report.systems],
        significant=SIGNIFICANT,
        level_of=change_level,
        p_text=p_text,
        rate_text=rate_text,
        threshold_texts=threshold_texts,
        place_of=place_of,
        max_missed=MAX_MISSED,
        counts=(won, lost, len(judged) - won - lost),
        groups=_groups(report),
        failed=[check for check in _checks(report) if not check.held],
        plots=_plots(report, judged),
    )


def change_level(difference: Difference | None) -> str:
    """The CSS class of a difference: empty if it may be chance."""
    if difference is None or difference.p_value >= SIGNIFICANT:
        return ""
    return "good" if difference.mean > 0 else "bad"


def place_of(document: ListedResult) -> str:
    """Where a document is that is not selected, in plain words; empty if it is selected."""
    if document.rejected == "budget_cut":
        return "below the limit"
    if document.rejected is not None:
        reason = words.REJECTION[document.rejected]
        return f"kept back: {reason}" if words.is_rule(document.rejected) else reason
    if document.rank is None:
        return "not proposed by any lane"
    return "" if document.rank <= MAX_BEST else "below the first ten"


def documents_of(question: QuestionResult) -> Sequence[ListedResult]:
    """The documents of a question. A report that has no list of them has the ids of the best."""
    ids = enumerate(question.best, start=1)
    return question.documents or [ListedResult(id=name, rank=rank) for rank, name in ids]


def _groups(report: EvalReport) -> list[QuestionGroup[QuestionRow]]:
    failed = defaultdict(list)
    for check in _checks(report):
        if not check.held:
            failed[check.question].append(check)
    rows = [_row(question, failed[question.id]) for question in report.questions]
    judged = sorted(
        (row for row in rows if row.question.scores),
        key=lambda row: (gain(row.question), row.after, row.question.id),
    )
    lost = [row for row in judged if gain(row.question) < 0]
    won = [row for row in reversed(judged) if gain(row.question) > 0]
    same = [row for row in judged if gain(row.question) == 0]
    ungraded = [row for row in rows if not row.question.scores]
    named = (
        ("worse than the task's words alone", lost),
        ("better than the task's words alone", won),
        ("the same", same),
        ("without grades", ungraded),
    )
    return [group(name, rows) for name, rows in named if rows]


def _row(question: QuestionResult, failed: Sequence[Check]) -> QuestionRow:
    documents = documents_of(question)
    missed = sum(
        bool(document.grade) and not (document.rank and document.rank <= MAX_BEST)
        for document in documents
    )
    if not question.scores:
        return QuestionRow(question, None, None, documents, missed, failed)
    before, after = question.scores["lexical"]["ndcg@10"], question.scores["governed"]["ndcg@10"]
    return QuestionRow(question, before, after, documents, missed, failed)


def _checks(report: EvalReport) -> Iterable[Check]:
    return report.governance.checks if report.governance else ()


def _plots(report: EvalReport, judged: Sequence[QuestionResult]) -> dict[str, Markup]:
    latency, size = report.latency_ms, report.answer_characters
    times = [question.latency_ms for question in report.questions]
    sizes = [float(question.answer_characters) for question in report.questions]
    plots = {
        "latency": histogram(
            times,
            "Latency of the answers",
            "ms",
            [Mark("p50", latency.p50), Mark("p95", latency.p95), Mark("p99", latency.p99)],
        ),
        "size": histogram(
            sizes,
            "Size of the answers",
            "characters",
            [Mark("p50", size.p50), Mark("p95", size.p95)],
        ),
    }
    if report.systems:
        plots["systems"] = bar_plot(_system_bars(report), "nDCG@10 by system")
        changes = [(f"{q.id} · {one_line(q.task, 80)}", gain(q)) for q in judged]
        plots["gains"] = gain_plot(changes)
    if report.distinctiveness:
        shares = [
            Bar(role.role_id, role.own_share, rate_text(role.own_share), "main")
            for role in report.distinctiveness.roles
        ]
        plots["roles"] = bar_plot(shares, "Passages from own domains, by role")
    if report.harm:
        harms = [
            Bar(
                harm.role_id,
                harm.relative,
                f"{signed(harm.relative * 100, 2)}%, p {p_text(harm.p_value)}",
                "won" if harm.relative >= 0 else "lost",
            )
            for harm in report.harm
        ]
        plots["harm"] = bar_plot(harms, "Change of nDCG@10 by overlay")
    return plots


def _system_bars(report: EvalReport) -> list[Bar]:
    bars = []
    for system in report.systems:
        value = system.metrics["ndcg@10"]
        text = f"{value:.4f}"
        against = against_lexical(system)
        if against and against.relative is not None:
            text += f"  {signed(against.relative * 100, 1)}%, p {p_text(against.p_value)}"
        bars.append(
            Bar(system.system, value, text, "main" if system.system == "governed" else "plain")
        )
    return bars
