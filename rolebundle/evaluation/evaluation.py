"""The whole evaluation: ask the questions, measure the answers, and make the report.

An answer is the governed one, as any agent gets it. A document's rank is that of its best chunk.

Measures are those of trec_eval, with whose own code (``pytrec_eval``) tests compare them. Each
takes the ranked ids of one question, best first, and its judgments (id → grade). A grade of 1 or
more is relevant; an id without a judgment, or with 0 or less, is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.evaluation import (
    Check,
    CheckKind,
    EvalReport,
    EvaluatedCorpus,
    GoldenSet,
    Governance,
    QuestionResult,
    Spread,
    SystemResult,
)
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.evaluation.questions import (
    Question,
    References,
    from_golden,
)
from rolebundle.lazy import numpy as np
from rolebundle.retrieval.corpus_state import corpus_state
from rolebundle.storage.passages import passage_by_id
from rolebundle.text.words import first_of

Grades = Mapping[str, int]

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr", "p@5", "p@10")
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

    :func:`rolebundle.evaluation.report.with_thresholds` computes ``passed``.

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
    runner = Runner(engine, lexical_only=lexical_only)
    references = References(engine.workspace.corpus)
    questions, notes = from_golden(golden, references, role, moment)
    if engine.answering.default_rerank:
        notes.append(f"reranked by {engine.answering.default_rerank}")
    results: list[QuestionResult] = []
    checks: list[Check] = []
    reasons = list[str]()
    for number, question in enumerate(questions, start=1):
        answer = runner.governed(question)
        reasons += [w.message for w in answer.bundle.warnings if w.code in _DEGRADED]
        checks += checks_of(question, answer.bundle, references, runner)
        results.append(_result(question, answer))
        progress("questions", number, len(questions))
    judged = sum(question.judged for question in questions)
    state = corpus_state(engine.workspace.corpus, datetime.now(UTC))
    seconds = perf_counter() - started
    return EvalReport(
        name=golden.name,
        role=role,
        corpus=EvaluatedCorpus(documents=state.documents, chunks=state.chunks, index=state.index),
        metrics=list(METRICS),
        systems=_systems(results),
        judged=judged,
        unjudged=len(questions) - judged,
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


def _result(question: Question, answer: GovernedAnswer) -> QuestionResult:
    bundle = answer.bundle
    return QuestionResult(
        id=question.id,
        task=question.task,
        role=question.role,
        scores={"governed": measures(answer.ranked, question.grades)} if question.judged else {},
        best=answer.ranked[:MAX_BEST],
        latency_ms=round(answer.milliseconds, 3),
        passages=len(bundle.selected),
        answer_characters=sum(len(chunk.content) for chunk in bundle.selected),
    )


def _systems(results: Sequence[QuestionResult]) -> list[SystemResult]:
    """The means of the metrics over the judged questions."""
    judged = [result.scores["governed"] for result in results if result.scores]
    if not judged:
        return []
    means = {name: mean([scores[name] for scores in judged]) for name in METRICS}
    return [SystemResult(system="governed", metrics=means)]


def spread(values: Sequence[float]) -> Spread:
    """Return mean, percentiles and maximum of the values; zeros if there are none."""
    p50, p90, p95, p99 = np.percentile([*values] or [0.0], [50, 90, 95, 99]).tolist()
    most = max(values, default=0.0)
    return Spread(mean=mean(values), p50=p50, p90=p90, p95=p95, p99=p99, most=most)


# -- answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GovernedAnswer:
    """The governed answer to a question, its ranking, and the milliseconds it took."""

    bundle: RetrievalBundle
    ranked: list[str]
    milliseconds: float


class Runner:
    """Ask the questions.

    Args:
        engine: the engine with the corpus.
        lexical_only: search words only, without embeddings.
    """

    def __init__(self, engine: Engine, *, lexical_only: bool = False) -> None:
        self._engine = engine
        self._lexical_only = lexical_only
        self._documents: dict[str, str] = {}

    def governed(self, question: Question) -> GovernedAnswer:
        """Return the answer that an agent with the question's role gets.

        Its ranking is the selected passages, then those that the limit or the token budget cut, in
        rank order.
        """
        request = RetrievalRequest(
            task=question.task,
            role=question.role,
            limit=question.limit,
            lexical_only=self._lexical_only,
            now=question.now,
        )
        # Set without validation: a golden set may test an agent id that a request refuses.
        request = request.model_copy(update={"agent": question.agent or None})
        started = perf_counter()
        bundle = self._engine.retrieve(request)
        milliseconds = (perf_counter() - started) * 1000
        for chunk in bundle.selected:
            self._documents[chunk.chunk_id] = chunk.document_id
        chunks = [chunk.chunk_id for chunk in bundle.selected]
        chunks += [cut.chunk_id for cut in bundle.rejected if cut.reason == "budget_cut"]
        return GovernedAnswer(bundle, self._judged_ids(question, chunks), milliseconds)

    def document_of(self, chunk_id: str) -> str:
        """Return the document of a chunk that an answer has."""
        if chunk_id not in self._documents:
            passage = passage_by_id(self._engine.workspace.corpus, chunk_id)
            # A missing chunk was removed after the answer. Its id begins with the document's id.
            document = passage.document.document_id if passage else chunk_id.rpartition("#")[0]
            self._documents[chunk_id] = document
        return self._documents[chunk_id]

    def _judged_ids(self, question: Question, chunks: Iterable[str]) -> list[str]:
        """The ids of the documents or passages that are judged, each at its first rank."""
        judged_ids = (question.judged_id(chunk, self.document_of(chunk)) for chunk in chunks)
        return list(dict.fromkeys(judged_ids))


# -- governance ------------------------------------------------------------------------------------


_POSTURES = ("expect_fallback", "expect_trust", "expect_freshness")


def checks_of(
    question: Question, bundle: RetrievalBundle, references: References, runner: Runner
) -> Iterator[Check]:
    """Check an answer against what its golden question expects.

    ``must_not_return`` holds if no passage of the reference is selected. ``expect_rejection`` holds
    if none is selected and at least one was rejected with the code.
    """
    golden = question.golden
    if golden is None:
        return

    def check(kind: CheckKind, about: str, expected: str, found: str, *, held: bool) -> Check:
        return Check(
            question=question.id, kind=kind, about=about, expected=expected, found=found, held=held
        )

    for reference in golden.must_not_return:
        leaked = _selected(bundle, references.matching_ids(reference))
        found = f"selected: {first_of(leaked, MAX_IDS_SHOWN)}" if leaked else "not selected"
        yield check("must_not_return", reference, "not selected", found, held=not leaked)
    for reference, code in golden.expect_rejection.items():
        ids = references.matching_ids(reference)
        selected = _selected(bundle, ids)
        codes = {
            rejection.reason
            for rejection in bundle.rejected
            if rejection.chunk_id in ids or runner.document_of(rejection.chunk_id) in ids
        }
        outcomes = [*(["selected"] if selected else []), *sorted(codes)]
        found = ", ".join(outcomes) or "no candidate"
        held = code in codes and not selected
        yield check("expect_rejection", reference, code, found, held=held)
    states = bundle.fallback.states if bundle.fallback else []
    provenance = bundle.provenance
    expectations: tuple[tuple[CheckKind, str | None, Sequence[str]], ...] = (
        ("expect_fallback", golden.expect_fallback, states),
        ("expect_trust", golden.expect_trust, [provenance.trust_posture]),
        ("expect_freshness", golden.expect_freshness, [provenance.freshness_posture]),
    )
    for kind, expected, actual in expectations:
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
    asked = {check.question for check in checks if check.kind == "must_not_return"}
    leaky = {
        check.question for check in checks if check.kind == "must_not_return" and not check.held
    }
    rejections = [check.held for check in checks if check.kind == "expect_rejection"]
    postures = [check.held for check in checks if check.kind in _POSTURES]
    return Governance(
        leak_rate=len(leaky) / len(asked) if asked else None,
        rejection_accuracy=_rate(rejections),
        posture_accuracy=_rate(postures),
        checks=list(checks),
    )


def _rate(held: Sequence[bool]) -> float | None:
    """The fraction of checks that passed; None if there are none."""
    return sum(held) / len(held) if held else None


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
    return (
        _dcg([grades.get(judged_id, 0) for judged_id in ranked[:k]]) / ideal if ideal > 0 else 0.0
    )


def _dcg(gains: Sequence[int]) -> float:
    return sum(max(0, gain) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def recall(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Return the share of the relevant ids that are among the first ``k`` (trec_eval's ``recall``).

    0 if nothing is relevant.
    """
    relevant = sum(grade > 0 for grade in grades.values())
    return _hits(ranked[:k], grades) / relevant if relevant else 0.0


def precision(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Return the number of relevant ids among the first ``k``, divided by ``k``: trec_eval's ``P``.

    ``k`` is the divisor also if the ranking is shorter.
    """
    return _hits(ranked[:k], grades) / k


def reciprocal_rank(ranked: Sequence[str], grades: Grades) -> float:
    """Return 1 / rank of the first relevant id, or 0 if there is none (trec_eval's ``recip_rank``).

    The mean over questions is MRR (Voorhees, TREC-8, 1999).
    """
    for rank, judged_id in enumerate(ranked, start=1):
        if grades.get(judged_id, 0) > 0:
            return 1 / rank
    return 0.0


def _hits(ranked: Sequence[str], grades: Grades) -> int:
    return sum(grades.get(judged_id, 0) > 0 for judged_id in ranked)


def measures(ranked: Sequence[str], grades: Grades) -> dict[str, float]:
    """Return every measure of :data:`METRICS` for one question."""
    return {
        "ndcg@10": ndcg(ranked, grades, 10),
        "recall@10": recall(ranked, grades, 10),
        "recall@100": recall(ranked, grades, 100),
        "mrr": reciprocal_rank(ranked, grades),
        "p@5": precision(ranked, grades, 5),
        "p@10": precision(ranked, grades, 10),
    }


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 if there are no values."""
    return math.fsum(values) / len(values) if values else 0.0
