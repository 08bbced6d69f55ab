"""One passage, followed through every step of the pipeline: what happened to it, and why.

The steps are the pipeline's own, run as for an answer; nothing is decided here a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import OverlayRef
from rolebundle.contracts.candidate import LexicalHit, Ranked, Rejected, SemanticHit
from rolebundle.contracts.document import Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import RejectionCode
from rolebundle.contracts.why import (
    FilterTrace,
    FoundBy,
    LaneTrace,
    Outcome,
    PoolTrace,
    Rival,
    ScoreTrace,
    ScoreWeights,
    Step,
    Why,
    WordsTrace,
)
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.retrieval import lexical, semantic
from rolebundle.retrieval.assemble import cut, maybe_rounded, raw_scores_of, rounded, scores_of
from rolebundle.retrieval.filter import freshness_of, rejection
from rolebundle.retrieval.lookup import referenced
from rolebundle.retrieval.needs import cut_needs, lane_needs, policy_needs, rerank_note
from rolebundle.retrieval.pipeline import Run, first_depth, gather, run
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.rerank import lane_weights, order
from rolebundle.retrieval.suppose import LetIn, Standing, standing, suppose, supposed_standing
from rolebundle.storage.connection import Corpus

if TYPE_CHECKING:
    from rolebundle.retrieval.reranker import Reranker

_RIVALS = 3


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question with what the pipeline made of it."""

    corpus: Corpus
    request: ResolvedRequest
    overlay: Overlay | None
    now: datetime
    run: Run


@dataclass(frozen=True, slots=True)
class _Story:
    """What is known of the passage when all has been looked at."""

    passage: Passage
    proposed: bool
    hits: tuple[LexicalHit, SemanticHit | None]
    stands: Standing
    words: WordsTrace
    lanes: list[LaneTrace]
    needs: list[str]


def explain(
    corpus: Corpus,
    request: ResolvedRequest,
    reference: str,
    provider: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
) -> Why:
    """Follow what a reference names through the answer to a request.

    Args:
        corpus: an open corpus; it is only read.
        request: the resolved request.
        reference: a chunk id; or a document id or ``path:start-end``, whose best placed passage
            is followed.
        provider: embeds the query; ``None`` for the lexical lane alone.
        reranker: scores the best candidates again; ``None`` for no reranking.

    Raises:
        UsageError: there is no such thing.
        CorpusCorrupt, CorpusBusy, StorageError: the corpus cannot be read.
    """
    with corpus.reading():
        kind, passages, _ = referenced(corpus, reference)
        done = run(corpus, request, provider, reranker)
        asked = _Asked(corpus, request, request.overlay, request.now, done)
        story = _story(asked, _best_placed(asked, passages))
    passage, document = story.passage, story.passage.document
    outcome, step, code, notes = _fate(done, story)
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
        outcome=outcome,
        rank=None if story.stands.supposed else story.stands.rank,
        step=step,
        code=code,
        notes=notes,
        words=story.words,
        lanes=story.lanes,
        pool=PoolTrace(
            candidates=len(done.pool.candidates), depth=done.pool.depth, refills=done.pool.refills
        ),
        filter=_filter_trace(asked, story),
        score=_score_trace(done, story.stands),
        limit=done.limit,
        min_score=done.policy.min_score,
        selected_count=len(done.made.selected),
        lost_to=_lost_to(done, story.stands),
        needs=story.needs,
        fusion=done.fusion,
        request=request.echo,
        overlay=(
            OverlayRef(role_id=request.role_id, digest=request.overlay_digest)
            if request.overlay
            else None
        ),
        corpus=done.state,
        generated_at=iso_utc(request.now),
    )


def _story(asked: _Asked, passage: Passage) -> _Story:
    run_, budget = asked.run, asked.request.token_budget
    proposed = _was_proposed(run_, passage)
    hits = _true_hits(asked, [passage])[passage.rowid]
    words = _words(asked, passage)
    lanes = _lanes(run_, passage.rowid, *hits)
    needs = [] if proposed else [_lane_need(asked, passage, words, lanes)]
    let_in, policy = _let_in(asked, passage, hits)
    needs += policy
    stands = standing(run_, passage.chunk_id, budget) or supposed_standing(
        run_, let_in, asked.overlay, asked.now, budget
    )
    needs += _needs_of_the_cut(asked, let_in, stands)
    return _Story(passage, proposed, hits, stands, words, lanes, needs)


def _needs_of_the_cut(asked: _Asked, let_in: LetIn, stands: Standing) -> list[str]:
    needs = []
    if stands.own.superseded:
        newer = ", ".join(one.document_id for one in stands.own.passage.superseded_by)
        needs.append(f"no newer version of its document in the corpus: {newer} replaces it")
        current = replace(let_in, passage=replace(let_in.passage, superseded_by=()))
        stands = supposed_standing(
            asked.run, current, asked.overlay, asked.now, stands.token_budget
        )
    return [*needs, *cut_needs(stands, _limit_holds(asked, stands))]


def _limit_holds(asked: _Asked, stands: Standing) -> Callable[[int], bool]:
    done, own = asked.run, stands.own.passage.chunk_id

    def holds(limit: int) -> bool:
        if first_depth(limit) == first_depth(done.limit):
            return True
        if stands.supposed:
            return False
        _, ranked, _ = gather(
            asked.corpus,
            done.query,
            done.lane,
            asked.overlay,
            done.fusion,
            limit,
            asked.now,
            done.purpose,
            done.late,
        )
        made = cut(ranked, limit, stands.min_score, stands.token_budget)
        return any(one.passage.chunk_id == own for one in made.selected)

    return holds


def _best_placed(asked: _Asked, passages: Sequence[Passage]) -> Passage:
    """Selected before ranked before proposed; among the others by where they would stand."""
    named = {passage.rowid: passage for passage in passages}
    for one in (*asked.run.made.selected, *asked.run.ranked):
        if one.passage.rowid in named:
            return one.passage
    if len(passages) == 1:
        return passages[0]
    proposed = [one for one in passages if _was_proposed(asked.run, one)] or passages
    hits = _true_hits(asked, proposed)
    let_in = [_let_in(asked, one, hits[one.rowid])[0] for one in proposed]
    ranked = suppose(asked.run, let_in, asked.overlay, asked.now)
    return named[next(one.passage.rowid for one in ranked if one.passage.rowid in named)]


def _let_in(
    asked: _Asked, passage: Passage, hits: tuple[LexicalHit, SemanticHit | None]
) -> tuple[LetIn, list[str]]:
    needs, allowed, overlay, purpose = policy_needs(
        passage, asked.overlay, asked.now, asked.run.purpose
    )
    if _was_proposed(asked.run, passage):
        return LetIn(allowed, overlay, purpose), needs
    return LetIn(allowed, overlay, purpose, *hits), needs


def _was_proposed(run_: Run, passage: Passage) -> bool:
    return passage.rowid in run_.pool.lexical or passage.rowid in run_.pool.semantic


def _true_hits(
    asked: _Asked, passages: Sequence[Passage]
) -> dict[int, tuple[LexicalHit, SemanticHit | None]]:
    """Both lanes' true scores of passages, whether or not a lane proposed them."""
    corpus, done = asked.corpus, asked.run
    unscored = [one.rowid for one in passages if not _was_proposed(done, one)]
    found = lexical.complete(corpus, done.query, lexical.LexicalFound({}, {}), unscored)
    words = {hit.rowid: hit for hit in found} | done.pool.lexical
    meaning = dict(done.pool.semantic)
    if done.lane.index is not None:
        scored = semantic.score(corpus, done.lane.index, done.lane.vector, unscored)
        meaning |= {hit.rowid: hit for hit in scored}
    return {
        row: (words.get(row, LexicalHit(row, 0.0, 0.0, proposed=False)), meaning.get(row))
        for row in (one.rowid for one in passages)
    }


def _words(asked: _Asked, passage: Passage) -> WordsTrace:
    query = asked.run.query
    task = lexical.terms_in(asked.corpus, query.task_terms, passage.rowid)
    role = lexical.terms_in(asked.corpus, query.expansion_terms, passage.rowid)
    return WordsTrace(
        task_found=task,
        task_missing=[term.shown for term in query.task_terms if term.shown not in task],
        role_found=role,
    )


def _lanes(
    run_: Run, rowid: int, words: LexicalHit, meaning: SemanticHit | None
) -> list[LaneTrace]:
    query, pool, lane = run_.query, run_.pool, run_.lane
    unspoken = "" if query.task_terms else "the task has no words"
    no_role = "" if query.expansion_terms else "no role adds words to this task"
    silent = "" if lane.index is not None else lane.degraded or "only words were asked for"
    proposed = {row: hit.cosine for row, hit in pool.semantic.items() if hit.proposed}
    cosine = meaning.cosine if meaning else None
    depth = pool.depth
    return [
        _lane("task_words", pool.by_task, None if unspoken else words.bm25, rowid, depth, unspoken),
        _lane(
            "role_words",
            pool.by_role,
            None if no_role else words.bm25_expansion,
            rowid,
            depth,
            no_role,
        ),
        _lane("meaning", proposed, cosine, rowid, depth, silent),
    ]


def _lane(
    by: FoundBy, found: dict[int, float], score: float | None, rowid: int, depth: int, note: str
) -> LaneTrace:
    rank = None
    if rowid in found:
        # Ties by rowid, as the index breaks them.
        own = (-found[rowid], rowid)
        rank = 1 + sum((-other, row) < own for row, other in found.items())
    return LaneTrace(
        lane="semantic" if by == "meaning" else "lexical",
        by=by,
        ran=not note,
        note=note,
        proposed=rank is not None,
        rank=rank,
        score=maybe_rounded(score),
        pool=len(found),
        least=maybe_rounded(min(found.values(), default=None)),
        depth=depth,
    )


def _lane_need(
    asked: _Asked, passage: Passage, words: WordsTrace, lanes: Sequence[LaneTrace]
) -> str:
    document = passage.document
    policy = rejection(
        document, document.excluded_roles, asked.overlay, asked.now, asked.run.purpose
    )
    return lane_needs(
        lanes,
        words,
        first_depth(asked.run.limit),
        searched_deeper=policy is None or asked.run.pool.refills == 0,
    )


def _fate(done: Run, story: _Story) -> tuple[Outcome, Step | None, RejectionCode | None, str]:
    own = story.passage.chunk_id
    if not story.proposed:
        return "not_proposed", "lanes", None, "no lane proposed it"
    steps: list[tuple[Step, Sequence[Rejected]]] = [
        ("filter", done.rejected),
        ("cut", done.made.rejected),
    ]
    for step, rejected in steps:
        for one in rejected:
            if one.passage.chunk_id == own:
                return "rejected", step, one.reason, one.notes
    return "selected", None, None, ""


def _filter_trace(asked: _Asked, story: _Story) -> FilterTrace:
    passage = story.passage
    verdict = rejection(
        passage.document, passage.excluded_roles, asked.overlay, asked.now, asked.run.purpose
    )
    return FilterTrace(
        allowed=verdict is None,
        code=verdict[0] if verdict else None,
        notes=verdict[1] if verdict else "",
        factors=list(story.stands.own.filtered.overlay_hits),
        freshness=freshness_of(passage, asked.overlay, asked.now),
    )


def _score_trace(done: Run, stands: Standing) -> ScoreTrace:
    by_words, by_meaning = lane_weights(done.policy, done.fusion)
    return ScoreTrace(
        scores=scores_of(stands.own),
        raw=raw_scores_of(stands.own),
        weights=ScoreWeights(
            lexical=by_words,
            semantic=by_meaning,
            metadata=done.policy.metadata_weight,
            rerank=done.policy.rerank_weight,
        ),
        vocabulary=list(stands.own.vocabulary_hits),
        place=stands.place,
        of=len(stands.ranked),
        rank=stands.rank,
        code=stands.code,
        supposed=stands.supposed,
        rerank_note=rerank_note(done, stands),
    )


def _lost_to(done: Run, stands: Standing) -> list[Rival]:
    own, made = stands.own, stands.made
    ranks = {one.passage.chunk_id: rank for rank, one in enumerate(made.selected, start=1)}
    winners: Sequence[Ranked] = ()
    if stands.code == "duplicate":
        winners = [one for one in stands.ranked if one.passage.chunk_id == own.duplicate_of]
    elif stands.code == "conflict_downrank":
        newer = {one.document_id for one in own.passage.superseded_by}
        winners = [one for one in stands.ranked if one.passage.document.document_id in newer]
        winners = winners[:_RIVALS]
    elif stands.code is not None:
        winners = [one for one in made.selected if order(one) < order(own)][-_RIVALS:]
    return [
        Rival(
            rank=ranks.get(one.passage.chunk_id),
            chunk_id=one.passage.chunk_id,
            locator=one.passage.locator,
            final=rounded(one.final),
        )
        for one in winners
    ]
