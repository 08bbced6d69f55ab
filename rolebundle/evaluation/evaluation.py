"""The whole evaluation: questions asked, measured and summed up into one report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import get_args

from rolebundle.contracts.evaluation import (
    Check,
    Difference,
    EvalReport,
    EvaluatedCorpus,
    Harm,
    QuestionResult,
    Seconds,
    Spread,
    System,
    SystemResult,
)
from rolebundle.evaluation.governance import (
    Role,
    checks_of,
    distinctiveness,
    harm,
    summarize_checks,
)
from rolebundle.evaluation.metrics import (
    METRICS,
    mean,
    measures,
    paired_randomization,
    percentile,
)
from rolebundle.evaluation.questions import Question, References
from rolebundle.evaluation.runs import BEST, Answer, Retriever, Runner
from rolebundle.retrieval.corpus_state import corpus_state

SYSTEMS: tuple[System, ...] = get_args(System)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be evaluated.

    ``compared`` are the roles whose answers are put side by side, ``harming`` those whose harm to
    these questions is measured.
    """

    kind: str
    name: str
    role: str | None
    questions: list[Question]
    unjudged: int = 0
    notes: tuple[str, ...] = ()
    compared: tuple[Role, ...] = ()
    harming: tuple[Role, ...] = ()
    lexical_only: bool = False
    ingest_seconds: float = 0.0


def evaluate(retriever: Retriever, plan: Plan, progress: Progress) -> EvalReport:
    """Ask everything and sum it up. Floors are the caller's to put on it.

    Args:
        retriever: the engine with the corpus.
        plan: what is asked.
        progress: told what is being done, how much of it is done, and how much there is.

    Raises:
        RolebundleError: what the pipeline raises; nothing of the report is kept then.
    """
    started = perf_counter()
    runner = Runner(retriever, lexical_only=plan.lexical_only)
    references = References(retriever.workspace.corpus)
    results: list[QuestionResult] = []
    checks: list[Check] = []
    degraded = ""
    for number, question in enumerate(plan.questions, start=1):
        answer = runner.answer(question)
        degraded = degraded or answer.degraded
        checks += checks_of(question, answer.governed.bundle, references, runner)
        results.append(_result(question, answer))
        progress("questions", number, len(plan.questions))
    judged = [question for question in plan.questions if question.judged]
    apart = None
    if plan.compared:
        counted = _Counted("roles", len(plan.compared) * len(plan.questions), progress)
        apart = distinctiveness(runner, plan.questions, plan.compared, counted)
    state = corpus_state(retriever.workspace.corpus)
    seconds = perf_counter() - started
    report = EvalReport(
        kind="golden" if plan.kind == "golden" else "collection",
        name=plan.name,
        role=plan.role,
        corpus=EvaluatedCorpus(documents=state.documents, chunks=state.chunks, index=state.index),
        metrics=list(METRICS),
        systems=summed_up(results),
        judged=len(judged),
        unjudged=plan.unjudged + len(plan.questions) - len(judged),
        questions=results,
        governance=summarize_checks(checks) if checks else None,
        distinctiveness=apart,
        latency_ms=spread([one.latency_ms for one in results]),
        answer_characters=spread([one.answer_characters for one in results]),
        passages=spread([one.passages for one in results]),
        degraded=degraded,
        notes=list(plan.notes),
        seconds=Seconds(
            ingest=plan.ingest_seconds, questions=seconds, total=plan.ingest_seconds + seconds
        ),
        passed=True,
    )
    if not plan.harming:
        return report
    harmed = _harms(runner, judged, plan, report, progress)
    seconds = perf_counter() - started
    took = report.seconds.model_copy(
        update={"questions": seconds, "total": plan.ingest_seconds + seconds}
    )
    return report.model_copy(update={"harm": harmed, "seconds": took})


class _Counted:
    """Tells a progress of one more, each time that it is called."""

    def __init__(self, what: str, total: int, progress: Progress) -> None:
        self._what, self._total, self._progress, self._done = what, total, progress, 0

    def __call__(self) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)


def _harms(
    runner: Runner, judged: Sequence[Question], plan: Plan, report: EvalReport, progress: Progress
) -> list[Harm]:
    without_role = all(question.role is None for question in judged)
    if without_role:
        scores = {
            one.id: one.scores["governed"]["ndcg@10"] for one in report.questions if one.scores
        }
        without = [scores[question.id] for question in judged]
    else:
        without = [
            measures(runner.governed(question, None).ranked, question.grades)["ndcg@10"]
            for question in judged
        ]
    counted = _Counted("overlays", len(plan.harming) * len(judged), progress)
    return [harm(runner, judged, without, role, counted) for role in plan.harming]


def _result(question: Question, answer: Answer) -> QuestionResult:
    bundle = answer.governed.bundle
    scores: dict[System, dict[str, float]] = {}
    if question.judged:
        scores = {
            system: measures(ranked, question.grades) for system, ranked in answer.rankings.items()
        }
    return QuestionResult(
        id=question.id,
        task=question.task,
        role=question.role,
        scores=scores,
        best=answer.governed.ranked[:BEST],
        latency_ms=round(answer.governed.milliseconds, 3),
        passages=len(bundle.selected),
        answer_characters=sum(len(chunk.content) for chunk in bundle.selected),
    )


def summed_up(results: Sequence[QuestionResult]) -> list[SystemResult]:
    """The means of every system over the questions that are judged, and against the lexical lane.

    A system that did not answer every one of them is left out: its mean would be of others.
    """
    judged = [one for one in results if one.scores]
    made = []
    for system in SYSTEMS:
        if not judged or not all(system in one.scores for one in judged):
            continue
        values = {name: [one.scores[system][name] for one in judged] for name in METRICS}
        against = []
        if system != "lexical":
            against = [
                difference(name, [one.scores["lexical"][name] for one in judged], values[name])
                for name in METRICS
            ]
        means = {name: mean(values[name]) for name in METRICS}
        made.append(SystemResult(system=system, metrics=means, against_lexical=against))
    return made


def difference(metric: str, first: Sequence[float], second: Sequence[float]) -> Difference:
    """How much more the second has than the first, with its p-value."""
    before, after = mean(first), mean(second)
    pairs = list(zip(first, second, strict=True))
    return Difference(
        metric=metric,
        mean=after - before,
        relative=after / before - 1 if before > 0 else None,
        p_value=paired_randomization(first, second),
        wins=sum(theirs > ours for ours, theirs in pairs),
        losses=sum(theirs < ours for ours, theirs in pairs),
        ties=sum(theirs == ours for ours, theirs in pairs),
    )


def spread(values: Sequence[float]) -> Spread:
    """Mean, percentiles and the largest of the values."""
    return Spread(
        mean=mean(values),
        p50=percentile(values, 0.5),
        p90=percentile(values, 0.9),
        p95=percentile(values, 0.95),
        p99=percentile(values, 0.99),
        most=max(values, default=0.0),
    )
