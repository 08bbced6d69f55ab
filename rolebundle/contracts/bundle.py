"""The RetrievalBundle, the answer to a request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from rolebundle.contracts.base import Contract
from rolebundle.contracts.request import Moment, Where
from rolebundle.contracts.terms import (
    Action,
    Authority,
    ContentType,
    DatedBy,
    DecisionEffect,
    EmptyReason,
    EvidenceNeed,
    FallbackAction,
    FallbackState,
    FreshnessPosture,
    FreshnessStatus,
    Fusion,
    Lane,
    MarkState,
    MatchKind,
    RejectionCode,
    SelectedFor,
    TaskSupport,
    TrustPosture,
    TrustTier,
    WarningCode,
)


class QueryTrace(Contract):
    """What was searched.

    Attributes:
        task_text: the task.
        packet_context_summary: only in bundles of Knowledge Core.
        lexical_query: the task's words and phrases.
        expansion_query: the words and phrases that the overlay adds.
        semantic_query: the texts that were embedded.
        applied_overlay_rules: names of the rules that shaped the query.
        applied_filters: those that the overlay's policy applies to the candidates: ``field``,
            ``op`` and ``value``.
        generated_at: the time that ages are measured against, ISO 8601 in UTC.
    """

    task_text: str
    packet_context_summary: str | None = None
    lexical_query: list[str]
    expansion_query: list[str] = []
    semantic_query: list[str]
    applied_overlay_rules: list[str]
    applied_filters: list[dict[str, Any]]
    generated_at: str


class Summary(Contract):
    """Counts.

    Attributes:
        total_candidates: selected and rejected candidates.
        stale_count: selected passages that are stale, and candidates rejected as ``stale``.
        forbidden_hits: candidates rejected as ``forbidden_source``.
        trust_tier_breakdown: number of selected passages by trust tier.
        source_breakdown: number of selected passages by source id.
        rerank_strategy: how the final score was computed.
    """

    total_candidates: int
    selected_count: int
    stale_count: int
    forbidden_hits: int
    trust_tier_breakdown: dict[TrustTier, int]
    source_breakdown: dict[str, int]
    rerank_strategy: str


class Scores(Contract):
    """The components of the final score, before they are multiplied by their weights.

    ``final = lexical·w1 + semantic·w2 + metadata·w3 + rerank·w4 − diversity_penalty + lift``. The
    four components are in [0, 1]; ``metadata`` and ``rerank`` up to 1.25 if the passage is marked
    as verified. ``rerank`` is the vocabulary's. If the candidate was scored again by a reranking
    model, that score is part of ``semantic``.
    """

    lexical: float
    semantic: float
    metadata: float
    rerank: float
    final: float
    diversity_penalty: float = 0.0
    lift: float = 0.0


class RawScores(Contract):
    """Scores before normalization. ``None`` if there is no such score.

    Attributes:
        bm25: BM25 of the task's words, 0 or more; larger is better.
        bm25_expansion: BM25 of the words that the overlay adds, 0 or more.
        cosine: cosine of the passage and the query, in [−1, 1].
        matched_words: how many of the task's content words the passage has.
        coverage: their share, weighted by how rare they are, in [0, 1].
        closeness: where the cosine lies between the model's noise and related texts, in [0, 1].
        contextual: the score of the cross-encoder, in [0, 1]; ``None`` if it did not score the
            passage.
        metadata: product of the filter's factors, in [0.01, 10].
    """

    bm25: float | None = None
    bm25_expansion: float | None = None
    cosine: float | None = None
    matched_words: int | None = None
    coverage: float | None = None
    closeness: float | None = None
    contextual: float | None = None
    metadata: float


def _validate_days(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    # 365 days stay 365 in the JSON and do not become 365.0.
    validated = validate(value)
    return value if type(value) is int else validated


class Freshness(Contract):
    """A chunk's age compared with the maximum age.

    Attributes:
        updated_at: date or time in UTC, ISO 8601; ``None`` if the document has no date.
        inferred_at: when its file was last changed, if the document has no date. It counts for
            the status and the order of versions only.
        dated_by: what ``updated_at`` is from; ``None`` if it is declared, or there is none.
        max_age_days: the age in days from which it is ``stale``.
    """

    status: FreshnessStatus
    updated_at: str | None = None
    inferred_at: str | None = None
    dated_by: DatedBy | None = None
    max_age_days: Annotated[float | None, WrapValidator(_validate_days)] = None


class PassageMark(Contract):
    """What somebody has stated about a passage or its document; ``marked_at`` is ISO 8601."""

    state: MarkState
    marked_by: str
    authority: Authority
    reason: str
    marked_at: str


class PassageMetadata(Contract):
    """Metadata of a chunk.

    Attributes:
        valid_from: first second at which the document applies, ISO 8601 in UTC.
        valid_until: last second at which it applies.
        flags: kinds of the scan's findings in the chunk; ``None`` if there are none. The
            passage is shown without the text that was hidden.
        mark: what somebody has stated about the passage; ``None`` if it has no mark.
        remembered_from: ``path:start-end`` or the address that a remembered fact cites; ``None`` if
            the passage is none.
    """

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
    mark: PassageMark | None = None
    remembered_from: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None


class Citation(Contract):
    """How to cite the passage.

    Attributes:
        locator: ``path:start-end``, lines from 1, inclusive.
        anchor: where it is, in a format in which lines do not tell it: ``p. 3``, ``slide 4``.
        absolute_path: the path of the file on this machine; ``None`` if whoever asks must not learn
            it, or if the passage has no file.
    """

    reference: str
    locator: str | None = None
    anchor: str | None = None
    absolute_path: str | None = None


class OtherVersion(Contract):
    """The passage of an older version of the page, and its first line that differs."""

    locator: str
    line: str


class SelectedPassage(Contract):
    """One selected passage.

    Attributes:
        rank: place in the answer, from 1.
        title: title of the document.
        headings: the headings above the passage, outermost first.
        lanes: the lanes that proposed it.
        evidence: ``task`` if it has the task's words or is close in meaning, else ``role``;
            without a role that ranks always ``task``.
        evidence_kinds: those of the role's ``required_evidence_kinds`` that the passage shows: the
            kind's words are in its document type, a tag, the attribute ``evidence_kind`` or a
            heading above it. ``None`` if there are none.
        bridge_role: the role that it is for, if it is declared for one of the role's
            ``bridge_roles`` and not for the role itself; else ``None``.
        reasons_selected: why it was selected, in words.
        overlay_hits: names of what changed its score: rules of the overlay, a mark, a penalty.
        moved_from: rule of the overlay → the place in the ranking that the passage would have
            without this rule. Only rules that change it; ``None`` if none did.
        same_in: the places (``path:start-end``) of the same passage in other documents, each with
            its own lines; ``None`` if no other has it.
        other_versions: older versions of its page; ``None`` if there are none.
        allowed_actions: what it may be used for, lowest risk first; ``None`` in older bundles.
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
    evidence: SelectedFor | None = None
    evidence_kinds: list[str] | None = None
    bridge_role: str | None = None
    reasons_selected: list[str]
    overlay_hits: list[str]
    moved_from: dict[str, int] | None = None
    same_in: list[str] | None = None
    other_versions: list[OtherVersion] | None = None
    metadata: PassageMetadata
    citation: Citation
    allowed_actions: list[Action] | None = None


class NearestPlace(Contract):
    """A place near the task that is no evidence for it.

    Attributes:
        text: the heading above it, and its sentence that is nearest, on one line.
        flags: kinds of the scan's findings in it; ``None`` if there are none.
    """

    chunk_id: str
    locator: str | None = None
    text: str
    flags: list[str] | None = None


class Approval(Contract):
    """Who approved which action, and the passages that are selected only because of this."""

    approved_by: str
    action: Action
    chunk_ids: list[str]


class KeptBack(Contract):
    """A quarantined document that has the task's words, and the kinds of the scan's findings."""

    document_id: str
    kinds: list[str]


class Rejection(Contract):
    """A candidate that was not selected.

    Attributes:
        notes: explanation of the code.
        lanes: the lanes that proposed it.
        final: its final score; ``None`` if the filter rejected it, so that it was not ranked.
    """

    chunk_id: str
    reason: RejectionCode
    notes: str | None = None
    lanes: list[Lane] | None = None
    final: float | None = None


class Provenance(Contract):
    """Sources and documents of the selected passages, and how far these can be trusted."""

    source_ids: list[str]
    document_ids: list[str]
    trust_posture: TrustPosture
    freshness_posture: FreshnessPosture


class BundleWarning(Contract):
    """A warning about the answer."""

    code: WarningCode
    message: str


class Diagnostics(Contract):
    """Numbers of candidates, and timings in milliseconds.

    Equal calls give equal values, except for the fields in ``VOLATILE_DIAGNOSTICS``.

    Attributes:
        candidate_pool_size: number of candidates; equals selected + rejected (law 1).
        deduped_count: candidates rejected as ``duplicate``.
        dropped_forbidden_count: candidates rejected as ``forbidden_source``.
        dropped_stale_count: candidates rejected as ``stale``.
        refills: how often the lanes were asked for more candidates.
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


VOLATILE_DIAGNOSTICS = ("latency_ms", "lexical_ms", "semantic_ms", "rerank_ms")
"""The fields of ``Diagnostics`` that may differ between equal calls."""
VOLATILE_WARNINGS: frozenset[WarningCode] = frozenset({"SOURCE_CHANGED", "SOURCE_UNCHECKED"})
"""The warnings that depend on the files of today and not on the corpus alone."""


class Fallback(Contract):
    """What the caller should do with the answer, and why.

    Attributes:
        state: how good the answer is; the worst of ``states``.
        states: all states that hold, the worst first; empty in bundles of Knowledge Core. If
            ``healthy`` is one of them, it is the only one.
        action: what the caller should do; the worst that one of the states requires.
        message: the reason, in words: a sentence for each state that needs one.
        verdict: why nothing was selected; ``None`` if something was.
    """

    state: FallbackState
    states: list[FallbackState] = []
    action: FallbackAction
    message: str
    verdict: EmptyReason | None = None


class IndexState(Contract):
    """The embedding index that was searched.

    Attributes:
        chunker: version of the chunker and of the text that is embedded for a chunk.
    """

    provider: str
    model: str
    dimensions: int
    chunker: str


class RerankState(Contract):
    """The reranking model, and the candidates that it scored.

    Attributes:
        scored: number of candidates that it scored, the best by the lanes.
    """

    provider: str
    model: str
    scored: int


class ReplicaState(Contract):
    """The replica that was searched, and how old it is. Times are ISO 8601 in UTC.

    Attributes:
        publisher: the name that the publisher gave itself.
        generation: counts the changes of what the replica holds.
        published_at: when it was published.
        expires_at: from then on its answers have the warning ``REPLICA_STALE``.
        age_hours: hours from ``published_at`` to the time of the request; at least 0.
    """

    publisher: str
    generation: int
    published_at: str
    expires_at: str
    age_hours: float


class CorpusState(Contract):
    """The corpus that was searched, and its state.

    Attributes:
        file: name of the corpus file, without its folder.
        generation: counter that grows with each change of the corpus.
        index: the embedding index that answered, or else the active one; ``None`` if there is none.
        replica: what it is a copy of; ``None`` if it is not a replica.
        in_place_of: the link of the database that cannot be reached, so that this replica answers.
        standby_seconds: the answer is from a standby server, whose newest change is so old;
            ``None`` if it is not.
    """

    file: str
    corpus_id: str
    schema_version: int
    generation: int
    documents: int
    chunks: int
    index: IndexState | None = None
    replica: ReplicaState | None = None
    in_place_of: str | None = None
    standby_seconds: float | None = None


class OverlayRef(Contract):
    """The overlay that was applied, and the digest of its content."""

    role_id: str
    digest: str


class RequestEcho(Contract):
    """The fields of the request that decide what is selected, other than task, role and now."""

    agent: str | None = None
    action: Action | None = None
    approval: str | None = None
    where: Where | None = None
    seen: list[str] | None = None
    limit: int | None = None
    token_budget: int | None = None
    packet: bool | None = None
    lexical_only: bool = False
    fusion: Fusion | None = None
    rerank: str | None = None
    evidence: EvidenceNeed | None = None
    also: list[str] | None = None
    as_of: Moment | None = None


class TaskEvidence(Contract):
    """What the visible corpus has of the task, on an absolute scale (docs/quality.md).

    Attributes:
        support: ``supported``; ``weak`` if the first passages have little of the task's words and
            are not close in meaning; ``off_topic`` if none of its words occurs, either.
        coverage: the share of the task's words that the best of them has, in [0, 1].
        words: number of the content words of the task and its other wordings.
        specificity: of the rarities in English of the task's words that a passage has, the sum is
            made for each of the best twelve. From these sums: ``max(best − mean, 0.4 · mean)``,
            times 1 to 2, the more of the twelve are of documents that declare neither type nor
            domain. At least 1.2 if few passages have an exact word of the task, or if one document
            is far ahead of all others.
        role_share: the highest share of the role's components in the final scores, in [0, 1].
    """

    support: TaskSupport
    coverage: float
    words: int
    specificity: float
    role_share: float


class ScoreWeights(Contract):
    """The weights of the four components of the final score; ``rerank`` is the vocabulary's."""

    lexical: float
    semantic: float
    metadata: float
    rerank: float


class Constraint(Contract):
    """An active decision that may apply to a task or an intent.

    Attributes:
        id: ``SCOPE-NUMBER``.
        text: the decision, quoted.
        effect: what it does at most.
        verdict: what follows here; missing if nothing does, and the decision is for information.
        match: by what it was found: a command pattern, a word of ``about``, or a likeness.
        action: the action that it is about; missing for every action.
        decided_by: who decided it.
        decided_at: when, ISO 8601 in UTC.
        valid_until: the last second at which it applies.
        strength: how sure the match is, in [0, 1]; 1 for a pattern and a word of ``about``.
        words: the pattern, the entries of ``about``, or the words in common.
    """

    id: str
    text: str
    effect: DecisionEffect
    verdict: DecisionEffect | None = None
    match: MatchKind | None = None
    reason: str | None = None
    action: Action | None = None
    decided_by: str | None = None
    decided_at: str | None = None
    valid_until: str | None = None
    strength: float = 0.0
    words: list[str] = []


class RetrievalBundle(Contract):
    """What was searched, selected and rejected, with reasons and warnings.

    What the reader must know of all passages comes before them.

    Attributes:
        role_id: the role; empty if there was none.
        constraints: active decisions that are about the task, outside of the limit; ``None`` if
            there are none.
        selected: the selected passages, best first.
        nearest: the three nearest places that the caller may see, if nothing was selected because
            nothing is evidence; else ``None``.
        rejected: the other candidates.
        rejected_summary: number of rejected candidates by rejection code.
        kept_back: quarantined documents that have the task's words, at most 5, best first. Only the
            owner of a corpus without a policy gets them; ``None`` if there are none.
        approvals: ``None`` if no passage was selected because of an approval.
        fusion: how the lanes were combined.
        rerank: ``None`` if there was no reranking.
        packet: the answer as one text that a model can be given as it is; ``None`` if the request
            did not ask for it.
    """

    version: Literal["1.0"]
    role_id: str
    query: QueryTrace
    summary: Summary
    provenance: Provenance
    warnings: list[BundleWarning]
    fallback: Fallback | None = None
    constraints: list[Constraint] | None = None
    selected: list[SelectedPassage]
    nearest: list[NearestPlace] | None = None
    rejected: list[Rejection]
    rejected_summary: dict[RejectionCode, int] = {}
    kept_back: list[KeptBack] | None = None
    approvals: list[Approval] | None = None
    request: RequestEcho | None = None
    overlay: OverlayRef | None = None
    corpus: CorpusState | None = None
    evidence: TaskEvidence | None = None
    weights: ScoreWeights | None = None
    fusion: Fusion | None = None
    rerank: RerankState | None = None
    diagnostics: Diagnostics
    packet: str | None = None

    def without_timings(self) -> dict[str, Any]:
        """Return the bundle as plain values for comparison.

        ``VOLATILE_DIAGNOSTICS`` and ``VOLATILE_WARNINGS`` are left out, and so is the packet,
        which repeats the warnings.
        """
        plain = self.model_dump(exclude_none=True, exclude={"packet"})
        plain["warnings"] = [
            warning for warning in plain["warnings"] if warning["code"] not in VOLATILE_WARNINGS
        ]
        for name in VOLATILE_DIAGNOSTICS:
            plain["diagnostics"].pop(name, None)
        return plain
