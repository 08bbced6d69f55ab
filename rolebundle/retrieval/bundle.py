"""Step 6: the bundle, which reports what was done and how far the answer can be trusted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.contracts.bundle import (
    Approval,
    BundleWarning,
    ChunkMetadata,
    Citation,
    CorpusState,
    Diagnostics,
    Fallback,
    Freshness,
    OverlayRef,
    Provenance,
    QueryTrace,
    RawScores,
    Rejection,
    RetrievalBundle,
    Scores,
    ScoreWeights,
    SelectedChunk,
    Summary,
    TaskEvidence,
)
from rolebundle.contracts.document import Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import (
    FALLBACK_ACTIONS,
    FALLBACK_STATES,
    REJECTION_CODES,
    TRUST_TIERS,
    EmptyReason,
    FallbackAction,
    FallbackState,
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
    WarningCode,
)
from rolebundle.retrieval.candidate import (
    Candidate,
    RejectedCandidate,
    Retrieval,
    SemanticReport,
    Weights,
)
from rolebundle.retrieval.evidence import Evidence, Support
from rolebundle.retrieval.filter import labels_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.select import is_answered_off_topic

if TYPE_CHECKING:
    from rolebundle.retrieval.conflicts import Conflict

MIN_VISIBLE_CHANGE = 0.05
"""Smaller changes of a lane's score by neighbours and feedback are not reported."""
MAX_NAMED_CONFLICTS = 5
"""So many conflicts are named; the others are counted."""
LOW_DIVERSITY_FROM = 3
"""If at least so many passages are selected, all of one source, there is a warning."""


def assemble(request: ResolvedRequest, retrieval: Retrieval, seconds: float) -> RetrievalBundle:
    """The bundle of a retrieval that took so many seconds."""
    selection = retrieval.selection
    supports = [
        retrieval.evidence.support(candidate.passage.rowid) for candidate in selection.selected
    ]
    selected = [
        _selected_chunk(rank, candidate, request, support)
        for rank, (candidate, support) in enumerate(
            zip(selection.selected, supports, strict=True), start=1
        )
    ]
    # By code. Within a code in the order of the step that rejected: the nearest miss comes first.
    rejected = sorted(
        (*retrieval.rejected, *selection.rejected),
        key=lambda rejection: REJECTION_CODES.index(rejection.code),
    )
    codes = Counter(rejection.code for rejection in rejected)
    warnings = warnings_for(
        selected,
        codes,
        retrieval.forbidden_hits,
        selection.conflicts,
        [candidate.passage for candidate in selection.selected],
        request.overlay,
        retrieval.semantic,
    )
    if caution := _caution(retrieval.evidence, supports, has_role=request.overlay is not None):
        warnings.insert(0, BundleWarning.model_construct(code="WEAK_EVIDENCE", message=caution))
    if request.seen and not retrieval.seen:
        warnings.append(
            BundleWarning.model_construct(
                code="SEEN_UNKNOWN",
                message=f"none of the {len(request.seen)} ids in `seen` is a passage of the corpus",
            )
        )
    if retrieval.rerank is not None:
        warnings += [
            BundleWarning.model_construct(code=code, message=message)
            for code, message in retrieval.rerank.warnings
        ]
    return RetrievalBundle.model_construct(
        version="1.0",
        role_id=request.role_id,
        query=_query_trace(request, retrieval),
        summary=_summary(selected, codes, request, retrieval),
        selected=selected,
        rejected=[
            Rejection.model_construct(
                chunk_id=rejection.candidate.chunk_id, reason=rejection.code, notes=rejection.note
            )
            for rejection in rejected
        ],
        rejected_summary=_rejected_summary(codes, request.quarantined),
        approvals=_approvals(selection.selected, request),
        provenance=Provenance.model_construct(
            source_ids=list(dict.fromkeys(chunk.source_id for chunk in selected)),
            document_ids=list(dict.fromkeys(chunk.document_id for chunk in selected)),
            trust_posture=trust_posture(
                [
                    chunk
                    for chunk, support in zip(selected, supports, strict=True)
                    if support.is_for_task
                ]
            ),
            freshness_posture=freshness_posture(selected),
        ),
        warnings=warnings,
        fallback=decide_fallback(
            selected,
            rejected,
            warnings,
            request.overlay,
            retrieval.corpus,
            retrieval.semantic,
            is_off_topic=is_answered_off_topic(retrieval.evidence, request),
            is_narrowed=request.where is not None,
            unmatched=retrieval.unmatched,
        ),
        request=request.echo,
        overlay=overlay_ref(request),
        corpus=retrieval.corpus,
        evidence=_task_evidence(retrieval),
        weights=score_weights(retrieval.weights),
        fusion=request.fusion,
        rerank=retrieval.rerank.state if retrieval.rerank else None,
        diagnostics=_diagnostics(codes, retrieval, seconds),
    )


def overlay_ref(request: ResolvedRequest) -> OverlayRef | None:
    """The overlay of the request, with the digest of its content; ``None`` without a role."""
    if request.overlay is None:
        return None
    return OverlayRef.model_construct(
        role_id=request.overlay.role_id, digest=request.overlay_digest
    )


# -- selected passages ---------------------------------------------------------------------------


def _selected_chunk(
    rank: int, candidate: Candidate, request: ResolvedRequest, support: Support
) -> SelectedChunk:
    passage, document = candidate.passage, candidate.passage.document
    page = f", p. {passage.page}" if passage.page else ""
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
        evidence="task" if request.overlay is None or support.is_for_task else "role",
        reasons_selected=_reasons(candidate, support),
        overlay_hits=[hit for part in candidate.score.contributions for hit in part.hits],
        metadata=ChunkMetadata.model_construct(
            trust_tier=document.trust_tier,
            freshness=Freshness.model_construct(
                status=candidate.freshness,
                updated_at=document.updated_at,
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
            valid_from=document.valid_from,
            valid_until=document.valid_until,
            scope=document.scope,
        ),
        citation=Citation.model_construct(
            reference=f"{document.title} [{document.source_id}]{page}", locator=passage.locator
        ),
        allowed_actions=request.purpose.allowed_actions(labels_of(passage)),
    )


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


def _task_evidence(retrieval: Retrieval) -> TaskEvidence:
    evidence, weights = retrieval.evidence, retrieval.weights
    return TaskEvidence.model_construct(
        support=evidence.task,
        strength=rounded(evidence.best.strength),
        words=len(evidence.words.frequencies),
        specificity=rounded(evidence.specificity),
        role_share=rounded(weights.metadata + weights.vocabulary),
    )


def rounded(score: float) -> float:
    """A score, rounded to six decimals as in every answer."""
    return round(score, 6)


def rounded_if_any(score: float | None) -> float | None:
    """:func:`rounded`, or ``None`` if there is no score."""
    return None if score is None else rounded(score)


def _reasons(candidate: Candidate, support: Support) -> list[str]:
    score = candidate.score
    neighbours_lexical, neighbours_semantic = score.changed_by("neighbours", "feedback")
    reasons = []
    if support.matched:
        reasons.append(f"has {support.matched} of the task's {support.words} words")
    elif candidate.bm25_expansion:
        reasons.append("has the role's words")
    if candidate.cosine is not None and support.closeness:
        reasons.append(
            f"close in meaning: cosine {candidate.cosine:.2f}, closeness {support.closeness:.2f}"
        )
    if max(abs(neighbours_lexical), abs(neighbours_semantic)) >= MIN_VISIBLE_CHANGE:
        reasons.append(
            f"with the passages like it lexical {neighbours_lexical:+.2f}, "
            f"semantic {neighbours_semantic:+.2f}"
        )
    if candidate.contextual is not None:
        change = score.changed_by("rerank")[1]
        reasons.append(f"reranked: cosine {candidate.contextual:.2f}, semantic {change:+.2f}")
    reasons.append(f"{candidate.passage.document.trust_tier} trust, {candidate.freshness}")
    if hits := score.hits_of("metadata"):
        reasons.append(f"policy: {', '.join(hits)}")
    if hits := score.hits_of("vocabulary"):
        reasons.append(f"role vocabulary: {', '.join(hits)}")
    if score.diversity_penalty:
        reasons.append(f"source diversity −{score.diversity_penalty:.2f}")
    return reasons


# -- counts and traces ---------------------------------------------------------------------------


def _query_trace(request: ResolvedRequest, retrieval: Retrieval) -> QueryTrace:
    query = retrieval.query
    return QueryTrace.model_construct(
        task_text=query.task_text,
        lexical_query=[term.shown for term in query.task_terms for _ in range(term.weight)],
        expansion_query=[term.shown for term in query.expansion_terms],
        semantic_query=[query.semantic_text],
        applied_overlay_rules=[*query.applied_rules, *retrieval.semantic.applied_rules],
        applied_filters=list(query.applied_filters),
        generated_at=iso_utc(request.now),
    )


def _summary(
    selected: Sequence[SelectedChunk],
    codes: Counter[RejectionCode],
    request: ResolvedRequest,
    retrieval: Retrieval,
) -> Summary:
    tiers = Counter(chunk.metadata.trust_tier for chunk in selected)
    sources = Counter(chunk.source_id for chunk in selected)
    stale = sum(chunk.metadata.freshness.status == "stale" for chunk in selected)
    strategy = "overlay-weighted" if request.overlay else "default-weighted"
    strategy += "-rrf" if request.fusion == "rrf" else ""
    strategy += "-contextual" if retrieval.rerank and retrieval.rerank.state else ""
    return Summary.model_construct(
        total_candidates=len(retrieval.candidates),
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
    codes: Counter[RejectionCode], retrieval: Retrieval, seconds: float
) -> Diagnostics:
    pool, rerank = retrieval.pool, retrieval.rerank
    return Diagnostics.model_construct(
        latency_ms=round(seconds * 1000, 3),
        # Counted before any step could lose one, so that law 1 can be checked from the bundle.
        candidate_pool_size=len(retrieval.candidates),
        deduped_count=codes["duplicate"],
        dropped_forbidden_count=codes["forbidden_source"],
        dropped_stale_count=codes["stale"],
        lexical_ms=round(pool.lexical_seconds * 1000, 3),
        semantic_ms=round(pool.semantic_seconds * 1000, 3),
        refills=pool.refills,
        rerank_ms=rerank.milliseconds if rerank else None,
        rerank_embedded=rerank.embedded if rerank else None,
        rerank_cached=rerank.cached if rerank else None,
        rerank_question_embedded=rerank.question_embedded if rerank else None,
        rerank_note=rerank.note if rerank else None,
    )


# -- postures and warnings -----------------------------------------------------------------------


def _caution(evidence: Evidence, supports: Sequence[Support], *, has_role: bool) -> str:
    """What the reader should know about the evidence of an answer; empty if it is sound."""
    if not supports:
        return ""
    best = max(supports, key=lambda support: support.strength)
    if evidence.task == "off_topic":
        problem = "the corpus has nothing for this task, so these passages are guesses"
    elif not best.is_for_task:
        problem = "no passage has what the task asks for"
        problem += "; they are here for the role" if has_role else ""
    elif evidence.task == "weak":
        problem = "thin evidence, so treat the passages as hints"
    else:
        return ""
    closeness = "" if best.closeness is None else f" and a closeness of {best.closeness:.2f}"
    return f"{problem}: the best has {best.matched} of the task's {best.words} words{closeness}"


def trust_posture(selected: Sequence[SelectedChunk]) -> TrustPosture:
    """Strong with any authoritative passage, mixed with any preferred one, else weak.

    For the answer, of the passages that are evidence for the task.
    """
    tiers = {chunk.metadata.trust_tier for chunk in selected}
    if "authoritative" in tiers:
        return "strong"
    return "mixed" if "preferred" in tiers else "weak"


def freshness_posture(selected: Sequence[SelectedChunk]) -> FreshnessPosture:
    """Fresh with fresh and no stale passages, stale with stale and no fresh ones, else mixed."""
    statuses = {chunk.metadata.freshness.status for chunk in selected}
    if "fresh" in statuses and "stale" not in statuses:
        return "fresh"
    return "stale" if "stale" in statuses and "fresh" not in statuses else "mixed"


def warnings_for(
    selected: Sequence[SelectedChunk],
    codes: Mapping[RejectionCode, int],
    forbidden_hits: Sequence[Candidate],
    conflicts: Sequence[Conflict],
    passages: Sequence[Passage],
    overlay: Overlay | None,
    semantic: SemanticReport,
) -> list[BundleWarning]:
    """What the reader of the bundle should know, in a fixed order.

    Args:
        selected: the passages of the answer.
        codes: how many candidates each code rejected.
        forbidden_hits: the rejected candidates that would be selected if they were not forbidden.
        conflicts: pairs of passages that disagree.
        passages: those of the answer, as they are in the corpus.
        overlay: the role's, or ``None``.
        semantic: how the semantic lane ran.
    """
    warnings: list[tuple[WarningCode, str]] = []
    if trust_posture(selected) == "weak":
        warnings.append(
            ("NO_HIGH_TRUST_MATCH", "no authoritative or preferred passage was selected")
        )
    if overlay is None:
        warnings.append(
            ("ONLY_SHARED_CORPUS", "no role was given, so no overlay shaped the answer")
        )
    elif selected and not any(_is_role_specific(chunk) for chunk in selected):
        warnings.append(("ONLY_SHARED_CORPUS", "no passage has anything of the role's own"))
    rejected_stale = codes.get("stale", 0)
    stale = rejected_stale + sum(chunk.metadata.freshness.status == "stale" for chunk in selected)
    considered = rejected_stale + len(selected)
    if stale * 2 > considered:
        warnings.append(("STALE_DOMINANT", f"{stale} of {considered} passages are stale"))
    if forbidden_hits:
        named = sorted({hit.passage.document.source_id for hit in forbidden_hits})
        warnings.append(
            (
                "FORBIDDEN_SOURCE_HIT",
                f"{len(forbidden_hits)} passages of forbidden sources would have been selected: "
                f"{', '.join(named)}",
            )
        )
    if restricted := _restricted(codes):
        warnings.append(("ACTION_RESTRICTED", restricted))
    sources = {chunk.source_id for chunk in selected}
    if len(sources) == 1 and len(selected) >= LOW_DIVERSITY_FROM:
        warnings.append(("LOW_DIVERSITY", f"every passage comes from {sources.pop()}"))
    if conflicts:
        warnings.append(("CONFLICTING_EVIDENCE", _disagreements(conflicts)))
    if ignored := _ignored_claims(passages):
        warnings.append(("SUPERSEDE_IGNORED", ignored))
    if semantic.degraded:
        warnings.append(("SEMANTIC_LANE_DEGRADED", semantic.degraded))
    if semantic.waiting:
        warnings.append(
            (
                "INDEX_STALE",
                f"{semantic.waiting} chunks wait for their vector; run `rolebundle embed`",
            )
        )
    if semantic.doubt:
        warnings.append(
            (
                "INDEX_STALE",
                f"exact search answers: {semantic.doubt}; run `rolebundle embed --optimize`",
            )
        )
    return [BundleWarning.model_construct(code=code, message=message) for code, message in warnings]


def _restricted(codes: Mapping[RejectionCode, int]) -> str:
    blocked, waiting = codes.get("taint_blocked", 0), codes.get("requires_approval", 0)
    parts = []
    if blocked:
        parts.append(f"{blocked} candidates are not trusted enough for the action")
    if waiting:
        parts.append(f"{waiting} candidates may be used for the action only with an approval")
    return "; ".join(parts)


def _disagreements(conflicts: Sequence[Conflict]) -> str:
    """A sentence for each of the conflicts nearest to the task; one for a pair of documents."""
    nearest: dict[frozenset[str], Conflict] = {}
    for conflict in sorted(conflicts, key=lambda conflict: -conflict.relevance):
        documents = conflict.first.document.document_id, conflict.second.document.document_id
        nearest.setdefault(frozenset(documents), conflict)
    sentences = [conflict.sentence for conflict in nearest.values()]
    more = len(sentences) - MAX_NAMED_CONFLICTS
    if more > 0:
        sentences[MAX_NAMED_CONFLICTS:] = [f"so do {more} further pairs of documents"]
    return "; ".join(sentences)


def _ignored_claims(passages: Iterable[Passage]) -> str:
    claims = {
        f"{document_id} claims to supersede {passage.document.document_id}, and is less trusted"
        for passage in passages
        for document_id in passage.ignored_claims
    }
    return "; ".join(sorted(claims))


def _is_role_specific(chunk: SelectedChunk) -> bool:
    kinds = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred", "vocab:")
    return any(hit.startswith(kinds) for hit in chunk.overlay_hits)


# -- fallback ------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """One thing that limits the use of an answer.

    Attributes:
        state: the state that holds; ``None`` if the finding is no state of its own.
        action: what the caller should do because of it.
        sentence: the reason, for the message; empty if it needs none.
    """

    state: FallbackState | None
    action: FallbackAction
    sentence: str = ""


def decide_fallback(
    selected: Sequence[SelectedChunk],
    rejected: Sequence[RejectedCandidate],
    warnings: Sequence[BundleWarning],
    overlay: Overlay | None,
    corpus: CorpusState,
    semantic: SemanticReport,
    *,
    is_off_topic: bool = False,
    is_narrowed: bool = False,
    unmatched: str = "",
) -> Fallback:
    """What the caller should do with the answer and, if nothing was selected, the reason.

    Args:
        selected: the passages of the answer.
        rejected: all other candidates, those that were scored in the order of their score.
        warnings: the bundle's.
        overlay: the role's, or ``None``.
        corpus: has how much there was to search.
        semantic: how the semantic lane ran.
        is_off_topic: whether nothing was selected because the corpus has nothing for the task.
        is_narrowed: whether the request has a ``where``.
        unmatched: the keys of ``where`` that exclude every document.
    """
    messages = {warning.code: warning.message for warning in warnings}
    findings = _findings(messages, overlay, semantic)
    verdict = None
    if not selected:
        is_incomplete = bool(semantic.degraded or semantic.waiting)
        verdict = empty_verdict(
            rejected,
            corpus.chunks,
            is_incomplete=is_incomplete,
            is_unmatched=bool(unmatched),
            is_off_topic=is_off_topic,
        )
        if verdict == "nothing_matches_where":
            reason = f"no document matches {unmatched}; correct `where`, or ask without it"
        else:
            reason = _why_empty(verdict, rejected, overlay, corpus, semantic)
            reason += "; only what matches `where` was searched" if is_narrowed else ""
        # The reason is enough: the other sentences are about the passages of an answer.
        findings = [
            Finding("no_strong_match", "block", reason),
            *(finding._replace(sentence="") for finding in findings),
        ]
    return fallback_of(findings, verdict)


def fallback_of(findings: Sequence[Finding], verdict: EmptyReason | None = None) -> Fallback:
    """The fallback of what was found: every state, the worst action, and all sentences."""
    holding = {finding.state for finding in findings}
    states = [state for state in FALLBACK_STATES if state in holding] or ["healthy"]
    actions = {finding.action for finding in findings}
    sentences = [finding.sentence for finding in findings if finding.sentence]
    return Fallback.model_construct(
        state=states[0],
        states=states,
        action=max(actions, key=FALLBACK_ACTIONS.index, default="continue"),
        message="; ".join(sentences) or "trusted, current evidence",
        verdict=verdict,
    )


def _findings(
    warnings: Mapping[WarningCode, str],
    overlay: Overlay | None,
    semantic: SemanticReport,
) -> list[Finding]:
    """What limits the use of the selected passages, in the order of the states."""
    findings = []
    if "NO_HIGH_TRUST_MATCH" in warnings:
        sentence = "no authoritative or preferred source matched; treat the passages as hints"
        findings.append(Finding("no_strong_match", "degrade", sentence))
    if "FORBIDDEN_SOURCE_HIT" in warnings:
        sentence = "a source that is forbidden to the role would have answered, and was left out"
        findings.append(Finding("forbidden_hit", "continue", sentence))
    if "CONFLICTING_EVIDENCE" in warnings:
        sentence = "documents of equal trust disagree; say so, and name both"
        findings.append(Finding("conflicting", "warn", sentence))
    if "STALE_DOMINANT" in warnings:
        sentence = "most of the evidence is older than it should be; check before relying on it"
        findings.append(Finding("stale_dominant", "warn", sentence))
    if overlay is None:
        sentence = "no role was given: shared corpus only, no role policy was applied"
        findings.append(Finding("no_overlay", "continue", sentence))
    if semantic.degraded:
        findings.append(Finding(None, "degrade", "the semantic lane did not run"))
    if caution := warnings.get("WEAK_EVIDENCE"):
        findings.append(Finding(None, "warn", caution))
    return findings


# -- the verdict of an empty answer --------------------------------------------------------------

# A copy is rejected together with its original, which was scored.
_SCORED_TOO_LOW: frozenset[RejectionCode] = frozenset({"low_score", "duplicate"})
_VERDICT_OF: dict[RejectionCode, EmptyReason] = {
    "forbidden_source": "all_forbidden",
    "taint_blocked": "all_taint_blocked",
    "stale": "all_stale",
    "conflict_downrank": "all_superseded",
    "already_seen": "all_seen",
}
_BY_PURPOSE: frozenset[RejectionCode] = frozenset({"taint_blocked", "requires_approval"})
_BY_TIME: frozenset[RejectionCode] = frozenset({"not_yet_valid", "expired"})
_IN_SCORE_ORDER: frozenset[RejectionCode] = frozenset({"low_score", "budget_cut"})
_CODES_OF: dict[EmptyReason, frozenset[RejectionCode]] = {
    "over_budget": frozenset({"budget_cut"}),
    "nothing_found": frozenset({"low_score"}),
    "no_evidence": frozenset({"low_score"}),
    "all_below_floor": frozenset({"low_score"}),
    "approval_needed": frozenset({"requires_approval"}),
    "none_valid": _BY_TIME,
    "rejected_by_policy": frozenset(REJECTION_CODES) - _SCORED_TOO_LOW - {"already_seen"},
    **{verdict: frozenset({code}) for code, verdict in _VERDICT_OF.items()},
}
_OF_THE_UNSEEN: frozenset[EmptyReason] = frozenset(
    {"approval_needed", "none_valid", "rejected_by_policy", *_VERDICT_OF.values()} - {"all_seen"}
)
# What happened, and the next step.
_EXPLANATIONS: dict[EmptyReason, tuple[str, str]] = {
    "over_budget": (
        "passages would answer, and none fits the token budget",
        "raise token_budget",
    ),
    "no_evidence": (
        "the corpus has nothing for this task: no passage has enough of its words or is near it",
        "do not guess; ask in other words, ingest what would answer, or set allow_weak",
    ),
    "all_below_floor": (
        "what has the task's words is under the floor",
        "ask more precisely, or lower min_score in the role's overlay",
    ),
    "all_forbidden": (
        "everything relevant is forbidden to the role {role}",
        "ask for a role that may use these sources, or go without; do not guess what they say",
    ),
    "all_taint_blocked": (
        "everything relevant is not trusted enough for the action",
        "ask for the passages to read or analyze them, and do not act on them",
    ),
    "approval_needed": (
        "everything relevant may be used for the action only with an approval",
        "let a person decide, and ask again with that person's name as approval; do not act before",
    ),
    "none_valid": (
        "nothing relevant is valid at the time of the answer",
        "ask as of another time, or look for the document that applies",
    ),
    "all_stale": (
        "everything relevant is older than the role {role} accepts",
        "bring the documents up to date, or raise the overlay's freshness_max_age_days",
    ),
    "all_superseded": (
        "everything relevant was replaced by newer documents, which did not make it either",
        "look the newer documents up",
    ),
    "all_seen": (
        "everything relevant is in `seen`",
        "use the passages that you have, or ask for something else",
    ),
    "rejected_by_policy": (
        "{policy} rejected everything relevant",
        "read the notes of the rejected",
    ),
}


def empty_verdict(
    rejected: Sequence[RejectedCandidate],
    chunks: int,
    *,
    is_incomplete: bool,
    is_unmatched: bool = False,
    is_off_topic: bool = False,
) -> EmptyReason:
    """Why nothing was selected: the first rule that applies.

    1. ``corpus_empty``: there is no chunk to find.
    2. ``nothing_matches_where``: the request's ``where`` excludes every document.
    3. ``over_budget``: some candidate was rejected for the token budget alone. There is an answer.
    4. ``lane_down``: the semantic lane could not run, or chunks have no vector yet. The verdicts
       below are about *everything* relevant, which half a search cannot know.
    5. ``no_evidence``: the task is off-topic for everything visible, what policy rejects included.
       Then no candidate is relevant.
    6. By the *relevant* candidates. The semantic lane proposes the nearest chunks to any task, and
       the role's words find chunks for any task, so a candidate is not relevant by itself.
       Relevant are candidates with a word of the task. If there are none, no word of the task is
       in the corpus. Then neighbours that policy rejected are relevant, since nothing measured how
       near they are. A neighbour under the floor was measured, and is not near.

       - none: ``nothing_found``. A lexical-only request searches no meanings, and the message says
         so.
       - all under the floor, or copies of such: ``all_below_floor``.
       - else those under the floor do not count. If one code rejected the rest:
         ``all_forbidden``, ``all_taint_blocked``, ``all_stale``, ``all_superseded`` or
         ``all_seen``. What the agent has seen does not count beside another code.
       - if only the purpose rejected the rest, and an approval would allow some of it:
         ``approval_needed``.
       - if all of the rest is not valid yet or expired: ``none_valid``.
       - another code, or several: ``rejected_by_policy``.

    Args:
        rejected: all candidates.
        chunks: how many the corpus has.
        is_incomplete: a lane that was asked for could not search everything.
        is_unmatched: ``where`` excludes every document.
        is_off_topic: the corpus has nothing for the task.
    """
    if chunks == 0:
        return "corpus_empty"
    if is_unmatched:
        return "nothing_matches_where"
    if any(rejection.code == "budget_cut" for rejection in rejected):
        return "over_budget"
    if is_incomplete:
        return "lane_down"
    if is_off_topic and rejected:
        return "no_evidence"
    relevant = _relevant(rejected)
    if not relevant:
        return "nothing_found"
    codes = {rejection.code for rejection in relevant} - _SCORED_TOO_LOW
    if not codes:
        return "all_below_floor"
    if len(codes) > 1:
        codes -= {"already_seen"}
    if "requires_approval" in codes and codes <= _BY_PURPOSE:
        return "approval_needed"
    if codes <= _BY_TIME:
        return "none_valid"
    if len(codes) > 1:
        return "rejected_by_policy"
    return _VERDICT_OF.get(codes.pop(), "rejected_by_policy")


def _relevant(rejected: Sequence[RejectedCandidate]) -> list[RejectedCandidate]:
    with_words = [rejection for rejection in rejected if rejection.candidate.bm25]
    if with_words:
        return with_words
    return [
        rejection
        for rejection in rejected
        if rejection.candidate.cosine is not None and rejection.code not in _SCORED_TOO_LOW
    ]


def _why_empty(
    verdict: EmptyReason,
    rejected: Sequence[RejectedCandidate],
    overlay: Overlay | None,
    corpus: CorpusState,
    semantic: SemanticReport,
) -> str:
    """The verdict in words: what happened, the counts of the codes, and the next step."""
    if verdict == "corpus_empty":
        return "the corpus is empty: ingest documents first"
    if verdict == "lane_down":
        problem = f"the semantic lane did not run: {semantic.degraded}"
        if not semantic.degraded:
            problem = (
                f"{semantic.waiting} of {corpus.chunks} chunks wait for their vector; "
                "run `rolebundle embed`"
            )
        return f"the search was incomplete ({_counts(rejected)}); {problem}"
    role = overlay.role_id if overlay else "(no role)"
    policy = f"the policy of the role {role}" if overlay else "policy"
    if verdict == "nothing_found":
        what, step = _nothing_found(rejected)
    else:
        what, step = _EXPLANATIONS[verdict]
    what = what.format(role=role, policy=policy)
    has_seen = any(rejection.code == "already_seen" for rejection in _relevant(rejected))
    if has_seen and verdict in _OF_THE_UNSEEN:
        what = f"apart from what is in `seen`, {what}"
    return f"{what} ({_counts(rejected)}{_example(verdict, rejected)}); {step}"


def _nothing_found(rejected: Sequence[RejectedCandidate]) -> tuple[str, str]:
    if any(rejection.candidate.cosine is not None for rejection in rejected):
        return (
            "nothing in the corpus has the task's words or is near enough in meaning",
            "ask in other words, or ingest what would answer",
        )
    return (
        "nothing in the corpus has the task's words, and meanings were not searched",
        "ask in other words, or without lexical_only",
    )


def _counts(rejected: Sequence[RejectedCandidate]) -> str:
    codes = Counter(rejection.code for rejection in rejected)
    reasons = ", ".join(f"{codes[code]} {code}" for code in REJECTION_CODES if codes[code])
    return f"candidates rejected: {reasons}" if reasons else "no candidates"


def _example(verdict: EmptyReason, rejected: Sequence[RejectedCandidate]) -> str:
    """The note of one rejected candidate, which has the figures or names the rule."""
    codes = _CODES_OF[verdict]
    candidates = _relevant(rejected) or rejected
    notes = (rejection.note for rejection in candidates if rejection.code in codes)
    note = next(notes, "")
    which = "the best" if codes <= _IN_SCORE_ORDER else "for one"
    return f"; {which}: {note}" if note else ""
