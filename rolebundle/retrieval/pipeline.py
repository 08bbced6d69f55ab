"""The pipeline, as it is drawn:

task + overlay ─▶ query ─▶ lexical lane ─┐
                  └──────▶ semantic lane ┴▶ score ─▶ filter ─▶ rank ─▶ evidence ─▶ select ─▶ bundle

``where`` limits which documents are searched. The lanes are asked again until enough candidates are
allowed (law 2, docs/laws.md). ``rank`` asks the reranking model. ``evidence`` judges whether the
first passages answer the task.

Remembered facts are searched after the documents, by the same steps, without a reranking model.
They come after the documents in the answer, and take no place from them.
"""  # noqa: D415

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime
from time import perf_counter

from rolebundle.contracts.base import attributes_of
from rolebundle.contracts.bundle import CorpusState, IndexState, ReplicaState
from rolebundle.contracts.documents import LANGUAGE
from rolebundle.contracts.terms import TRUSTED_TIERS
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import CorpusCorrupt
from rolebundle.retrieval.evidence import JUDGED_PER_RANKING, Evidence
from rolebundle.retrieval.filter import filter_candidates, policy_rejection
from rolebundle.retrieval.lanes import Lanes, open_lanes
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.rank import ScorePassages, rank
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.rerank import Reranker
from rolebundle.retrieval.scoring import add_moved_from, score_hits
from rolebundle.retrieval.select import best_forbidden, estimated_tokens, select
from rolebundle.retrieval.values import (
    MAX_DEPTH,
    POOL_DEPTH,
    Candidate,
    Pool,
    Reranking,
    Retrieval,
    Weights,
    role_share,
)
from rolebundle.retrieval.where import allowed_documents, matching_documents
from rolebundle.storage import vector_index
from rolebundle.storage.compartments import has_facts
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.digests import verify_passages
from rolebundle.storage.documents import count_trusted, prefetch_files_of_chunks
from rolebundle.storage.opening import latest_version
from rolebundle.storage.passages import passages_in_other_languages, stating_passages
from rolebundle.storage.publications import load_manifest
from rolebundle.storage.vector_index import EmbeddingIndex

MAX_DOCUMENTS_READ = 20_000
"""A corpus with more documents is not searched for one that declares trust: one is assumed."""
MAX_FACTS = 2
"""How many remembered facts an answer may have, besides its ``limit`` of documents' passages."""
FACTS_DEPTH = 20
"""How many facts each lane proposes at first."""


def search(
    corpus: Corpus,
    request: ResolvedRequest,
    provider: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
) -> Retrieval:
    """Search the corpus for a request, governed by its overlay.

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
        query = build_query(request.task, request.overlay, request.also)
        lanes = open_lanes(corpus, query, provider)
        _, retrieval = run_steps(lanes, request, reranker)
        passages = [row.passage for row in retrieval.all_selected]
        prefetch_files_of_chunks(corpus, [passage.chunk_id for passage in passages])
        verify_passages(corpus, [passage.rowid for passage in passages])
    return replace(retrieval, seconds=perf_counter() - started)


def run_steps(
    lanes: Lanes, request: ResolvedRequest, reranker: Reranker | None = None
) -> tuple[Lanes, Retrieval]:
    """The steps from the lanes to the selection, inside the caller's ``corpus.reading()``.

    Returns:
        The lanes that were searched, without the semantic one if its vectors are damaged (law 6);
        and their retrieval.
    """
    try:
        return lanes, _documents_and_facts(lanes, request, reranker)
    except CorpusCorrupt as error:
        if error.code != "vectors_damaged":
            raise
        lanes = lanes.words_only(f"{error.message}; {error.hint}")
        return lanes, _documents_and_facts(lanes, request, reranker)


def _documents_and_facts(
    lanes: Lanes, request: ResolvedRequest, reranker: Reranker | None
) -> Retrieval:
    request = request._replace(seen_by_hash=lanes.seen_by_hash(request.seen))
    depth = min(MAX_DEPTH, POOL_DEPTH + len(request.seen))
    retrieval = _search_in_rounds(lanes, request, reranker, depth)
    if not has_facts(lanes.corpus):
        return retrieval
    facts = _search_in_rounds(lanes.of_facts(), _request_for_facts(retrieval), None, FACTS_DEPTH)
    return replace(retrieval, facts=facts)


def _request_for_facts(retrieval: Retrieval) -> ResolvedRequest:
    """The request for remembered facts, which has what the documents leave of the budget."""
    budget = retrieval.request.token_budget
    if budget is not None:
        budget -= sum(estimated_tokens(row.passage.content) for row in retrieval.selected)
    return retrieval.request._replace(limit=MAX_FACTS, token_budget=budget)


def _search_in_rounds(
    lanes: Lanes, request: ResolvedRequest, reranker: Reranker | None, depth: int
) -> Retrieval:
    """Search; as long as too few candidates are allowed, search again.

    If the filter rejected something, the next round searches as deep among the allowed documents
    only. Each other further round goes four times as deep as the round before.

    The first round fixes the weights and what the task's words are worth.
    """
    within, unmet_where = matching_documents(lanes.corpus, request.echo.where)
    is_limited_to_allowed = False
    pool = lanes.propose(Pool(), depth, within)
    evidence, semantic = lanes.evidence(pool), lanes.semantic
    base = Retrieval(
        request=request,
        query=lanes.query,
        evidence=evidence,
        weights=weights_for(request, evidence, has_semantic=bool(semantic or reranker)),
        corpus_state=corpus_state(lanes.corpus, request.now, semantic.index if semantic else None),
        pool=pool,
        semantic_problem=lanes.semantic_problem,
        without_vector=semantic.without_vector() if semantic else 0,
        missing_exact=lanes.missing_exact,
        unmet_where=unmet_where,
    )
    retrieval = _one_round(lanes, base, pool, reranker)
    enough = max(request.limit, JUDGED_PER_RANKING)
    while pool.max_returned >= depth and _count_allowed(retrieval) < enough:
        # Law 2. The first round searches all that `where` matches, so that the bundle can report
        # what policy rejects.
        if retrieval.filtered_out and not is_limited_to_allowed:
            within = allowed_documents(lanes.corpus, request, within)
            is_limited_to_allowed = True
        elif depth < MAX_DEPTH:
            depth = min(MAX_DEPTH, 4 * depth)
        else:
            break
        pool = lanes.propose(pool, depth, within)
        retrieval = _one_round(lanes, base, pool, reranker)
    # If passages were withheld, the verdict depends on whether what policy rejected is evidence.
    rejected = [row.passage for row in retrieval.filtered_out] if retrieval.withheld_reason else []
    rejected_evidence = lanes.with_matched_words(retrieval.evidence, rejected)
    rejected_evidence = rejected_evidence.with_support([passage.rowid for passage in rejected])
    has_rejected_evidence = bool(rejected) and rejected_evidence.task_support == "supported"
    would_answer = has_rejected_evidence or not retrieval.withheld_reason
    selected = [row.passage for row in retrieval.selected]
    add_moved_from(retrieval.ranked, retrieval.selected, request, retrieval.weights)
    return replace(
        retrieval,
        has_rejected_evidence=has_rejected_evidence,
        evidence=lanes.with_matched_words(retrieval.evidence, selected),
        reranking=reranker.outcome(retrieval.ranked) if reranker else Reranking(),
        stating=[p for p in stating_passages(lanes.corpus) if not policy_rejection(p, request)],
        languages=Counter(
            language
            for p in passages_in_other_languages(lanes.corpus)
            if not policy_rejection(p, request)
            for language in dict(p.document.attributes).get(LANGUAGE, ())
        ),
        best_forbidden=best_forbidden(retrieval) if would_answer else (),
        may_have_trusted=_may_have_trusted(lanes.corpus, retrieval),
    )


def _one_round(lanes: Lanes, base: Retrieval, pool: Pool, reranker: Reranker | None) -> Retrieval:
    """The steps from what the lanes have proposed so far to the selection."""
    reranking = (reranker.score, reranker.max_passages) if reranker else ()
    retrieval = ranked_hits(lanes, replace(base, pool=pool), reranking)
    request, ranked = base.request, retrieval.ranked
    evidence, judged = base.evidence._replace(cosines=pool.cosines), retrieval.judged_passages
    evidence = lanes.with_matched_words(evidence, judged)
    evidence = evidence.with_support([passage.rowid for passage in judged])
    withheld_reason = reason_to_withhold(evidence, request, has_allowed=bool(judged))
    if lanes.only_facts and not withheld_reason:
        ranked = _facts_about_task(lanes, ranked, evidence)
    select(ranked, request, withheld_reason)
    return replace(retrieval, evidence=evidence, ranked=ranked, withheld_reason=withheld_reason)


def ranked_hits(
    lanes: Lanes,
    base: Retrieval,
    reranking: tuple[ScorePassages, int] | tuple[()],
    supposed_allowed: Container[int] = (),
) -> Retrieval:
    """The steps from the hits of the lanes to their ranking.

    Args:
        lanes: that found the hits.
        base: the retrieval with its pool and weights.
        reranking: the last arguments of :func:`rank`; empty for no reranking.
        supposed_allowed: see :func:`filter_candidates`.
    """
    request, pool, weights = base.request, base.pool, base.weights
    candidates = score_hits(pool, weights)
    filter_candidates(candidates, request, supposed_allowed)
    by_wording = lanes.pools_by_wording(pool)
    ranked = rank(candidates, pool, request, weights, lanes.rare_exact, by_wording, *reranking)
    return replace(base, candidates=candidates, ranked=ranked)


def weights_for(request: ResolvedRequest, evidence: Evidence, *, has_semantic: bool) -> Weights:
    """The weights of the score's components: the role's depend on how specific the task is."""
    policy = request.retrieval_policy
    share = role_share(policy, evidence.specificity) if request.ranks_by_role else 0.0
    fusion, factor = request.fusion, evidence.words_factor
    return Weights.of(
        policy, fusion, has_semantic=has_semantic, role_share=share, words_factor=factor
    )


def _count_allowed(retrieval: Retrieval) -> int:
    """The number of allowed candidates that are neither duplicates nor superseded.

    If the role has a hard limit for each source, what is beyond it is not counted.
    """
    policy = retrieval.request.retrieval_policy
    limit = policy.max_chunks_per_source if policy.diversity == "hard" else len(retrieval.ranked)
    replaced = ("duplicate", "other_version", "conflict_downrank")
    rows = (row for row in retrieval.ranked if row.code not in replaced)
    groups = Counter(row.passage.document.source_id for row in rows)
    return sum(min(number, limit) for number in groups.values())


def _facts_about_task(
    lanes: Lanes, ranked: Sequence[Candidate], evidence: Evidence
) -> list[Candidate]:
    """The remembered facts about the task first; the others are rejected, and take no place."""
    evidence = lanes.with_matched_words(evidence, [row.passage for row in ranked])
    for row in ranked:
        if not evidence.support(row.passage.rowid).is_for_task:
            row.code, row.note = "low_score", "the fact is not about the task"
    return sorted(ranked, key=lambda row: row.code is not None)


def reason_to_withhold(evidence: Evidence, request: ResolvedRequest, *, has_allowed: bool) -> str:
    """Why no passage is selected: nothing has the task, or too little does; empty if neither."""
    if evidence.task_support == "off_topic":
        return "no word of the task occurs, and nothing is near it in meaning"
    # If policy rejected everything, its codes say why.
    if evidence.task_support == "weak" and request.requires_evidence and has_allowed:
        return "evidence is required, and no passage has enough of the task's words"
    return ""


def _may_have_trusted(corpus: Corpus, retrieval: Retrieval) -> bool:
    """Whether a visible document is preferred or authoritative; assumed in a large corpus."""
    tiers = {row.passage.document.trust_tier for row in retrieval.candidates}
    is_large = retrieval.corpus_state.documents > MAX_DOCUMENTS_READ
    return is_large or not tiers.isdisjoint(TRUSTED_TIERS) or count_trusted(corpus) > 0


# -- the state of the corpus -----------------------------------------------------------------------


def corpus_state(corpus: Corpus, now: datetime, index: EmbeddingIndex | None = None) -> CorpusState:
    """Which corpus this is, and in what state.

    Args:
        corpus: an open corpus.
        now: the time by which the age of a replica is measured.
        index: the index that answers. Default: the active one.
    """
    counts = corpus_counts(corpus)
    index = index or vector_index.active_index(corpus)
    return CorpusState.model_construct(
        file=corpus.path.name,
        **attributes_of(counts, "corpus_id", "generation", "documents", "chunks"),
        schema_version=latest_version(),
        index=_index_state(index) if index else None,
        replica=_replica_state(corpus, now),
        in_place_of=corpus.in_place_of,
        standby_seconds=corpus.standby_seconds(),
    )


def _replica_state(corpus: Corpus, now: datetime) -> ReplicaState | None:
    signed = load_manifest(corpus)
    if signed is None:
        return None
    manifest = signed.manifest
    return ReplicaState.model_construct(
        **attributes_of(manifest, "publisher", "generation", "published_at", "expires_at"),
        age_hours=manifest.age_hours(now),
    )


def _index_state(index: EmbeddingIndex) -> IndexState:
    return IndexState.model_construct(
        **attributes_of(index.identity.model, "provider", "model", "dimensions"),
        chunker=index.identity.chunker,
    )
