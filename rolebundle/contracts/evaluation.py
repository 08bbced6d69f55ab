"""The golden sets that `eval` reads, and its report.

Metrics such as nDCG@10 are in [0, 1].
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rolebundle.contracts import terms
from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import CorpusState
from rolebundle.contracts.overlay import Count, RoleId
from rolebundle.contracts.request import Moment, TaskText

CheckKind = Literal[
    "must_not_return", "expect_rejection", "expect_fallback", "expect_trust", "expect_freshness"
]

Metric = Literal[
    "ndcg@10", "recall@10", "recall@100", "mrr", "rejection_accuracy", "posture_accuracy",
    "leak_rate", "latency_p50", "latency_p95", "seconds",
]  # fmt: skip
"""What a threshold may be for."""

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
    expect_rejection: dict[GoldenReference, terms.RejectionCode] = {}
    expect_fallback: terms.FallbackState | None = None
    expect_trust: terms.TrustPosture | None = None
    expect_freshness: terms.FreshnessPosture | None = None


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
    fail_under: dict[Metric, float] = {}
    questions: list[GoldenQuestion]


class QuestionResult(Contract):
    """The metrics of the answer to one question, and its figures.

    Attributes:
        scores: the metrics; empty without grades.
        best: ids of the first ten documents of the governed answer.
        latency_ms: duration of the governed answer in milliseconds.
        passages: number of selected passages.
        answer_characters: characters of the selected passages' texts.
    """

    id: str
    task: str
    role: str | None = None
    scores: dict[str, float]
    best: list[str] = []
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


class Spread(Contract):
    """Mean and percentiles of values."""

    mean: float
    p50: float
    p95: float
    p99: float


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


class EvalReport(Contract):
    """The answer to `eval`.

    Attributes:
        metrics: the means of the metrics over all judged questions; empty if there are none.
        judged: number of questions with grades.
        unjudged: number of questions without grades.
        governance: ``None`` if no question has an expectation about governance.
        latency_ms: durations of the governed answers, in milliseconds.
        answer_characters: characters of the governed answers.
        passages: passages of the governed answers.
        degraded: why the semantic lane did not run; empty if it ran.
        floors: the thresholds.
        seconds: the duration of each step, in seconds.
        passed: whether all thresholds are met and no forbidden passage was returned.
    """

    version: Literal["1.0"] = "1.0"
    name: str
    role: str | None = None
    corpus: CorpusState
    metrics: dict[str, float]
    judged: int
    unjudged: int = 0
    questions: list[QuestionResult]
    governance: Governance | None = None
    latency_ms: Spread
    answer_characters: Spread
    passages: Spread
    degraded: str = ""
    notes: list[str] = []
    floors: list[Floor] = []
    seconds: dict[Literal["ingest", "questions", "total"], float]
    passed: bool
