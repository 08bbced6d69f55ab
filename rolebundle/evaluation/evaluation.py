"""The whole evaluation: ask the questions, measure the answers, and make the report.

Lanes and fusions are the pipeline's, without an overlay. The governed answer comes from the engine,
as for any agent. A document's rank is the rank of its best chunk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from time import perf_counter
from typing import Any, Literal, TypeVar, get_args

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.evaluation import (
    Check,
    CheckKind,
    Distinctiveness,
    EvalReport,
    EvaluatedCorpus,
    GoldenSet,
    Governance,
    Harm,
    ListedResult,
    QuestionResult,
    RoleShare,
    System,
    SystemResult,
)
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import Fusion, RejectionCode
from rolebundle.engine import Engine
from rolebundle.evaluation.metrics import METRICS, difference, mean, measures, ndcg
from rolebundle.evaluation.questions import (
    Collection,
    Question,
    References,
    from_collection,
    from_golden,
)
from rolebundle.lazy import numpy as np
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.candidate import Retrieval
from rolebundle.retrieval.compare import overlap
from rolebundle.retrieval.corpus_state import corpus_state
from rolebundle.retrieval.lanes import open_lanes
from rolebundle.retrieval.pipeline import run
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import resolve_request
from rolebundle.storage.passages import passage_by_id
from rolebundle.text.words import first_of

SYSTEMS: tuple[System, ...] = get_args(System)
MAX_BEST = 10
"""How many ids of the governed ranking a report has for each question."""
MAX_MISSED = 5
"""How many relevant documents that are not among the first ten a report has for each question."""
MAX_IDS_SHOWN = 5
Progress = Callable[[str, int, int], None]
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to evaluate.

    Attributes:
        kind: of the test set.
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

    kind: Literal["collection", "golden"]
    name: str
    role: str | None
    questions: list[Question]
    unjudged: int = 0
    notes: tuple[str, ...] = ()
    compared_roles: tuple[ResolvedOverlay, ...] = ()
    harm_roles: tuple[ResolvedOverlay, ...] = ()
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
    kind: Literal["collection", "golden"] = "golden"
    if isinstance(test_set, Collection):
        kind, unjudged = "collection", test_set.without_relevant
        questions, notes = from_collection(test_set, references, role, moment)
    else:
        unjudged = 0
        questions, notes = from_golden(test_set, references, role, moment)
    if engine.answering.default_rerank:
        notes = [*notes, f"governed: reranked by {engine.answering.default_rerank}"]
    return Plan(kind, test_set.name, role, questions, unjudged, tuple(notes))


def evaluate(engine: Engine, plan: Plan, progress: Progress) -> EvalReport:
    """Ask the questions and return the report, with ``passed`` set to true.

    :func:`rolebundle.evaluation.report.with_thresholds` computes ``passed``.

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
    reasons = list[str]()
    for question in _counted("questions", plan.questions, progress):
        rankings, degraded_reason = runner.rankings(question)
        answer = runner.governed(question, question.role)
        rankings["governed"] = answer.ranked
        reasons += [
            degraded_reason,
            *(w.message for w in answer.bundle.warnings if w.code == "RERANK_DEGRADED"),
        ]
        checks += checks_of(question, answer.bundle, references, runner)
        results.append(_result(question, answer, rankings, runner))
    judged = [question for question in plan.questions if question.judged]
    distinct = None
    if plan.compared_roles:
        distinct = distinctiveness(runner, plan.questions, plan.compared_roles, progress)
    state = corpus_state(engine.workspace.corpus, datetime.now(UTC))
    # The first answers are those without an overlay.
    harm_roles = [None, *(role.overlay.role_id for role in plan.harm_roles)]
    asked = [(role_id, question) for role_id in harm_roles for question in judged]
    scores: dict[str | None, list[float]] = defaultdict(list)
    for role_id, question in _counted("overlays", asked if plan.harm_roles else [], progress):
        ranked = runner.governed(question, role_id).ranked
        scores[role_id].append(ndcg(ranked, question.grades, 10))
    seconds = perf_counter() - started
    return EvalReport(
        kind=plan.kind,
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
        harm=[harm(role, scores[None], scores[role.overlay.role_id]) for role in plan.harm_roles],
        latency_ms=spread([result.latency_ms for result in results]),
        answer_characters=spread([result.answer_characters for result in results]),
        passages=spread([result.passages for result in results]),
        degraded=next(filter(None, reasons), ""),
        notes=list(plan.notes),
        seconds={
            "ingest": plan.ingest_seconds,
            "questions": seconds,
            "total": plan.ingest_seconds + seconds,
        },
        passed=True,
    )


def _counted(step: str, items: Sequence[_Item], progress: Progress) -> Iterator[_Item]:
    """The items, one by one; what is done with each is reported as progress."""
    for number, item in enumerate(items, start=1):
        yield item
        progress(step, number, len(items))


def _result(
    question: Question, answer: GovernedAnswer, rankings: Rankings, runner: Runner
) -> QuestionResult:
    bundle = answer.bundle
    judged_rankings = rankings if question.judged else {}
    return QuestionResult(
        id=question.id,
        task=question.task,
        role=question.role,
        scores={
            system: measures(ranked, question.grades) for system, ranked in judged_rankings.items()
        },
        best=answer.ranked[:MAX_BEST],
        documents=_documents(question, answer, rankings["lexical"], runner),
        latency_ms=round(answer.milliseconds, 3),
        passages=len(bundle.selected),
        answer_characters=sum(len(chunk.content) for chunk in bundle.selected),
    )


def _documents(
    question: Question, answer: GovernedAnswer, lexical: Sequence[str], runner: Runner
) -> list[ListedResult]:
    """The first documents of the governed answer, and the relevant ones that are not among them."""
    ranks = {document: rank for rank, document in enumerate(answer.ranked, start=1)}
    lexical_ranks = {document: rank for rank, document in enumerate(lexical, start=1)}
    scores: dict[str, float] = {}
    codes: dict[str, RejectionCode] = {}
    selected = set()
    for chunk in answer.bundle.selected:
        document = question.judged_id(chunk.chunk_id, chunk.document_id)
        scores.setdefault(document, chunk.scores.final)
        selected.add(document)
    for rejection in answer.bundle.rejected:
        document = question.judged_id(rejection.chunk_id, runner.document_of(rejection.chunk_id))
        if document not in selected:
            codes.setdefault(document, rejection.reason)
            if rejection.final is not None:
                scores[document] = max(rejection.final, scores.get(document, rejection.final))
    first = answer.ranked[:MAX_BEST]
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
            lexical_rank=lexical_ranks.get(document),
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
    lexical: dict[str, list[float]] = {}
    for system in SYSTEMS:
        if not judged or not all(system in result.scores for result in judged):
            continue
        values = {name: [result.scores[system][name] for result in judged] for name in METRICS}
        if system == "lexical":
            lexical, against = values, []
        else:
            against = [difference(name, lexical[name], values[name]) for name in METRICS]
        means = {name: mean(values[name]) for name in METRICS}
        summaries.append(SystemResult(system=system, metrics=means, against_lexical=against))
    return summaries


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return mean, percentiles and maximum of the values; zeros if there are none."""
    percentiles = np.percentile([*values] or [0.0], [50, 90, 95, 99]).tolist()
    named = dict(zip(("p50", "p90", "p95", "p99"), percentiles, strict=True))
    return {"mean": mean(values), **named, "most": float(max(values, default=0.0))}


# -- answers ---------------------------------------------------------------------------------------

Rankings = dict[System, list[str]]
"""The ranking of each system; without an entry for one that did not run."""


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

    def rankings(self, question: Question) -> tuple[Rankings, str]:
        """The ranking of every system but the governed one, and why a lane did not run, if so."""
        weighted = self._run(question, "weighted")
        degraded_reason = weighted.degraded or weighted.substitute
        hits = weighted.pool.hits
        lexical = {
            rowid: hit.bm25 for rowid, hit in hits.items() if hit.bm25 and "lexical" in hit.lanes
        }
        rankings: Rankings = {"lexical": self._lane(question, weighted, lexical)}
        if not self._lexical_only and not degraded_reason:
            semantic = {
                rowid: hit.cosine
                for rowid, hit in hits.items()
                if hit.cosine is not None and "semantic" in hit.lanes
            }
            rankings["semantic"] = self._lane(question, weighted, semantic)
            rankings["weighted"] = self._ranked(question, weighted)
            rankings["rrf"] = self._ranked(question, self._run(question, "rrf"))
        return rankings, degraded_reason

    def governed(self, question: Question, role: str | None) -> GovernedAnswer:
        """Return the answer that an agent with this role gets.

        Its ranking is the selected passages, then those that the limit or the token budget cut, in
        rank order.
        """
        request = RetrievalRequest(
            task=question.task,
            role=role,
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

    def _run(self, question: Question, fusion: Fusion) -> Retrieval:
        corpus = self._engine.workspace.corpus
        request = RetrievalRequest(
            task=question.task,
            limit=question.limit,
            lexical_only=self._lexical_only,
            fusion=fusion,
            now=question.now,
        )
        provider = None if self._lexical_only else self._engine.workspace.query_provider(corpus)
        resolved = resolve_request(request, question.now)
        with corpus.reading():
            lanes = open_lanes(corpus, build_query(resolved.task, resolved.overlay), provider)
            result = run(lanes, resolved)
        for row in result.candidates:
            self._documents[row.chunk_id] = row.passage.document.document_id
        return result

    def _lane(
        self, question: Question, result: Retrieval, scores: Mapping[int, float]
    ) -> list[str]:
        """The ranking by the scores of a lane, which are by rowid."""
        chunks = {
            row.chunk_id: scores[row.passage.rowid]
            for row in result.candidates
            if row.passage.rowid in scores
        }
        best_first = sorted(chunks, key=lambda chunk: (-chunks[chunk], chunk))
        return self._judged_ids(question, best_first)

    def _ranked(self, question: Question, result: Retrieval) -> list[str]:
        # Without an overlay metadata and vocabulary are equal for all, so only the lanes decide.
        return self._judged_ids(question, (row.chunk_id for row in result.ranked))

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


def distinctiveness(
    runner: Runner,
    questions: Sequence[Question],
    roles: Sequence[ResolvedOverlay],
    progress: Progress,
) -> Distinctiveness:
    """Compare what the roles select for the same questions.

    A role's own domains are those that its overlay boosts.
    """
    asked = [(role.overlay.role_id, question) for role in roles for question in questions]
    answers: dict[str, list[RetrievalBundle]] = defaultdict(list)
    for role_id, question in _counted("roles", asked, progress):
        answers[role_id].append(runner.governed(question, role_id).bundle)
    pairs: list[dict[str, Any]] = [
        {
            "first": first,
            "second": second,
            "overlap": mean(
                [both.documents for both in map(overlap, answers[first], answers[second])]
            ),
        }
        for first, second in combinations(answers, 2)
    ]
    return Distinctiveness(
        questions=len(questions),
        mean_overlap=mean([pair["overlap"] for pair in pairs]),
        roles=[_share(role.overlay, answers[role.overlay.role_id]) for role in roles],
        pairs=pairs,
    )


def _share(overlay: Overlay, answers: Sequence[RetrievalBundle]) -> RoleShare:
    """How much of the answers that have passages is from the domains that the overlay boosts."""
    boosts = overlay.source_policy.domain_boosts
    domains = sorted(domain for domain, boost in boosts.items() if boost > 1)
    own = [
        [float(chunk.metadata.domain in domains) for chunk in answer.selected]
        for answer in answers
        if answer.selected
    ]
    return RoleShare(
        role_id=overlay.role_id,
        domains=domains,
        own_share=mean([mean(values) for values in own]),
        own_first=mean([values[0] for values in own]),
    )


def harm(role: ResolvedOverlay, without: Sequence[float], with_overlay: Sequence[float]) -> Harm:
    """How an overlay changes nDCG@10 of questions, normally outside of the role's work.

    Args:
        role: the role's overlay.
        without: the nDCG@10 of each question without an overlay.
        with_overlay: the same with the overlay, in the same order.

    Returns:
        ``relative`` is negative if the overlay does harm; 0 if the mean of ``without`` is 0.
    """
    change = difference("ndcg@10", without, with_overlay)
    return Harm(
        role_id=role.overlay.role_id,
        digest=role.digest,
        without=mean(without),
        with_overlay=mean(with_overlay),
        relative=change.relative or 0.0,
        p_value=change.p_value,
        wins=change.wins,
        losses=change.losses,
    )
