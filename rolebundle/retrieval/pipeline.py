"""The pipeline, as it is drawn:

task + overlay ─▶ query ─▶ lexical lane ─┐
                  └──────▶ semantic lane ┴▶ merge ─▶ filter ─▶ rank ─▶ select ─▶ RetrievalBundle

The lanes are asked again, deeper, until enough candidates remain after ``rank`` (law 2).
"""  # noqa: D415

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.terms import TRUSTED_TIERS
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.retrieval.answer.corpus_state import corpus_state
from rolebundle.retrieval.bundle import assemble
from rolebundle.retrieval.candidate import Candidate, Pool, Query, RejectedCandidate
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.filter import filter_candidates
from rolebundle.retrieval.forbidden import forbidden_hits
from rolebundle.retrieval.lanes import MAX_DEPTH, Lanes, first_depth, open_lanes
from rolebundle.retrieval.merge import merge
from rolebundle.retrieval.outcome import Retrieval, Selection
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.rank import rank
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import Weights
from rolebundle.retrieval.select import is_answered_off_topic, select
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import has_trusted
from rolebundle.storage.verify import verify_passages
from rolebundle.text.stop_words import INTENT_HINTS

if TYPE_CHECKING:
    from rolebundle.retrieval.rerank import Reranker
    from rolebundle.retrieval.vague import Vagueness
    from rolebundle.text.intents import TaskIntent

MAX_DOCUMENTS_READ = 20_000
"""Of a larger corpus not all documents are read to see whether one declares trust."""


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
        query = build_query(request.task, request.overlay)
        lanes = open_lanes(corpus, query, provider)
        retrieval = run(lanes, request, reranker)
    return assemble(request, retrieval, perf_counter() - started)


def run(lanes: Lanes, request: ResolvedRequest, reranker: Reranker | None = None) -> Retrieval:
    """The steps from the lanes to the selection, inside the caller's ``corpus.reading()``."""
    matching, seen = lanes.matching_documents(request.where), lanes.seen_texts(request.seen)
    searched = within = matching.rowids if matching else None
    depth, is_limited_to_allowed = first_depth(len(request.seen)), False
    pool = lanes.propose(Pool(), depth, within)
    found = _search(lanes, request, reranker, pool, lanes.weigh_evidence(pool), seen, searched)
    while found.distinct < request.limit and found.pool.yielded >= depth:
        # The first search reads everything, so that the bundle can report what policy rejects.
        # If policy rejects something, the next ones are limited to the documents that it allows;
        # else each is deeper than the last.
        if found.rejected and not is_limited_to_allowed:
            within = lanes.allowed_documents(request, searched)
            is_limited_to_allowed = True
        elif depth < MAX_DEPTH:
            depth = min(MAX_DEPTH, 4 * depth)
        else:
            break
        pool = lanes.propose(found.pool, depth, within)
        found = _search(lanes, request, reranker, pool, found.evidence, seen, searched)
    hits: Sequence[Candidate] = ()
    if not is_answered_off_topic(found.evidence, request):
        hits = forbidden_hits(
            found.rejected, found.selection.selected, request, found.weights, seen, found.vagueness
        )
    selected = [candidate.passage for candidate in found.selection.selected]
    verify_passages(lanes.corpus, [passage.rowid for passage in selected])
    corpus = corpus_state(lanes.corpus, request.now, lanes.index)
    return Retrieval(
        query=lanes.query,
        evidence=lanes.with_support(found.evidence, selected),
        weights=found.weights,
        corpus=corpus,
        semantic=lanes.semantic_report(request, corpus.chunks),
        rerank=reranker.report(found.ranked) if reranker else None,
        pool=found.pool,
        candidates=found.candidates,
        rejected=found.rejected,
        ranked=found.ranked,
        selection=found.selection,
        unmatched=matching.problem if matching else "",
        seen=seen,
        forbidden_hits=hits,
        vagueness=found.vagueness,
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
    vagueness: Vagueness | None

    @property
    def distinct(self) -> int:
        """The number of allowed candidates that are neither duplicates nor superseded."""
        return len(self.selection.selected) + sum(
            rejection.code not in ("duplicate", "conflict_downrank")
            for rejection in self.selection.rejected
        )


def _search(
    lanes: Lanes,
    request: ResolvedRequest,
    reranker: Reranker | None,
    pool: Pool,
    evidence: Evidence,
    seen: Mapping[str, Sequence[str]],
    searched: Sequence[int] | None,
) -> _Found:
    """The steps after the lanes' proposals, once."""
    weights = weights_for(request, evidence, has_semantic=bool(lanes.index or reranker))
    intent = vague_intent(request, lanes.query, evidence)
    if intent:
        evidence = evidence._replace(has_topic=intent.has_topic)
    if request.overlay is None:
        intent = None
    if intent and intent.intents and not pool.refills:
        pool = lanes.with_openings(pool, intent.intents, iso_utc(request.now), searched)
        cosines = {rowid: hit.cosine for rowid, hit in pool.semantic.items()}
        evidence = evidence._replace(cosines=cosines)
    candidates = merge(pool, weights)
    allowed, rejected = filter_candidates(candidates, request, seen)
    vagueness = vagueness_of(request, evidence, intent, allowed) if intent else None
    ranked = rank(
        allowed,
        request,
        weights,
        has_vectors=lanes.index is not None,
        is_off_topic=is_answered_off_topic(evidence, request),
        scores=reranker.scores if reranker else None,
        vagueness=vagueness,
    )
    selection = select(ranked, request)
    return _Found(pool, evidence, weights, candidates, rejected, ranked, selection, vagueness)


def weights_for(request: ResolvedRequest, evidence: Evidence, *, has_semantic: bool) -> Weights:
    """The weights of the score's terms: the role's depend on how specific the task is."""
    return Weights.of(
        request.policy,
        request.fusion,
        has_semantic=has_semantic,
        role_factor=evidence.role_factor if request.overlay else 0.0,
    )


def vague_intent(request: ResolvedRequest, query: Query, evidence: Evidence) -> TaskIntent | None:
    """What a vague task asks for besides its topic; ``None`` if it is specific.

    A task that no passage supports is vague, too: its words choose none. Without a role vagueness
    does not count, and only an off-topic task is looked at: does it name a topic at all?
    """
    is_supported = evidence.task == "supported"
    may_have_intent = any(word.text in INTENT_HINTS for word, *_ in query.content_words)
    if request.overlay is None and evidence.task != "off_topic":
        return None
    if is_supported and not may_have_intent:
        return None
    # Imported here, as below, because most requests do without.
    from rolebundle.text.intents import task_intent

    intent = task_intent(request.task)
    # "Parallel algorithms" is a topic, however many passages are about it.
    is_vague = intent.intents and (evidence.vagueness or not intent.has_topic)
    return intent if is_vague or not is_supported else None


def vagueness_of(
    request: ResolvedRequest,
    evidence: Evidence,
    intent: TaskIntent,
    allowed: Sequence[Candidate],
) -> Vagueness:
    """What counts for a vague task, besides its words and the role."""
    from rolebundle.retrieval.vague import weigh_vagueness

    degree = evidence.vagueness if evidence.task == "supported" else 1.0
    return weigh_vagueness(degree, intent, allowed, request.now)


def _has_trusted(corpus: Corpus, documents: int, candidates: Sequence[Candidate]) -> bool:
    """Whether a visible document is preferred or authoritative; assumed in a large corpus."""
    tiers = {candidate.passage.document.trust_tier for candidate in candidates}
    is_known = documents > MAX_DOCUMENTS_READ or not tiers.isdisjoint(TRUSTED_TIERS)
    return is_known or has_trusted(corpus)
