"""Both lanes: the part of the pipeline that searches the corpus.

The semantic lane computes the cosine with the task's vector. The lexical lane is in ``lexical.py``.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from rolebundle.contracts.documents import ModelIdentity, Noise, Passage
from rolebundle.contracts.terms import Lane
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.errors import EmbedderError
from rolebundle.retrieval import lexical
from rolebundle.retrieval.candidate import Hit, Pool, Query
from rolebundle.retrieval.evidence import Evidence, best_by_words
from rolebundle.retrieval.passage_text import Closeness
from rolebundle.retrieval.query import build_query
from rolebundle.storage import compartments, vector_index, vector_search
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.lexical_index import verify_lexical_indexes
from rolebundle.storage.passages import content_hashes, passages_by_rowid, prefetch_passages
from rolebundle.storage.stored_values import DAMAGE_HINT, damaged
from rolebundle.storage.vector_index import EmbeddingIndex, vectors_problem

POOL_DEPTH = 100
"""How many chunks each lane proposes at first; what the agent has seen is in addition.

It does not depend on the limit, so the first passages do not depend on it either."""
MAX_DEPTH = 4_096
"""The bound of law 2: a lane is not asked for more than this many chunks at once."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes, ready to search one corpus for one query.

    Attributes:
        corpus: an open corpus, in a read transaction.
        query: the built query.
        index: the embedding index; ``None`` if the semantic lane does not run.
        vector: the query's unit vector, float32.
        vectors: the unit vectors of its wordings, if there are several.
        confidence: how well the model reads the query, in (0, 1]; its scores are multiplied with
            this.
        degraded: why the semantic lane cannot run; empty if it runs or was not requested.
        noise: what the model's cosines mean; ``None`` if the semantic lane does not run.
        rare_exact: the exact words and phrases of the task that some visible chunks have, and few.
        absent_exact: the exact words and phrases that no visible chunk has.
        shortlist: what may be among the ``POOL_DEPTH`` nearest documents' chunks, if it is known.
        only_facts: whether they search remembered facts, and not documents.
    """

    corpus: Corpus
    query: Query
    index: EmbeddingIndex | None = None
    vector: bytes = b""
    vectors: Sequence[bytes] = ()
    confidence: float = 1.0
    degraded: str = ""
    noise: Noise | None = None
    rare_exact: Sequence[str] = ()
    absent_exact: Sequence[str] = ()
    shortlist: Sequence[int] | None = None
    only_facts: bool = False

    def propose(self, pool: Pool, depth: int, within: Sequence[int] | None = None) -> Pool:
        """The pool with what the lanes propose, each chunk with the true scores of both lanes.

        Args:
            pool: the hits of the searches before.
            depth: how many chunks each lane may propose.
            within: rowids of the documents to search in; ``None`` for all.
        """
        started = perf_counter()
        nearest: dict[int, float] = {}
        if self.index is not None:
            is_first = depth == POOL_DEPTH and not self.only_facts
            found = vector_search.search(
                self.corpus,
                self.index,
                self.vector,
                depth,
                within,
                only_facts=self.only_facts,
                shortlist=self.shortlist if is_first else None,
            )
            nearest = dict(sorted(found))
        semantic_seconds = perf_counter() - started

        started = perf_counter()
        by_task, by_role = lexical.propose(
            self.corpus, self.query, depth, within, self.rare_exact, only_facts=self.only_facts
        )
        proposed = by_task.keys() | by_role.keys()
        # What an earlier search found keeps its hit, so that it keeps its score.
        new = sorted((proposed | nearest.keys()) - pool.hits.keys())
        scores = lexical.score(self.corpus, self.query, new, only_facts=self.only_facts)
        lexical_seconds = perf_counter() - started

        started = perf_counter()
        found_rowids = [rowid for rowid in new if rowid in scores or rowid in nearest]
        prefetch_passages(self.corpus, found_rowids)
        cosines = self._cosines([rowid for rowid in new if rowid not in nearest]) | nearest
        semantic_seconds += perf_counter() - started
        passages = passages_by_rowid(self.corpus, found_rowids)
        if len(passages) < len(found_rowids):
            raise damaged("a passage that the index names")
        refills = pool.refills + (pool.depth > 0)
        lanes: tuple[tuple[Lane, Container[int]], ...] = (
            ("lexical", proposed & scores.keys()),
            ("semantic", nearest),
        )
        hits = {
            rowid: Hit(
                passages[rowid],
                tuple(lane for lane, found in lanes if rowid in found),
                refills,
                bm25,
                bm25_expansion,
                cosines.get(rowid),
            )
            for rowid in found_rowids
            for bm25, bm25_expansion in [scores.get(rowid, (None, None))]
        }
        return Pool(
            hits={**pool.hits, **hits},
            by_task={**pool.by_task, **by_task},
            by_role={**pool.by_role, **by_role},
            only_by_role=pool.only_by_role if refills else by_role.keys() - by_task.keys(),
            confidence=self.confidence,
            depth=depth,
            yielded=max(len(by_task), len(by_role), len(nearest)),
            refills=refills,
            lexical_seconds=pool.lexical_seconds + lexical_seconds,
            semantic_seconds=pool.semantic_seconds + semantic_seconds,
        )

    def measure(self, passages: Sequence[Passage]) -> dict[int, Hit]:
        """Rowid → the hit that each of these passages would have if every lane had proposed it."""
        rowids = [passage.rowid for passage in passages]
        scores = lexical.score(self.corpus, self.query, rowids, only_facts=self.only_facts)
        cosines = self._cosines(rowids)
        return {
            passage.rowid: Hit(
                passage,
                ("lexical", "semantic") if passage.rowid in cosines else ("lexical",),
                0,
                *scores.get(passage.rowid, (0.0, 0.0)),
                cosines.get(passage.rowid),
            )
            for passage in passages
        }

    def wordings(self, pool: Pool) -> list[Pool]:
        """The first search's hits as they would be for each wording alone; empty with only one."""
        tasks = self.query.tasks
        if len(tasks) == 1:
            return []
        passages = [hit.passage for hit in pool.hits.values() if hit.round == 0]
        return [
            pool._replace(hits=replace(self, query=query, vector=vector).measure(passages))
            for task, vector in zip(tasks, self.vectors or [b""] * len(tasks), strict=True)
            for query in [build_query(task.text, None)]
        ]

    def evidence(self, pool: Pool) -> Evidence:
        """What everything visible has of the task's words, before the passages are ranked."""
        hits = sorted(pool.hits.values(), key=lambda hit: hit.passage.chunk_id)
        bm25 = {hit.passage.rowid: hit.bm25 for hit in hits if hit.bm25}
        words = lexical.task_words(
            self.corpus, self.query, best_by_words(bm25), only_facts=self.only_facts
        )
        return words.with_meaning(bm25, pool.cosines, self.noise, self.confidence)

    def with_matched_words(self, evidence: Evidence, passages: Iterable[Passage]) -> Evidence:
        """The evidence with the words of further passages."""
        known = evidence.matches
        rowids = [passage.rowid for passage in passages if passage.rowid not in known]
        if not rowids:
            return evidence
        matches = lexical.matching_words(self.corpus, self.query.content_words, rowids)
        return evidence._replace(matches={**known, **matches})

    def seen_texts(self, chunk_ids: Sequence[str]) -> dict[str, list[str]]:
        """The hash of each text of these passages → the ids that have this text."""
        ids: dict[str, list[str]] = {}
        known = content_hashes(self.corpus, chunk_ids) if chunk_ids else {}
        for chunk_id, text in known.items():
            ids.setdefault(text, []).append(chunk_id)
        return ids

    def words_only(self, degraded: str) -> Lanes:
        """The lexical lane alone, and why the semantic lane does not run."""
        return replace(self, index=None, noise=None, confidence=1.0, degraded=degraded)

    def without_vector(self) -> int:
        """How many chunks the semantic lane cannot find, because they have no vector yet."""
        if self.index is None:
            return 0
        vectors = vector_index.current_counts(self.corpus, self.index.id)
        return sum(
            compartment.chunks - vectors.get(compartment.id, 0)
            for compartment in compartments.searchable_compartments(self.corpus, with_facts=True)
            if compartment.is_of_facts is self.only_facts
        )

    def _cosines(self, rowids: Sequence[int]) -> dict[int, float]:
        if self.index is None or not rowids:
            return {}
        return vector_search.score(self.corpus, self.index, self.vector, rowids)


def open_lanes(corpus: Corpus, query: Query, provider: EmbeddingProvider | None) -> Lanes:
    """The lanes for a query; only the lexical one if the provider is missing or fails.

    Raises:
        CorpusCorrupt: a lexical index does not have what was stored.
    """
    verify_lexical_indexes(corpus)
    lanes = _open_both(Lanes(corpus, query), provider)
    if corpus.is_database:
        lanes = _with_first_reads(lanes)
    query = lexical.with_corrections(corpus, query)
    exact, absent = lexical.exact_words(corpus, query)
    return replace(lanes, query=query, rare_exact=exact, absent_exact=absent)


def _with_first_reads(lanes: Lanes) -> Lanes:
    """The lanes after one round trip that reads the query's words and the nearest vectors."""
    corpus, shortlist = lanes.corpus, None
    if lanes.index is not None:
        shortlist = vector_search.shortlist_in_memory(corpus, lanes.index, lanes.vector, POOL_DEPTH)
        corpus.vectors.prefetch(corpus, lanes.index.id, shortlist or ())
    lexical.read_words(corpus, lanes.query)
    return replace(lanes, shortlist=shortlist)


def _open_both(lexical_lane: Lanes, provider: EmbeddingProvider | None) -> Lanes:
    """The lanes with the semantic one, or with the reason why it does not run."""
    corpus, query = lexical_lane.corpus, lexical_lane.query
    if provider is None:
        return lexical_lane
    try:
        index = usable_index(corpus, provider)
        if problem := vectors_problem(corpus, index):
            return replace(lexical_lane, degraded=f"{problem}; {DAMAGE_HINT}")
        corpus.load_vectors()
        vector, *vectors = query_vectors(query, provider)
        return replace(
            lexical_lane,
            index=index,
            vector=vector,
            vectors=vectors,
            confidence=query_confidence(query, provider),
            noise=noise_for(index, provider),
        )
    except EmbedderError as error:
        # Law 6: the lexical lane answers, and the bundle says what is missing and why.
        return replace(lexical_lane, degraded=f"{error.message}; {error.hint}")


def noise_for(index: EmbeddingIndex | None, provider: EmbeddingProvider) -> Noise:
    """What a provider's cosines mean: as the index of its model knows it, or measured now.

    Raises:
        EmbedderError: it could not be measured.
    """
    if index is not None and index.noise and index.identity.model == provider.identity:
        return index.noise
    return noise_of(provider)


def usable_index(corpus: Corpus, provider: EmbeddingProvider) -> EmbeddingIndex:
    """The corpus's embedding index, if its vectors may be compared with this provider's (law 5).

    Raises:
        EmbedderError: there is no index, or another model made it.
    """
    index = vector_index.active_index(corpus)
    if index is None:
        raise EmbedderError(
            "no_index",
            "the corpus has no embedding index",
            "run `rolebundle corpus embed`",
        )
    query_model, index_model = provider.identity, index.identity.model
    if query_model != index_model:
        raise EmbedderError(
            "model_mismatch",
            f"the index was made by {_described(index_model)}, the query would be by "
            f"{_described(query_model)}",
            f"run `rolebundle corpus embed --model {query_model.choice}` "
            "to build an index of this model, or use the index's own model",
        )
    return index


def _described(model: ModelIdentity) -> str:
    return f"{model.provider}:{model.model} ({model.dimensions} dimensions, digest {model.digest})"


def query_vectors(query: Query, provider: EmbeddingProvider) -> list[bytes]:
    """The unit vector of the task, as float32 bytes.

    With other wordings: the unit vector of the mean of all, then the vector of each.

    Raises:
        EmbedderError: the model could not embed the query.
    """
    texts = [task.text for task in query.tasks]
    vectors = unit_vectors(provider.embed_queries(texts), len(texts), provider.identity.dimensions)
    if len(texts) > 1:
        mean = unit_vectors(vectors.mean(axis=0)[None], 1, provider.identity.dimensions)
        return [bytes(vector.tobytes()) for vector in (*mean, *vectors)]
    return [bytes(vectors[0].tobytes())]


def closeness_to(query: Query, provider: EmbeddingProvider) -> Closeness | None:
    """Compares sentences with the task, to choose the part of a long passage that answers.

    ``None`` for models that need longer for the sentences of an answer than for its search.
    """
    if provider.identity.provider != "static":
        return None

    # A vector of a text without a word is zero, which is near nothing.
    own = provider.embed_queries([task.text for task in query.tasks]).mean(axis=0)
    return lambda texts: [float(cosine) for cosine in provider.embed_passages(texts) @ own]


def query_confidence(query: Query, provider: EmbeddingProvider) -> float:
    """How well the model reads the query, in (0, 1].

    Raises:
        EmbedderError: the model cannot be used.
    """
    fluency = getattr(provider, "fluency", None)  # Only some models can tell.
    return float(fluency(query.task.text)) if fluency else 1.0
