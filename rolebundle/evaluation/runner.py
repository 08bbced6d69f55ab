"""Rank documents for a question by each lane, each fusion and the governed answer.

Lanes and fusions are the pipeline's, without an overlay. The governed answer comes from the engine,
as for any agent. A document's rank is the rank of its best chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from rolebundle.storage import documents

MAX_BEST = 10
"""How many ids of the governed ranking a report has for each question."""


@dataclass(frozen=True, slots=True)
class Governed:
    """The governed answer to a question, its ranking, and the milliseconds it took."""

    bundle: RetrievalBundle
    ranked: list[str]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The ranking of each system for a question. A lane that did not run has none."""

    rankings: dict[System, list[str]]
    governed: Governed
    degraded: str


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
        degraded = weighted.semantic.degraded
        rankings: dict[System, list[str]] = {"lexical": self._lexical(question, weighted)}
        if not self._lexical_only and not degraded:
            rankings["semantic"] = self._semantic(question, weighted)
            rankings["weighted"] = self._ranked(question, weighted)
            rankings["rrf"] = self._ranked(question, self._run(question, "rrf"))
        governed = self.governed(question, question.role)
        degraded = degraded or _warning(governed.bundle, "RERANK_DEGRADED")
        rankings["governed"] = governed.ranked
        return Answer(rankings, governed, degraded)

    def governed(self, question: Question, role: str | None) -> Governed:
        """Return the answer that an agent with this role gets.

        Its ranking is the selected passages, then those that only the limit cut, in rank order.
        """
        request = RetrievalRequest(
            task=question.task,
            role=role,
            limit=question.limit,
            lexical_only=self._lexical_only,
            now=question.now,
        )
        # A golden set may name an agent that no request could: the policy denies it.
        request = request.model_copy(update={"agent": question.agent or None})
        started = perf_counter()
        bundle = self._engine.retrieve(request)
        milliseconds = (perf_counter() - started) * 1000
        for chunk in bundle.selected:
            self._documents[chunk.chunk_id] = chunk.document_id
        chunks = [chunk.chunk_id for chunk in bundle.selected]
        chunks += [cut.chunk_id for cut in bundle.rejected if cut.reason == "budget_cut"]
        return Governed(bundle, self._units(question, chunks), milliseconds)

    def document_of(self, chunk_id: str) -> str:
        """Return the document of a chunk that an answer has."""
        if chunk_id not in self._documents:
            passage = documents.passage_by_id(self._engine.workspace.corpus, chunk_id)
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
        for passage in result.pool.passages.values():
            self._documents[passage.chunk_id] = passage.document.document_id
        return result

    def _lexical(self, question: Question, result: Retrieval) -> list[str]:
        chunks = _chunk_ids(result)
        scores = {
            chunks[hit.rowid]: hit.bm25
            for hit in result.pool.lexical.values()
            if hit.proposed and hit.bm25 > 0 and hit.rowid in chunks
        }
        return self._units(question, _best_first(scores))

    def _semantic(self, question: Question, result: Retrieval) -> list[str]:
        chunks = _chunk_ids(result)
        scores = {
            chunks[hit.rowid]: hit.cosine
            for hit in result.pool.semantic.values()
            if hit.proposed and hit.rowid in chunks
        }
        return self._units(question, _best_first(scores))

    def _ranked(self, question: Question, result: Retrieval) -> list[str]:
        # Without an overlay metadata and vocabulary are equal for all, so only the lanes decide.
        return self._units(question, (candidate.passage.chunk_id for candidate in result.ranked))

    def _units(self, question: Question, chunks: Iterable[str]) -> list[str]:
        units = (question.unit_of(chunk, self.document_of(chunk)) for chunk in chunks)
        return list(dict.fromkeys(units))


def _warning(bundle: RetrievalBundle, code: WarningCode) -> str:
    return next((warning.message for warning in bundle.warnings if warning.code == code), "")


def _chunk_ids(result: Retrieval) -> dict[int, str]:
    return {rowid: passage.chunk_id for rowid, passage in result.pool.passages.items()}


def _best_first(scores: dict[str, float]) -> Sequence[str]:
    return sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
