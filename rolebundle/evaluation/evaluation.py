"""The whole evaluation: ask the questions, measure the answers, and make the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import get_args

from rolebundle.contracts.evaluation import (
    Check,
    EvalReport,
    EvaluatedCorpus,
    GoldenSet,
    Harm,
    ListedResult,
    QuestionResult,
    Seconds,
    Spread,
    System,
    SystemResult,
)
from rolebundle.contracts.terms import RejectionCode
from rolebundle.engine import Engine
from rolebundle.evaluation.collection import Collection
from rolebundle.evaluation.governance import (
    Role,
    checks_of,
    distinctiveness,
    harm,
    summarize_checks,
)
from rolebundle.evaluation.metrics import (
    METRICS,
    difference,
    mean,
    measures,
    percentile,
)
from rolebundle.evaluation.questions import Question, References, from_collection, from_golden
from rolebundle.evaluation.runner import MAX_BEST, Answer, Runner
from rolebundle.retrieval.answer.corpus_state import corpus_state

SYSTEMS: tuple[System, ...] = get_args(System)
MAX_MISSED = 5
"""How many relevant documents that are not among the first ten a report has for each question."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to evaluate.

    Attributes:
        kind: ``collection`` or ``golden``.
        name: the name of the collection or golden set.
        role: the role of all questions, for the report; ``None`` if there is no common one.
        questions: the questions to ask.
        unjudged: the number of questions of the collection that are left out, without judgments.
        notes: remarks for the report.
        compared_roles: roles whose answers to the questions are compared with each other.
        harm_roles: roles whose overlays are measured: how nDCG@10 of the questions changes.
        lexical_only: leave out the semantic lane.
        ingest_seconds: how long the ingest took, for the report.
    """

    kind: str
    name: str
    role: str | None
    questions: list[Question]
    unjudged: int = 0
    notes: tuple[str, ...] = ()
    compared_roles: tuple[Role, ...] = ()
    harm_roles: tuple[Role, ...] = ()
    lexical_only: bool = False
    ingest_seconds: float = 0.0


def plan_for(
    engine: Engine, test_set: Collection | GoldenSet, role: str | None, moment: datetime
) -> Plan:
    """What to evaluate: the questions of a test set, resolved in the engine's corpus.

    Args:
        engine: the engine with the corpus.
        test_set: the questions.
        role: replaces the role of every question.
        moment: the time of questions without their own.

    Raises:
        UsageError: ``other_corpus`` if the corpus has none of a collection's relevant documents.
    """
    references = References(engine.workspace.corpus)
    if isinstance(test_set, Collection):
        questions, notes = from_collection(test_set, references, role, moment)
    else:
        questions, notes = from_golden(test_set, references, role, moment)
    if engine.answering.default_rerank:
        notes = [*notes, f"governed: reranked by {engine.answering.default_rerank}"]
    return Plan(
        kind="collection" if isinstance(test_set, Collection) else "golden",
        name=test_set.name,
        role=role,
        questions=questions,
        unjudged=test_set.without_relevant if isinstance(test_set, Collection) else 0,
        notes=tuple(notes),
    )


def evaluate(engine: Engine, plan: Plan, progress: Progress) -> EvalReport:
    """Ask the questions and return the report, with ``passed`` set to true.

    :func:`rolebundle.evaluation.comparison.with_thresholds` computes ``passed``.

    Args:
        engine: the engine with the corpus.
        plan: what to evaluate.
        progress: called with the current step, how many units of it are done, and how many there
            are.

    Raises:
        RolebundleError: an answer failed.
    """
    started = perf_counter()
    runner = Runner(engine, lexical_only=plan.lexical_only)
    references = References(engine.workspace.corpus)
    results: list[QuestionResult] = []
    checks: list[Check] = []
    degraded = ""
    for number, question in enumerate(plan.questions, start=1):
        answer = runner.answer(question)
        degraded = degraded or answer.degraded_reason
        checks += checks_of(question, answer.governed.bundle, references, runner)
        results.append(_result(question, answer, runner))
        progress("questions", number, len(plan.questions))
    judged = [question for question in plan.questions if question.judged]
    distinct = None
    if plan.compared_roles:
        advance = _Counter("roles", len(plan.compared_roles) * len(plan.questions), progress)
        distinct = distinctiveness(runner, plan.questions, plan.compared_roles, advance)
    state = corpus_state(engine.workspace.corpus, datetime.now(UTC))
    harms = _harms(runner, judged, plan, results, progress) if plan.harm_roles else []
    seconds = perf_counter() - started
    return EvalReport(
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
        distinctiveness=distinct,
        harm=harms,
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


class _Counter:
    """Report one more unit of ``total`` with each call."""

    def __init__(self, step: str, total: int, progress: Progress) -> None:
        self._step, self._total, self._progress, self._done = step, total, progress, 0

    def __call__(self) -> None:
        self._done += 1
        self._progress(self._step, self._done, self._total)


def _harms(
    runner: Runner,
    judged: Sequence[Question],
    plan: Plan,
    results: Sequence[QuestionResult],
    progress: Progress,
) -> list[Harm]:
    """The effect of each overlay, compared with no overlay."""
    baseline = _scores_without_overlay(runner, judged, results)
    advance = _Counter("overlays", len(plan.harm_roles) * len(judged), progress)
    return [harm(runner, judged, baseline, role, advance) for role in plan.harm_roles]


def _scores_without_overlay(
    runner: Runner, judged: Sequence[Question], results: Sequence[QuestionResult]
) -> list[float]:
    """nDCG@10 of each question without an overlay.

    If no question has a role, these are the scores of the governed answers.
    """
    if all(question.role is None for question in judged):
        scores = {
            result.id: result.scores["governed"]["ndcg@10"] for result in results if result.scores
        }
        return [scores[question.id] for question in judged]
    return [
        measures(runner.governed(question, None).ranked, question.grades)["ndcg@10"]
        for question in judged
    ]


def _result(question: Question, answer: Answer, runner: Runner) -> QuestionResult:
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
        documents=_documents(question, answer, runner),
        latency_ms=round(answer.governed.milliseconds, 3),
        passages=len(bundle.selected),
        answer_characters=sum(len(chunk.content) for chunk in bundle.selected),
    )


def _documents(question: Question, answer: Answer, runner: Runner) -> list[ListedResult]:
    """The first documents of the governed answer, and the relevant ones that are not among them."""
    ranks = {document: rank for rank, document in enumerate(answer.governed.ranked, start=1)}
    lexical = {document: rank for rank, document in enumerate(answer.rankings["lexical"], start=1)}
    scores: dict[str, float] = {}
    codes: dict[str, RejectionCode] = {}
    selected = set()
    for chunk in answer.governed.bundle.selected:
        document = question.judged_id(chunk.chunk_id, chunk.document_id)
        scores.setdefault(document, chunk.scores.final)
        selected.add(document)
    for rejection in answer.governed.bundle.rejected:
        document = question.judged_id(rejection.chunk_id, runner.document_of(rejection.chunk_id))
        if document not in selected:
            codes.setdefault(document, rejection.reason)
            if rejection.final is not None:
                scores[document] = max(rejection.final, scores.get(document, rejection.final))
    first = answer.governed.ranked[:MAX_BEST]
    relevant = sorted(
        (document for document, grade in question.grades.items() if grade > 0),
        key=lambda document: (-question.grades[document], document),
    )
    missed = [document for document in relevant if document not in first]
    return [
        ListedResult(
            id=document,
            grade=question.grades.get(document),
            rank=ranks.get(document),
            score=round(scores[document], 6) if document in scores else None,
            lexical_rank=lexical.get(document),
            rejected=codes.get(document),
        )
        for document in (*first, *missed[:MAX_MISSED])
    ]


def summarize_systems(results: Sequence[QuestionResult]) -> list[SystemResult]:
    """Return each system's means over the judged questions, and its gain over the lexical lane.

    A system without a ranking for one of the questions is left out: its mean is not comparable.
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
