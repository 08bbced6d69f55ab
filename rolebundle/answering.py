"""From a request to its bundle: who asks, with which role and action, and what the audit needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.access_control import AccessControl
from rolebundle.contracts.bundle import KeptBack, RetrievalBundle
from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.embedding.provider import EmbeddingProvider, ProviderSpec
from rolebundle.embedding.registry import parse_rerank_spec
from rolebundle.embedding.static import StaticProvider
from rolebundle.errors import AccessDenied, EmbedderError
from rolebundle.lazy import lazy_module
from rolebundle.policy.approvals import NOT_FROM_REQUESTS, approval_question, ask_program
from rolebundle.policy.audit import AuditNeeds
from rolebundle.policy.overlays import ResolvedOverlay, load_role
from rolebundle.retrieval import pipeline
from rolebundle.retrieval.bundle import bundle_of
from rolebundle.retrieval.passage_text import one_line
from rolebundle.retrieval.request import ResolvedRequest, resolve_request
from rolebundle.retrieval.rerank import Reranker
from rolebundle.retrieval.semantic import cosines_with_task
from rolebundle.retrieval.source_files import are_reachable, shown_path, source_warnings
from rolebundle.retrieval.values import Retrieval
from rolebundle.retrieval.warnings import may_lack_documents
from rolebundle.storage.corpus import Corpus, corpus_contents
from rolebundle.storage.documents import StoredFile, files_of_chunks
from rolebundle.storage.file import indexing_path, is_held
from rolebundle.text.words import first_of

# What few answers need is loaded by them.
if TYPE_CHECKING:
    from rolebundle.retrieval import why as why_module
else:
    why_module = lazy_module("rolebundle.retrieval.why")


_FEW_WITHOUT_VECTOR = 0.1
"""While chunks are being embedded, a smaller share without a vector is not reported."""


class Inputs(NamedTuple):
    """The inputs of the pipeline for one request."""

    corpus: Corpus
    request: ResolvedRequest
    provider: EmbeddingProvider | None
    reranker: Reranker | None


class Answering:
    """How an engine answers requests.

    Args:
        access: what agents may see.
        approver: what :func:`rolebundle.policy.approvals.parse_approvals` returns.
        rerank: the cross-encoder, ``rerank:MODEL`` or ``folder:PATH``, that reranks if a request
            names none. Empty: none.
        rerank_url: the address of its server. Default: the workspace's ``embed_url``.

    Raises:
        ConfigurationError: ``rerank`` names no known API.
    """

    def __init__(
        self, access: AccessControl, approver: Sequence[str] | None, rerank: str, rerank_url: str
    ) -> None:
        self.access = access
        self.approver = approver
        self._workspace = access.workspace
        self._rerank_url = rerank_url or self._workspace.embed_url
        self.default_rerank = "" if rerank == NO_RERANK else rerank
        if self.default_rerank:
            self._rerank_spec(self.default_rerank)

    def answer(
        self,
        request: RetrievalRequest,
        overlay: ResolvedOverlay | None,
        now: datetime | None = None,
    ) -> RetrievalBundle:
        """Answer a request, and record it; see :meth:`rolebundle.engine.Engine.retrieve`."""
        claimed_approver = request.approval
        if self.approver is not None:
            request = request.model_copy(update={"approval": None})
        approved_retrieval: Retrieval | None = None
        with self.open_inputs(request, overlay, now) as inputs:
            retrieval, files = _search(inputs, inputs.request)
            if self.approver and retrieval.waits_for_approval:
                # Nobody has approved yet, so the name is a placeholder.
                approved_retrieval, approved_files = _search(
                    inputs, inputs.request.with_approval("(not approved)")
                )
            audit_needs = AuditNeeds.of(inputs.corpus)
            cosines_of = None
            if request.packet and inputs.provider is not None and not retrieval.semantic_problem:
                with suppress(EmbedderError):  # Without it, words alone choose the parts.
                    cosines_of = cosines_with_task(retrieval.query, StaticProvider())
        # After the snapshot, because the host's program and the files may take a while.
        agent = inputs.request.echo.agent
        approved_by, refusal = self._approval(request, agent, claimed_approver, approved_retrieval)
        if approved_retrieval is not None and approved_by:
            approved = inputs.request.with_approval(approved_by)
            retrieval, files = replace(approved_retrieval, request=approved), approved_files
        absolute_paths = {id_: shown_path(file.location, file.path) for id_, file in files.items()}
        terms = retrieval.query.task.terms
        kept_back: list[KeptBack] = []
        file_warnings = source_warnings(files.values())
        # A request without an agent is the owner's: with a policy, `open_inputs` refuses it.
        if inputs.request.view.quarantined and agent is None:
            kept_back = why_module.kept_back(self._workspace.corpus, terms)
        if agent is None and request.deadline_ms is None and not retrieval.all_selected:
            file_warnings["SOURCE_CHANGED"] = self._files_not_ingested(request.task)
        # What was not read has no metadata by which a policy could tell who may see it.
        if not retrieval.request.view.access_level:
            note = self._workspace.unread_note(request.task, may_lack_documents(retrieval))
            file_warnings["INDEX_STALE"] = note
        few = _FEW_WITHOUT_VECTOR * retrieval.corpus_state.chunks
        if 0 < retrieval.without_vector < few and is_held(indexing_path(self._workspace.path)):
            retrieval = replace(retrieval, without_vector=0)
        bundle = bundle_of(
            replace(
                retrieval,
                refusal=refusal,
                absolute_paths=absolute_paths if inputs.request.view.show_paths else {},
                file_warnings=file_warnings,
                kept_back=kept_back,
                with_corpus=self._workspace.advice if inputs.request.view.show_paths else str,
            ),
            cosines_of,
        )

        def hidden() -> dict[str, int]:
            return why_module.count_hidden(self._workspace.corpus, agent, terms)

        self._workspace.recorder.record_answer(audit_needs, bundle, agent, request.action, hidden)
        return bundle

    def _files_not_ingested(self, task: str) -> str:
        """The files that may explain an answer without passages, and what to do."""
        from rolebundle.ingest.unread import unread_files

        corpus = self._workspace.corpus
        with corpus.reading():
            files = [*unread_files(corpus, task, are_reachable)]
        return f"{first_of([*map(one_line, files)], 5)}; run `rolebundle ingest`" if files else ""

    def _approval(
        self,
        request: RetrievalRequest,
        agent: str | None,
        claimed_approver: str | None,
        approved_retrieval: Retrieval | None,
    ) -> tuple[str, str]:
        """Who approves the action of a request, or why it is not approved; a refusal is recorded.

        Args:
            request: what was asked.
            agent: the agent that asks.
            claimed_approver: the name that the request gives.
            approved_retrieval: the retrieval that an approval would allow; ``None`` if no candidate
                needs one, or if nobody can approve.
        """
        approved_by = refusal = ""
        if claimed_approver and self.approver is not None and not self.approver:
            refusal = NOT_FROM_REQUESTS
        elif self.approver and approved_retrieval and approved_retrieval.selected_by_approval:
            # The program decides about the passages of the very answer that it releases.
            released = [row.passage for row in approved_retrieval.selected_by_approval]
            question = approval_question(request, agent, claimed_approver, released)
            approved_by, refusal = ask_program(self.approver, question)
        if refusal:
            self._workspace.record_event(
                "approval",
                agent=agent,
                role=request.role,
                action=request.action or "read",
                details={"claim": claimed_approver or "", "refused": refusal},
            )
        return approved_by, refusal

    @contextmanager
    def open_inputs(
        self,
        request: RetrievalRequest,
        overlay: ResolvedOverlay | None,
        now: datetime | None = None,
    ) -> Iterator[Inputs]:
        """Resolve the agent, rerank model, overlay and time of a request, and open its view."""
        model = request.rerank or self.default_rerank
        request = request.model_copy(
            update={
                "agent": self.access.resolve_agent(request.agent),
                "rerank": None if model in ("", NO_RERANK) else model,
            }
        )
        with self.access.open_view(request.agent) as (corpus, view):
            self.access.check_role(view, request.role, has_own_overlay=overlay is not None)
            self.access.check_time(view, request.now or request.as_of)
            if request.seen:
                from rolebundle.retrieval.lookup import chunk_ids_of

                seen = chunk_ids_of(corpus, request.seen, self.access.reference_rules(view))
                request = request.model_copy(update={"seen": seen})
            if overlay is None and request.role is not None:
                overlay = load_role(request.role, self.access.overlay_folders)
            deadline = None if request.deadline_ms is None else request.deadline_ms / 1000
            with corpus.interruptible(deadline):
                yield Inputs(
                    corpus,
                    resolve_request(
                        request,
                        request_time(request, now),
                        overlay.overlay if overlay else None,
                        overlay.digest if overlay else "",
                        view,
                    ),
                    None if request.lexical_only else self._workspace.query_provider(corpus),
                    self._reranker(corpus, request, deadline),
                )

    def _reranker(
        self, corpus: Corpus, request: RetrievalRequest, deadline: float | None
    ) -> Reranker | None:
        if request.rerank is None:
            return None
        spec = self._rerank_spec(request.rerank)
        if spec.provider == "folder" and request.agent and request.rerank != self.default_rerank:
            raise AccessDenied(
                "folder_not_named",
                "an agent names no folder of this machine",
                "use the configured model, which the owner names: ROLEBUNDLE_RERANK=folder:PATH",
            )
        return Reranker(spec, request.task, corpus.raise_if_interrupted, deadline)

    def _rerank_spec(self, model: str) -> ProviderSpec:
        return parse_rerank_spec(model, self._rerank_url, self._workspace.allow_host)


def _search(inputs: Inputs, request: ResolvedRequest) -> tuple[Retrieval, dict[str, StoredFile]]:
    """The retrieval for a request, and the files of its selected passages by chunk id."""
    corpus, provider = inputs.corpus, inputs.provider
    retrieval = pipeline.search(corpus, request, provider, inputs.reranker)
    if corpus_contents(corpus).has_decisions:
        from rolebundle.memory.intents import constraints_on

        constraints = constraints_on(corpus, request, provider)
        retrieval = replace(retrieval, constraints=constraints)
    return retrieval, files_of_chunks(corpus, [row.chunk_id for row in retrieval.all_selected])


def request_time(request: RetrievalRequest, now: datetime | None = None) -> datetime:
    """The time that a request names, or now."""
    # Whole seconds, as in the bundle, so that a replay computes the same ages.
    return (request.now or request.as_of or now or datetime.now(UTC)).replace(microsecond=0)
