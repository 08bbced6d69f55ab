"""The bundle, which reports what was done and how far the answer can be trusted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from rolebundle.contracts.base import Contract, attributes_of
from rolebundle.contracts.bundle import (
    Approval,
    Citation,
    Diagnostics,
    Freshness,
    NearestPlace,
    OtherVersion,
    OverlayRef,
    PassageMark,
    PassageMetadata,
    Provenance,
    QueryTrace,
    RawScores,
    Rejection,
    RetrievalBundle,
    Scores,
    ScoreWeights,
    SelectedPassage,
    Summary,
    TaskEvidence,
)
from rolebundle.contracts.documents import REMEMBERED_KIND, DocumentMetadata, Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import REJECTION_CODES, REJECTIONS, TRUST_TIERS, RejectionCode
from rolebundle.retrieval.evidence import ENOUGH_CLOSENESS, Support, shown_kinds
from rolebundle.retrieval.filter import is_for_other_roles, labels_of
from rolebundle.retrieval.packet import lead_text, packet
from rolebundle.retrieval.passage_text import CosinesWithTask, moves_text, words_searched
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.select import CHARACTERS_PER_TOKEN
from rolebundle.retrieval.values import Candidate, Retrieval, Weights, code_order
from rolebundle.retrieval.verdict import decide_fallback
from rolebundle.retrieval.warnings import freshness_posture, trust_posture, warnings_for
from rolebundle.text.words import words_found

MAX_NEAREST = 3
"""How many places are named if nothing was selected."""


def bundle_of(retrieval: Retrieval, cosines_of: CosinesWithTask | None = None) -> RetrievalBundle:
    """The bundle of a retrieval.

    Args:
        retrieval: what was found.
        cosines_of: compares parts of passages with the task, for the packet.
    """
    request, retrievals = retrieval.request, retrieval.documents_and_facts
    rows = [(each, row) for each in retrievals for row in each.selected]
    selected = [
        selected_passage(
            rank,
            row,
            request,
            each.evidence.support(row.passage.rowid),
            each.ranked,
            retrieval.absolute_paths.get(row.chunk_id),
        )
        for rank, (each, row) in enumerate(rows, start=1)
    ]
    # What agents filed changes no verdict about documents.
    document_rows = retrieval.selected
    warnings = warnings_for(retrieval)
    rejected = sorted((row for each in retrievals for row in each.rejected), key=code_order)
    counts = sum((each.counts for each in retrievals), Counter[RejectionCode]())
    # Quarantined documents are no candidates: they are counted, but not listed in `rejected`.
    all_counts = counts + Counter[RejectionCode]({"quarantined": request.view.quarantined})
    evidence, weights = retrieval.evidence, retrieval.weights
    for_task = [row for row in document_rows if evidence.support(row.passage.rowid).is_for_task]
    bundle = RetrievalBundle.model_construct(
        version="1.0",
        role_id=request.role_id,
        query=(trace := _query_trace(retrieval)),
        summary=_summary(selected, counts, request, retrievals),
        selected=selected,
        nearest=_nearest(retrieval, words_searched(trace.lexical_query, trace.task_text)) or None,
        rejected=[_as_rejection(row) for row in rejected],
        rejected_summary={code: all_counts[code] for code in REJECTION_CODES if all_counts[code]},
        approvals=_approvals(retrieval),
        provenance=Provenance.model_construct(
            source_ids=list(dict.fromkeys(passage.source_id for passage in selected)),
            document_ids=list(dict.fromkeys(passage.document_id for passage in selected)),
            trust_posture=trust_posture(for_task, is_declared=retrieval.declares_trust),
            freshness_posture=freshness_posture(document_rows),
        ),
        warnings=warnings,
        fallback=decide_fallback(warnings, retrieval),
        constraints=[*retrieval.constraints] or None,
        kept_back=[*retrieval.kept_back] or None,
        request=request.echo,
        overlay=overlay_ref(request),
        corpus=retrieval.corpus_state,
        evidence=TaskEvidence.model_construct(
            support=evidence.task_support,
            coverage=rounded(evidence.best_support.coverage),
            words=len(evidence.frequencies),
            specificity=rounded(evidence.specificity),
            role_share=rounded(weights.metadata + weights.vocabulary),
        ),
        weights=score_weights(weights),
        fusion=request.fusion,
        rerank=retrieval.reranking.model,
        diagnostics=_diagnostics(counts, retrievals),
    )
    if not request.echo.packet:
        return bundle
    # The packet is made of everything else.
    budgets = [request.max_chars, (request.token_budget or 0) * CHARACTERS_PER_TOKEN]
    max_chars = min(filter(None, budgets), default=None)
    text = packet(bundle, request.overlay, max_chars, cosines_of)
    return bundle.model_copy(update={"packet": text})


def _nearest(retrieval: Retrieval, words: Collection[str]) -> list[NearestPlace]:
    """The nearest places if nothing was selected, because no passage is evidence."""
    request, evidence = retrieval.request, retrieval.evidence
    if not retrieval.withheld_reason or request.requires_evidence:
        return []
    rows = islice((row for row in retrieval.ranked if row.can_be_selected), MAX_NEAREST)
    passages = [selected_passage(0, r, request, evidence.support(r.passage.rowid)) for r in rows]
    return [
        NearestPlace(
            chunk_id=passage.chunk_id,
            locator=passage.citation.locator,
            text=lead_text(passage, words),
            flags=passage.metadata.flags,
        )
        for passage in passages
    ]


def overlay_ref(request: ResolvedRequest) -> OverlayRef | None:
    """The overlay of the request, with the digest of its content; ``None`` without a role."""
    if request.overlay is None:
        return None
    return OverlayRef.model_construct(role_id=request.role_id, digest=request.overlay_digest)


def _as_rejection(row: Candidate) -> Rejection:
    assert row.code is not None
    return Rejection.model_construct(
        chunk_id=row.chunk_id,
        reason=row.code,
        notes=row.note,
        lanes=list(row.lanes),
        final=rounded(row.final) if REJECTIONS[row.code].step == "cut" else None,
    )


def _query_trace(retrieval: Retrieval) -> QueryTrace:
    query, request = retrieval.query, retrieval.request
    rules, query_fluency = [*query.applied_rules], retrieval.pool.query_fluency
    if query_fluency < 1 and request.fusion == "weighted":
        rules.append(f"semantic:confidence({query_fluency:.2f})")
    return QueryTrace.model_construct(
        task_text=query.task.text,
        lexical_query=[term.label for term in query.task_terms for _ in range(term.repeats)],
        expansion_query=[term.label for term in query.expansion_terms],
        semantic_query=[task.text for task in query.wordings],
        applied_overlay_rules=rules,
        applied_filters=list(query.applied_filters),
        generated_at=iso_utc(request.now),
    )


def _summary(
    selected: Sequence[SelectedPassage],
    counts: Counter[RejectionCode],
    request: ResolvedRequest,
    retrievals: Sequence[Retrieval],
) -> Summary:
    tiers = Counter(passage.metadata.trust_tier for passage in selected)
    sources = Counter(passage.source_id for passage in selected)
    stale = sum(passage.metadata.freshness.status == "stale" for passage in selected)
    strategy = "overlay-weighted" if request.overlay else "default-weighted"
    strategy += "-rrf" if request.fusion == "rrf" else ""
    strategy += "-contextual" if retrievals[0].reranking.model else ""
    return Summary.model_construct(
        total_candidates=sum(len(each.candidates) for each in retrievals),
        selected_count=len(selected),
        stale_count=stale + counts["stale"],
        forbidden_hits=counts["forbidden_source"],
        trust_tier_breakdown={tier: tiers[tier] for tier in TRUST_TIERS},
        source_breakdown=dict(sorted(sources.items())),
        rerank_strategy=strategy,
    )


def _approvals(retrieval: Retrieval) -> list[Approval] | None:
    purpose = retrieval.request.purpose
    chunk_ids = [row.chunk_id for row in retrieval.selected_by_approval]
    if not chunk_ids:
        return None
    approved = attributes_of(purpose, "approved_by", "action")
    return [Approval.model_construct(**approved, chunk_ids=chunk_ids)]


def _diagnostics(counts: Counter[RejectionCode], retrievals: Sequence[Retrieval]) -> Diagnostics:
    pool = retrievals[0].pool
    return Diagnostics.model_construct(
        latency_ms=round(retrievals[0].seconds * 1000, 3),
        # Counted before any step could lose one, so that law 1 can be checked from the bundle.
        candidate_pool_size=sum(len(each.candidates) for each in retrievals),
        deduped_count=counts["duplicate"],
        dropped_forbidden_count=counts["forbidden_source"],
        dropped_stale_count=counts["stale"],
        lexical_ms=round(pool.seconds.get("lexical", 0.0) * 1000, 3),
        semantic_ms=round(pool.seconds.get("semantic", 0.0) * 1000, 3),
        refills=pool.last_round,
        rerank_ms=retrievals[0].reranking.milliseconds,
    )


# -- a selected passage --------------------------------------------------------------------------


def selected_passage(
    rank: int,
    row: Candidate,
    request: ResolvedRequest,
    support: Support,
    ranked: Sequence[Candidate] = (),
    absolute_path: str | None = None,
) -> SelectedPassage:
    """The selected passage of this rank.

    Args:
        rank: from 1.
        row: its row of the score sheet.
        request: the resolved request.
        support: what it has of the task.
        ranked: the candidates among which its copies and older versions are.
        absolute_path: of its file; ``None`` if it is not shown.
    """
    passage, document = row.passage, row.passage.document
    overlay = request.overlay
    kinds = overlay.synthesis_policy.required_evidence_kinds if overlay else ()
    anchor, chunk_id = f", {passage.anchor}" if passage.anchor else "", row.chunk_id
    is_remembered = document.source_kind == REMEMBERED_KIND
    return SelectedPassage.model_construct(
        **attributes_of(document, "document_id", "source_id", "title", "uri"),
        **attributes_of(passage, "chunk_id", "content", "content_type"),
        rank=rank,
        source_type=document.source_kind,
        headings=list(passage.headings),
        lanes=list(row.lanes),
        scores=scores_of(row),
        raw=raw_scores_of(row, support),
        evidence="task" if support.is_for_task or not request.ranks_by_role else "role",
        evidence_kinds=shown_kinds(kinds, passage) or None,
        bridge_role=_bridge_role(passage, overlay),
        reasons_selected=[*_reasons(row, support)],
        overlay_hits=[*row.rules, *row.factor_notes],
        moved_from={**row.moved_from} or None,
        same_in=[
            other.passage.locator
            for other in ranked
            if other.duplicate_of == chunk_id and not other.is_partial
        ]
        or None,
        other_versions=[
            OtherVersion(locator=other.passage.locator, line=other.differing_line)
            for other in ranked
            if other.newer_version == chunk_id
        ]
        or None,
        metadata=PassageMetadata.model_construct(
            **shared_fields(document, PassageMetadata)
            | {
                "freshness": Freshness.model_construct(
                    **attributes_of(document, "updated_at", "inferred_at", "dated_by"),
                    status=row.freshness,
                    max_age_days=request.stale_after_days,
                ),
                "tags": list(passage.tags),
                "applicable_roles": list(passage.applicable_roles) or None,
                "excluded_roles": list(passage.excluded_roles) or None,
                "flags": list(passage.flags) or None,
                "mark": passage_mark(passage),
                "remembered_from": document.uri if is_remembered else None,
            }
        ),
        citation=Citation.model_construct(
            reference=f"{document.title} [{document.source_id}]{anchor}",
            locator=passage.locator,
            anchor=passage.anchor or None,
            absolute_path=absolute_path,
        ),
        allowed_actions=request.purpose.allowed_actions(labels_of(passage)),
    )


def _bridge_role(passage: Passage, overlay: Overlay | None) -> str | None:
    if overlay is None or not is_for_other_roles(passage, overlay.role_id):
        return None
    return next((role for role in overlay.bridge_roles if role in passage.applicable_roles), None)


def passage_mark(passage: Passage) -> PassageMark | None:
    """The mark of a passage, or ``None``."""
    return PassageMark.model_construct(**passage.mark._asdict()) if passage.mark else None


def _reasons(row: Candidate, support: Support) -> Iterator[str]:
    if support.matched_words:
        yield f"has {words_found(support.matched_words, support.total_words)}"
    elif row.bm25_expansion:
        yield "has the role's words"
    if row.cosine is not None and support.closeness:
        figures = f"cosine {row.cosine:.2f}, closeness {support.closeness:.2f}"
        yield f"close in meaning: {figures}" if support.closeness >= ENOUGH_CLOSENESS else figures
    if row.cross_encoder_score is not None:
        yield f"reranked: score {row.cross_encoder_score:.2f}"
    document = row.passage.document
    by = " by the date of its file" if document.inferred_at and not document.updated_at else ""
    is_ahead = (document.updated_at or document.inferred_at) and row.freshness == "undated"
    age = "dated in the future" if is_ahead else row.freshness
    yield f"{document.trust_tier} trust, {age}{by}"
    for name, rules in (("policy", row.metadata_factors), ("role vocabulary", row.matched_phrases)):
        moved = {rule: row.moved_from[rule] for rule in rules if rule in row.moved_from}
        if moved:
            yield f"{name}: {moves_text(moved)}"
    if mark := row.passage.mark:
        yield f"{mark.state.replace('_', ' ')} by {mark.marked_by}: {mark.reason}"
    if row.diversity_penalty:
        yield f"source diversity −{row.diversity_penalty:.2f}"
    if row.lift_reasons:
        yield f"{'lowered' if row.lift < 0 else 'lifted'}: {'; '.join(row.lift_reasons)}"


def scores_of(row: Candidate) -> Scores:
    """The components of a candidate's final score, rounded to six decimals."""
    names = ("lexical", "semantic", "metadata", "final", "diversity_penalty", "lift")
    return Scores.model_construct(**_rounded(row, *names), rerank=rounded(row.vocabulary))


def raw_scores_of(row: Candidate, support: Support) -> RawScores:
    """The scores of a candidate before they were normalized, rounded to six decimals."""
    return RawScores.model_construct(
        **_rounded(row, "bm25", "bm25_expansion", "cosine"),
        contextual=rounded_if_any(row.cross_encoder_score),
        **_rounded(support, "coverage", "closeness"),
        matched_words=support.matched_words,
        metadata=rounded(row.metadata_score),
    )


def score_weights(weights: Weights) -> ScoreWeights:
    """The weights of the score's components, rounded to six decimals."""
    return ScoreWeights.model_construct(
        **_rounded(weights, "lexical", "semantic", "metadata"), rerank=rounded(weights.vocabulary)
    )


def shared_fields(document: DocumentMetadata, contract: type[Contract]) -> dict[str, Any]:
    """The metadata of a document that a contract has under the same names."""
    fields = contract.model_fields
    return {name: value for name, value in document._asdict().items() if name in fields}


def _rounded(row: object, *names: str) -> dict[str, Any]:
    return {name: rounded_if_any(value) for name, value in attributes_of(row, *names).items()}


def rounded(score: float) -> float:
    """A score, rounded to six decimals as in every answer."""
    return round(score, 6)


def rounded_if_any(score: float | None) -> float | None:
    """:func:`rounded`, or ``None`` if there is no score."""
    return None if score is None else rounded(score)
