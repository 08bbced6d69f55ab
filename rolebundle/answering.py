"""From a request to its answer: the pipeline's inputs, its bundle, and what is added to that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from rolebundle.access_control import AccessControl
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.registry import ProviderSpec, parse_rerank_spec
from rolebundle.errors import CorpusBusy
from rolebundle.policy.approvals import (
    NOT_FROM_REQUESTS,
    Approvals,
    approval_question,
    ask_program,
    with_approval,
    with_refusal,
)
from rolebundle.policy.overlays import ResolvedOverlay, load_role
from rolebundle.policy.trust import AgentView
from rolebundle.retrieval import pipeline
from rolebundle.retrieval.lookup import chunk_ids_of
from rolebundle.retrieval.passage_text import packet
from rolebundle.retrieval.rank import CHARACTERS_PER_TOKEN
from rolebundle.retrieval.request import ResolvedRequest, resolve_request
from rolebundle.retrieval.rerank import Reranker
from rolebundle.retrieval.source_files import source_warnings, with_paths
from rolebundle.retrieval.why import kept_back
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.decisions import has_decisions
from rolebundle.storage.documents import source_files


class Inputs(NamedTuple):
    """The inputs of the pipeline for one request."""

    corpus: Corpus
    request: ResolvedRequest
    provider: EmbeddingProvider | None
    reranker: Reranker | None
    view: AgentView


class Answering:
    """How an engine answers requests.

    Args:
        access: what agents may see.
        approvals: where approvals come from.
        rerank: the cross-encoder, ``API:MODEL``, that reranks if a request names none. Empty: none.
        rerank_url: the address of its server. Default: the workspace's ``embed_url``.

    Raises:
        ConfigurationError: ``rerank`` names no known API.
    """

    def __init__(
        self, access: AccessControl, approvals: Approvals, rerank: str, rerank_url: str
    ) -> None:
        self.access = access
        self.approvals = approvals
        self._workspace = access.workspace
        self._rerank_url = rerank_url or self._workspace.embed_url
        self.default_rerank = "" if rerank == NO_RERANK else rerank
        if self.default_rerank:
            self._rerank_spec(self.default_rerank)

    def answer(self, request: RetrievalRequest, overlay: ResolvedOverlay | None) -> RetrievalBundle:
        """The answer to a request; see :meth:`rolebundle.engine.Engine.retrieve`."""
        bundle = self._approved_bundle(request, overlay)
        return self._with_packet(bundle, request, overlay) if request.packet else bundle

    def _approved_bundle(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None
    ) -> RetrievalBundle:
        """The answer to a request, with an approval only if it comes from the right source.

        The host's program decides about the passages of the very answer that it releases.
        """
        if self.approvals.source == "request":
            return self._bundle(request, overlay)
        claim = request.approval
        request = request.model_copy(update={"approval": None, "now": request_time(request)})
        bundle = self._bundle(request, overlay)
        agent = self.access.resolve_agent(request.agent)
        if self.approvals.source == "none":
            refusal = NOT_FROM_REQUESTS if claim else ""
        elif "requires_approval" not in bundle.rejected_summary:
            return bundle
        else:
            supposed = self._bundle(request.model_copy(update={"approval": "supposed"}), overlay)
            if not supposed.approvals:
                return bundle
            question = approval_question(request, agent, claim, supposed)
            decision = ask_program(self.approvals.command, question)
            if decision.approved_by:
                return with_approval(supposed, decision.approved_by)
            refusal = decision.refusal
        if not refusal:
            return bundle
        self._workspace.recorder.note(
            self._workspace.corpus,
            "approval",
            agent=agent,
            role=request.role,
            action=request.action or "read",
            details={"claim": claim or "", "refused": refusal},
        )
        return with_refusal(bundle, refusal)

    def _bundle(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None
    ) -> RetrievalBundle:
        update: dict[str, object] = {}
        with self.inputs(request, overlay) as inputs:
            corpus, resolved, view = inputs.corpus, inputs.request, inputs.view
            bundle = pipeline.retrieve(corpus, resolved, inputs.provider, inputs.reranker)
            if has_decisions(corpus):
                from rolebundle.verification.decisions import constraints_on

                constraints = constraints_on(corpus, resolved, view, inputs.provider)
                update["constraints"] = constraints or None
            files = source_files(corpus, [chunk.chunk_id for chunk in bundle.selected])
        # After the snapshot, because it may take a second.
        if view.show_paths:
            update["selected"] = with_paths(bundle.selected, files)
        update["warnings"] = [*bundle.warnings, *source_warnings(files)]
        if resolved.quarantined and self.access.is_owner(request.agent):
            update["kept_back"] = kept_back(self._workspace.corpus, request.task) or None
        return bundle.model_copy(update=update)

    def _with_packet(
        self, bundle: RetrievalBundle, request: RetrievalRequest, overlay: ResolvedOverlay | None
    ) -> RetrievalBundle:
        """The answer with its packet, which is made last, because it repeats the warnings.

        Raises:
            CorpusBusy: the role's overlay was written in this moment.
        """
        if overlay is None and request.role is not None:
            overlay = load_role(request.role, self.access.overlay_folders)
        if overlay and (bundle.overlay is None or bundle.overlay.digest != overlay.digest):
            raise CorpusBusy(
                "overlay_changed",
                f"the overlay of {overlay.overlay.role_id} was written just now",
                "ask again",
            )
        budgets = [request.max_chars, (request.token_budget or 0) * CHARACTERS_PER_TOKEN]
        max_chars = min(filter(None, budgets), default=None)
        text = packet(bundle, overlay.overlay if overlay else None, max_chars)
        return bundle.model_copy(update={"packet": text})

    @contextmanager
    def inputs(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None
    ) -> Iterator[Inputs]:
        """Resolve the agent, rerank model, overlay and time of a request, and open its view."""
        request = request.model_copy(
            update={
                "agent": self.access.resolve_agent(request.agent),
                "rerank": self._rerank_model(request),
            }
        )
        with self.access.open_view(request.agent) as (corpus, view):
            self.access.check_role(view, request.role, has_own_overlay=overlay is not None)
            if request.seen:
                seen = chunk_ids_of(corpus, request.seen, self.access.reference_scope(view))
                request = request.model_copy(update={"seen": seen})
            if overlay is None and request.role is not None:
                overlay = load_role(request.role, self.access.overlay_folders)
            deadline = None if request.deadline_ms is None else request.deadline_ms / 1000
            with corpus.interruptible(deadline):
                yield Inputs(
                    corpus,
                    resolve_request(
                        request,
                        request_time(request),
                        overlay.overlay if overlay else None,
                        overlay.digest if overlay else "",
                        view,
                    ),
                    None if request.lexical_only else self._workspace.query_provider(corpus),
                    self._reranker(corpus, request, deadline),
                    view,
                )

    def _rerank_model(self, request: RetrievalRequest) -> str | None:
        """The model that reranks the answer to a request; ``None`` for no reranking."""
        model = request.rerank or self.default_rerank
        return None if model in ("", NO_RERANK) else model

    def _reranker(
        self, corpus: Corpus, request: RetrievalRequest, deadline: float | None
    ) -> Reranker | None:
        if request.rerank is None:
            return None

        spec = self._rerank_spec(request.rerank)
        return Reranker(spec, request.task, corpus.raise_if_interrupted, deadline)

    def _rerank_spec(self, model: str) -> ProviderSpec:
        return parse_rerank_spec(model, self._rerank_url, self._workspace.allow_host)


def request_time(request: RetrievalRequest) -> datetime:
    """The time that a request names, or now."""
    # Whole seconds, as in the bundle, so that a replay computes the same ages.
    return (request.now or request.as_of or datetime.now(UTC)).replace(microsecond=0)
