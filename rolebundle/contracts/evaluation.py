"""What `eval` takes and what it answers: golden sets, the report, and the comparison of two."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import IndexState
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.request import Moment, TaskText
from rolebundle.contracts.terms import (
    FallbackState,
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
)

System = Literal["lexical", "semantic", "weighted", "rrf", "governed"]
"""A lane alone, a fusion of the lanes with no overlay, or the answer as an agent gets it."""
CheckKind = Literal[
    "must_not_return", "expect_rejection", "expect_fallback", "expect_trust", "expect_freshness"
]

Reference = Annotated[str, StringConstraints(max_length=2000, pattern=r"\S")]
Grade = Annotated[int, Field(ge=0, le=100)]


class GoldenQuestion(Contract):
    """One question and what has to come of it.

    ``expect`` (reference → grade), ``must_not_return`` and ``expect_rejection`` (reference → code)
    name documents by id, by path or by a glob over either, or one passage by its chunk id.
    """

    id: str = ""
    task: TaskText
    role: RoleId | None = None
    agent: str | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    now: Moment | None = None
    expect: dict[Reference, Grade] = {}
    must_not_return: list[Reference] = []
    expect_rejection: dict[Reference, RejectionCode] = {}
    expect_fallback: FallbackState | None = None
    expect_trust: TrustPosture | None = None
    expect_freshness: FreshnessPosture | None = None


class GoldenSet(Contract):
    """Questions over one corpus, and what holds for all of them.

    ``role``, ``agent``, ``limit`` and ``now`` are those of every question that does not say
    otherwise; ``must_not_return`` is added to every question's own. ``corpus`` is the folder, from
    the file on, that is ingested where no corpus file is given. ``fail_under`` are floors that the
    set puts on its own result.
    """

    name: str = ""
    corpus: str = ""
    role: RoleId | None = None
    agent: str | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    now: Moment | None = None
    must_not_return: list[Reference] = []
    fail_under: dict[str, float] = {}
    questions: list[GoldenQuestion]


class Difference(Contract):
    """A system against the lexical lane on one measure: question by question, and in the mean."""

    metric: str
    mean: float
    relative: float | None = None
    p_value: float
    wins: int
    losses: int
    ties: int


class SystemResult(Contract):
    """The means of a system's measures over all judged questions."""

    system: System
    metrics: dict[str, float]
    against_lexical: list[Difference] = []


class QuestionResult(Contract):
    """One question: each system's measures, and what the governed answer was like."""

    id: str
    task: str
    role: str | None = None
    scores: dict[System, dict[str, float]]
    best: list[str] = []
    """The governed result's first ten."""
    latency_ms: float
    passages: int
    answer_characters: int
    """Of the selected passages' text."""


class Check(Contract):
    """One expectation on governance, and what was found."""

    question: str
    kind: CheckKind
    about: str = ""
    expected: str
    found: str
    held: bool


class Governance(Contract):
    """How governance fared. A rate is ``None`` where nothing was expected of it.

    ``leak_rate``: of the questions with ``must_not_return``, the share whose answer had some of it.
    """

    leak_rate: float | None = None
    rejection_accuracy: float | None = None
    posture_accuracy: float | None = None
    checks: list[Check] = []


class RoleShare(Contract):
    """How much of what a role gets is its own.

    ``own_share``: of its passages, those from ``domains``, which its overlay boosts. ``own_first``:
    of its answers, those that begin with one.
    """

    role_id: str
    domains: list[str]
    own_share: float
    own_first: float


class RolePair(Contract):
    """The mean Jaccard index of the documents that two roles selected for the same question."""

    first: str
    second: str
    overlap: float


class Distinctiveness(Contract):
    """How far roles differ in what they get for the same questions."""

    questions: int
    mean_overlap: float
    roles: list[RoleShare]
    pairs: list[RolePair]


class Harm(Contract):
    """What an overlay does to questions: nDCG@10 with it against nDCG@10 with none."""

    role_id: str
    digest: str
    without: float
    with_overlay: float
    relative: float
    p_value: float
    wins: int
    losses: int


class Spread(Contract):
    """How values are distributed."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    most: float


class Floor(Contract):
    """A bound that was asked for. ``at_most`` where less is better."""

    metric: str
    bound: float
    at_most: bool = False
    value: float | None = None
    held: bool


class EvaluatedCorpus(Contract):
    """What was searched."""

    documents: int
    chunks: int
    index: IndexState | None = None


class Seconds(Contract):
    """Where the time went."""

    ingest: float
    questions: float
    total: float


class EvalReport(Contract):
    """The answer of `eval`."""

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
    latency_ms: Spread
    answer_characters: Spread
    passages: Spread
    degraded: str = ""
    """Why the semantic lane did not answer, where it did not."""
    notes: list[str] = []
    floors: list[Floor] = []
    seconds: Seconds
    passed: bool


class MetricChange(Contract):
    """One measure of one system in two reports, over the questions that both have."""

    system: System
    metric: str
    before: float
    after: float
    change: float
    p_value: float
    wins: int
    losses: int
    ties: int


class QuestionChange(Contract):
    """A question whose nDCG@10 is another one."""

    id: str
    task: str
    before: float
    after: float


class EvalComparison(Contract):
    """The answer of `eval --compare`. ``moved`` are the governed results that changed most."""

    version: Literal["1.0"] = "1.0"
    before: str
    after: str
    questions: int
    only_before: int
    only_after: int
    changes: list[MetricChange]
    moved: list[QuestionChange]
    latency_p50: list[float]
    """Before and after, in milliseconds."""
    governance: dict[str, list[float | None]] = {}
    floors: list[Floor] = []
    passed: bool = True
