"""The whole evaluation: ask the questions, measure the answers, and make the report.

An answer is the governed one, as any agent gets it. A document's rank is that of its best chunk.

Measures are those of trec_eval, with whose own code (``pytrec_eval``) tests compare them. Each
takes the ranked ids of one question, best first, and its judgments (id → grade). A grade of 1 or
more is relevant; an id without a judgment, or with 0 or less, is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from time import perf_counter
from typing import get_args

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.evaluation import (
    Check,
    CheckKind,
    EvalReport,
    Floor,
    GoldenQuestion,
    GoldenSet,
    Governance,
    Metric,
    QuestionResult,
    Spread,
)
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.evaluation.questions import Judged, References, from_golden, references_in
from rolebundle.lazy import numpy as np
from rolebundle.retrieval.pipeline import corpus_state
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.passages import passage_by_id
from rolebundle.text.words import first_of

Grades = Mapping[str, int]

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr")
"""The measures of each question and system, in the order of the report."""
MAX_BEST = 10
"""How many ids of the governed ranking a report has for each question."""
MAX_IDS_SHOWN = 5
_DEGRADED = ("SEMANTIC_LANE_DEGRADED", "RERANK_DEGRADED")
Progress = Callable[[str, int, int], None]


def evaluate(
    engine: Engine,
    golden: GoldenSet,
    role: str | None,
    moment: datetime,
    progress: Progress,
    *,
    lexical_only: bool = False,
    ingest_seconds: float = 0.0,
) -> EvalReport:
    """Ask the questions of a golden set and return the report, with ``passed`` set to true.

    :func:`with_thresholds` computes ``passed``.

    Args:
        engine: the engine with the corpus.
        golden: the questions.
        role: replaces the role of every question.
        moment: the time of questions without their own.
        progress: called with the current step, how many units of it are done, and how many there
            are.
        lexical_only: leave out the semantic lane.
        ingest_seconds: how long the ingest took, for the report.

    Raises:
        RolebundleError: an answer failed.
    """
    started = perf_counter()
    corpus = engine.workspace.corpus
    references, document_of = references_in(corpus), documents_in(corpus)
    questions, notes = from_golden(golden, references, role, moment)
    if engine.answering.default_rerank:
        notes.append(f"reranked by {engine.answering.default_rerank}")
    results: list[QuestionResult] = []
    checks: list[Check] = []
    reasons = list[str]()
    for number, question in enumerate(questions, start=1):
        bundle, ranked, milliseconds = governed(
            engine, question, document_of, lexical_only=lexical_only
        )
        reasons += [w.message for w in bundle.warnings if w.code in _DEGRADED]
        checks += checks_of(question[0], bundle, references, document_of)
        results.append(_result(question, bundle, ranked, milliseconds))
        progress("questions", number, len(questions))
    judged = [result.scores for result in results if result.scores]
    seconds = perf_counter() - started
    return EvalReport(
        name=golden.name,
        role=role,
        corpus=corpus_state(corpus, datetime.now(UTC)),
        metrics={name: mean([scores[name] for scores in judged]) for name in METRICS if judged},
        judged=len(judged),
        unjudged=len(questions) - len(judged),
        questions=results,
        governance=summarize_checks(checks) if checks else None,
        latency_ms=spread([result.latency_ms for result in results]),
        answer_characters=spread([result.answer_characters for result in results]),
        passages=spread([result.passages for result in results]),
        degraded=next(iter(reasons), ""),
        notes=notes,
        seconds={"ingest": ingest_seconds, "questions": seconds, "total": ingest_seconds + seconds},
        passed=True,
    )


def _result(
    judged: Judged, bundle: RetrievalBundle, ranked: list[str], milliseconds: float
) -> QuestionResult:
    question, grades = judged
    return QuestionResult(
        id=question.id,
        task=question.task,
        role=question.role,
        scores=measures(ranked, grades) if any(grades.values()) else {},
        best=ranked[:MAX_BEST],
        latency_ms=round(milliseconds, 3),
        passages=len(bundle.selected),
        answer_characters=sum(len(chunk.content) for chunk in bundle.selected),
    )


def spread(values: Sequence[float]) -> Spread:
    """Return mean and percentiles of the values; zeros if there are none."""
    p50, p95, p99 = np.percentile([*values] or [0.0], [50, 95, 99]).tolist()
    return Spread(mean=mean(values), p50=p50, p95=p95, p99=p99)


# -- answers ---------------------------------------------------------------------------------------


def documents_in(corpus: Corpus) -> Callable[[str], str]:
    """A function that returns the document of a chunk that an answer has."""

    @cache
    def document_of(chunk_id: str) -> str:
        passage = passage_by_id(corpus, chunk_id)
        # A missing chunk was removed after the answer. Its id begins with the document's id.
        return passage.document.document_id if passage else chunk_id.rpartition("#")[0]

    return document_of


def governed(
    engine: Engine, judged: Judged, document_of: Callable[[str], str], *, lexical_only: bool = False
) -> tuple[RetrievalBundle, list[str], float]:
    """Return the answer that an agent gets, its ranking, and the milliseconds it took.

    Its ranking is the selected passages, then the passages that limit or token budget cut, in rank
    order: each passage or, if it is not judged, its document at its first rank.
    """
    question, grades = judged
    request = RetrievalRequest(
        task=question.task, role=question.role, limit=question.limit, lexical_only=lexical_only
    )
    # Set without validation: a golden set may test an agent id that a request refuses.
    request = request.model_copy(update={"agent": question.agent or None})
    started = perf_counter()
    bundle = engine.retrieve(request, now=question.now)
    milliseconds = (perf_counter() - started) * 1000
    chunks = [chunk.chunk_id for chunk in bundle.selected]
    chunks += [cut.chunk_id for cut in bundle.rejected if cut.reason == "budget_cut"]
    ids = (chunk if chunk in grades else document_of(chunk) for chunk in chunks)
    return bundle, list(dict.fromkeys(ids)), milliseconds


# -- governance ------------------------------------------------------------------------------------


_POSTURES = ("expect_fallback", "expect_trust", "expect_freshness")


def checks_of(
    question: GoldenQuestion,
    bundle: RetrievalBundle,
    references: References,
    document_of: Callable[[str], str],
) -> Iterator[Check]:
    """Check an answer against what its golden question expects.

    ``must_not_return`` holds if no passage of the reference is selected. ``expect_rejection`` holds
    if none is selected and at least one was rejected with the code.
    """

    def check(kind: CheckKind, about: str, expected: str, found: str, *, held: bool) -> Check:
        return Check(
            question=question.id, kind=kind, about=about, expected=expected, found=found, held=held
        )

    for reference in question.must_not_return:
        leaked = _selected(bundle, references(reference))
        found = f"selected: {first_of(leaked, MAX_IDS_SHOWN)}" if leaked else "not selected"
        yield check("must_not_return", reference, "not selected", found, held=not leaked)
    for reference, code in question.expect_rejection.items():
        ids = references(reference)
        selected = _selected(bundle, ids)
        codes = {
            rejection.reason
            for rejection in bundle.rejected
            if rejection.chunk_id in ids or document_of(rejection.chunk_id) in ids
        }
        outcomes = [*(["selected"] if selected else []), *sorted(codes)]
        found = ", ".join(outcomes) or "no candidate"
        held = code in codes and not selected
        yield check("expect_rejection", reference, code, found, held=held)
    postures: dict[CheckKind, Sequence[str]] = {
        "expect_fallback": bundle.fallback.states if bundle.fallback else [],
        "expect_trust": [bundle.provenance.trust_posture],
        "expect_freshness": [bundle.provenance.freshness_posture],
    }
    for kind, actual in postures.items():
        expected = getattr(question, kind)
        if expected is not None:
            yield check(kind, "", expected, ", ".join(actual) or "none", held=expected in actual)


def _selected(bundle: RetrievalBundle, ids: frozenset[str]) -> list[str]:
    """The selected chunks whose id or document id is in ``ids``."""
    return [
        chunk.chunk_id
        for chunk in bundle.selected
        if chunk.chunk_id in ids or chunk.document_id in ids
    ]


def summarize_checks(checks: Sequence[Check]) -> Governance:
    """Return the rates over all checks. A leak counts once for each question."""
    guarded = [check for check in checks if check.kind == "must_not_return"]
    leaky = {check.question for check in guarded if not check.held}
    asked = {check.question for check in guarded}
    rejections = [check.held for check in checks if check.kind == "expect_rejection"]
    postures = [check.held for check in checks if check.kind in _POSTURES]
    return Governance(
        leak_rate=_share([question in leaky for question in asked]),
        rejection_accuracy=_share(rejections),
        posture_accuracy=_share(postures),
        checks=list(checks),
    )


def _share(outcomes: Sequence[bool]) -> float | None:
    """The fraction that is true; None if there are none."""
    return sum(outcomes) / len(outcomes) if outcomes else None


# -- measures --------------------------------------------------------------------------------------


def ndcg(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Return the normalized discounted cumulative gain of the first ``k`` ids, from 0 to 1.

    ``DCG = Σ grade / log2(rank + 1)``, divided by the DCG of the best possible order (Järvelin and
    Kekäläinen, ACM TOIS 20(4), 2002, with the discount and the linear gain of trec_eval's
    ``ndcg_cut``). 0 if nothing is relevant.

    Example:
        ``ndcg(["b", "a"], {"a": 1}, 10)`` is 1 / log2(3) = 0.63.
    """
    ideal = _dcg(sorted(grades.values(), reverse=True)[:k])
    found = _dcg([grades.get(judged_id, 0) for judged_id in ranked[:k]])
    return found / ideal if ideal else 0.0


def _dcg(gains: Sequence[int]) -> float:
    return sum(max(0, gain) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def recall(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Return the share of the relevant ids that are among the first ``k`` (trec_eval's ``recall``).

    0 if nothing is relevant.
    """
    relevant = sum(grade > 0 for grade in grades.values())
    found = sum(grades.get(judged_id, 0) > 0 for judged_id in ranked[:k])
    return found / relevant if relevant else 0.0


def reciprocal_rank(ranked: Sequence[str], grades: Grades) -> float:
    """Return 1 / rank of the first relevant id, or 0 if there is none (trec_eval's ``recip_rank``).

    The mean over questions is MRR (Voorhees, TREC-8, 1999).
    """
    ranks = (rank for rank, judged in enumerate(ranked, start=1) if grades.get(judged, 0) > 0)
    return 1 / next(ranks, math.inf)


def measures(ranked: Sequence[str], grades: Grades) -> dict[str, float]:
    """Return every measure of :data:`METRICS` for one question."""
    return {
        "ndcg@10": ndcg(ranked, grades, 10),
        "recall@10": recall(ranked, grades, 10),
        "recall@100": recall(ranked, grades, 100),
        "mrr": reciprocal_rank(ranked, grades),
    }


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 if there are no values."""
    return math.fsum(values) / len(values) if values else 0.0


# -- the report ------------------------------------------------------------------------------------


COSTS = ("leak_rate", "latency_p50", "latency_p95", "seconds")
_GOVERNANCE = ("leak_rate", "rejection_accuracy", "posture_accuracy")
NAMES: tuple[Metric, ...] = get_args(Metric)


def parse_thresholds(pairs: Sequence[str]) -> dict[Metric, float]:
    """Parse ``METRIC=VALUE`` texts into thresholds.

    Raises:
        UsageError: ``bad_floor``.
    """
    parts = (pair.partition("=") for pair in pairs)
    given = {name.strip().lower(): value for name, _, value in parts}
    try:
        return TypeAdapter(dict[Metric, FiniteFloat]).validate_python(given)
    except ValidationError:
        problem = f"--fail-under {' '.join(pairs)}: write METRIC=VALUE"
        step = f"metrics: {', '.join(NAMES)}"
        raise UsageError("bad_floor", problem, step) from None


def with_thresholds(report: EvalReport, thresholds: Mapping[Metric, float]) -> EvalReport:
    """Return the report with thresholds. A leak fails it, also without a threshold."""
    floors = []
    for name, threshold in thresholds.items():
        at_most, value = name in COSTS, value_of(report, name)
        # A metric that was not measured fails; otherwise a threshold that is never checked would
        # pass.
        held = value is not None and (value <= threshold if at_most else value >= threshold)
        floors.append(Floor(metric=name, bound=threshold, at_most=at_most, value=value, held=held))
    has_leak = report.governance and report.governance.leak_rate
    passed = all(floor.held for floor in floors) and not has_leak
    return report.model_copy(update={"floors": floors, "passed": passed})


def value_of(report: EvalReport, name: str) -> float | None:
    """Return the report's value of a metric; ``None`` if it was not measured."""
    values: dict[str, float | None] = {
        "latency_p50": report.latency_ms.p50,
        "latency_p95": report.latency_ms.p95,
        "seconds": report.seconds["total"],
        **report.metrics,
    }
    if report.governance:
        values |= {rate: getattr(report.governance, rate) for rate in _GOVERNANCE}
    return values.get(name)
