"""Step 6: the bundle, which reports what was done and how far the answer can be trusted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import (
    Approval,
    BundleWarning,
    ChunkMetadata,
    Citation,
    Diagnostics,
    Freshness,
    OverlayRef,
    PassageMark,
    Provenance,
    QueryTrace,
    RawScores,
    Rejection,
    ReplicaState,
    RetrievalBundle,
    Scores,
    ScoreWeights,
    SelectedChunk,
    Summary,
    TaskEvidence,
)
from rolebundle.contracts.document import REMEMBERED_KIND, Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import (
    REJECTION_CODES,
    TRUST_TIERS,
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
from rolebundle.retrieval.evidence import HAS_WORDS, Support
from rolebundle.retrieval.evidence_kinds import shown_kinds
from rolebundle.retrieval.fallback import decide_fallback, why_no_documents
from rolebundle.retrieval.filter import is_for_other_roles, labels_of
from rolebundle.retrieval.passage_text import one_line
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.select import is_answered_off_topic
from rolebundle.text.counts import age, counted

if TYPE_CHECKING:
    from rolebundle.retrieval.conflicts import Conflict

MIN_VISIBLE_CHANGE = 0.05
"""Smaller changes of a lane's score by neighbours and feedback are not reported."""
MAX_NAMED_CONFLICTS = 5
"""So many conflicts are named; the others are counted."""
MAX_MISSING_WORDS = 10
"""So many missing words are named; the others are counted."""
_MAX_KINDS_CHARS = 500
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
    ranked = {rejection.candidate.chunk_id for rejection in selection.rejected}
    codes = Counter(rejection.code for rejection in rejected)
    warnings = warnings_for(
        selected,
        codes,
        retrieval.forbidden_hits,
        selection.conflicts,
        [candidate.passage for candidate in selection.selected],
        request.overlay,
        retrieval.semantic,
        {candidate.passage.document.source_id for candidate in retrieval.candidates},
    )
    if caution := _caution(retrieval, supports, has_role=request.overlay is not None):
        warnings.insert(0, BundleWarning.model_construct(code="WEAK_EVIDENCE", message=caution))
    if missing := _missing_words(retrieval) if selected else "":
        message = f"no passage of the corpus has these words of the task: {missing}"
        warnings.append(BundleWarning.model_construct(code="WORDS_MISSING", message=message))
    if stale := _stale_replica(retrieval.corpus.replica, request.now):
        warnings.append(BundleWarning.model_construct(code="REPLICA_STALE", message=stale))
    if request.seen and not retrieval.seen:
        warnings.append(
            BundleWarning.model_construct(
                code="SEEN_UNKNOWN",
                message=f"`seen` has no passage of the corpus: {counted(len(request.seen), 'id')}",
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
            _rejection(rejection, is_ranked=rejection.candidate.chunk_id in ranked)
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
            no_documents=why_no_documents(request),
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
        evidence="task" if request.overlay is None or support.is_for_task else "role",
        evidence_kinds=_evidence_kinds(passage, request.overlay),
        bridge_role=_bridge_role(passage, request.overlay),
        reasons_selected=_reasons(candidate, support),
        overlay_hits=[hit for part in candidate.score.contributions for hit in part.hits],
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


def _rejection(rejected: RejectedCandidate, *, is_ranked: bool) -> Rejection:
    candidate = rejected.candidate
    return Rejection.model_construct(
        chunk_id=candidate.chunk_id,
        reason=rejected.code,
        notes=rejected.note,
        lanes=list(candidate.lanes),
        final=rounded(candidate.score.final) if is_ranked else None,
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
        reasons.append(f"has {support.matched} of the task's {counted(support.words, 'word')}")
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
        reasons.append(f"reranked: score {candidate.contextual:.2f}, semantic {change:+.2f}")
    document = candidate.passage.document
    by = " by the date of its file" if document.inferred_at and not document.updated_at else ""
    reasons.append(f"{document.trust_tier} trust, {candidate.freshness}{by}")
    if hits := score.hits_of("metadata"):
        reasons.append(f"policy: {', '.join(hits)}")
    if hits := score.hits_of("vocabulary"):
        reasons.append(f"role vocabulary: {', '.join(hits)}")
    if mark := candidate.passage.mark:
        reasons.append(f"{mark.state.replace('_', ' ')} by {mark.marked_by}: {mark.reason}")
    if hits := score.hits_of("vagueness"):
        reasons.append(f"vague task: {', '.join(hit.removeprefix('vague:') for hit in hits)}")
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


def _caution(retrieval: Retrieval, supports: Sequence[Support], *, has_role: bool) -> str:
    """What the reader should know about the evidence of an answer; empty if it is sound."""
    if not supports:
        return ""
    task, vagueness = retrieval.evidence.task, retrieval.vagueness
    best = max(supports, key=lambda support: support.strength)
    if task == "off_topic":
        problem = "the corpus has nothing for this task, so these passages are guesses"
    elif task == "supported" and best.is_for_task:
        return ""
    elif vagueness and not vagueness.intent.has_topic:
        return (
            f"the task is vague: it asks {vagueness.intent.asked}, and names no topic, so the "
            "passages are those that fit this and the role best"
        )
    elif vagueness and vagueness.intent.intents:
        problem = (
            f"the task is vague, so treat the passages as hints: besides its topic it asks "
            f"{vagueness.intent.asked}, and the passages were chosen by this and by the role, too"
        )
    elif not best.is_for_task:
        problem = "no passage has what the task asks for"
        problem += "; they are here for the role" if has_role else ""
    else:
        problem = "thin evidence, so treat the passages as hints"
    closeness = "" if best.closeness is None else f" and a closeness of {best.closeness:.2f}"
    words = counted(best.words, "word")
    return f"{problem}: the best has {best.matched} of the task's {words}{closeness}"


def _missing_words(retrieval: Retrieval) -> str:
    """The task's words that no visible passage has; empty if they are only a small part of it."""
    words = retrieval.evidence.words
    missing = [
        position
        for position, frequency in enumerate(words.frequencies)
        if not frequency and position not in words.general
    ]
    if not missing or words.weight(missing) < HAS_WORDS * words.total:
        return ""
    content = retrieval.query.content_words
    named = ", ".join(content[position][0].shown for position in missing[:MAX_MISSING_WORDS])
    more = len(missing) - MAX_MISSING_WORDS
    return f"{named} and {more} more" if more > 0 else named


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
    candidate_sources: Collection[str],
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
        candidate_sources: the sources of all candidates. If there is only one, no answer could be
            more diverse.
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
        warnings.append(("STALE_DOMINANT", f"stale passages: {stale} of {considered}"))
    if forbidden_hits:
        named = sorted({hit.passage.document.source_id for hit in forbidden_hits})
        warnings.append(
            (
                "FORBIDDEN_SOURCE_HIT",
                f"{counted(len(forbidden_hits), 'passage')} of forbidden sources would have been "
                f"selected: {', '.join(named)}",
            )
        )
    if restricted := _restricted(codes):
        warnings.append(("ACTION_RESTRICTED", restricted))
    sources = {chunk.source_id for chunk in selected}
    has_others = len(candidate_sources) > 1
    if len(sources) == 1 and has_others and len(selected) >= LOW_DIVERSITY_FROM:
        warnings.append(("LOW_DIVERSITY", f"every passage comes from {sources.pop()}"))
    if conflicts:
        warnings.append(("CONFLICTING_EVIDENCE", _disagreements(conflicts)))
    if ignored := _ignored_claims(passages):
        warnings.append(("SUPERSEDE_IGNORED", ignored))
    if missing := _missing_kinds(selected, overlay):
        warnings.append(
            ("EVIDENCE_KIND_MISSING", f"no passage shows what the role requires: {missing}")
        )
    warnings += _lane_warnings(semantic)
    return [BundleWarning.model_construct(code=code, message=message) for code, message in warnings]


def _stale_replica(replica: ReplicaState | None, now: datetime) -> str:
    """How old a replica is that was not renewed in time; empty for any other corpus."""
    if replica is None or now < datetime.fromisoformat(replica.expires_at):
        return ""
    return (
        f"the replica of {replica.publisher} was published {age(replica.age_hours)} ago and was to "
        f"be renewed by {replica.expires_at}; run `rolebundle pull`"
    )


def _lane_warnings(semantic: SemanticReport) -> Iterator[tuple[WarningCode, str]]:
    if problem := semantic.degraded or semantic.substitute:
        yield "SEMANTIC_LANE_DEGRADED", problem
    if semantic.waiting:
        yield (
            "INDEX_STALE",
            f"{counted(semantic.waiting, 'chunk')} without a vector; run `rolebundle embed`",
        )
    if semantic.doubt:
        yield (
            "INDEX_STALE",
            f"exact search answers: {semantic.doubt}; run `rolebundle embed --optimize`",
        )


def _restricted(codes: Mapping[RejectionCode, int]) -> str:
    blocked, waiting = codes.get("taint_blocked", 0), codes.get("requires_approval", 0)
    parts = []
    if blocked:
        parts.append(f"not trusted enough for the action: {blocked}")
    if waiting:
        parts.append(f"usable for the action only with an approval: {waiting}")
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
        f"{document_id} claims to supersede {passage.document.document_id}, but may not"
        for passage in passages
        for document_id in passage.ignored_claims
    }
    return "; ".join(sorted(claims))


def _missing_kinds(selected: Sequence[SelectedChunk], overlay: Overlay | None) -> str:
    """The required evidence kinds that no passage shows. An empty answer has its own verdict."""
    if overlay is None or not selected:
        return ""
    shown = {kind for chunk in selected for kind in chunk.evidence_kinds or ()}
    kinds = dict.fromkeys(filter(str.strip, overlay.synthesis_policy.required_evidence_kinds))
    return one_line(", ".join(kind for kind in kinds if kind not in shown), _MAX_KINDS_CHARS)


def _is_role_specific(chunk: SelectedChunk) -> bool:
    kinds = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred", "vocab:")
    return any(hit.startswith(kinds) for hit in chunk.overlay_hits)
