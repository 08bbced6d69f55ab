"""Explain why a passage is in the answer to a request or not, and which changes would select it.

The request is answered as usual. Then the pure steps run again on the same pool with one change:
the passage is proposed and allowed, or it has a higher score, or the limit or the token budget is
larger, or the minimum score is lower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from rolebundle.contracts.document import DocumentMetadata, Passage, iso_utc
from rolebundle.contracts.terms import ORIGINS, RejectionCode
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
from rolebundle.policy.trust import Labels, Purpose
from rolebundle.retrieval.bundle import (
    overlay_ref,
    passage_mark,
    raw_scores_of,
    rounded,
    rounded_if_any,
    score_weights,
    scores_of,
)
from rolebundle.retrieval.candidate import (
    Candidate,
    LexicalHit,
    RejectedCandidate,
    Retrieval,
    Selection,
    SemanticHit,
)
from rolebundle.retrieval.filter import (
    age_days,
    as_valid,
    filter_candidates,
    first_rejection,
    freshness_of,
    is_for_other_roles,
    labels_of,
    matching_rules,
    rejections,
    rejects_other_roles,
    seen_rejection,
    with_metadata,
)
from rolebundle.retrieval.lanes import Lanes, first_depth, open_lanes
from rolebundle.retrieval.lexical import matching_words
from rolebundle.retrieval.lookup import IDS_AND_PATHS, ReferenceScope, resolve_reference
from rolebundle.retrieval.merge import merge
from rolebundle.retrieval.pipeline import run
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.rank import mark_factor, rank, ranking_order
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.select import estimated_tokens, is_answered_off_topic, select
from rolebundle.retrieval.where import Condition, unmet, values_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.verify import verify_passages

if TYPE_CHECKING:
    from rolebundle.retrieval.reranker import Reranker

MAX_RIVALS = 3
MAX_LIMIT = 1000
"""The largest limit that a request may have."""
MAX_NAMED_WORDS = 8
EPSILON = 1e-9

Hit = TypeVar("Hit", LexicalHit, SemanticHit)


@dataclass(frozen=True, slots=True)
class _Execution:
    """One request, what each step returned, and what is needed to run the steps again."""

    lanes: Lanes
    request: ResolvedRequest
    reranker: Reranker | None
    retrieval: Retrieval

    def was_proposed(self, passage: Passage) -> bool:
        pool = self.retrieval.pool
        return passage.rowid in pool.lexical or passage.rowid in pool.semantic

    def ranked_with(self, passages: Sequence[Passage]) -> list[Candidate]:
        """The ranking if a lane had proposed these passages and policy had allowed them.

        Nothing is sent to the reranking model. A passage that the model has not scored keeps the
        score of its lanes.
        """
        pool, request = self.retrieval.pool, self.request
        passages = [as_valid(passage, request) for passage in passages]
        missing = [passage for passage in passages if not self.was_proposed(passage)]
        lexical, semantic = self.lanes.measure(missing)
        lexical = {
            passage.rowid: lexical.get(passage.rowid, LexicalHit(passage.rowid, 0.0, 0.0))
            for passage in missing
        }
        pool = pool._replace(
            lexical={**pool.lexical, **_mark_proposed(lexical)},
            semantic={**pool.semantic, **_mark_proposed(semantic)},
            passages={**pool.passages, **{passage.rowid: passage for passage in passages}},
        )
        added = {passage.rowid for passage in passages}
        candidates = merge(pool, self.retrieval.weights)
        others = [other for other in candidates if other.passage.rowid not in added]
        allowed, _ = filter_candidates(others, request, self.retrieval.seen)
        allowed += [
            with_metadata(candidate, request)
            for candidate in candidates
            if candidate.passage.rowid in added
        ]
        return rank(
            allowed,
            request,
            self.retrieval.weights,
            has_vectors=self.lanes.index is not None,
            is_off_topic=is_answered_off_topic(self.retrieval.evidence, request),
            cosines=self.reranker.known if self.reranker else None,
        )


@dataclass(frozen=True, slots=True)
class _Placement:
    """The position of one candidate in a ranking, and the result of the selection for it.

    Attributes:
        own: the candidate.
        ranked: all candidates, in order.
        request: has the limits.
        selection: the selection from the ranked candidates.
        position: the candidate's position among the ranked, from 1.
        rank: its rank in the selection, from 1; ``None`` if it is rejected.
        code: the code of its rejection; ``None`` if it is selected.
        is_hypothetical: whether the candidate was not ranked when the request was answered.
    """

    own: Candidate
    ranked: Sequence[Candidate]
    request: ResolvedRequest
    selection: Selection
    position: int
    rank: int | None
    code: RejectionCode | None
    is_hypothetical: bool

    @classmethod
    def of(
        cls,
        chunk_id: str,
        ranked: Sequence[Candidate],
        request: ResolvedRequest,
        *,
        is_hypothetical: bool,
    ) -> _Placement:
        selection = select(ranked, request)
        positions = _positions(ranked)
        codes = {rejection.candidate.chunk_id: rejection.code for rejection in selection.rejected}
        position = positions[chunk_id]
        return cls(
            own=ranked[position - 1],
            ranked=ranked,
            request=request,
            selection=selection,
            position=position,
            rank=_positions(selection.selected).get(chunk_id),
            code=codes.get(chunk_id),
            is_hypothetical=is_hypothetical,
        )

    def is_selected_with(
        self, *, final: float | None = None, min_score: float | None = None
    ) -> bool:
        """Whether it would be selected with this final score, or with this minimum score."""
        own, request = self.own, self.request
        if final is not None:
            own = own.with_score(own.score._replace(final=final))
        if min_score is not None:
            request = request._replace(min_score=min_score)
        others = (candidate for candidate in self.ranked if candidate is not self.own)
        ranked = sorted([own, *others], key=ranking_order)
        return any(candidate is own for candidate in select(ranked, request).selected)

    def selected_up_to_own(
        self, limit: int | None, token_budget: int | None
    ) -> Sequence[Candidate]:
        """What would be selected from the ranking up to this candidate, under other limits.

        Empty if the candidate would not be selected. ``None``: no limit.
        """
        request = self.request._replace(limit=limit or self.position, token_budget=token_budget)
        selected = select(self.ranked[: self.position], request).selected
        return selected if selected and selected[-1] is self.own else ()


def explain(
    corpus: Corpus,
    request: ResolvedRequest,
    reference: str,
    provider: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
    scope: ReferenceScope = IDS_AND_PATHS,
) -> Why:
    """Explain what happened to a passage in the answer to a request.

    Args:
        corpus: an open corpus; it is only read.
        request: the resolved request.
        reference: a chunk id, a document id, a path, or ``path:start-end``. If it names several
            passages, the one that ranks best is explained.
        provider: embeds the query; ``None`` for the lexical lane alone.
        reranker: scores the best candidates again; ``None`` for no reranking.
        scope: what the reference may name.

    Raises:
        UsageError: nothing has this reference.
        CorpusCorrupt, CorpusBusy, StorageError: the corpus cannot be read.
    """
    with corpus.reading():
        kind, passages, _ = resolve_reference(corpus, reference, scope)
        query = build_query(request.task, request.overlay)
        lanes = open_lanes(corpus, query, provider)
        retrieval = run(lanes, request, reranker)
        selected_count = len(retrieval.selection.selected)
        execution = _Execution(lanes, request, reranker, retrieval)
        passage = _best_placed(execution, passages)
        unmet_conditions = unmet(request.where, passage)
        if unmet_conditions:
            request = _without(request, unmet_conditions)
            retrieval = run(lanes, request, reranker)
            execution = _Execution(lanes, request, reranker, retrieval)
            passage = _best_placed(execution, passages)
        verify_passages(corpus, [passage.rowid])
        passage = as_valid(passage, request)
        placement = _placement(execution, passage)
        if unmet_conditions:
            placement = replace(placement, is_hypothetical=True)
        words = _words_trace(execution, passage)
        lane_traces = _lane_traces(execution, passage)
        changes = [
            *_where_changes(passage, unmet_conditions),
            *_lane_changes(execution, passage, lane_traces, words),
            *_policy_changes(passage, request),
            *_seen_changes(passage, retrieval),
            *_selection_changes(execution, placement),
        ]
    document = passage.document
    outcome, step, code, notes = _outcome(execution, passage)
    if unmet_conditions:
        wanted = ", ".join(condition.wanted for condition in unmet_conditions)
        outcome, step, code = "not_proposed", "where", None
        notes = f"its document does not match where: {wanted}"
    return Why(
        reference=reference,
        kind=kind,
        passages=len(passages),
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
        rank=None if placement.is_hypothetical else placement.rank,
        step=step,
        code=code,
        notes=notes,
        words=words,
        lanes=lane_traces,
        pool=PoolTrace(
            candidates=len(retrieval.candidates),
            depth=retrieval.pool.depth,
            refills=retrieval.pool.refills,
        ),
        filter=_filter_trace(passage, placement, retrieval),
        score=_score_trace(execution, placement),
        limit=request.limit,
        min_score=request.min_score,
        selected_count=selected_count,
        lost_to=_rivals(placement),
        needs=changes,
        fusion=request.fusion,
        request=request.echo,
        overlay=overlay_ref(request),
        corpus=retrieval.corpus,
        generated_at=iso_utc(request.now),
    )


def _positions(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Chunk id → position from 1."""
    return {candidate.chunk_id: n for n, candidate in enumerate(candidates, start=1)}


def _mark_proposed(hits: Mapping[int, Hit]) -> dict[int, Hit]:
    return {rowid: hit._replace(proposed=True) for rowid, hit in hits.items()}


# -- the passage and its position ----------------------------------------------------------------


def _best_placed(execution: _Execution, passages: Sequence[Passage]) -> Passage:
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


def _placement(execution: _Execution, passage: Passage) -> _Placement:
    """The position of the passage; if it was not ranked, the position that it would have."""
    ranked, is_hypothetical = execution.retrieval.ranked, False
    if all(candidate.chunk_id != passage.chunk_id for candidate in ranked):
        ranked, is_hypothetical = execution.ranked_with([passage]), True
    return _Placement.of(
        passage.chunk_id, ranked, execution.request, is_hypothetical=is_hypothetical
    )


def _outcome(
    execution: _Execution, passage: Passage
) -> tuple[Outcome, Step | None, RejectionCode | None, str]:
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


def _words_trace(execution: _Execution, passage: Passage) -> WordsTrace:
    query, corpus = execution.retrieval.query, execution.lanes.corpus
    terms = (*query.task_terms, *query.expansion_terms)
    matched = matching_words(corpus, [(term,) for term in terms], [passage.rowid])[passage.rowid]
    of_task = len(query.task_terms)
    return WordsTrace(
        task_found=[terms[n].shown for n in range(of_task) if n in matched],
        task_missing=[terms[n].shown for n in range(of_task) if n not in matched],
        role_found=[terms[n].shown for n in range(of_task, len(terms)) if n in matched],
    )


def _lane_traces(execution: _Execution, passage: Passage) -> list[LaneTrace]:
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
        rank = 1 + sum((-other, row) < own for row, other in proposed.items())
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


def _filter_trace(passage: Passage, placement: _Placement, retrieval: Retrieval) -> FilterTrace:
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


def _score_trace(execution: _Execution, placement: _Placement) -> ScoreTrace:
    own, retrieval = placement.own, execution.retrieval
    evidence = execution.lanes.with_support(retrieval.evidence, [own.passage])
    return ScoreTrace(
        scores=scores_of(own),
        raw=raw_scores_of(own, evidence.support(own.passage.rowid)),
        weights=score_weights(retrieval.weights),
        vocabulary=list(own.score.hits_of("vocabulary")),
        mark_factor=mark_factor(own.passage.mark.state) if own.passage.mark else None,
        place=placement.position,
        of=len(placement.ranked),
        rank=placement.rank,
        code=placement.code,
        supposed=placement.is_hypothetical,
        rerank_note=_rerank_note(execution, placement),
    )


def _rerank_note(execution: _Execution, placement: _Placement) -> str:
    """Why the candidate was not reranked; empty if it was, or reranking was not requested."""
    report = execution.retrieval.rerank
    if report is None or placement.own.contextual is not None:
        return ""
    if report.warnings:
        return "; ".join(message for _, message in report.warnings)
    if placement.is_hypothetical:
        return (
            "not scored in context: only what policy allows, and of that the best by the lanes, "
            "is sent to the model"
        )
    return "not scored in context: it is not among the best by the lanes"


def _rivals(placement: _Placement) -> list[Rival]:
    own, selected = placement.own, placement.selection.selected
    winners: Sequence[Candidate] = ()
    if placement.code == "duplicate":
        winners = [other for other in placement.ranked if other.chunk_id == own.duplicate_of]
    elif placement.code == "conflict_downrank":
        newer = {document.document_id for document in own.passage.superseded_by}
        newer |= {
            passage.document.document_id
            for conflict in placement.selection.conflicts
            if conflict.outdated is own.passage
            for passage in (conflict.first, conflict.second)
            if passage is not own.passage
        }
        replacements = (
            other for other in placement.ranked if other.passage.document.document_id in newer
        )
        winners = list(islice(replacements, MAX_RIVALS))
    elif placement.code is not None:
        before = [other for other in selected if ranking_order(other) < ranking_order(own)]
        winners = before[-MAX_RIVALS:]
    ranks = _positions(selected)
    return [
        Rival(
            rank=ranks.get(winner.chunk_id),
            chunk_id=winner.chunk_id,
            locator=winner.passage.locator,
            final=rounded(winner.score.final),
        )
        for winner in winners
    ]


# -- what would have to change for its document to be searched, and for a lane to propose it -----


def _without(request: ResolvedRequest, conditions: Sequence[Condition]) -> ResolvedRequest:
    """The request without these conditions of its ``where``."""
    assert request.where is not None
    keys = {condition.key: None for condition in conditions}
    return request._replace(where=request.where.model_copy(update=keys))


def _where_changes(passage: Passage, conditions: Sequence[Condition]) -> list[str]:
    return [
        f"a where without {condition.key}, or one that its document matches "
        f"({condition.wanted}, and it has "
        f"{_listed(values_of(passage, condition.field), 'and') or 'none'})"
        for condition in conditions
    ]


def _lane_changes(
    execution: _Execution, passage: Passage, lanes: Sequence[LaneTrace], words: WordsTrace
) -> list[str]:
    if execution.was_proposed(passage):
        return []
    request = execution.request
    is_allowed = first_rejection(passage, request) is None
    if not is_allowed and execution.retrieval.pool.refills:
        depth = first_depth(len(request.seen))
        return [
            f"a lane would have to propose it: it is not among the first {depth} of any, and the "
            "deeper search leaves its document out because of policy"
        ]
    ways = _either(_lane_change(lane, words) for lane in lanes if lane.ran)
    return [f"a lane would have to propose it: {ways or 'the task has no words to search for'}"]


def _lane_change(lane: LaneTrace, words: WordsTrace) -> str:
    measure = "cosine" if lane.by == "meaning" else "BM25"
    whose = {"task_words": " for the task's words", "role_words": " for the role's words"}
    label = f"{measure}{whose.get(lane.by, '')}"
    if lane.score is None:
        return "a vector, which `rolebundle embed` makes: it has none yet"
    lacking = ""
    if lane.by == "task_words" and not words.task_found:
        lacking = f"none of {_listed(words.task_missing, 'and')} occurs in it"
    if lane.least is not None and lane.score > lane.least:
        return (
            f"an exhaustive search: its {label} {lane.score:.3f} is above {lane.least:.3f}, the "
            "lowest proposed, and the approximate search missed it"
        )
    if lane.least is not None and lane.pool >= lane.depth:
        least, has = distinct_decimals(lane.least, lane.score)
        return f"a {label} above {least} (it has {has}{f': {lacking}' if lacking else ''})"
    if lane.by == "role_words":
        return "one of the words that the role adds to the task: none occurs in it"
    return f"one of the task's words: {lacking}" if lacking else ""


# -- what would have to change for policy to allow it --------------------------------------------


def _policy_changes(passage: Passage, request: ResolvedRequest) -> list[str]:
    """One sentence for everything in the policy that rejects the passage."""
    changes = [*_source_changes(passage, request), *_role_changes(passage, request)]
    codes = [code for code, _ in rejections(passage, request)]
    if "not_yet_valid" in codes or "expired" in codes:
        changes.append(_validity_change(passage.document, request))
    for code in codes:
        if code in ("taint_blocked", "requires_approval"):
            changes.append(_purpose_change(passage, request.purpose))
        elif code == "stale":
            changes.append(_age_change(passage, request))
        elif code == "rejected_by_mark":
            changes.append(
                f"the mark would have to be removed: rolebundle mark remove {passage.chunk_id}, or "
                f"{passage.document.document_id} if the document is marked"
            )
    return changes


def _source_changes(passage: Passage, request: ResolvedRequest) -> list[str]:
    if request.overlay is None:
        return []
    document, policy = passage.document, request.overlay.source_policy
    changes = []
    forbidding = [rule.condition for rule in matching_rules(policy.forbidden_sources, passage)]
    if forbidding:
        changes.append(
            f"the overlay of {request.role_id} would have to drop {_listed(forbidding, 'and')} "
            "from its forbidden_sources"
        )
    if policy.allowed_sources and not any(matching_rules(policy.allowed_sources, passage)):
        changes.append(
            f"the overlay of {request.role_id} would have to allow source {document.source_id}: "
            "its allowed_sources do not name it"
        )
    return changes


def _role_changes(passage: Passage, request: ResolvedRequest) -> list[str]:
    role_id = request.role_id
    changes = []
    if role_id in passage.excluded_roles:
        changes.append(f"its excluded_roles would have to leave out {role_id}")
    if rejects_other_roles(request) and is_for_other_roles(passage, role_id):
        changes.append(
            f"its applicable_roles would have to include {role_id}, or the overlay of {role_id} "
            "would have to have a role_mismatch_penalty below 1"
        )
    return changes


def _purpose_change(passage: Passage, purpose: Purpose) -> str:
    labels, action = labels_of(passage), purpose.action
    ways = []
    if purpose.ruling(labels) == "requires_approval":
        ways.append(f"an approval of {action} with a person's name")
    actions = Purpose(table=purpose.table).allowed_actions(labels)
    if actions:
        ways.append(f"another action than {action}: {_listed(actions, 'or')}")

    def is_allowed(changed: Labels) -> bool:
        return purpose.ruling(changed) == "allowed"

    tier = "a trust tier above untrusted"
    plain = labels._replace(is_untrusted=False)
    # Nobody gives a document the origin of facts.
    others = (other for other in ORIGINS if other != "agent" or labels.origin == "agent")
    origins = [other for other in others if is_allowed(plain._replace(origin=other))]
    if labels.origin in origins:
        ways.append(tier)
    elif origins:
        also = f" and {tier}" if labels.is_untrusted else ""
        ways.append(f"an origin of {_listed(origins, 'or')} (it is {labels.origin}){also}")
    if is_allowed(labels._replace(is_flagged=False, is_personal=False)):
        ways.append(f"a text without {_listed(passage.flags, 'and')}, which the scan found")
    if is_allowed(labels._replace(sensitivity="public")):
        ways.append(f"another sensitivity (it is {labels.sensitivity})")
    return _either(ways) or f"a trust policy under which {labels.origin} documents may be used"


def _validity_change(document: DocumentMetadata, request: ResolvedRequest) -> str:
    starts = [date for date in (document.valid_from, document.updated_at) if date is not None]
    bounds = [f"from {max(starts)} on" if starts else ""]
    bounds += [f"until {document.valid_until}" if document.valid_until else ""]
    return (
        f"an as_of {' and '.join(filter(None, bounds))}, or other dates of its document (the "
        f"answer is as at {request.valid_at})"
    )


def _age_change(passage: Passage, request: ResolvedRequest) -> str:
    age, max_age = age_days(passage.document, request.now), request.max_age_days
    assert age is not None
    # Up to the next whole second: times are stored without fractions.
    oldest = (request.now.astimezone(UTC) - timedelta(days=max_age)).replace(microsecond=0)
    return (
        f"an updated_at of {iso_utc(oldest + timedelta(seconds=1))} or later (it has "
        f"{_dated(passage.document)}), or a freshness_max_age_days of at least "
        f"{math.ceil(age)} (the overlay has {max_age:g})"
    )


def _dated(document: DocumentMetadata) -> str:
    return document.updated_at or f"none, and its file is of {document.inferred_at}"


def _seen_changes(passage: Passage, retrieval: Retrieval) -> list[str]:
    if seen_rejection(passage, retrieval.seen) is None:
        return []
    chunk_ids = retrieval.seen[passage.content_hash]
    if passage.chunk_id in chunk_ids:
        return [f"a `seen` without {_listed(chunk_ids, 'and')}"]
    return [f"a different text: it has the same text as {chunk_ids[0]}, which is in `seen`"]


# -- what would have to change for it to be selected ---------------------------------------------


def _selection_changes(execution: _Execution, placement: _Placement) -> list[str]:
    own = placement.own
    changes = []
    if own.is_superseded:
        newer = ", ".join(document.document_id for document in own.passage.superseded_by)
        changes.append(f"no newer version of its document in the corpus: {newer} replaces it")
        current = own.passage._replace(superseded_by=())
        ranked = execution.ranked_with([current])
        placement = _Placement.of(own.chunk_id, ranked, placement.request, is_hypothetical=True)
    if placement.own.is_off_topic:
        changes.append("allow_weak in the request: the corpus has nothing for the task")
        ranked = [other._replace(is_off_topic=False) for other in placement.ranked]
        placement = _Placement.of(own.chunk_id, ranked, placement.request, is_hypothetical=True)
    if placement.code == "duplicate":
        original = placement.own.duplicate_of
        changes.append(f"a different text: it has the same text as {original}, which ranks higher")
    elif placement.code == "conflict_downrank":
        changes.append("an overlay with prefer_newest false: a newer passage says otherwise")
    elif placement.code == "low_score":
        changes += _min_score_changes(placement)
    elif placement.code == "budget_cut":
        changes += filter(None, [_budget_change(execution, placement)])
    return changes


def _min_score_changes(placement: _Placement) -> list[str]:
    score, floor = placement.own.score.final, placement.request.min_score
    least, has = distinct_decimals(floor, score)
    change = f"a score of at least {least} ({_has(placement)} {has})"
    lower = math.floor(score * 10_000) / 10_000
    if placement.is_selected_with(min_score=lower):
        change += f", or an overlay with a min_score of at most {lower:g}"
    if placement.is_selected_with(final=floor + EPSILON):
        return [change]
    further = _score_change(placement)
    if further and placement.selection.selected[-1].score.final >= floor:
        # A score above that of the last selected candidate is also above the minimum score.
        return [further]
    return [change, further] if further else [change]


def _score_change(placement: _Placement) -> str:
    """The final score that would be enough; empty if no score is."""
    selected = placement.selection.selected
    if not selected:
        return ""
    last, final = selected[-1].score.final, placement.own.score.final
    if final > last or not placement.is_selected_with(final=last + EPSILON):
        return ""
    above, has = distinct_decimals(last, final)
    # "Above" and not "at least", because the chunk id decides between equal scores.
    return f"a final score above {above} ({_has(placement)} {has})"


def _budget_change(execution: _Execution, placement: _Placement) -> str:
    """Changes against the limit and the token budget: a score, one of the two, or both."""
    limit, budget = placement.request.limit, placement.request.token_budget
    ways = [_score_change(placement)]
    if budget is not None and (selected := placement.selected_up_to_own(limit, None)):
        ways.append(_tokens_change(placement, selected))
    elif selected := placement.selected_up_to_own(None, budget):
        ways.append(_limit_change(placement, len(selected)))
    else:
        selected = placement.selected_up_to_own(None, None)
        if by_limit := _limit_change(placement, len(selected)):
            ways.append(f"{by_limit} together with {_tokens_change(placement, selected)}")
    return _either(ways)


def _limit_change(placement: _Placement, limit: int) -> str:
    if limit > MAX_LIMIT:
        return ""
    return f"a limit of at least {limit} (it was {placement.request.limit})"


def _tokens_change(placement: _Placement, selected: Iterable[Candidate]) -> str:
    tokens = sum(estimated_tokens(candidate.passage.content) for candidate in selected)
    return f"a token_budget of at least {tokens} (it was {placement.request.token_budget})"


# -- wording -------------------------------------------------------------------------------------


def distinct_decimals(threshold: float, score: float) -> tuple[str, str]:
    """Format two numbers with as many decimals as needed to differ, at least three."""
    for digits in range(3, 10):
        texts = f"{threshold:.{digits}f}", f"{score:.{digits}f}"
        if texts[0] != texts[1]:
            return texts
    return f"{threshold:.3f}", "the same"


def _has(placement: _Placement) -> str:
    return "it would have" if placement.is_hypothetical else "it has"


def _either(ways: Iterable[str]) -> str:
    return ", or ".join(way for way in ways if way)


def _listed(words: Sequence[str], conjunction: str) -> str:
    quoted = [f"'{word}'" for word in words[:MAX_NAMED_WORDS]]
    if len(words) > MAX_NAMED_WORDS:
        return f"{', '.join(quoted)} {conjunction} {len(words) - MAX_NAMED_WORDS} more"
    return f" {conjunction} ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
