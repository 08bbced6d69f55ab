"""Step 6: the bundle, which reports what was done and how far the answer can be trusted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rolebundle.contracts.bundle import (
    Approval,
    Diagnostics,
    OverlayRef,
    Provenance,
    QueryTrace,
    Rejection,
    RetrievalBundle,
    SelectedChunk,
    Summary,
    TaskEvidence,
)
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.terms import REJECTION_CODES, TRUST_TIERS, RejectionCode
from rolebundle.retrieval.answer.fallback import decide_fallback
from rolebundle.retrieval.answer.posture import freshness_posture, trust_posture
from rolebundle.retrieval.answer.selected_chunk import rounded, score_weights, selected_chunk
from rolebundle.retrieval.answer.warnings import warnings_for
from rolebundle.retrieval.candidate import Candidate, RejectedCandidate
from rolebundle.retrieval.duplicates import copies_of
from rolebundle.retrieval.filter import labels_of
from rolebundle.retrieval.outcome import Retrieval
from rolebundle.retrieval.request import ResolvedRequest


def assemble(request: ResolvedRequest, retrieval: Retrieval, seconds: float) -> RetrievalBundle:
    """The bundle of a retrieval that took so many seconds."""
    documents = _selected_chunks(1, request, retrieval)
    supports = [
        retrieval.evidence.support(candidate.passage.rowid)
        for candidate in retrieval.selection.selected
    ]
    rejected = _by_code(retrieval)
    document_codes = Counter(rejection.code for rejection in rejected)
    # What agents filed changes no verdict about documents: these come first.
    warnings = warnings_for(documents, document_codes, request, retrieval)
    fallback = decide_fallback(documents, rejected, warnings, request, retrieval)
    found, selected = [retrieval], documents
    if retrieval.facts is not None:
        found.append(retrieval.facts)
        selected = [*documents, *_selected_chunks(len(documents) + 1, request, retrieval.facts)]
        rejected = sorted([*rejected, *_by_code(retrieval.facts)], key=_code_order)
    ranked = {rejected.candidate.chunk_id for part in found for rejected in part.selection.rejected}
    codes = Counter(rejection.code for rejection in rejected)
    return RetrievalBundle.model_construct(
        version="1.0",
        role_id=request.role_id,
        query=_query_trace(request, retrieval),
        summary=_summary(selected, codes, request, found),
        selected=selected,
        rejected=[
            _rejection(rejection, is_ranked=rejection.candidate.chunk_id in ranked)
            for rejection in rejected
        ],
        rejected_summary=_rejected_summary(codes, request.quarantined),
        approvals=_approvals(
            [chosen for part in found for chosen in part.selection.selected], request
        ),
        provenance=Provenance.model_construct(
            source_ids=list(dict.fromkeys(chunk.source_id for chunk in selected)),
            document_ids=list(dict.fromkeys(chunk.document_id for chunk in selected)),
            trust_posture=trust_posture(
                [
                    chunk
                    for chunk, support in zip(documents, supports, strict=True)
                    if support.is_for_task
                ],
                is_declared=retrieval.declares_trust,
            ),
            freshness_posture=freshness_posture(documents),
        ),
        warnings=warnings,
        fallback=fallback,
        request=request.echo,
        overlay=overlay_ref(request),
        corpus=retrieval.corpus,
        evidence=_task_evidence(retrieval),
        weights=score_weights(retrieval.weights),
        fusion=request.fusion,
        rerank=retrieval.rerank.state if retrieval.rerank else None,
        diagnostics=_diagnostics(codes, found, seconds),
    )


def _selected_chunks(
    first_rank: int, request: ResolvedRequest, retrieval: Retrieval
) -> list[SelectedChunk]:
    return [
        selected_chunk(
            rank,
            candidate,
            request,
            retrieval.evidence.support(candidate.passage.rowid),
            copies_of(candidate.chunk_id, retrieval.ranked),
        )
        for rank, candidate in enumerate(retrieval.selection.selected, start=first_rank)
    ]


def _by_code(retrieval: Retrieval) -> list[RejectedCandidate]:
    """By code. Within a code in the order of the step that rejected: the nearest miss is first."""
    return sorted((*retrieval.rejected, *retrieval.selection.rejected), key=_code_order)


def _code_order(rejection: RejectedCandidate) -> int:
    return REJECTION_CODES.index(rejection.code)


def overlay_ref(request: ResolvedRequest) -> OverlayRef | None:
    """The overlay of the request, with the digest of its content; ``None`` without a role."""
    if request.overlay is None:
        return None
    return OverlayRef.model_construct(
        role_id=request.overlay.role_id, digest=request.overlay_digest
    )


def _rejection(rejected: RejectedCandidate, *, is_ranked: bool) -> Rejection:
    candidate = rejected.candidate
    return Rejection.model_construct(
        chunk_id=candidate.chunk_id,
        reason=rejected.code,
        notes=rejected.note,
        lanes=list(candidate.lanes),
        final=rounded(candidate.score.final) if is_ranked else None,
    )


def _task_evidence(retrieval: Retrieval) -> TaskEvidence:
    evidence, weights = retrieval.evidence, retrieval.weights
    return TaskEvidence.model_construct(
        support=evidence.task,
        coverage=rounded(evidence.best.coverage),
        words=len(evidence.words.frequencies),
        specificity=rounded(evidence.specificity),
        role_share=rounded(weights.metadata + weights.vocabulary),
    )


def _query_trace(request: ResolvedRequest, retrieval: Retrieval) -> QueryTrace:
    query = retrieval.query
    return QueryTrace.model_construct(
        task_text=query.task_text,
        lexical_query=[term.label for term in query.task_terms for _ in range(term.weight)],
        expansion_query=[term.label for term in query.expansion_terms],
        semantic_query=list(query.semantic_texts),
        applied_overlay_rules=[*query.applied_rules, *retrieval.semantic.applied_rules],
        applied_filters=list(query.applied_filters),
        generated_at=iso_utc(request.now),
    )


def _summary(
    selected: Sequence[SelectedChunk],
    codes: Counter[RejectionCode],
    request: ResolvedRequest,
    found: Sequence[Retrieval],
) -> Summary:
    rerank = found[0].rerank
    tiers = Counter(chunk.metadata.trust_tier for chunk in selected)
    sources = Counter(chunk.source_id for chunk in selected)
    stale = sum(chunk.metadata.freshness.status == "stale" for chunk in selected)
    strategy = "overlay-weighted" if request.overlay else "default-weighted"
    strategy += "-rrf" if request.fusion == "rrf" else ""
    strategy += "-contextual" if rerank and rerank.state else ""
    return Summary.model_construct(
        total_candidates=sum(len(part.candidates) for part in found),
        selected_count=len(selected),
        stale_count=stale + codes["stale"],
        forbidden_hits=codes["forbidden_source"],
        trust_tier_breakdown={tier: tiers[tier] for tier in TRUST_TIERS},
        source_breakdown=dict(sorted(sources.items())),
        rerank_strategy=strategy,
    )


def _rejected_summary(codes: Counter[RejectionCode], quarantined: int) -> dict[RejectionCode, int]:
    # Quarantined documents are no candidates: they are counted, but not listed in `rejected`.
    counts = codes + Counter[RejectionCode]({"quarantined": quarantined})
    return {code: counts[code] for code in REJECTION_CODES if counts[code]}


def _approvals(selected: Sequence[Candidate], request: ResolvedRequest) -> list[Approval] | None:
    purpose = request.purpose
    chunk_ids = [
        candidate.chunk_id
        for candidate in selected
        if purpose.is_allowed_by_approval(labels_of(candidate.passage))
    ]
    if not chunk_ids:
        return None
    return [
        Approval.model_construct(
            approved_by=purpose.approved_by, action=purpose.action, chunk_ids=chunk_ids
        )
    ]


def _diagnostics(
    codes: Counter[RejectionCode], found: Sequence[Retrieval], seconds: float
) -> Diagnostics:
    pool, rerank = found[0].pool, found[0].rerank
    return Diagnostics.model_construct(
        latency_ms=round(seconds * 1000, 3),
        # Counted before any step could lose one, so that law 1 can be checked from the bundle.
        candidate_pool_size=sum(len(part.candidates) for part in found),
        deduped_count=codes["duplicate"],
        dropped_forbidden_count=codes["forbidden_source"],
        dropped_stale_count=codes["stale"],
        lexical_ms=round(pool.lexical_seconds * 1000, 3),
        semantic_ms=round(pool.semantic_seconds * 1000, 3),
        refills=pool.refills,
        rerank_ms=rerank.milliseconds if rerank else None,
    )
