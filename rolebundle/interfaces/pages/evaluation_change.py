"""The page of two evaluation reports: each question opens to the documents of both, aligned."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from rolebundle.contracts.evaluation import (
    EvalComparison,
    EvalReport,
    ListedResult,
    MetricChange,
    QuestionResult,
)
from rolebundle.evaluation.comparison import shared_questions
from rolebundle.evaluation.report import (
    SIGNIFICANT,
    one_line,
    p_text,
    rate_text,
    threshold_texts,
)
from rolebundle.interfaces.pages.evaluation import (
    MAX_TASK_CHARS,
    QuestionGroup,
    documents_of,
    group,
)
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.plots import gain_plot
from rolebundle.interfaces.pages.site import FILE, Site


class DocumentRow(NamedTuple):
    """A document in both reports: its grade, and its ranks; ``None`` if it is not listed."""

    id: str
    grade: int | None
    before: int | None
    after: int | None

    @property
    def move(self) -> str:
        """How its rank changed, in words."""
        match self.before, self.after:
            case None, None:
                return "in neither"
            case None, _:
                return "new"
            case _, None:
                return "gone"
            case int(before), int(after) if before != after:
                return f"up {before - after}" if after < before else f"down {after - before}"
        return ""


class QuestionRow(NamedTuple):
    """A question in both reports; ``documents`` is empty if its first ten are equal."""

    before: QuestionResult
    after: QuestionResult
    documents: Sequence[DocumentRow]

    @property
    def title(self) -> str:
        """The task on one line."""
        return one_line(self.after.task, MAX_TASK_CHARS)

    @property
    def change(self) -> float:
        """nDCG@10 of the governed answer: after minus before."""
        return _score(self.after) - _score(self.before)


def evaluation_change_page(
    comparison: EvalComparison, before: EvalReport, after: EvalReport, site: Site = FILE
) -> str:
    """The page of a comparison.

    Args:
        comparison: of the two reports.
        before: the first report.
        after: the second report.
        site: the application that serves the page.
    """
    rows = [
        QuestionRow(first, second, _documents(first, second))
        for first, second in shared_questions(before, after)
    ]
    changes = [(f"{row.after.id} · {one_line(row.after.task, 80)}", row.change) for row in rows]
    groups = _groups(rows)
    return render(
        "evaluation_change",
        site,
        comparison=comparison,
        reports=(before, after),
        main=next(
            (c for c in comparison.changes if (c.system, c.metric) == ("governed", "ndcg@10")), None
        ),
        level_of=_level,
        significant=SIGNIFICANT,
        p_text=p_text,
        rate_text=rate_text,
        threshold_texts=threshold_texts,
        score=_score,
        groups=groups,
        plot=gain_plot(changes),
    )


def _groups(rows: Sequence[QuestionRow]) -> list[QuestionGroup[QuestionRow]]:
    ordered = sorted(rows, key=lambda row: (row.change, row.after.id))
    named = (
        ("worse", [row for row in ordered if row.change < 0]),
        ("better", [row for row in reversed(ordered) if row.change > 0]),
        ("the same score", [row for row in ordered if row.change == 0]),
    )
    return [group(name, of_group) for name, of_group in named if of_group]


def _documents(before: QuestionResult, after: QuestionResult) -> list[DocumentRow]:
    first = {document.id: document for document in documents_of(before)}
    second = {document.id: document for document in documents_of(after)}
    if before.best == after.best and before.best:
        return []
    missing = ListedResult(id="")
    rows = []
    for name in dict.fromkeys((*second, *first)):
        old, new = first.get(name, missing), second.get(name, missing)
        grade = new.grade if new.grade is not None else old.grade
        rows.append(DocumentRow(name, grade, old.rank, new.rank))
    # Those of the second answer in their order, then those that only the first one has.
    return sorted(rows, key=lambda row: (row.after or inf, row.before or inf))


def _score(question: QuestionResult) -> float:
    return question.scores["governed"]["ndcg@10"]


def _level(change: MetricChange) -> str:
    if change.p_value >= SIGNIFICANT:
        return ""
    return "good" if change.change > 0 else "bad"
