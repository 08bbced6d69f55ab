"""The answer to `compare`: what each of several roles gets for one task."""

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
    """The answer for one role.

    Attributes:
        role_id: the role; empty for the answer without a role.
        candidates: number of candidates.
        selected: chunk ids by rank.
        own: chunk ids that are selected for no other role.
        rejected_summary: number of rejected candidates by rejection code.
        role_share: the share of the role's terms in the final scores, in [0, 1].
    """

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
    role_share: float | None = None


class Standing(Contract):
    """What happened to a passage for one role.

    Attributes:
        state: ``not_found`` means that no lane proposed the passage for this role.
        rank: place in the role's answer, from 1; ``None`` if the passage is not selected.
        score: final score; ``None`` if the passage is not selected.
        reason: rejection code; ``None`` if the passage is not rejected.
        notes: explanation of the code.
        overlay_hits: names of the overlay's rules that matched it; ``None`` if the passage is not
            selected.
    """

    role_id: str
    state: StandingState
    rank: int | None = None
    score: float | None = None
    reason: RejectionCode | None = None
    notes: str | None = None
    overlay_hits: list[str] | None = None


class ComparedPassage(Contract):
    """A passage that is selected for at least one role, and what happened to it for each role.

    ``flags`` are as in the bundle's metadata of the passage.
    """

    chunk_id: str
    document_id: str
    source_id: str
    title: str | None = None
    headings: list[str]
    locator: str | None = None
    flags: list[str] | None = None
    standings: list[Standing]


class Overlap(Contract):
    """How much of what is selected for two roles is the same.

    ``chunks`` and ``documents`` are Jaccard indexes in [0, 1]: selected for both, divided by
    selected for at least one. They are 1 if nothing is selected for either role.
    """

    first: str
    second: str
    chunks: float
    documents: float
    shared_chunks: int
    shared_documents: int


class Comparison(Contract):
    """The answer to `compare`.

    Attributes:
        generated_at: the time that ages are measured against, ISO 8601 in UTC.
        shared: chunk ids that are selected for every role.
        overlaps: one for each pair of roles.
    """

    task_text: str
    generated_at: str
    corpus: CorpusState | None = None
    roles: list[RoleView]
    shared: list[str]
    overlaps: list[Overlap]
    passages: list[ComparedPassage]
