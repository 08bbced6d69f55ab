"""Explain why a passage is in the answer to a request or not: its row of every step.

The request is answered as usual. If the passage was not ranked, the pure steps run again on the
same pool as if it had been proposed and allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rolebundle.contracts.document import REMEMBERED_KIND, Passage, iso_utc
from rolebundle.contracts.terms import RejectionCode
from rolebundle.contracts.why import (
    FilterTrace,
    FoundBy,
    LaneTrace,
    Outcome,
    PoolTrace,
    Rival,
    ScoreTrace,
    Step,
    Why,
    WordsTrace,
)
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.retrieval.answer.selected_chunk import (
    passage_mark,
    raw_scores_of,
    rounded,
    rounded_if_any,
    score_weights,
    scores_of,
)
from rolebundle.retrieval.bundle import overlay_ref
from rolebundle.retrieval.candidate import Candidate, LexicalHit, RejectedCandidate
from rolebundle.retrieval.explanation.placement import Execution, Placement, positions
from rolebundle.retrieval.filter import (
    as_valid,
    first_rejection,
    freshness_of,
    seen_rejection,
)
from rolebundle.retrieval.lanes import Lanes, open_lanes
from rolebundle.retrieval.lexical import matching_words
from rolebundle.retrieval.lookups.lookup import Named, ReferenceScope, resolve_reference
from rolebundle.retrieval.outcome import Retrieval
from rolebundle.retrieval.pipeline import of_facts, run
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.rank import mark_factor, ranking_order
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.where import Condition, unmet
from rolebundle.storage.connection import Corpus
from rolebundle.storage.verify import verify_passages

if TYPE_CHECKING:
    from rolebundle.retrieval.rerank import Reranker

MAX_RIVALS = 3


def explain(
    corpus: Corpus,
    request: ResolvedRequest,
    reference: str,
    scope: ReferenceScope,
    provider: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
) -> Why:
    """Explain what happened to a passage in the answer to a request.

    Args:
        corpus: an open corpus; it is only read.
        request: the resolved request.
        reference: a chunk id, a document id, a path, or ``path:start-end``. If it names several
            passages, the one that ranks best is explained.
        scope: what the reference may name.
        provider: embeds the query; ``None`` for the lexical lane alone.
        reranker: scores the best candidates again; ``None`` for no reranking.

    Raises:
        UsageError: nothing has this reference.
        CorpusCorrupt, CorpusBusy, StorageError: the corpus cannot be read.
    """
    with corpus.reading():
        named = resolve_reference(corpus, reference, scope)
        query = build_query(request.task, request.overlay, request.also)
        lanes = open_lanes(corpus, query, provider)
        is_fact = named.passages[0].document.source_kind == REMEMBERED_KIND
        execution, before = _execute(lanes, request, reranker, is_fact=is_fact)
        selected_count = before + len(execution.retrieval.selection.selected)
        passage = _best_placed(execution, named.passages)
        unmet_conditions = unmet(request.where, passage)
        if unmet_conditions:
            # What would become of the passage without them.
            request = _without(request, unmet_conditions)
            execution, before = _execute(lanes, request, reranker, is_fact=is_fact)
            passage = _best_placed(execution, named.passages)
        verify_passages(corpus, [passage.rowid])
        why = _why(
            execution,
            as_valid(passage, execution.request),
            unmet_conditions,
            reference,
            named,
            selected_count,
            before,
        )
    if scope.may_read is None or scope.may_read(passage):
        return why
    # The reason of a mark can tell what the passage says.
    return why.model_copy(update={"mark": None})


def _why(
    execution: Execution,
    passage: Passage,
    unmet_conditions: Sequence[Condition],
    reference: str,
    named: Named,
    selected_count: int,
    before: int,
) -> Why:
    """The explanation of one passage, by an execution without the conditions that it does not meet.

    Args:
        execution: the execution.
        passage: the passage that ranks best of those named.
        unmet_conditions: of the request's ``where``.
        reference: what was asked for.
        named: what that names.
        selected_count: how many passages the request selects.
        before: how many of them come before those that the execution selects.
    """
    request, retrieval = execution.request, execution.retrieval
    document = passage.document
    placement = _placement(execution, passage)
    if unmet_conditions:
        placement = replace(placement, is_hypothetical=True)
    score = _score_trace(execution, placement, before)
    outcome, step, code, notes = _outcome(execution, passage, unmet_conditions)
    return Why(
        reference=reference,
        kind=named.kind,
        passages=len(named.passages),
        role_id=request.role_id,
        task=request.task,
        chunk_id=passage.chunk_id,
        document_id=document.document_id,
        source_id=document.source_id,
        title=document.title,
        locator=passage.locator,
        anchor=passage.anchor or None,
        flags=list(passage.flags) or None,
        mark=passage_mark(passage),
        ignored_claims=list(passage.ignored_claims) or None,
        refused_claims=list(document.refused_claims) or None,
        outcome=outcome,
        rank=None if placement.is_hypothetical else score.rank,
        step=step,
        code=code,
        notes=notes,
        words=_words_trace(execution, passage),
        lanes=_lane_traces(execution, passage),
        pool=PoolTrace(
            candidates=len(retrieval.candidates),
            depth=retrieval.pool.depth,
            refills=retrieval.pool.refills,
        ),
        filter=_filter_trace(passage, placement, retrieval),
        score=score,
        limit=request.limit,
        min_score=request.min_score,
        selected_count=selected_count,
        lost_to=_rivals(placement),
        fusion=request.fusion,
        request=request.echo,
        overlay=overlay_ref(request),
        corpus=retrieval.corpus,
        generated_at=iso_utc(request.now),
    )


# -- the passage and its position ----------------------------------------------------------------


def _execute(
    lanes: Lanes, request: ResolvedRequest, reranker: Reranker | None, *, is_fact: bool
) -> tuple[Execution, int]:
    """The execution that a passage takes part in, and how many passages it comes after."""
    documents = run(lanes, request, reranker)
    if not is_fact or documents.facts is None:
        return Execution(lanes, request, reranker, documents), 0
    lanes, request = replace(lanes, facts=True), of_facts(request, documents)
    before = len(documents.selection.selected)
    return Execution(lanes, request, None, documents.facts), before


def _best_placed(execution: Execution, passages: Sequence[Passage]) -> Passage:
    """The passage that ranks best: selected, else ranked, else proposed, else any of them.

    Passages that were not ranked are compared by the rank that they would have.
    """
    named = {passage.chunk_id: passage for passage in passages}
    retrieval = execution.retrieval
    for candidate in (*retrieval.selection.selected, *retrieval.ranked):
        if candidate.chunk_id in named:
            return candidate.passage
    if len(passages) == 1:
        return passages[0]
    proposed = [passage for passage in passages if execution.was_proposed(passage)] or passages
    ranked = execution.ranked_with(proposed)
    return next(named[candidate.chunk_id] for candidate in ranked if candidate.chunk_id in named)


def _placement(execution: Execution, passage: Passage) -> Placement:
    """The position of the passage; if it was not ranked, the position that it would have."""
    ranked, is_hypothetical = execution.retrieval.ranked, False
    if all(candidate.chunk_id != passage.chunk_id for candidate in ranked):
        ranked, is_hypothetical = execution.ranked_with([passage]), True
    return Placement.of(
        passage.chunk_id,
        ranked,
        execution.request,
        execution.retrieval.withheld,
        is_hypothetical=is_hypothetical,
    )


def _outcome(
    execution: Execution, passage: Passage, unmet_conditions: Sequence[Condition]
) -> tuple[Outcome, Step | None, RejectionCode | None, str]:
    if unmet_conditions:
        wanted = ", ".join(condition.wanted for condition in unmet_conditions)
        return "not_proposed", "where", None, f"its document does not match where: {wanted}"
    if not execution.was_proposed(passage):
        return "not_proposed", "lanes", None, "no lane proposed it"
    steps: list[tuple[Step, Sequence[RejectedCandidate]]] = [
        ("filter", execution.retrieval.rejected),
        ("cut", execution.retrieval.selection.rejected),
    ]
    for step, rejected in steps:
        for rejection in rejected:
            if rejection.candidate.chunk_id == passage.chunk_id:
                return "rejected", step, rejection.code, rejection.note
    return "selected", None, None, ""


# -- traces --------------------------------------------------------------------------------------


def _words_trace(execution: Execution, passage: Passage) -> WordsTrace:
    query, corpus = execution.retrieval.query, execution.lanes.corpus
    terms = (*query.task_terms, *query.expansion_terms)
    matched = matching_words(corpus, [(term,) for term in terms], [passage.rowid])[passage.rowid]
    of_task = len(query.task_terms)
    return WordsTrace(
        task_found=[terms[n].label for n in range(of_task) if n in matched],
        task_missing=[terms[n].label for n in range(of_task) if n not in matched],
        role_found=[terms[n].label for n in range(of_task, len(terms)) if n in matched],
    )


def _lane_traces(execution: Execution, passage: Passage) -> list[LaneTrace]:
    pool, query, lanes = execution.retrieval.pool, execution.retrieval.query, execution.lanes
    rowid = passage.rowid
    lexical, semantic = pool.lexical, pool.semantic
    if not execution.was_proposed(passage):
        lexical, semantic = lanes.measure([passage])
    words = lexical.get(rowid, LexicalHit(rowid, 0.0, 0.0))
    cosine = semantic[rowid].cosine if rowid in semantic else None
    cosines = {row: hit.cosine for row, hit in pool.semantic.items() if hit.proposed}
    no_task = "" if query.task_terms else "the task has no words"
    no_role = "" if query.expansion_terms else "no role adds words to this task"
    no_index = "" if lanes.index is not None else lanes.degraded or "only words were asked for"
    by_task, by_role = pool.by_task, pool.by_role
    depth = pool.depth
    return [
        _lane_trace("task_words", by_task, None if no_task else words.bm25, rowid, depth, no_task),
        _lane_trace(
            "role_words", by_role, None if no_role else words.bm25_expansion, rowid, depth, no_role
        ),
        _lane_trace("meaning", cosines, cosine, rowid, depth, no_index),
    ]


def _lane_trace(
    by: FoundBy,
    proposed: Mapping[int, float],
    score: float | None,
    rowid: int,
    depth: int,
    note: str,
) -> LaneTrace:
    rank = None
    if rowid in proposed:
        # Ties by rowid, as in the index.
        own = (-proposed[rowid], rowid)
        rank = 1 + sum((-score, row) < own for row, score in proposed.items())
    return LaneTrace(
        lane="semantic" if by == "meaning" else "lexical",
        by=by,
        ran=not note,
        note=note,
        proposed=rank is not None,
        rank=rank,
        score=rounded_if_any(score),
        pool=len(proposed),
        least=rounded_if_any(min(proposed.values(), default=None)),
        depth=depth,
    )


def _filter_trace(passage: Passage, placement: Placement, retrieval: Retrieval) -> FilterTrace:
    rejection = first_rejection(passage, placement.request) or seen_rejection(
        passage, retrieval.seen
    )
    return FilterTrace(
        allowed=rejection is None,
        code=rejection[0] if rejection else None,
        notes=rejection[1] if rejection else "",
        factors=list(placement.own.score.hits_of("metadata")),
        freshness=freshness_of(passage, placement.request),
        inferred_at=passage.document.inferred_at,
    )


def _score_trace(execution: Execution, placement: Placement, before: int) -> ScoreTrace:
    own, retrieval = placement.own, execution.retrieval
    mark = own.passage.mark
    evidence = execution.lanes.with_support(retrieval.evidence, [own.passage])
    return ScoreTrace(
        scores=scores_of(own),
        raw=raw_scores_of(own, evidence.support(own.passage.rowid)),
        weights=score_weights(retrieval.weights),
        vocabulary=list(own.score.hits_of("vocabulary")),
        mark_factor=mark_factor(mark.ruling) if mark and mark.ruling else None,
        lift="; ".join(own.score.hits_of("lift")),
        place=placement.position,
        of=len(placement.ranked),
        rank=before + placement.rank if placement.rank else None,
        code=placement.code,
        to_beat=_score_to_beat(placement),
        supposed=placement.is_hypothetical,
    )


def _score_to_beat(placement: Placement) -> float | None:
    """The final score that the passage lacks; ``None`` if it lacks none."""
    if placement.code not in ("low_score", "budget_cut"):
        return None
    selected, request = placement.selection.selected, placement.request
    is_full = placement.code == "budget_cut" or len(selected) >= request.limit
    last = selected[-1].score.final if selected and is_full else 0.0
    return rounded(max(last, request.min_score))


def _rivals(placement: Placement) -> list[Rival]:
    own, selected = placement.own, placement.selection.selected
    winners: Sequence[Candidate] = ()
    if placement.code == "duplicate":
        winners = [
            candidate for candidate in placement.ranked if candidate.chunk_id == own.duplicate_of
        ]
    elif placement.code == "conflict_downrank":
        newer = {document.document_id for document in own.passage.superseded_by}
        replacements = (
            candidate
            for candidate in placement.ranked
            if candidate.passage.document.document_id in newer
        )
        winners = list(islice(replacements, MAX_RIVALS))
    elif placement.code is not None:
        before = [
            candidate for candidate in selected if ranking_order(candidate) < ranking_order(own)
        ]
        winners = before[-MAX_RIVALS:]
    ranks = positions(selected)
    return [
        Rival(
            rank=ranks.get(winner.chunk_id),
            chunk_id=winner.chunk_id,
            locator=winner.passage.locator,
            final=rounded(winner.score.final),
        )
        for winner in winners
    ]


def _without(request: ResolvedRequest, conditions: Sequence[Condition]) -> ResolvedRequest:
    """The request without these conditions of its ``where``."""
    assert request.where is not None
    keys = {condition.key: None for condition in conditions}
    return request._replace(where=request.where.model_copy(update=keys))
