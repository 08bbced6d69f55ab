"""What `compare` answers: what each of several roles sees for one task."""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import CorpusState, Fallback
from rolebundle.contracts.terms import (
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
    WarningCode,
)

StandingState = Literal["selected", "rejected", "not_found"]


class RoleView(Contract):
    """What one role sees. ``selected`` are chunk ids by rank; ``own`` are those no other sees."""

    role_id: str
    overlay_digest: str
    candidates: int
    selected: list[str]
    own: list[str]
    rejected_summary: dict[RejectionCode, int]
    trust_posture: TrustPosture
    freshness_posture: FreshnessPosture
    warnings: list[WarningCode]
    fallback: Fallback | None = None


class Standing(Contract):
    """How a passage stands with one role. `not_found`: no lane proposed it for that role."""

    role_id: str
    state: StandingState
    rank: int | None = None
    score: float | None = None
    reason: RejectionCode | None = None
    notes: str | None = None


class ComparedPassage(Contract):
    """A passage that at least one role selected, and how it stands with each of them."""

    chunk_id: str
    document_id: str
    source_id: str
    title: str | None = None
    headings: list[str]
    locator: str | None = None
    standings: list[Standing]


class Overlap(Contract):
    """How far two roles see the same: of what either selected, the share that both did.

    ``chunks`` and ``documents`` are Jaccard indexes in [0, 1]; 1 where neither selected anything.
    """

    first: str
    second: str
    chunks: float
    documents: float
    shared_chunks: int
    shared_documents: int


class Comparison(Contract):
    """The answer to `compare`. ``shared`` are the chunk ids that every role selected."""

    task_text: str
    generated_at: str
    corpus: CorpusState | None = None
    roles: list[RoleView]
    shared: list[str]
    overlaps: list[Overlap]
    passages: list[ComparedPassage]
