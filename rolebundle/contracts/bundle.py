"""The RetrievalBundle: the answer. A superset of the reference's, version 1.0.

Fields that are ours have defaults, so that the reference's bundles parse.
"""

from typing import Annotated, Any, Literal

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import (
    Action,
    ContentType,
    FallbackAction,
    FallbackState,
    FreshnessPosture,
    FreshnessStatus,
    Fusion,
    Lane,
    RejectionCode,
    TrustPosture,
    TrustTier,
    Verdict,
    WarningCode,
)


class AppliedFilter(Contract):
    """One filter that policy put on the candidates."""

    field: str
    op: Literal["eq", "neq", "in", "not_in", "gt", "lt", "contains", "not_contains"]
    value: str | float | bool | list[str]


class QueryWeights(Contract):
    """The say of the task's own words and of the role's, lane by lane. Each pair sums to 1.

    Of ``semantic_context`` the mission gets the part that is its cosine with the task.
    """

    lexical_task: float
    lexical_expansion: float
    semantic_task: float
    semantic_context: float


class QueryTrace(Contract):
    """What was searched."""

    task_text: str
    packet_context_summary: str | None = None
    lexical_query: list[str]
    expansion_query: list[str] = []
    semantic_query: list[str]
    weights: QueryWeights | None = None
    applied_overlay_rules: list[str]
    applied_filters: list[AppliedFilter]
    generated_at: str


class Summary(Contract):
    """Counts."""

    total_candidates: int
    selected_count: int
    stale_count: int
    forbidden_hits: int
    trust_tier_breakdown: dict[TrustTier, int]
    source_breakdown: dict[str, int]
    rerank_strategy: str


class Scores(Contract):
    """The terms of the final score, each as it was weighed.

    ``final = lexical·w1 + semantic·w2 + metadata·w3 + rerank·w4 − diversity_penalty``. Where a
    candidate was re-scored in context, ``semantic`` has that in it; ``rerank`` is the vocabulary.
    """

    lexical: float
    semantic: float
    metadata: float
    rerank: float
    final: float
    diversity_penalty: float = 0.0


class RawScores(Contract):
    """What the lanes measured, before normalization. ``None``: the lane has no such value.

    ``bm25`` and ``bm25_expansion`` are positive, larger is better; ``cosine`` is in [−1, 1];
    ``metadata`` is the filter's product in [0.01, 10]. ``contextual`` is the cosine by the model
    that reranked, in [−1, 1]; ``None`` for what it did not look at.
    """

    bm25: float | None = None
    bm25_expansion: float | None = None
    cosine: float | None = None
    contextual: float | None = None
    metadata: float


def _validate_days(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    # 365 days stay 365 in the JSON and do not become 365.0.
    validated = validate(value)
    return value if type(value) is int else validated


class Freshness(Contract):
    """A chunk's age against the maximum age."""

    status: FreshnessStatus
    updated_at: str | None = None
    max_age_days: Annotated[float | None, WrapValidator(_validate_days)] = None


class ChunkMetadata(Contract):
    """What the corpus knows about a chunk."""

    trust_tier: TrustTier
    freshness: Freshness
    tags: list[str]
    applicable_roles: list[str] | None = None
    excluded_roles: list[str] | None = None
    document_type: str | None = None
    domain: str | None = None
    version: str | None = None
    language: str | None = None
    sensitivity: str | None = None
    origin: str | None = None
    scope: str | None = None
    flags: list[str] | None = None
    """What the scan at the door found in its document; the text is shown without what was hidden.
    """


class Citation(Contract):
    """Where the passage stands. ``locator`` is ``path:start-end``, lines from 1, inclusive."""

    reference: str
    locator: str | None = None


class SelectedChunk(Contract):
    """One passage of the answer.

    ``allowed_actions`` are what it may be used for, by risk and then by name.
    """

    rank: int | None = None
    chunk_id: str
    document_id: str
    source_id: str
    source_type: str
    title: str | None = None
    uri: str | None = None
    headings: list[str] = []
    content: str
    content_type: ContentType
    lanes: list[Lane] = []
    scores: Scores
    raw: RawScores | None = None
    reasons_selected: list[str]
    overlay_hits: list[str]
    metadata: ChunkMetadata
    citation: Citation
    allowed_actions: list[Action] | None = None


class Approval(Contract):
    """Who approved which action, and the passages that are in the answer for that alone."""

    approved_by: str
    action: Action
    chunk_ids: list[str]


class Rejection(Contract):
    """A candidate that did not make it."""

    chunk_id: str
    reason: RejectionCode
    notes: str | None = None


class Provenance(Contract):
    """How far the selection can be trusted."""

    source_ids: list[str]
    document_ids: list[str]
    trust_posture: TrustPosture
    freshness_posture: FreshnessPosture


class BundleWarning(Contract):
    """Something that the reader of the bundle should know."""

    code: WarningCode
    message: str


class Diagnostics(Contract):
    """Pool sizes and timings.

    Only the timings may differ between equal calls, and how many passages had to be embedded for
    the rerank (``rerank_embedded``) or were found in its cache (``rerank_cached``), and whether
    the question had to be (``rerank_question_embedded``). Under a policy these three are left out:
    they would tell an agent what others have asked. ``rerank_note`` says why the cache could not
    be used, where it could not: that costs time, and changes no answer.
    """

    latency_ms: float
    candidate_pool_size: int
    deduped_count: int
    dropped_forbidden_count: int
    dropped_stale_count: int
    lexical_ms: float | None = None
    semantic_ms: float | None = None
    refills: int | None = None
    rerank_ms: float | None = None
    rerank_embedded: int | None = None
    rerank_cached: int | None = None
    rerank_question_embedded: bool | None = None
    rerank_note: str | None = None

    @staticmethod
    def that_may_differ() -> tuple[str, ...]:
        """The fields in which two equal calls may differ."""
        return (
            "latency_ms",
            "lexical_ms",
            "semantic_ms",
            "rerank_ms",
            "rerank_embedded",
            "rerank_cached",
            "rerank_question_embedded",
            "rerank_note",
        )


class Fallback(Contract):
    """What the caller should do with the answer, and why.

    ``verdict`` says why nothing was selected; it is there if and only if nothing was.
    """

    state: FallbackState
    action: FallbackAction
    message: str
    verdict: Verdict | None = None


class IndexState(Contract):
    """The identity of the embedding index that answered."""

    provider: str
    model: str
    dimensions: int
    chunker: str


class RerankState(Contract):
    """The model that re-scored candidates in context, and how many it scored."""

    provider: str
    model: str
    digest: str
    dimensions: int
    scored: int


class CorpusState(Contract):
    """Which corpus answered, and in what state."""

    file: str
    corpus_id: str
    schema_version: int
    generation: int
    documents: int
    chunks: int
    index: IndexState | None = None


class OverlayRef(Contract):
    """Which overlay governed, by content."""

    role_id: str
    digest: str


class RequestEcho(Contract):
    """What was asked besides the task, the role and the time: enough to ask the same again."""

    agent: str | None = None
    action: Action | None = None
    approval: str | None = None
    limit: int | None = None
    token_budget: int | None = None
    lexical_only: bool = False
    fusion: Fusion | None = None
    rerank: str | None = None


class RetrievalBundle(Contract):
    """What was searched, what was selected and why, what was rejected, and what went wrong."""

    version: Literal["1.0"]
    role_id: str
    query: QueryTrace
    summary: Summary
    selected: list[SelectedChunk]
    rejected: list[Rejection]
    rejected_summary: dict[RejectionCode, int] = {}
    approvals: list[Approval] | None = None
    provenance: Provenance
    warnings: list[BundleWarning]
    fallback: Fallback | None = None
    request: RequestEcho | None = None
    overlay: OverlayRef | None = None
    corpus: CorpusState | None = None
    fusion: Fusion | None = None
    rerank: RerankState | None = None
    diagnostics: Diagnostics

    def to_json(self, *, indent: int | None = None) -> str:
        """The bundle as JSON text; fields without a value are left out."""
        return self.model_dump_json(exclude_none=True, indent=indent)

    def without_timings(self) -> dict[str, Any]:
        """The bundle as plain values, for comparison: law 3 leaves out the timings.

        With them goes what a rerank found in its cache, which is a matter of time as well.
        """
        plain = self.model_dump(exclude_none=True)
        for name in Diagnostics.that_may_differ():
            plain["diagnostics"].pop(name, None)
        return plain
