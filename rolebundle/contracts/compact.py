"""What `retrieve` answers with detail `ids` or `compact`: the bundle, cut to a model's context.

A field stands where it stands in the whole bundle. What `ids` or a small ``max_chars`` lacks has
no value. The counts are those of the whole bundle, however little of it is shown.
"""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import Approval, OverlayRef, Rejection, RequestEcho
from rolebundle.contracts.terms import (
    Action,
    FallbackAction,
    FallbackState,
    FreshnessPosture,
    FreshnessStatus,
    Fusion,
    RejectionCode,
    TrustPosture,
    TrustTier,
    Verdict,
    WarningCode,
)


class CompactQuery(Contract):
    """The task, on one line, and the time that ages were measured against."""

    task_text: str | None = None
    generated_at: str


class CompactSummary(Contract):
    """Counts of the whole bundle."""

    total_candidates: int
    selected_count: int


class CompactScores(Contract):
    """The score that ranks."""

    final: float


class CompactFreshness(Contract):
    """A chunk's age against the maximum age."""

    status: FreshnessStatus
    updated_at: str | None = None


class CompactMetadata(Contract):
    """How far the passage can be trusted."""

    trust_tier: TrustTier
    freshness: CompactFreshness


class CompactCitation(Contract):
    """``path:start-end``, lines from 1, inclusive."""

    locator: str | None = None


class CompactPassage(Contract):
    """One passage. Ids are never shortened; where ``truncated``, ``content`` is its beginning.

    ``content_chars`` is the length of the whole content, which `get` with the ``chunk_id`` gives.
    """

    rank: int
    chunk_id: str
    document_id: str
    source_id: str | None = None
    title: str | None = None
    headings: list[str] | None = None
    content: str | None = None
    truncated: bool | None = None
    content_chars: int | None = None
    scores: CompactScores
    reasons_selected: list[str] | None = None
    metadata: CompactMetadata | None = None
    citation: CompactCitation
    allowed_actions: list[Action] | None = None


class CompactProvenance(Contract):
    """How far the selection can be trusted; its ids stand at the passages."""

    trust_posture: TrustPosture
    freshness_posture: FreshnessPosture


class CompactWarning(Contract):
    """Something that the reader of the bundle should know."""

    code: WarningCode
    message: str | None = None


class CompactFallback(Contract):
    """What the caller should do with the answer, and why."""

    state: FallbackState
    action: FallbackAction
    message: str | None = None
    verdict: Verdict | None = None


class CompactCorpus(Contract):
    """Which corpus answered."""

    file: str
    corpus_id: str
    generation: int
    documents: int
    chunks: int


class CompactDiagnostics(Contract):
    """Law 1: as many candidates as passages selected and rejected."""

    candidate_pool_size: int


class SameRequest(Contract):
    """The request again, for the whole bundle. The time is fixed: the same comes back."""

    task: str | None = None
    role: str | None = None
    agent: str | None = None
    action: Action | None = None
    approval: str | None = None
    limit: int | None = None
    token_budget: int | None = None
    lexical_only: bool | None = None
    fusion: Fusion | None = None
    rerank: str | None = None
    now: str
    detail: Literal["full"]


class Omitted(Contract):
    """How much of the whole bundle does not stand in this answer."""

    passages: int
    rejections: int
    content_chars: int


class More(Contract):
    """How to fetch the rest.

    Attributes:
        method: what to call.
        params: with what; none where there was no room for it: as in this request.
        repeat: fields that are too long to stand in ``params``: send them as in this request.
        omitted: what the rest is.
        notes: what was left out or shortened, in words.
    """

    method: Literal["retrieve"]
    params: SameRequest | None = None
    repeat: list[str] | None = None
    omitted: Omitted
    notes: list[str] | None = None


class CompactBundle(Contract):
    """What was selected, what was left out, and how to fetch it.

    ``approvals`` name those of their passages that stand here.
    """

    version: Literal["1.0"]
    detail: Literal["ids", "compact"]
    role_id: str
    query: CompactQuery
    summary: CompactSummary
    selected: list[CompactPassage]
    rejected: list[Rejection] | None = None
    rejected_summary: dict[RejectionCode, int] = {}
    approvals: list[Approval] | None = None
    provenance: CompactProvenance
    warnings: list[CompactWarning]
    fallback: CompactFallback | None = None
    request: RequestEcho | None = None
    overlay: OverlayRef | None = None
    corpus: CompactCorpus | None = None
    diagnostics: CompactDiagnostics | None = None
    more: More
