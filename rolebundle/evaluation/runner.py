"""Rank documents for a question by each lane, each fusion and the governed answer.

Lanes and fusions are the pipeline's, without an overlay. The governed answer comes from the engine,
as for any agent. A document's rank is the rank of its best chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.evaluation import System
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import Fusion, WarningCode
from rolebundle.engine import Engine
from rolebundle.evaluation.questions import Question
from rolebundle.retrieval.candidate import Retrieval
from rolebundle.retrieval.lanes import open_lanes
from rolebundle.retrieval.pipeline import run
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import resolve_request
from rolebundle.storage.content.passages import passage_by_id

MAX_BEST = 10
"""How many ids of the governed ranking a report has for each question."""


@dataclass(frozen=True, slots=True)
class GovernedAnswer:
    """The governed answer to a question, its ranking, and the milliseconds it took."""

    bundle: RetrievalBundle
    ranked: list[str]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The answers of all systems to a question.

    Attributes:
        rankings: the ranking of each system; without an entry for one that did not run.
        governed: the governed answer.
        degraded_reason: why a lane or the reranking did not run; empty if all ran.
    """

    rankings: dict[System, list[str]]
    governed: GovernedAnswer
    degraded_reason: str


class Runner:
    """Ask the questions.

    Args:
        engine: the engine with the corpus.
        lexical_only: search words only, without embeddings.
    """

    def __init__(self, engine: Engine, *, lexical_only: bool = False) -> None:
        self._engine = engine
        self._lexical_only = lexical_only
        self._documents: dict[str, str] = {}

    def answer(self, question: Question) -> Answer:
        """Return every system's ranking for a question."""
        weighted = self._run(question, "weighted")
        degraded_reason = weighted.semantic.degraded or weighted.semantic.substitute
        hits = weighted.pool.hits
        lexical = {
            rowid: hit.bm25 for rowid, hit in hits.items() if hit.bm25 and "lexical" in hit.lanes
        }
        rankings: dict[System, list[str]] = {"lexical": self._lane(question, weighted, lexical)}
        if not self._lexical_only and not degraded_reason:
            semantic = {
                rowid: hit.cosine
                for rowid, hit in hits.items()
                if hit.cosine is not None and "semantic" in hit.lanes
            }
            rankings["semantic"] = self._lane(question, weighted, semantic)
            rankings["weighted"] = self._ranked(question, weighted)
            rankings["rrf"] = self._ranked(question, self._run(question, "rrf"))
        governed = self.governed(question, question.role)
        degraded_reason = degraded_reason or _warning(governed.bundle, "RERANK_DEGRADED")
        rankings["governed"] = governed.ranked
        return Answer(rankings, governed, degraded_reason)

    def governed(self, question: Question, role: str | None) -> GovernedAnswer:
        """Return the answer that an agent with this role gets.

        Its ranking is the selected passages, then those that the limit or the token budget cut, in
        rank order.
        """
        request = RetrievalRequest(
            task=question.task,
            role=role,
            limit=question.limit,
            lexical_only=self._lexical_only,
            now=question.now,
        )
        # Set without validation: a golden set may test an agent id that a request refuses.
        request = request.model_copy(update={"agent": question.agent or None})
        started = perf_counter()
        bundle = self._engine.retrieve(request)
        milliseconds = (perf_counter() - started) * 1000
        for chunk in bundle.selected:
            self._documents[chunk.chunk_id] = chunk.document_id
        chunks = [chunk.chunk_id for chunk in bundle.selected]
        chunks += [cut.chunk_id for cut in bundle.rejected if cut.reason == "budget_cut"]
        return GovernedAnswer(bundle, self._judged_ids(question, chunks), milliseconds)

    def document_of(self, chunk_id: str) -> str:
        """Return the document of a chunk that an answer has."""
        if chunk_id not in self._documents:
            passage = passage_by_id(self._engine.workspace.corpus, chunk_id)
            # A missing chunk was removed after the answer. Its id begins with the document's id.
            document = passage.document.document_id if passage else chunk_id.rpartition("#")[0]
            self._documents[chunk_id] = document
        return self._documents[chunk_id]

    def _run(self, question: Question, fusion: Fusion) -> Retrieval:
        corpus = self._engine.workspace.corpus
        request = RetrievalRequest(
            task=question.task,
            limit=question.limit,
            lexical_only=self._lexical_only,
            fusion=fusion,
            now=question.now,
        )
        provider = None if self._lexical_only else self._engine.workspace.query_provider(corpus)
        resolved = resolve_request(request, question.now)
        with corpus.reading():
            lanes = open_lanes(corpus, build_query(resolved.task, resolved.overlay), provider)
            result = run(lanes, resolved)
        for row in result.candidates:
            self._documents[row.chunk_id] = row.passage.document.document_id
        return result

    def _lane(
        self, question: Question, result: Retrieval, scores: Mapping[int, float]
    ) -> list[str]:
        """The ranking by the scores of a lane, which are by rowid."""
        chunks = {
            row.chunk_id: scores[row.passage.rowid]
            for row in result.candidates
            if row.passage.rowid in scores
        }
        best_first = sorted(chunks, key=lambda chunk: (-chunks[chunk], chunk))
        return self._judged_ids(question, best_first)

    def _ranked(self, question: Question, result: Retrieval) -> list[str]:
        # Without an overlay metadata and vocabulary are equal for all, so only the lanes decide.
        return self._judged_ids(question, (row.chunk_id for row in result.ranked))

    def _judged_ids(self, question: Question, chunks: Iterable[str]) -> list[str]:
        """The ids of the documents or passages that are judged, each at its first rank."""
        judged_ids = (question.judged_id(chunk, self.document_of(chunk)) for chunk in chunks)
        return list(dict.fromkeys(judged_ids))


def _warning(bundle: RetrievalBundle, code: WarningCode) -> str:
    return next((warning.message for warning in bundle.warnings if warning.code == code), "")
