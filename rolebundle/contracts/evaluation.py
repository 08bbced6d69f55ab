"""The golden sets that `eval` reads, and its report.

Metrics such as nDCG@10 are in [0, 1]. A p-value is that of a paired randomization test.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import IndexState
from rolebundle.contracts.overlay import Count, RoleId
from rolebundle.contracts.request import Moment, TaskText
from rolebundle.contracts.terms import (
    FallbackState,
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
)

System = Literal["lexical", "semantic", "weighted", "rrf", "governed"]
"""One lane, a fusion of both lanes without an overlay, or the governed answer."""
CheckKind = Literal[
    "must_not_return", "expect_rejection", "expect_fallback", "expect_trust", "expect_freshness"
]

GoldenReference = Annotated[str, StringConstraints(max_length=2000, pattern=r"\S")]
"""A document id, a path, a glob over document ids and paths, or a chunk id."""
Grade = Annotated[int, Field(ge=0, le=100)]


class GoldenQuestion(Contract):
    """One question and the expected result.

    A reference is a document id, a path, a glob over document ids and paths, or a chunk id. A field
    that is missing is not checked.

    Attributes:
        id: if empty, the number of the question is used.
        task: the task to retrieve for.
        role: the role of the request; ``agent``, ``limit`` and ``now`` likewise.
        expect: grades of relevant documents by reference. 0 means not relevant.
        must_not_return: references that must not be selected.
        expect_rejection: references that must be rejected, with the rejection code.
        expect_fallback: a state that the fallback is expected to list.
        expect_trust: the expected trust posture.
        expect_freshness: the expected freshness posture.
    """

    id: str = ""
    task: TaskText
    role: RoleId | None = None
    agent: str | None = None
    limit: Count | None = None
    now: Moment | None = None
    expect: dict[GoldenReference, Grade] = {}
    must_not_return: list[GoldenReference] = []
    expect_rejection: dict[GoldenReference, RejectionCode] = {}
    expect_fallback: FallbackState | None = None
    expect_trust: TrustPosture | None = None
    expect_freshness: FreshnessPosture | None = None


class GoldenSet(Contract):
    """Questions for one corpus, and their defaults.

    Attributes:
        corpus: folder of documents, relative to the file of the golden set. It is ingested if no
            corpus file is passed with `--db`.
        role: the role of questions without one; ``agent``, ``limit`` and ``now`` likewise.
        must_not_return: references that no question may return, in addition to its own.
        fail_under: thresholds by metric. The evaluation fails if a threshold is not met.
    """

    name: str = ""
    corpus: str = ""
    role: RoleId | None = None
    agent: str | None = None
    limit: Count | None = None
    now: Moment | None = None
    must_not_return: list[GoldenReference] = []
    fail_under: dict[str, float] = {}
    questions: list[GoldenQuestion]


class Difference(Contract):
    """A system compared with the lexical lane by one metric.

    Attributes:
        mean: mean of the system minus mean of the lexical lane.
        relative: ``mean`` divided by the mean of the lexical lane; ``None`` if that is 0.
        p_value: in [0, 1].
        wins: number of questions for which the system is better.
        losses: number of questions for which it is worse.
        ties: number of questions for which both are equal.
    """

    metric: str
    mean: float
    relative: float | None = None
    p_value: float
    wins: int
    losses: int
    ties: int


class SystemResult(Contract):
    """The means of a system's metrics over all judged questions."""

    system: System
    metrics: dict[str, float]
    against_lexical: list[Difference] = []


class ListedResult(Contract):
    """A document of a question, or a passage that the golden set names: where the answer has it.

    Attributes:
        grade: its grade; missing if it is not judged.
        rank: its place in the governed answer, from 1; missing if that does not have it.
        score: the final score of its best passage; missing if it was not ranked.
        lexical_rank: its place in the lexical lane, from 1; missing if that does not have it.
        rejected: why it was not selected: the first code of its passages; missing if it was, or if
            no lane proposed it.
    """

    id: str
    grade: int | None = None
    rank: int | None = None
    score: float | None = None
    lexical_rank: int | None = None
    rejected: RejectionCode | None = None


class QuestionResult(Contract):
    """The metrics of each system for one question, and figures of the governed answer.

    Attributes:
        best: ids of the first ten documents of the governed answer.
        documents: the same documents with their grades, then the five with the best grades that
            are not among them.
        latency_ms: duration of the governed answer in milliseconds.
        passages: number of selected passages.
        answer_characters: characters of the selected passages' texts.
    """

    id: str
    task: str
    role: str | None = None
    scores: dict[System, dict[str, float]]
    best: list[str] = []
    documents: list[ListedResult] = []
    latency_ms: float
    passages: int
    answer_characters: int


class Check(Contract):
    """The result of one expectation of a question.

    Attributes:
        question: id of the question.
        about: the reference; empty for an expectation about the whole answer.
        expected: the expected result.
        found: the actual result.
        held: whether the expectation is met.
    """

    question: str
    kind: CheckKind
    about: str = ""
    expected: str
    found: str
    held: bool


class Governance(Contract):
    """The results of the checks. Rates are in [0, 1], or ``None`` if there was no such check.

    Attributes:
        leak_rate: fraction of the questions with ``must_not_return`` whose answer has a forbidden
            passage.
        rejection_accuracy: fraction of the ``expect_rejection`` checks that are met.
        posture_accuracy: fraction of the ``expect_fallback``, ``expect_trust`` and
            ``expect_freshness`` checks that are met.
        checks: every check.
    """

    leak_rate: float | None = None
    rejection_accuracy: float | None = None
    posture_accuracy: float | None = None
    checks: list[Check] = []


class RoleShare(Contract):
    """How much of a role's answers is from its own domains.

    Attributes:
        domains: the domains that the role's overlay boosts.
        own_share: fraction of an answer's passages that are from these domains, on average.
        own_first: fraction of the answers whose first passage is from these domains.
    """

    role_id: str
    domains: list[str]
    own_share: float
    own_first: float


class Distinctiveness(Contract):
    """How much the answers of roles to the same questions differ.

    Attributes:
        questions: number of questions that were asked for every role.
        mean_overlap: mean of the pairs' ``overlap``, in [0, 1].
        pairs: of two roles, ``first`` and ``second``, the mean Jaccard index of their selected
            documents, ``overlap``.
    """

    questions: int
    mean_overlap: float
    roles: list[RoleShare]
    pairs: list[dict[str, Any]]


class Harm(Contract):
    """The effect of an overlay on questions outside of its role's work.

    Attributes:
        digest: digest of the overlay.
        without: mean nDCG@10 without an overlay.
        with_overlay: mean nDCG@10 with the overlay.
        relative: ``with_overlay / without - 1``. Negative if the overlay makes answers worse. 0 if
            ``without`` is 0.
        p_value: in [0, 1].
        wins: number of questions that are better with the overlay.
        losses: number of questions that are worse with it.
    """

    role_id: str
    digest: str
    without: float
    with_overlay: float
    relative: float
    p_value: float
    wins: int
    losses: int


class Floor(Contract):
    """A threshold of a metric, from `--fail-under` or from the golden set.

    Attributes:
        bound: the threshold.
        at_most: whether the value must be at most ``bound``; otherwise it must be at least that.
        value: the measured value; ``None`` if the metric was not measured, which fails.
        held: whether the threshold is met.
    """

    metric: str
    bound: float
    at_most: bool = False
    value: float | None = None
    held: bool


class EvaluatedCorpus(Contract):
    """The corpus that was searched."""

    documents: int
    chunks: int
    index: IndexState | None = None


class EvalReport(Contract):
    """The answer to `eval`.

    Attributes:
        kind: ``collection`` for a test collection, ``golden`` for a golden set.
        metrics: names of the metrics.
        judged: number of questions with grades.
        unjudged: number of questions without grades.
        governance: ``None`` if no question has an expectation about governance.
        distinctiveness: ``None`` if roles were not compared.
        harm: effect of each overlay that was measured.
        latency_ms: durations of the governed answers, in milliseconds: ``mean``, the percentiles
            ``p50``, ``p90``, ``p95`` and ``p99``, and ``most``.
        answer_characters: characters of the governed answers, likewise.
        passages: passages of the governed answers, likewise.
        degraded: why the semantic lane did not run; empty if it ran.
        floors: the thresholds.
        seconds: duration of ``ingest`` and ``questions``, and the ``total``.
        passed: whether all thresholds are met and no forbidden passage was returned.
    """

    version: Literal["1.0"] = "1.0"
    kind: Literal["collection", "golden"]
    name: str
    role: str | None = None
    corpus: EvaluatedCorpus
    metrics: list[str]
    systems: list[SystemResult]
    judged: int
    unjudged: int = 0
    questions: list[QuestionResult]
    governance: Governance | None = None
    distinctiveness: Distinctiveness | None = None
    harm: list[Harm] = []
    latency_ms: dict[str, float]
    answer_characters: dict[str, float]
    passages: dict[str, float]
    degraded: str = ""
    notes: list[str] = []
    floors: list[Floor] = []
    seconds: dict[str, float]
    passed: bool
