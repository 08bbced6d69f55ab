"""The lanes: the part of the pipeline that searches the corpus.

A lane proposes chunks, and scores those that others propose. ``lexical.py`` and ``semantic.py``
have the lanes; :meth:`Lanes.searches` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.terms import Lane
from rolebundle.contracts.why import SearchAim
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import EmbedderError
from rolebundle.retrieval import lexical
from rolebundle.retrieval.evidence import Evidence, best_by_bm25
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.scoring import scale_by_range
from rolebundle.retrieval.semantic import SemanticLane, open_semantic_lane
from rolebundle.retrieval.values import MIN_SPECIFICITY, Candidate, Pool, Query
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.lexical_index import verify_lexical_indexes
from rolebundle.storage.passages import content_hashes, passages_by_rowid, prefetch_passages
from rolebundle.storage.stored_values import damage_error, grouped

CLEAR_MARGIN = 0.45
"""A document this far ahead of all others in both lanes is what the task asks for."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes, ready to search one corpus for one query.

    Attributes:
        corpus: an open corpus, in a read transaction.
        query: the built query.
        semantic: the semantic lane; ``None`` if it does not run.
        semantic_problem: why the semantic lane cannot run; empty if it runs or was not requested.
        rare_exact: the exact words and phrases of the task that some visible chunks have, and few.
        missing_exact: the exact words and phrases that no visible chunk has.
        only_facts: whether they search remembered facts, and not documents.
    """

    corpus: Corpus
    query: Query
    semantic: SemanticLane | None = None
    semantic_problem: str = ""
    rare_exact: Sequence[str] = ()
    missing_exact: Sequence[str] = ()
    only_facts: bool = False

    @property
    def searches(self) -> list[lexical.WordSearch | SemanticLane]:
        """What is searched, each by its own scores."""
        words = lexical.word_searches(
            self.corpus, self.query, self.rare_exact, only_facts=self.only_facts
        )
        return [*words, self.semantic] if self.semantic else [*words]

    def propose(self, pool: Pool, depth: int, within: Sequence[int] | None = None) -> Pool:
        """The pool with what the lanes propose, each chunk with the true scores of all lanes.

        Args:
            pool: the hits of the rounds before.
            depth: how many chunks each lane may propose.
            within: rowids of the documents to search in; ``None`` for all.
        """
        seconds, searches = dict(pool.seconds), self.searches
        proposed: dict[SearchAim, dict[int, float]] = {}
        for search in searches:
            with _timed(seconds, search.lane):
                proposed[search.aim] = search.propose(depth, within)
        # What an earlier round found keeps its hit, so that it keeps its score.
        new = sorted(set[int]().union(*proposed.values()) - pool.hits.keys())
        prefetch_passages(self.corpus, new)
        scores: dict[SearchAim, dict[int, float]] = {}
        for search in searches:
            with _timed(seconds, search.lane):
                known = proposed[search.aim]
                scores[search.aim] = known | search.score([row for row in new if row not in known])
        passages = passages_by_rowid(self.corpus, new)
        if len(passages) < len(new):
            raise damage_error("a passage that the index names")
        round_number = pool.last_round + (pool.depth > 0)
        lanes = {
            rowid: (*dict.fromkeys(s.lane for s in searches if rowid in proposed[s.aim]),)
            for rowid in new
        }
        hits = {rowid: hit_of(passages[rowid], lanes[rowid], round_number, scores) for rowid in new}
        return Pool(
            hits={**pool.hits, **hits},
            proposed={aim: {**pool.proposed.get(aim, {}), **own} for aim, own in proposed.items()},
            query_fluency=self.semantic.query_fluency if self.semantic else 1.0,
            noise=self.semantic.noise if self.semantic else None,
            depth=depth,
            max_returned=max(map(len, proposed.values())),
            last_round=round_number,
            seconds=seconds,
        )

    def hits_for(self, passages: Sequence[Passage]) -> dict[int, Candidate]:
        """Rowid → the hit that each of these passages would have if every lane had proposed it."""
        rowids = [passage.rowid for passage in passages]
        scores = {
            search.aim: dict.fromkeys(rowids if search.lane == "lexical" else (), 0.0)
            | search.score(rowids)
            for search in self.searches
        }
        both: tuple[Lane, ...] = ("lexical", "semantic")
        near = scores.get("meaning", {})
        return {
            p.rowid: hit_of(p, both if p.rowid in near else both[:1], 0, scores) for p in passages
        }

    def pools_by_wording(self, pool: Pool) -> list[Pool]:
        """The first round's hits as they would be for each wording alone; empty with only one."""
        wordings = self.query.wordings
        if len(wordings) == 1:
            return []
        passages = [hit.passage for hit in pool.hits.values() if hit.round == 0]
        by_wording = map(self._of_wording, range(len(wordings)))
        return [pool._replace(hits=lanes.hits_for(passages)) for lanes in by_wording]

    def _of_wording(self, number: int) -> Lanes:
        lane = self.semantic
        semantic = lane and replace(lane, vector=lane.vectors_by_wording[number])
        query = build_query(self.query.wordings[number].text, None)
        return replace(self, query=query, semantic=semantic)

    def evidence(self, pool: Pool) -> Evidence:
        """What everything visible has of the task's words, before the passages are ranked."""
        hits = sorted(pool.hits.values(), key=lambda hit: hit.passage.chunk_id)
        bm25 = {hit.passage.rowid: hit.bm25 for hit in hits if hit.bm25}
        best = best_by_bm25(bm25)
        words = lexical.word_evidence(self.corpus, self.query, best, only_facts=self.only_facts)
        meaning = (self.semantic.noise, self.semantic.words_exponent) if self.semantic else (None,)
        evidence = words.with_scores(bm25, pool.cosines, *meaning)
        # An exact word that few passages have chooses among them, and so does a clear margin.
        by_role = pool.proposed["role_words"].keys() - pool.proposed["task_words"].keys()
        by_task = [h for h in hits if h.passage.rowid not in by_role or "semantic" in h.lanes]
        stands_out = self.rare_exact or _margin_of_best(by_task) >= CLEAR_MARGIN
        least = MIN_SPECIFICITY if stands_out else 0.0
        # Names and paths tell less about what a role prefers than declarations do.
        undeclared = [row for row in best if not pool.hits[row].passage.document.declares_subject]
        factor = 1 + len(undeclared) / max(1, len(best))
        return evidence._replace(specificity=max(evidence.specificity * factor, least))

    def with_matched_words(self, evidence: Evidence, passages: Iterable[Passage]) -> Evidence:
        """The evidence with the words of further passages."""
        rowids = [passage.rowid for passage in passages if passage.rowid not in evidence.matches]
        if not rowids:
            return evidence
        matches = lexical.matching_words(self.corpus, self.query.content_words, rowids)
        return evidence._replace(matches={**evidence.matches, **matches})

    def seen_by_hash(self, chunk_ids: Sequence[str]) -> dict[str, list[str]]:
        """The hash of each text of these passages → the ids that have this text."""
        known = content_hashes(self.corpus, chunk_ids) if chunk_ids else {}
        return grouped((text, chunk_id) for chunk_id, text in known.items())

    def words_only(self, semantic_problem: str) -> Lanes:
        """The lexical lane alone, and why the semantic lane does not run."""
        return replace(self, semantic=None, semantic_problem=semantic_problem)

    def of_facts(self) -> Lanes:
        """The same for remembered facts."""
        semantic = self.semantic and replace(self.semantic, only_facts=True)
        return replace(self, semantic=semantic, only_facts=True)


def hit_of(
    passage: Passage,
    lanes: tuple[Lane, ...],
    round_number: int,
    scores: Mapping[SearchAim, Mapping[int, float]],
) -> Candidate:
    """The hit of a passage.

    Args:
        passage: the passage.
        lanes: the lanes that proposed it.
        round_number: the round that found it.
        scores: aim of a search → rowid → score.
    """
    task, role, cosine = (
        scores.get(aim, {}).get(passage.rowid) for aim in ("task_words", "role_words", "meaning")
    )
    if task is not None or role is not None:
        # If it has some of the words, both scores of words are known.
        task, role = task or 0.0, role or 0.0
    return Candidate(passage, lanes, round_number, bm25=task, bm25_expansion=role, cosine=cosine)


@contextmanager
def _timed(seconds: dict[Lane, float], lane: Lane) -> Iterator[None]:
    started = perf_counter()
    yield
    seconds[lane] = seconds.get(lane, 0.0) + perf_counter() - started


def open_lanes(corpus: Corpus, query: Query, provider: EmbeddingProvider | None) -> Lanes:
    """The lanes for a query; only the lexical one if the provider is missing or fails.

    Raises:
        CorpusCorrupt: a lexical index does not have what was stored.
    """
    verify_lexical_indexes(corpus)
    semantic, semantic_problem = None, ""
    if provider is not None:
        try:
            semantic = open_semantic_lane(corpus, query, provider).with_shortlist()
        except EmbedderError as error:
            # Law 6: the lexical lane answers, and the bundle says what is missing and why.
            semantic_problem = f"{error.message}; {error.hint}"
    lexical.read_ahead(corpus, query)
    query = lexical.with_corrections(corpus, query)
    rare, absent = lexical.exact_words(corpus, query)
    return Lanes(corpus, query, semantic, semantic_problem, rare, absent)


def _margin_of_best(hits: Sequence[Candidate]) -> float:
    """How far one document is ahead of all others by words and meaning, in [0, 1]."""
    closeness = scale_by_range({h.chunk_id: h.cosine for h in hits if h.cosine is not None})
    best_bm25 = max((hit.bm25 or 0.0 for hit in hits), default=0.0) or 1.0
    scores = dict[str, float]()
    for hit in hits:
        by_words = (hit.bm25 or 0.0) / best_bm25
        score = (closeness.get(hit.chunk_id, 0.0) + by_words) / 2 if closeness else by_words
        document = hit.passage.document.document_id
        scores[document] = max(scores.get(document, 0.0), score)
    first, second, *_ = sorted([*scores.values(), 0.0, 0.0], reverse=True)
    return first - second
