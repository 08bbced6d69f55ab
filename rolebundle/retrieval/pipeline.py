"""The pipeline, as it is drawn:

task + overlay ─▶ query ─▶ lexical lane ─┐
                  └──────▶ semantic lane ┴▶ merge ─▶ filter ─▶ rank ─▶ select ─▶ RetrievalBundle

The lanes are asked again, deeper, until enough candidates remain after ``rank`` (law 2).

Remembered facts are searched after the documents, by the same steps. They come after the documents
in the answer, and take no place from them.
"""  # noqa: D415

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import TRUSTED_TIERS
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.retrieval.answer.corpus_state import corpus_state
from rolebundle.retrieval.bundle import assemble
from rolebundle.retrieval.candidate import Candidate, Pool, RejectedCandidate
from rolebundle.retrieval.evidence import JUDGED, Evidence
from rolebundle.retrieval.filter import filter_candidates
from rolebundle.retrieval.forbidden import forbidden_hits
from rolebundle.retrieval.lanes import MAX_DEPTH, Lanes, first_depth, open_lanes
from rolebundle.retrieval.merge import merge
from rolebundle.retrieval.outcome import Retrieval, Selection
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.rank import rank
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import Weights, role_share
from rolebundle.retrieval.select import estimated_tokens, select
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import has_trusted
from rolebundle.storage.indexes.compartments import has_facts
from rolebundle.storage.verify import verify_passages

if TYPE_CHECKING:
    from rolebundle.retrieval.rerank import Reranker

MAX_DOCUMENTS_READ = 20_000
"""Of a larger corpus not all documents are read to see whether one declares trust."""
MAX_FACTS = 2
"""So many remembered facts are in an answer, besides its ``limit`` of documents' passages."""
FACTS_DEPTH = 20
"""How many facts each lane proposes at first."""


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
        query = build_query(request.task, request.overlay, request.also)
        lanes = open_lanes(corpus, query, provider)
        retrieval = run(lanes, request, reranker)
    return assemble(request, retrieval, perf_counter() - started)


def run(lanes: Lanes, request: ResolvedRequest, reranker: Reranker | None = None) -> Retrieval:
    """The steps from the lanes to the selection, inside the caller's ``corpus.reading()``."""
    documents = _run(lanes, request, reranker, first_depth(len(request.seen)))
    return documents._replace(facts=run_facts(lanes, request, documents))


def run_facts(lanes: Lanes, request: ResolvedRequest, documents: Retrieval) -> Retrieval | None:
    """The steps for remembered facts; ``None`` if none is visible.

    Args:
        lanes: of the documents.
        request: the resolved request.
        documents: what it selects of the documents, whose rest of the token budget is for facts.
    """
    if not has_facts(lanes.corpus):
        return None
    return _run(replace(lanes, facts=True), of_facts(request, documents), None, FACTS_DEPTH)


def of_facts(request: ResolvedRequest, documents: Retrieval) -> ResolvedRequest:
    """The request for remembered facts."""
    budget = request.token_budget
    if budget is not None:
        contents = (chosen.passage.content for chosen in documents.selection.selected)
        budget -= sum(map(estimated_tokens, contents))
    return request._replace(limit=MAX_FACTS, token_budget=budget)


def _run(
    lanes: Lanes, request: ResolvedRequest, reranker: Reranker | None, depth: int
) -> Retrieval:
    matching, seen = lanes.matching_documents(request.where), lanes.seen_texts(request.seen)
    searched = within = matching.rowids if matching else None
    is_limited_to_allowed = False
    pool = lanes.propose(Pool(), depth, within)
    weighed = lanes.weigh_evidence(pool)
    found = _search(lanes, request, reranker, pool, weighed, seen)
    while found.distinct(request) < request.limit and found.pool.yielded >= depth:
        # The first search reads everything, so that the bundle can report what policy rejects.
        # If policy rejects something, the next ones are limited to the documents that it allows.
        # Each after that is deeper than the last.
        if found.rejected and not is_limited_to_allowed:
            within = lanes.allowed_documents(request, searched)
            is_limited_to_allowed = True
        elif depth < MAX_DEPTH:
            depth = min(MAX_DEPTH, 4 * depth)
        else:
            break
        pool = lanes.propose(found.pool, depth, within)
        found = _search(lanes, request, reranker, pool, weighed, seen)
    hits: Sequence[Candidate] = ()
    if not found.withheld:
        selected = found.selection.selected
        hits = forbidden_hits(found.rejected, selected, request, found.weights, seen)
    passages = [candidate.passage for candidate in found.selection.selected]
    verify_passages(lanes.corpus, [passage.rowid for passage in passages])
    corpus = corpus_state(lanes.corpus, request.now, lanes.index)
    return Retrieval(
        query=lanes.query,
        evidence=lanes.with_support(found.evidence, passages),
        weights=found.weights,
        corpus=corpus,
        semantic=lanes.semantic_report(request),
        rerank=reranker.report(found.ranked) if reranker else None,
        pool=found.pool,
        candidates=found.candidates,
        rejected=found.rejected,
        ranked=found.ranked,
        selection=found.selection,
        withheld=found.withheld,
        judged=found.judged,
        absent_exact=lanes.absent_exact,
        unmatched=matching.problem if matching else "",
        seen=seen,
        forbidden_hits=hits,
        has_trusted=_has_trusted(lanes.corpus, corpus.documents, found.candidates),
    )


class _Found(NamedTuple):
    """What each step of one search returned; see :class:`Retrieval`."""

    pool: Pool
    evidence: Evidence
    weights: Weights
    candidates: Sequence[Candidate]
    rejected: Sequence[RejectedCandidate]
    ranked: Sequence[Candidate]
    selection: Selection
    withheld: str
    judged: Sequence[int]

    def distinct(self, request: ResolvedRequest) -> int:
        """The number of allowed candidates that are neither duplicates nor superseded.

        Of each source at most as many count as a hard limit of the role lets in.
        """
        policy = request.policy
        most = policy.max_chunks_per_source if policy.diversity == "hard" else len(self.ranked)
        left = (
            rejection.candidate
            for rejection in self.selection.rejected
            if rejection.code not in ("duplicate", "conflict_downrank")
        )
        candidates = (*self.selection.selected, *left)
        sources = Counter(candidate.passage.document.source_id for candidate in candidates)
        return sum(min(number, most) for number in sources.values())


def _search(
    lanes: Lanes,
    request: ResolvedRequest,
    reranker: Reranker | None,
    pool: Pool,
    weighed: Evidence,
    seen: Mapping[str, Sequence[str]],
) -> _Found:
    """The steps after the lanes' proposals, once."""
    weights = weights_for(request, weighed, has_semantic=bool(lanes.index or reranker))
    candidates = merge(pool, weights)
    allowed, rejected = filter_candidates(candidates, request, seen)
    scores = reranker.scores if reranker else None
    plain = plain_candidates(pool, request, weights)
    ranked = rank(allowed, request, weights, plain, lanes.exact, scores)
    judged = first_documents(ranked)
    evidence = lanes.with_support(weighed, judged)
    evidence = evidence.judged_by(rowids := [passage.rowid for passage in judged])
    withheld = withheld_because(evidence, request)
    selection = _selection(lanes, ranked, request, evidence, withheld)
    return _Found(
        pool, evidence, weights, candidates, rejected, ranked, selection, withheld, rowids
    )


def _selection(
    lanes: Lanes,
    ranked: Sequence[Candidate],
    request: ResolvedRequest,
    evidence: Evidence,
    withheld: str,
) -> Selection:
    """The selection. Of facts only those about the task count, so that no others take a place."""
    if not lanes.facts or withheld:
        return select(ranked, request, withheld)
    evidence = lanes.with_support(evidence, [candidate.passage for candidate in ranked])
    about, others = [], []
    for candidate in ranked:
        if evidence.support(candidate.passage.rowid).is_for_task:
            about.append(candidate)
        else:
            others.append(
                RejectedCandidate(candidate, "low_score", "the fact is not about the task")
            )
    selection = select(about, request)
    return selection._replace(rejected=(*selection.rejected, *others))


def weights_for(request: ResolvedRequest, evidence: Evidence, *, has_semantic: bool) -> Weights:
    """The weights of the score's terms: the role's depend on how specific the task is."""
    share = role_share(request.policy, evidence.specificity) if request.ranks_by_role else 0.0
    return Weights.of(request.policy, request.fusion, has_semantic=has_semantic, role_share=share)


def plain_candidates(pool: Pool, request: ResolvedRequest, weights: Weights) -> Sequence[Candidate]:
    """The candidates as without a role, if the role's own ``fusion`` scores them differently."""
    fusion = request.echo.fusion or "weighted"
    return () if fusion == weights.fusion else merge(pool, weights._replace(fusion=fusion))


def first_documents(ranked: Sequence[Candidate]) -> list[Passage]:
    """The first passages of the ranking, which decide about the evidence for the task."""
    passages = [
        candidate.passage
        for candidate in ranked
        if candidate.duplicate_of is None and not candidate.is_superseded
    ]
    return passages[:JUDGED]


def withheld_because(evidence: Evidence, request: ResolvedRequest) -> str:
    """Why no passage is selected: nothing has the task, or too little does; empty if neither."""
    if evidence.task == "off_topic":
        return "no word of the task occurs, and nothing is near it in meaning"
    if evidence.task == "weak" and request.requires_evidence:
        return "evidence is required, and no passage has enough of the task's words"
    return ""


def _has_trusted(corpus: Corpus, documents: int, candidates: Sequence[Candidate]) -> bool:
    """Whether a visible document is preferred or authoritative; assumed in a large corpus."""
    tiers = {candidate.passage.document.trust_tier for candidate in candidates}
    is_known = documents > MAX_DOCUMENTS_READ or not tiers.isdisjoint(TRUSTED_TIERS)
    return is_known or has_trusted(corpus)
