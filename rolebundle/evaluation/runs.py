"""For each question the ranked documents of each lane, each fusion and the governed answer.

The lanes and the fusions are the pipeline's own, run with no overlay. The governed answer comes
through the same door as any other request. Chunks are folded to documents by the best chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.evaluation import System
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import Fusion, WarningCode
from rolebundle.evaluation.questions import Question
from rolebundle.retrieval.pipeline import Run, run
from rolebundle.retrieval.request import resolve_request
from rolebundle.storage import documents
from rolebundle.workspace import Workspace

BEST = 10


class Retriever(Protocol):
    """What is measured: an engine."""

    @property
    def workspace(self) -> Workspace:
        """The corpus, and the model that embeds queries."""

    def retrieve(self, request: RetrievalRequest) -> RetrievalBundle:
        """Answer a request."""


@dataclass(frozen=True, slots=True)
class Governed:
    """The governed answer to one question, and how long it took."""

    bundle: RetrievalBundle
    ranked: list[str]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What each system ranked for one question. A lane that did not run has no ranking."""

    rankings: dict[System, list[str]]
    governed: Governed
    degraded: str


class Runner:
    """Asks one corpus many questions.

    Args:
        retriever: the engine.
        lexical_only: do without embeddings.
    """

    def __init__(self, retriever: Retriever, *, lexical_only: bool = False) -> None:
        self._retriever = retriever
        self._lexical_only = lexical_only
        self._documents: dict[str, str] = {}

    def answer(self, question: Question) -> Answer:
        """Every system's ranking."""
        weighted = self._run(question, "weighted")
        degraded = weighted.lane.degraded
        rankings: dict[System, list[str]] = {"lexical": self._lexical(question, weighted)}
        if not self._lexical_only and not degraded:
            rankings["semantic"] = self._semantic(question, weighted)
            rankings["weighted"] = self._ranked(question, weighted)
            rankings["rrf"] = self._ranked(question, self._run(question, "rrf"))
        governed = self.governed(question, question.role)
        degraded = degraded or _said(governed.bundle, "RERANK_DEGRADED")
        rankings["governed"] = governed.ranked
        return Answer(rankings, governed, degraded)

    def governed(self, question: Question, role: str | None) -> Governed:
        """The answer that an agent of a role gets.

        Its ranking is what was selected, and then what only the limit kept out, in its order.
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
        bundle = self._retriever.retrieve(request)
        milliseconds = (perf_counter() - started) * 1000
        for chunk in bundle.selected:
            self._documents[chunk.chunk_id] = chunk.document_id
        chunks = [chunk.chunk_id for chunk in bundle.selected]
        chunks += [one.chunk_id for one in bundle.rejected if one.reason == "budget_cut"]
        return Governed(bundle, self._folded(question, chunks), milliseconds)

    def document_of(self, chunk_id: str) -> str:
        """The document of a chunk that some answer named."""
        if chunk_id not in self._documents:
            passage = documents.passage_by_id(self._retriever.workspace.corpus, chunk_id)
            # Gone only where the corpus changed meanwhile; its id still says it.
            found = passage.document.document_id if passage else chunk_id.rpartition("#")[0]
            self._documents[chunk_id] = found
        return self._documents[chunk_id]

    def _run(self, question: Question, fusion: Fusion) -> Run:
        corpus = self._retriever.workspace.corpus
        request = RetrievalRequest(
            task=question.task,
            limit=question.limit,
            lexical_only=self._lexical_only,
            fusion=fusion,
            now=question.now,
        )
        provider = None if self._lexical_only else self._retriever.workspace.query_provider(corpus)
        with corpus.reading():
            done = run(corpus, resolve_request(request, question.now), provider)
        for candidate in done.pool.candidates:
            passage = candidate.passage
            self._documents[passage.chunk_id] = passage.document.document_id
        return done

    def _lexical(self, question: Question, done: Run) -> list[str]:
        chunks = _chunk_ids(done)
        scores = {
            chunks[hit.rowid]: hit.bm25
            for hit in done.pool.lexical.values()
            if hit.proposed and hit.bm25 > 0 and hit.rowid in chunks
        }
        return self._folded(question, _best_first(scores))

    def _semantic(self, question: Question, done: Run) -> list[str]:
        chunks = _chunk_ids(done)
        scores = {
            chunks[hit.rowid]: hit.cosine
            for hit in done.pool.semantic.values()
            if hit.proposed and hit.rowid in chunks
        }
        return self._folded(question, _best_first(scores))

    def _ranked(self, question: Question, done: Run) -> list[str]:
        # With no overlay metadata and vocabulary are the same for all: the lanes alone decide.
        return self._folded(question, (one.passage.chunk_id for one in done.ranked))

    def _folded(self, question: Question, chunks: Iterable[str]) -> list[str]:
        units = (question.unit_of(chunk, self.document_of(chunk)) for chunk in chunks)
        return list(dict.fromkeys(units))


def _said(bundle: RetrievalBundle, code: WarningCode) -> str:
    return next((one.message for one in bundle.warnings if one.code == code), "")


def _chunk_ids(done: Run) -> dict[int, str]:
    return {one.passage.rowid: one.passage.chunk_id for one in done.pool.candidates}


def _best_first(scores: dict[str, float]) -> Sequence[str]:
    return sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
