"""Step 5: the cut, and the bundle that says what was done and how far it can be trusted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rolebundle.contracts.bundle import (
    Approval,
    BundleWarning,
    ChunkMetadata,
    Citation,
    CorpusState,
    Diagnostics,
    Freshness,
    OverlayRef,
    Provenance,
    QueryTrace,
    RawScores,
    Rejection,
    RequestEcho,
    RerankState,
    RetrievalBundle,
    Scores,
    SelectedChunk,
    Summary,
)
from rolebundle.contracts.candidate import Candidate, Query, Ranked, Rejected
from rolebundle.contracts.document import Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import (
    DEFAULT_MAX_AGE_DAYS,
    REJECTION_CODES,
    TRUST_TIERS,
    Fusion,
    RejectionCode,
    WarningCode,
)
from rolebundle.policy.trust import READ_PURPOSE, Purpose
from rolebundle.retrieval.posture import (
    decide_fallback,
    freshness_posture,
    trust_posture,
    warnings_for,
)

CHARACTERS_A_TOKEN = 4
"""The usual estimate for English text; a budget is kept against it, not against a tokenizer."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What was selected and what was not, in the order of the final score.

    ``conflicts`` are those of the rejected that would have been selected, had not another document
    replaced theirs.
    """

    selected: tuple[Ranked, ...]
    rejected: tuple[Rejected, ...]
    conflicts: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What the bundle names besides the candidates."""

    query: Query
    overlay: Overlay | None
    overlay_digest: str
    fusion: Fusion
    now: datetime
    corpus: CorpusState
    degraded: str = ""
    """Why the semantic lane could not run; empty where it ran or was not wanted."""
    waiting: int = 0
    """Chunks without a vector."""
    doubt: str = ""
    """Why the fast index may not answer; empty where it may, or where there is none."""
    request: RequestEcho | None = None
    purpose: Purpose = READ_PURPOSE
    quarantined: int = 0
    """Documents that the scan at the door keeps back from this search."""
    rerank: RerankState | None = None
    """The model that re-scored; ``None`` where it could not, or was not asked for."""
    rerank_warnings: Sequence[tuple[WarningCode, str]] = ()


def cut(
    ranked: Iterable[Ranked], limit: int, min_score: float, token_budget: int | None = None
) -> Cut:
    """Take the best that fit; everything else leaves with a code.

    Args:
        ranked: allowed candidates in order.
        limit: passages wanted.
        min_score: the floor of the score before the diversity penalty.
        token_budget: bound on the estimated tokens of the selection, filled greedily.
    """
    selected: list[Ranked] = []
    rejected: list[Rejected] = []
    conflicts: list[Passage] = []
    tokens = 0
    for candidate in ranked:
        verdict: tuple[RejectionCode, str] | None = None
        relevance = candidate.final + candidate.diversity_penalty
        cost = estimated_tokens(candidate.passage.content)
        if candidate.superseded:
            newer = ", ".join(one.document_id for one in candidate.passage.superseded_by)
            verdict = "conflict_downrank", f"superseded by {newer}"
            if relevance >= min_score and len(selected) < limit:
                conflicts.append(candidate.passage)
        elif candidate.duplicate_of is not None:
            verdict = "duplicate", f"the same text as {candidate.duplicate_of}"
        elif relevance < min_score:
            verdict = "low_score", f"score {relevance:.3f} is under the floor of {min_score:g}"
        elif len(selected) >= limit:
            verdict = (
                "budget_cut",
                f"score {candidate.final:.3f} is past the limit of {limit} passages",
            )
        elif token_budget is not None and tokens + cost > token_budget:
            verdict = (
                "budget_cut",
                f"about {cost} tokens do not fit: {tokens} of token_budget {token_budget} are used",
            )
        if verdict is None:
            selected.append(candidate)
            tokens += cost
        else:
            found = candidate.filtered.candidate
            rejected.append(Rejected(candidate.passage, *verdict, found))
    return Cut(tuple(selected), tuple(rejected), tuple(conflicts))


def estimated_tokens(text: str) -> int:
    """About how many tokens a model makes of a text."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def assemble(
    made: Cut, rejected_before: Sequence[Rejected], context: Context, diagnostics: Diagnostics
) -> RetrievalBundle:
    """The bundle.

    Args:
        made: the outcome of the cut.
        rejected_before: what the filter rejected.
        context: query, overlay, corpus and time.
        diagnostics: pool sizes and timings, as the pipeline measured them.
    """
    selected = [
        _selected(rank, candidate, context) for rank, candidate in enumerate(made.selected, start=1)
    ]
    rejected = sorted(
        (*rejected_before, *made.rejected),
        # By code; inside a code the order of the step that rejected: the nearest miss comes first.
        key=lambda one: REJECTION_CODES.index(one.reason),
    )
    codes = Counter(one.reason for one in rejected)
    provenance = Provenance(
        source_ids=list(dict.fromkeys(chunk.source_id for chunk in selected)),
        document_ids=list(dict.fromkeys(chunk.document_id for chunk in selected)),
        trust_posture=trust_posture(selected),
        freshness_posture=freshness_posture(selected),
    )
    warnings = warnings_for(
        selected,
        codes,
        made.conflicts,
        context.overlay,
        context.degraded,
        context.waiting,
        context.doubt,
    )
    warnings += [BundleWarning(code=code, message=what) for code, what in context.rerank_warnings]
    return RetrievalBundle(
        version="1.0",
        role_id=context.overlay.role_id if context.overlay else "",
        query=_trace(context),
        summary=_summary(selected, codes, context, diagnostics),
        selected=selected,
        rejected=[
            Rejection(chunk_id=one.passage.chunk_id, reason=one.reason, notes=one.notes)
            for one in rejected
        ],
        rejected_summary=_counted(codes, context.quarantined),
        approvals=_approvals(made.selected, context.purpose),
        provenance=provenance,
        warnings=warnings,
        fallback=decide_fallback(
            selected,
            rejected,
            warnings,
            context.overlay,
            context.corpus,
            context.degraded,
            context.waiting,
        ),
        request=context.request,
        overlay=(
            OverlayRef(role_id=context.overlay.role_id, digest=context.overlay_digest)
            if context.overlay
            else None
        ),
        corpus=context.corpus,
        fusion=context.fusion,
        rerank=context.rerank,
        diagnostics=diagnostics,
    )


def _counted(codes: Counter[RejectionCode], quarantined: int) -> dict[RejectionCode, int]:
    # Quarantined documents are no candidates: they are counted, and not in `rejected`.
    counted = codes + Counter[RejectionCode]({"quarantined": quarantined})
    return {code: counted[code] for code in REJECTION_CODES if counted[code]}


def _approvals(selected: Sequence[Ranked], purpose: Purpose) -> list[Approval] | None:
    chunk_ids = [
        one.passage.chunk_id
        for one in selected
        if purpose.is_allowed_by_approval(one.passage.document.origin)
    ]
    if not chunk_ids:
        return None
    return [Approval(approved_by=purpose.approved_by, action=purpose.action, chunk_ids=chunk_ids)]


def _trace(context: Context) -> QueryTrace:
    query = context.query
    return QueryTrace(
        task_text=query.task_text,
        lexical_query=[term.shown for term in query.task_terms for _ in range(term.weight)],
        expansion_query=[term.shown for term in query.expansion_terms],
        semantic_query=[query.semantic_text]
        + ([f"Role context: {query.context_text}"] if query.context_text else []),
        weights=query.weights,
        applied_overlay_rules=list(query.applied_rules),
        applied_filters=list(query.applied_filters),
        generated_at=iso_utc(context.now),
    )


def _summary(
    selected: Sequence[SelectedChunk],
    codes: Counter[RejectionCode],
    context: Context,
    diagnostics: Diagnostics,
) -> Summary:
    tiers = Counter(chunk.metadata.trust_tier for chunk in selected)
    sources = Counter(chunk.source_id for chunk in selected)
    stale = sum(chunk.metadata.freshness.status == "stale" for chunk in selected)
    strategy = "overlay-weighted" if context.overlay else "default-weighted"
    strategy += "-rrf" if context.fusion == "rrf" else ""
    return Summary(
        total_candidates=diagnostics.candidate_pool_size,
        selected_count=len(selected),
        stale_count=stale + codes["stale"],
        forbidden_hits=codes["forbidden_source"],
        trust_tier_breakdown={tier: tiers[tier] for tier in TRUST_TIERS},
        source_breakdown=dict(sorted(sources.items())),
        rerank_strategy=f"{strategy}-contextual" if context.rerank else strategy,
    )


def _selected(rank: int, ranked: Ranked, context: Context) -> SelectedChunk:
    filtered = ranked.filtered
    candidate, passage, document = filtered.candidate, ranked.passage, ranked.passage.document
    policy = context.overlay.retrieval_policy if context.overlay else None
    maximum = policy.freshness_max_age_days if policy else None
    page = f", p. {passage.page}" if passage.page else ""
    return SelectedChunk(
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
        scores=scores_of(ranked),
        raw=raw_scores_of(ranked),
        reasons_selected=_reasons(ranked),
        overlay_hits=[*filtered.overlay_hits, *ranked.vocabulary_hits],
        metadata=ChunkMetadata(
            trust_tier=document.trust_tier,
            freshness=Freshness(
                status=filtered.freshness,
                updated_at=document.updated_at,
                max_age_days=maximum if maximum is not None else DEFAULT_MAX_AGE_DAYS,
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
            scope=document.scope,
        ),
        citation=Citation(
            reference=f"{document.title} [{document.source_id}]{page}", locator=passage.locator
        ),
        allowed_actions=context.purpose.allowed_actions(document.origin),
    )


_SEEN = 0.05


def scores_of(ranked: Ranked) -> Scores:
    """The terms of a candidate's final score, rounded as every answer shows them."""
    candidate = ranked.filtered.candidate
    return Scores(
        lexical=rounded(candidate.lexical),
        semantic=rounded(candidate.semantic),
        metadata=rounded(ranked.metadata),
        rerank=rounded(ranked.vocabulary),
        final=rounded(ranked.final),
        diversity_penalty=rounded(ranked.diversity_penalty),
    )


def raw_scores_of(ranked: Ranked) -> RawScores:
    """What the lanes and the filter measured of a candidate, rounded likewise."""
    candidate = ranked.filtered.candidate
    return RawScores(
        bm25=maybe_rounded(candidate.bm25),
        bm25_expansion=maybe_rounded(candidate.bm25_expansion),
        cosine=maybe_rounded(candidate.cosine),
        contextual=maybe_rounded(candidate.contextual),
        metadata=rounded(ranked.filtered.metadata_score),
    )


def _support(candidate: Candidate) -> list[str]:
    """What the passages that are about the same changed, where it can be seen."""
    if candidate.lexical_alone is None or candidate.semantic_alone is None:
        return []
    by_words = candidate.lexical - candidate.lexical_alone
    by_meaning = candidate.semantic - candidate.semantic_alone
    if max(abs(by_words), abs(by_meaning)) < _SEEN:
        return []
    return [f"with the passages like it lexical {by_words:+.2f}, semantic {by_meaning:+.2f}"]


def _by_lane(candidate: Candidate) -> float:
    """The semantic score as it is without the context."""
    before = candidate.semantic_before
    return candidate.semantic if before is None else before


def _reasons(ranked: Ranked) -> list[str]:
    candidate = ranked.filtered.candidate
    reasons = []
    if candidate.bm25:
        reasons.append(f"has the task's words (lexical {candidate.lexical:.2f})")
    elif candidate.bm25_expansion:
        reasons.append(f"has the role's words (lexical {candidate.lexical:.2f})")
    if candidate.cosine is not None and _by_lane(candidate) > 0:
        reasons.append(f"close in meaning (semantic {_by_lane(candidate):.2f})")
    reasons += _support(candidate)
    if candidate.contextual_score is not None:
        how = "closest" if candidate.contextual_score == 1 else "close"
        reasons.append(f"{how} in context ({candidate.contextual_score:.2f})")
    reasons.append(f"{ranked.passage.document.trust_tier} trust, {ranked.filtered.freshness}")
    if ranked.filtered.overlay_hits:
        reasons.append(f"policy: {', '.join(ranked.filtered.overlay_hits)}")
    if ranked.vocabulary_hits:
        reasons.append(f"role vocabulary: {', '.join(ranked.vocabulary_hits)}")
    if ranked.diversity_penalty:
        reasons.append(f"source diversity −{ranked.diversity_penalty:.2f}")
    return reasons


def rounded(score: float) -> float:
    """A score as answers show it: six decimals."""
    return round(score, 6)


def maybe_rounded(score: float | None) -> float | None:
    """:func:`rounded`, where there is a score."""
    return None if score is None else rounded(score)
