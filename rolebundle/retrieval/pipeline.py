"""The pipeline, as it is drawn:

task + overlay ─▶ query ─▶ lexical lane ─┐
                  └──────▶ semantic lane ┴▶ merge ─▶ filter ─┐
                  ┌──────────────────────────────────────────┘
                  └▶ late ─▶ neighbours ─▶ feedback ─▶ rerank ─▶ cut ─▶ assemble ─▶ bundle
"""  # noqa: D415

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import (
    CorpusState,
    Diagnostics,
    RetrievalBundle,
)
from rolebundle.contracts.candidate import (
    Candidate,
    Filtered,
    LexicalHit,
    Query,
    Ranked,
    Rejected,
    SemanticHit,
)
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy
from rolebundle.contracts.terms import Fusion
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import EmbedderError
from rolebundle.policy.trust import Purpose
from rolebundle.retrieval import lexical, semantic
from rolebundle.retrieval.assemble import Context, Cut, assemble, cut
from rolebundle.retrieval.corpus_state import corpus_state
from rolebundle.retrieval.filter import filter_candidates, rejection, rejects_by_age
from rolebundle.retrieval.merge import merge
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.rerank import best_by_lanes, rerank
from rolebundle.storage import documents, vector_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import EmbeddingIndex

if TYPE_CHECKING:
    from rolebundle.retrieval.reranker import Reranker

POOL_DEPTH = 100
"""What each lane proposes at first; at least four times what is wanted."""
MAX_DEPTH = vector_index.MAX_NEIGHBOURS
"""The bound of law 2: a lane is not asked for more than this many chunks at once."""


@dataclass(frozen=True, slots=True)
class SemanticLane:
    """The semantic lane, made ready for one query; or why it cannot run."""

    index: EmbeddingIndex | None = None
    vector: bytes = b""
    say: float = 1.0
    """How well the model reads the question; its scores count for so much."""
    degraded: str = ""
    doubt: str = ""
    """Why the exact search answers although the index has a fast companion."""


@dataclass(slots=True, eq=False, repr=False)
class Pool:
    """What the lanes have found so far, and how long they took."""

    candidates: list[Candidate] = field(default_factory=list)
    lexical: dict[int, LexicalHit] = field(default_factory=dict)
    semantic: dict[int, SemanticHit] = field(default_factory=dict)
    by_task: dict[int, float] = field(default_factory=dict)
    """What the lexical lane proposed for the task's words: rowid → BM25."""
    by_role: dict[int, float] = field(default_factory=dict)
    """What it proposed for the role's words."""
    depth: int = 0
    """How many chunks each lane was last asked for."""
    lexical_seconds: float = 0.0
    semantic_seconds: float = 0.0
    refills: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One request's way through the pipeline: what each step made, down to the cut."""

    query: Query
    policy: RetrievalPolicy
    fusion: Fusion
    limit: int
    lane: SemanticLane
    state: CorpusState
    pool: Pool
    ranked: list[Ranked]
    rejected: list[Rejected]
    """What the filter rejected."""
    made: Cut
    purpose: Purpose
    late: Reranker | None = None
    """The model that reranked, where one was asked for."""


def retrieve(
    corpus: Corpus,
    request: ResolvedRequest,
    provider: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
) -> RetrievalBundle:
    """Answer a request from the corpus, governed by its overlay.

    Args:
        corpus: an open corpus; it is only read.
        request: the resolved request.
        provider: embeds the query; ``None`` for the lexical lane alone.
        reranker: scores the best candidates again; ``None`` for no reranking.

    Raises:
        CorpusCorrupt, CorpusBusy, StorageError: the corpus cannot be read.
    """
    started = perf_counter()
    with corpus.reading():
        done = run(corpus, request, provider, reranker)
        waiting = _waiting(corpus, done.lane, done.state)
    context = Context(
        done.query,
        request.overlay,
        request.overlay_digest,
        request.fusion,
        request.now,
        done.state,
        done.lane.degraded,
        waiting,
        done.lane.doubt,
        request.echo,
        request.purpose,
        request.quarantined,
        reranker.state(_rescored(done)) if reranker else None,
        reranker.warnings() if reranker else (),
    )
    diagnostics = _diagnostics(done, perf_counter() - started, narrowed=corpus.is_restricted)
    return assemble(done.made, done.rejected, context, diagnostics)


def run(
    corpus: Corpus,
    request: ResolvedRequest,
    provider: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
) -> Run:
    """The steps down to the cut, inside the caller's ``corpus.reading()``.

    Args and errors are those of :func:`retrieve`.
    """
    query = build_query(request.task, request.overlay)
    lane = _semantic_lane(corpus, query, provider)
    query = semantic.told(query, lane.say) if request.fusion == "weighted" else query
    state = corpus_state(corpus)
    pool, ranked, rejected = gather(
        corpus,
        query,
        lane,
        request.overlay,
        request.fusion,
        request.limit,
        request.now,
        request.purpose,
        reranker,
    )
    made = cut(ranked, request.limit, request.min_score, request.token_budget)
    return Run(
        query,
        request.policy,
        request.fusion,
        request.limit,
        lane,
        state,
        pool,
        ranked,
        rejected,
        made,
        request.purpose,
        reranker,
    )


def _semantic_lane(
    corpus: Corpus, query: Query, provider: EmbeddingProvider | None
) -> SemanticLane:
    if provider is None:
        return SemanticLane()
    try:
        index = semantic.usable_index(corpus, provider)
        vector = semantic.query_vector(query, provider)
        say = semantic.say(query, provider)
        return SemanticLane(index, vector, say, doubt=vector_index.stale_reason(corpus, index))
    except EmbedderError as error:
        # Law 6: the lexical lane answers, and the bundle says what is missing and why.
        return SemanticLane(degraded=f"{error.message}; {error.hint}")


def gather(
    corpus: Corpus,
    query: Query,
    lane: SemanticLane,
    overlay: Overlay | None,
    fusion: Fusion,
    limit: int,
    now: datetime,
    purpose: Purpose,
    late: Reranker | None = None,
) -> tuple[Pool, list[Ranked], list[Rejected]]:
    """Run the lanes until enough texts are left to select from, or the corpus has no more (law 2).

    The first run searches everything, so that what policy rejects is seen and said. Later runs
    search only in documents that policy allows, deeper each time.
    """
    pool = Pool()
    depth = first_depth(limit)
    within: list[int] | None = None
    while True:
        found = _run_lanes(corpus, query, lane, pool, depth, within)
        passages = documents.passages(corpus, sorted(pool.lexical.keys() | pool.semantic.keys()))
        hits = pool.lexical.values(), pool.semantic.values()
        candidates = merge(*hits, passages, query, fusion, lane.say)
        pool.candidates, pool.depth = candidates, depth
        allowed, rejected = filter_candidates(candidates, overlay, now, purpose)
        ranked = rank(allowed, lane, overlay, fusion, late.cosines if late else None)
        left = sum(one.duplicate_of is None and not one.superseded for one in ranked)
        if left >= limit or found < depth:
            return pool, ranked, rejected
        if within is None:
            within = _allowed_documents(corpus, overlay, now, purpose)
        elif depth >= MAX_DEPTH:
            return pool, ranked, rejected
        else:
            depth = min(MAX_DEPTH, 4 * depth)
        pool.refills += 1


def rank(
    allowed: list[Filtered],
    lane: SemanticLane,
    overlay: Overlay | None,
    fusion: Fusion,
    cosines: Callable[[Sequence[Passage]], dict[str, float]] | None = None,
) -> list[Ranked]:
    """Rerank what policy allows.

    Passages like it support it where meanings are searched: words alone do without, since what
    that takes to be loaded would double a cold start.

    Args:
        allowed: what policy allows; nothing else is scored in context.
        lane: whether meanings were searched.
        overlay: the role's.
        fusion: how the lanes' scores were normalized.
        cosines: told the best passages, gives by chunk id how close they are in context.
    """
    if cosines is not None:
        from rolebundle.retrieval.late import DEPTH, rescored

        to_score = best_by_lanes(allowed, overlay, fusion, DEPTH)
        found = cosines([one.candidate.passage for one in to_score])
        allowed = rescored(allowed, found, overlay, fusion)
    if lane.index is not None and fusion == "weighted":
        from rolebundle.retrieval.feedback import agreeing
        from rolebundle.retrieval.neighbours import circle, supported

        best = circle(allowed, overlay, fusion)
        allowed = agreeing(supported(allowed, overlay, fusion, best), best, overlay, fusion)
    return rerank(allowed, overlay, fusion)


def first_depth(limit: int) -> int:
    """How many chunks each lane is asked for at first."""
    return min(MAX_DEPTH, max(POOL_DEPTH, 4 * limit))


def _run_lanes(
    corpus: Corpus,
    query: Query,
    lane: SemanticLane,
    pool: Pool,
    depth: int,
    within: list[int] | None,
) -> int:
    """Add to the pool what the lanes propose, and give each candidate both lanes' true scores.

    Returns:
        The larger of what the two lanes had to offer.
    """
    proposed: list[SemanticHit] = []
    if lane.index is not None:
        started = perf_counter()
        proposed = semantic.search(corpus, lane.index, lane.vector, depth, within)
        pool.semantic_seconds += perf_counter() - started
    pool.semantic |= {hit.rowid: hit for hit in proposed}
    started = perf_counter()
    found = lexical.search(corpus, query, depth, within, [hit.rowid for hit in proposed])
    pool.lexical_seconds += perf_counter() - started
    pool.by_task |= found.task
    pool.by_role |= found.role
    rowids = sorted(
        found.task.keys() | found.role.keys() | pool.semantic.keys() | pool.lexical.keys()
    )
    started = perf_counter()
    for lexical_hit in lexical.complete(corpus, query, found, rowids):
        earlier = pool.lexical.get(lexical_hit.rowid)
        if earlier is None or not earlier.proposed:
            pool.lexical[lexical_hit.rowid] = lexical_hit
    pool.lexical_seconds += perf_counter() - started
    if lane.index is not None:
        started = perf_counter()
        unscored = sorted(pool.lexical.keys() - pool.semantic.keys())
        scored = semantic.score(corpus, lane.index, lane.vector, unscored)
        pool.semantic |= {hit.rowid: hit for hit in scored}
        pool.semantic_seconds += perf_counter() - started
    return max(len(found.task), len(found.role), len(proposed))


def _allowed_documents(
    corpus: Corpus, overlay: Overlay | None, now: datetime, purpose: Purpose
) -> list[int]:
    return sorted(
        rowid
        for document, rowids in documents.document_groups(corpus, dated=rejects_by_age(overlay))
        if rejection(document, document.excluded_roles, overlay, now, purpose) is None
        for rowid in rowids
    )


def _waiting(corpus: Corpus, lane: SemanticLane, state: CorpusState) -> int:
    if lane.index is None:
        return 0
    return state.chunks - vector_index.count_vectors(corpus, lane.index)


def _rescored(done: Run) -> int:
    return sum(one.filtered.candidate.contextual is not None for one in done.ranked)


def _diagnostics(done: Run, seconds: float, *, narrowed: bool) -> Diagnostics:
    pool, rejected, late = done.pool, done.rejected, done.late
    # What was found in the cache tells an agent what others have asked.
    told = None if narrowed else late
    return Diagnostics(
        latency_ms=round(seconds * 1000, 3),
        # Counted before anything could drop one, so that law 1 can be checked from the bundle.
        candidate_pool_size=len(pool.candidates),
        deduped_count=sum(one.reason == "duplicate" for one in done.made.rejected),
        dropped_forbidden_count=sum(one.reason == "forbidden_source" for one in rejected),
        dropped_stale_count=sum(one.reason == "stale" for one in rejected),
        lexical_ms=round(pool.lexical_seconds * 1000, 3),
        semantic_ms=round(pool.semantic_seconds * 1000, 3),
        refills=pool.refills,
        rerank_ms=round(late.seconds * 1000, 3) if late else None,
        rerank_embedded=told.embedded if told else None,
        rerank_cached=told.cached if told else None,
        rerank_question_embedded=told.question_embedded if told else None,
        rerank_note=(late.note or None) if late else None,
    )
