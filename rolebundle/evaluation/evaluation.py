"""The whole evaluation: ask the questions, measure the answers, and make the report."""

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
from rolebundle.engine import Engine
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
from rolebundle.evaluation.runner import MAX_BEST, Answer, Runner
from rolebundle.retrieval.lanes import corpus_state

SYSTEMS: tuple[System, ...] = get_args(System)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to evaluate.

    The answers of the roles in ``compared`` are compared with each other. For those in ``harming``
    the harm to these questions is measured.
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


def evaluate(engine: Engine, plan: Plan, progress: Progress) -> EvalReport:
    """Ask the questions and return the report. The caller checks bounds on it.

    Args:
        engine: the engine with the corpus.
        plan: what to evaluate.
        progress: called with the kind of work, how much is done, and how much there is.

    Raises:
        RolebundleError: as the pipeline raises it; there is no report then.
    """
    started = perf_counter()
    runner = Runner(engine, lexical_only=plan.lexical_only)
    references = References(engine.workspace.corpus)
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
    compared = None
    if plan.compared:
        counted = _Counter("roles", len(plan.compared) * len(plan.questions), progress)
        compared = distinctiveness(runner, plan.questions, plan.compared, counted)
    state = corpus_state(engine.workspace.corpus)
    seconds = perf_counter() - started
    report = EvalReport(
        kind="golden" if plan.kind == "golden" else "collection",
        name=plan.name,
        role=plan.role,
        corpus=EvaluatedCorpus(documents=state.documents, chunks=state.chunks, index=state.index),
        metrics=list(METRICS),
        systems=summarize_systems(results),
        judged=len(judged),
        unjudged=plan.unjudged + len(plan.questions) - len(judged),
        questions=results,
        governance=summarize_checks(checks) if checks else None,
        distinctiveness=compared,
        latency_ms=spread([result.latency_ms for result in results]),
        answer_characters=spread([result.answer_characters for result in results]),
        passages=spread([result.passages for result in results]),
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


class _Counter:
    """Report one more step of ``total`` with each call."""

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
            result.id: result.scores["governed"]["ndcg@10"]
            for result in report.questions
            if result.scores
        }
        without = [scores[question.id] for question in judged]
    else:
        without = [
            measures(runner.governed(question, None).ranked, question.grades)["ndcg@10"]
            for question in judged
        ]
    counted = _Counter("overlays", len(plan.harming) * len(judged), progress)
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
        best=answer.governed.ranked[:MAX_BEST],
        latency_ms=round(answer.governed.milliseconds, 3),
        passages=len(bundle.selected),
        answer_characters=sum(len(chunk.content) for chunk in bundle.selected),
    )


def summarize_systems(results: Sequence[QuestionResult]) -> list[SystemResult]:
    """Return each system's means over the judged questions, and its gain over the lexical lane.

    A system that has no ranking for one of them is left out: its mean is not comparable.
    """
    judged = [result for result in results if result.scores]
    summaries = []
    for system in SYSTEMS:
        if not judged or not all(system in result.scores for result in judged):
            continue
        values = {name: [result.scores[system][name] for result in judged] for name in METRICS}
        against = []
        if system != "lexical":
            against = [
                difference(
                    name, [result.scores["lexical"][name] for result in judged], values[name]
                )
                for name in METRICS
            ]
        means = {name: mean(values[name]) for name in METRICS}
        summaries.append(SystemResult(system=system, metrics=means, against_lexical=against))
    return summaries


def difference(metric: str, first: Sequence[float], second: Sequence[float]) -> Difference:
    """Return how much the second exceeds the first, with wins, losses, ties and p-value."""
    before, after = mean(first), mean(second)
    pairs = list(zip(first, second, strict=True))
    return Difference(
        metric=metric,
        mean=after - before,
        relative=after / before - 1 if before > 0 else None,
        p_value=paired_randomization(first, second),
        wins=sum(other > value for value, other in pairs),
        losses=sum(other < value for value, other in pairs),
        ties=sum(other == value for value, other in pairs),
    )


def spread(values: Sequence[float]) -> Spread:
    """Return mean, percentiles and maximum of the values."""
    return Spread(
        mean=mean(values),
        p50=percentile(values, 0.5),
        p90=percentile(values, 0.9),
        p95=percentile(values, 0.95),
        p99=percentile(values, 0.99),
        most=max(values, default=0.0),
    )
