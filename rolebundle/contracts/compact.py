"""The answer to `retrieve` with detail `ids` or `compact`: a projection of the full bundle.

Fields have the same path as in the full bundle. Fields that are left out, because of the detail or
because of `max_chars`, are missing. Counts are those of the full bundle, even if passages are left
out. :mod:`rolebundle.interfaces.shape` has the projection.
"""

from typing import Any, Literal

from pydantic import create_model

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import (
    Approval,
    BundleWarning,
    ChunkMetadata,
    Citation,
    Constraint,
    CorpusState,
    Diagnostics,
    Fallback,
    Freshness,
    KeptBack,
    OverlayRef,
    PassageMark,
    Provenance,
    QueryTrace,
    Rejection,
    RequestEcho,
    Scores,
    Summary,
)
from rolebundle.contracts.request import Where
from rolebundle.contracts.terms import Action, EvidenceNeed, Fusion, RejectionCode


def _part(
    title: str,
    full: type[Contract],
    description: str,
    fields: str,
    *,
    optional: str = "",
    **types: Any,
) -> Any:
    """Create a contract that has some of the fields of a full contract.

    Args:
        title: the name of the new contract.
        full: the full contract.
        description: the docstring of the new contract.
        fields: the names of its fields, separated by spaces, in their order.
        optional: those of them that may be missing, though the full contract requires them.
        types: types of fields whose type is another one than in the full contract.
    """
    definitions: dict[str, Any] = {}
    for name in fields.split():
        field = full.model_fields[name]
        type_: Any = types.get(name, field.annotation)
        if name in optional.split():
            definitions[name] = (type_ | None, None)
        else:
            definitions[name] = (type_, ... if field.is_required() else field.default)
    return create_model(title, __base__=Contract, __doc__=description, **definitions)


CompactQuery: Any = _part(
    "CompactQuery",
    QueryTrace,
    "The task, on one line, and the time that ages are measured against.",
    "task_text generated_at",
)
CompactSummary: Any = _part(
    "CompactSummary",
    Summary,
    "Counts of the full bundle.",
    "total_candidates selected_count",
)
CompactScores: Any = _part(
    "CompactScores", Scores, "The final score, by which passages are ranked.", "final"
)
CompactFreshness: Any = _part(
    "CompactFreshness",
    Freshness,
    "A chunk's age compared with the maximum age.",
    "status updated_at inferred_at",
)
CompactMark: Any = _part(
    "CompactMark",
    PassageMark,
    "What somebody has stated about the passage.",
    "state marked_by reason",
)
CompactMetadata: Any = _part(
    "CompactMetadata",
    ChunkMetadata,
    "How far the passage can be trusted, its age, and what the scan found. Missing if there is "
    "none of it.",
    "trust_tier freshness flags mark remembered_from",
    optional="trust_tier freshness remembered_from",
    freshness=CompactFreshness,
    mark=CompactMark | None,
)
CompactCitation: Any = _part(
    "CompactCitation",
    Citation,
    "``locator`` is ``path:start-end``, lines from 1, inclusive; ``anchor`` is such as ``p. 3``; "
    "``absolute_path`` is the file on this machine, if whoever asks may learn it.",
    "locator anchor absolute_path",
    optional="anchor absolute_path",
)
CompactProvenance: Any = _part(
    "CompactProvenance",
    Provenance,
    "How far the selected passages together can be trusted. Their ids are in the passages.",
    "trust_posture freshness_posture",
)
CompactConstraint: Any = _part(
    "CompactConstraint",
    Constraint,
    "An active decision that the task is about.",
    "id text effect reason decided_at locator",
)
CompactWarning: Any = _part(
    "CompactWarning",
    BundleWarning,
    "A warning about the answer.",
    "code message",
)
CompactFallback: Any = _part(
    "CompactFallback",
    Fallback,
    "What the caller should do with the answer, and why.",
    "state states action message verdict",
)
CompactCorpus: Any = _part(
    "CompactCorpus",
    CorpusState,
    "The corpus that was searched.",
    "file corpus_id generation documents chunks replica",
)
CompactDiagnostics: Any = _part(
    "CompactDiagnostics",
    Diagnostics,
    "The number of candidates of the full bundle. It equals selected + rejected (law 1).",
    "candidate_pool_size",
)


class CompactPassage(Contract):
    """One selected passage. Ids are never shortened.

    Attributes:
        rank: place in the answer, from 1.
        content: the text; not with detail `ids`.
        truncated: true if ``content`` is only a part of the text; otherwise missing.
        content_chars: length of the whole text in characters, if ``truncated``. `get` with the
            ``chunk_id`` returns the whole text.
        evidence_kinds: as in the full bundle; missing if the passage shows none.
        bridge_role: the bridge role that it is for; missing if it is for none.
        allowed_actions: what the passage may be used for; missing without a policy.
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
    evidence_kinds: list[str] | None = None
    bridge_role: str | None = None
    reasons_selected: list[str] | None = None
    metadata: CompactMetadata | None = None
    citation: CompactCitation
    allowed_actions: list[Action] | None = None


class SameRequest(Contract):
    """The parameters that return the full bundle: those of this request, but detail `full`.

    ``now`` is set to the time of this answer, so that the same passages are returned.
    """

    task: str | None = None
    role: str | None = None
    agent: str | None = None
    action: Action | None = None
    approval: str | None = None
    where: Where | None = None
    seen: list[str] | None = None
    limit: int | None = None
    token_budget: int | None = None
    packet: bool | None = None
    lexical_only: bool | None = None
    evidence: EvidenceNeed | None = None
    also: list[str] | None = None
    fusion: Fusion | None = None
    rerank: str | None = None
    as_of: str | None = None
    now: str
    detail: Literal["full"]


class Omitted(Contract):
    """How much of the full bundle is not in this answer: numbers of items and of characters."""

    passages: int
    rejections: int
    content_chars: int


class More(Contract):
    """How to fetch the full bundle.

    Attributes:
        method: the method to call.
        params: its parameters.
        repeat: parameters that are too long to be in ``params``: copy them from this request.
        omitted: how much is not in this answer.
        notes: what was left out or shortened, in words.
    """

    method: Literal["retrieve"]
    params: SameRequest
    repeat: list[str] | None = None
    omitted: Omitted
    notes: list[str] | None = None


class CompactBundle(Contract):
    """What was selected, what was rejected or left out, and how to fetch the full bundle.

    Attributes:
        role_id: the role; empty if there was none.
        constraints: as in the full bundle, shortened.
        selected: the selected passages, best first.
        rejected: some of the rejected candidates; missing with detail `ids`.
        rejected_summary: number of rejected candidates of the full bundle by rejection code.
        kept_back: as in the full bundle.
        approvals: as in the full bundle, with the ids of passages that are in this answer.
        packet: as in the full bundle.
    """

    version: Literal["1.0"]
    detail: Literal["ids", "compact"]
    role_id: str
    query: CompactQuery | None = None
    summary: CompactSummary
    provenance: CompactProvenance
    warnings: list[CompactWarning]
    fallback: CompactFallback | None = None
    constraints: list[CompactConstraint] | None = None
    selected: list[CompactPassage]
    rejected: list[Rejection] | None = None
    rejected_summary: dict[RejectionCode, int] = {}
    kept_back: list[KeptBack] | None = None
    approvals: list[Approval] | None = None
    request: RequestEcho | None = None
    overlay: OverlayRef | None = None
    corpus: CompactCorpus | None = None
    diagnostics: CompactDiagnostics | None = None
    more: More
    packet: str | None = None
