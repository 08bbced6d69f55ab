"""A selected passage as the answer shows it: its scores, its reasons and its metadata. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rolebundle.contracts.bundle import (
    ChunkMetadata,
    Citation,
    Freshness,
    PassageMark,
    RawScores,
    Scores,
    ScoreWeights,
    SelectedChunk,
)
from rolebundle.contracts.document import REMEMBERED_KIND, Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.answer.evidence_kinds import shown_kinds
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.evidence import IS_CLOSE, Support
from rolebundle.retrieval.filter import is_for_other_roles, labels_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import Weights
from rolebundle.text.counts import words_found


def selected_chunk(
    rank: int,
    candidate: Candidate,
    request: ResolvedRequest,
    support: Support,
    copies: Sequence[Passage] = (),
) -> SelectedChunk:
    """The selected passage of this rank, with what it has of the task, and its copies."""
    passage, document = candidate.passage, candidate.passage.document
    anchor = f", {passage.anchor}" if passage.anchor else ""
    return SelectedChunk.model_construct(
        rank=rank,
        chunk_id=passage.chunk_id,
        document_id=document.document_id,
        source_id=document.source_id,
        source_type=document.source_kind,
        title=document.title,
        uri=document.uri,
        headings=list(passage.headings),
        content=passage.content,
        content_type=passage.content_type,
        lanes=list(candidate.lanes),
        scores=scores_of(candidate),
        raw=raw_scores_of(candidate, support),
        evidence="task" if support.is_for_task or not request.ranks_by_role else "role",
        evidence_kinds=_evidence_kinds(passage, request.overlay),
        bridge_role=_bridge_role(passage, request.overlay),
        reasons_selected=_reasons(candidate, support),
        overlay_hits=[
            hit
            for part in candidate.score.contributions
            if part.step != "lift"
            for hit in part.hits
        ],
        same_in=[passage.path for passage in copies] or None,
        metadata=ChunkMetadata.model_construct(
            trust_tier=document.trust_tier,
            freshness=Freshness.model_construct(
                status=candidate.freshness,
                updated_at=document.updated_at,
                inferred_at=document.inferred_at,
                max_age_days=request.max_age_days,
            ),
            tags=list(passage.tags),
            applicable_roles=list(passage.applicable_roles) or None,
            excluded_roles=list(passage.excluded_roles) or None,
            document_type=document.document_type,
            domain=document.domain,
            language=document.language,
            sensitivity=document.sensitivity,
            origin=document.origin,
            flags=list(passage.flags) or None,
            mark=passage_mark(passage),
            remembered_from=document.uri if document.source_kind == REMEMBERED_KIND else None,
            valid_from=document.valid_from,
            valid_until=document.valid_until,
            scope=document.scope,
        ),
        citation=Citation.model_construct(
            reference=f"{document.title} [{document.source_id}]{anchor}",
            locator=passage.locator,
            anchor=passage.anchor or None,
        ),
        allowed_actions=request.purpose.allowed_actions(labels_of(passage)),
    )


def _evidence_kinds(passage: Passage, overlay: Overlay | None) -> list[str] | None:
    if overlay is None:
        return None
    return shown_kinds(overlay.synthesis_policy.required_evidence_kinds, passage) or None


def _bridge_role(passage: Passage, overlay: Overlay | None) -> str | None:
    if overlay is None or not is_for_other_roles(passage, overlay.role_id):
        return None
    return next((role for role in overlay.bridge_roles if role in passage.applicable_roles), None)


def passage_mark(passage: Passage) -> PassageMark | None:
    """The mark of a passage, or ``None``."""
    return PassageMark.model_construct(**passage.mark._asdict()) if passage.mark else None


def _reasons(candidate: Candidate, support: Support) -> list[str]:
    score = candidate.score
    reasons = []
    if support.matched:
        reasons.append(f"has {words_found(support.matched, support.words)}")
    elif candidate.bm25_expansion:
        reasons.append("has the role's words")
    if candidate.cosine is not None and support.closeness:
        figures = f"cosine {candidate.cosine:.2f}, closeness {support.closeness:.2f}"
        is_close = support.closeness >= IS_CLOSE
        reasons.append(f"close in meaning: {figures}" if is_close else figures)
    if candidate.contextual is not None:
        reasons.append(f"reranked: score {candidate.contextual:.2f}")
    document = candidate.passage.document
    by = " by the date of its file" if document.inferred_at and not document.updated_at else ""
    reasons.append(f"{document.trust_tier} trust, {candidate.freshness}{by}")
    if hits := score.hits_of("metadata"):
        reasons.append(f"policy: {', '.join(hits)}")
    if hits := score.hits_of("vocabulary"):
        reasons.append(f"role vocabulary: {', '.join(hits)}")
    if mark := candidate.passage.mark:
        reasons.append(f"{mark.state.replace('_', ' ')} by {mark.marked_by}: {mark.reason}")
    if score.diversity_penalty:
        reasons.append(f"source diversity −{score.diversity_penalty:.2f}")
    if hits := score.hits_of("lift"):
        reasons.append(f"lifted: {hits[0]}")
    return reasons


def scores_of(candidate: Candidate) -> Scores:
    """The terms of a candidate's final score, rounded to six decimals."""
    score = candidate.score
    return Scores.model_construct(
        lexical=rounded(score.lexical),
        semantic=rounded(score.semantic),
        metadata=rounded(score.metadata),
        rerank=rounded(score.vocabulary),
        final=rounded(score.final),
        diversity_penalty=rounded(score.diversity_penalty),
        lift=rounded(score.lift),
    )


def raw_scores_of(candidate: Candidate, support: Support) -> RawScores:
    """The scores of a candidate before they were normalized, rounded to six decimals."""
    return RawScores.model_construct(
        bm25=rounded_if_any(candidate.bm25),
        bm25_expansion=rounded_if_any(candidate.bm25_expansion),
        cosine=rounded_if_any(candidate.cosine),
        matched_words=support.matched,
        coverage=rounded(support.coverage),
        closeness=rounded_if_any(support.closeness),
        contextual=rounded_if_any(candidate.contextual),
        metadata=rounded(candidate.metadata_score),
    )


def score_weights(weights: Weights) -> ScoreWeights:
    """The weights of the score's terms, rounded to six decimals."""
    return ScoreWeights.model_construct(
        lexical=rounded(weights.lexical),
        semantic=rounded(weights.semantic),
        metadata=rounded(weights.metadata),
        rerank=rounded(weights.vocabulary),
    )


def rounded(score: float) -> float:
    """A score, rounded to six decimals as in every answer."""
    return round(score, 6)


def rounded_if_any(score: float | None) -> float | None:
    """:func:`rounded`, or ``None`` if there is no score."""
    return None if score is None else rounded(score)
