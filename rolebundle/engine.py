"""What agents may ask of one corpus: retrieve, why, get, compare, check, verify and more.

The command line and the servers call these methods. The methods for the owner of the
corpus are in ``admin/``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolebundle.access_control import AccessControl, check_agent
from rolebundle.answering import Answering, request_time
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.request import (
    NO_RERANK,
    GrepRequest,
    ListRequest,
    MultiGetRequest,
    RetrievalRequest,
)
from rolebundle.errors import AccessDenied, CorpusCorrupt
from rolebundle.lazy import lazy_module
from rolebundle.policy.access import access_denied
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.request import ReferenceRules
from rolebundle.storage.sqlite import Closable
from rolebundle.workspace import Workspace

# What a `retrieve` does not need is loaded by the methods that need it.
if TYPE_CHECKING:
    from rolebundle.contracts import memory
    from rolebundle.contracts.gate import GateReport
    from rolebundle.contracts.lookup import FoundLines, Listing, Lookup, Lookups
    from rolebundle.contracts.policy import AuditKind
    from rolebundle.contracts.upkeep import CorpusStatus
    from rolebundle.contracts.verification import Verification, VerifyRequest
    from rolebundle.contracts.why import Comparison, Why, WhyAsAgent
    from rolebundle.retrieval import listing as listing_module
    from rolebundle.retrieval import lookup as lookup_module
    from rolebundle.retrieval import why as why_module
    from rolebundle.verify.judge import Judge
else:
    listing_module = lazy_module("rolebundle.retrieval.listing")
    lookup_module = lazy_module("rolebundle.retrieval.lookup")
    why_module = lazy_module("rolebundle.retrieval.why")


class Engine(Closable):
    """Governed retrieval over one corpus file. Threads may share it; it answers one at a time.

    Args:
        workspace: the corpus file, or a workspace with its embedding model.
        overlay_folders: the folders with overlays; the first match counts. See
            :func:`rolebundle.policy.overlays.overlay_folders`.
        agent: the only agent that this engine answers. A request of another agent is denied.
        rerank: the cross-encoder, ``rerank:MODEL`` or ``folder:PATH``, that reranks if a request
            names none. Empty: none.
        rerank_url: the address of the reranking model's server. Default: the workspace's
            ``embed_url``.
        approver: the program that approves actions, and its arguments; empty if nobody does.
            ``None``: the request names who did, for a program that fills in the field itself.
        judge: gives an opinion on the sentences that :meth:`verify` calls covered.
        folder: where relative paths in references begin, besides those of the corpus; ``None`` for
            a caller that has no working folder.

    Raises:
        ConfigurationError: ``rerank`` names no known API.
        UsageError: ``agent`` is blank.
    """

    def __init__(
        self,
        workspace: Path | str | Workspace,
        overlay_folders: Sequence[Path] = (),
        *,
        agent: str | None = None,
        rerank: str = "",
        rerank_url: str = "",
        approver: Sequence[str] | None = None,
        judge: Judge | None = None,
        folder: str | None = None,
    ) -> None:
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        self.access = AccessControl(self.workspace, tuple(overlay_folders), agent, folder)
        self.answering = Answering(self.access, approver, rerank, rerank_url)
        self.judge = judge

    def retrieve(
        self,
        request: RetrievalRequest,
        overlay: ResolvedOverlay | None = None,
        now: datetime | None = None,
    ) -> RetrievalBundle:
        """Answer a request.

        Args:
            request: the task and its limits.
            overlay: used instead of the overlay of ``request.role``.
            now: the present. Default: that of the clock. Unlike the time of the request, it needs
                no permission, because no interface of agents has it.

        Raises:
            AccessDenied: the agent may see nothing of this corpus, or may not use this role.
            OverlayError: the role has no valid overlay.
            StorageError: the audit is required, and the answer could not be recorded; or
                ``replica_expired``.
            Interrupted: the request's deadline has passed.
            ConfigurationError: ``request.rerank`` names no known API, or its address is missing.
            UsageError, WrongFile, CorpusCorrupt, StorageError: the corpus cannot be read.
        """
        with self.access.recording_refusals(request.agent, request.role):
            return self.answering.answer(request, overlay, now)

    def why(
        self, request: RetrievalRequest, reference: str, overlay: ResolvedOverlay | None = None
    ) -> Why:
        """Explain why a passage is in the answer to a request, or why it is not.

        Args:
            request: the task and its limits.
            reference: a chunk id, a document id, a path, or ``path:start-end``. If it names
                several passages, the one that ranks best is explained.
            overlay: used instead of the overlay of ``request.role``.

        Raises:
            UsageError: nothing has this reference, or there is no corpus.
            AccessDenied, OverlayError, Interrupted, WrongFile, CorpusCorrupt, StorageError: as for
                :meth:`retrieve`.
        """
        with self.access.recording_refusals(request.agent, request.role):
            if self.answering.approver is not None:
                request = request.model_copy(update={"approval": None})
            with (
                self.access.explaining_missing(reference, request.agent),
                self.answering.open_inputs(request, overlay) as inputs,
            ):
                explanation = why_module.explain(
                    inputs.corpus,
                    inputs.request,
                    reference,
                    self.access.reference_rules(inputs.request.view),
                    inputs.provider,
                    inputs.reranker,
                )
            self._record("why", request.agent, role=request.role, query=request.task, allowed=1)
            return explanation

    def why_as_agent(self, request: RetrievalRequest, reference: str) -> WhyAsAgent:
        """Tell the owner what keeps a passage from an agent. No interface for agents has this.

        Args:
            request: the task, and in ``agent`` the agent in question.
            reference: as for :meth:`why`.

        Raises:
            AccessDenied: this engine answers for an agent.
            UsageError: nothing in the whole corpus has this reference, or no agent was named.
        """
        agent = request.agent or ""
        if self.access.agent is not None:
            raise access_denied()
        check_agent(agent)
        rules = ReferenceRules(absolute=True, folder=self.access.folder)
        why = why_module.why_hidden(self.workspace.answering_corpus, reference, rules, agent)
        if not why.hidden:
            try:
                with self.answering.open_inputs(request, None) as inputs:
                    answer = why_module.explain(
                        inputs.corpus, inputs.request, reference, rules, inputs.provider
                    )
            except AccessDenied as error:
                why = why_module.with_answer(why, error)
            else:
                why = why_module.with_answer(why, answer)
        details = {"as_agent": agent, "rule": why.hidden[0].rule if why.hidden else ""}
        self._record("why", None, role=request.role, query=request.task, details=details)
        return why

    def compare(self, request: RetrievalRequest, roles: Sequence[str]) -> Comparison:
        """Compare what each role gets for one task, at one time and from one snapshot.

        Args:
            request: the task and its limits. Its ``role`` is ignored.
            roles: the roles; repeated ones count once.

        Raises:
            UsageError: no role was named.
            AccessDenied: as for :meth:`retrieve`.
        """
        from rolebundle.retrieval.compare import compare_roles

        return compare_roles(self.retrieve_for_roles(request, roles))

    def retrieve_for_roles(
        self, request: RetrievalRequest, roles: Sequence[str], *, without_role: bool = False
    ) -> list[RetrievalBundle]:
        """Answer a request for each of several roles, at one time and from one snapshot.

        Args:
            request: the task and its limits. Its ``role`` is ignored.
            roles: the roles; repeated ones count once.
            without_role: whether the first answer is one without a role, if the agent may ask
                without one.

        Raises:
            AccessDenied: as for :meth:`retrieve`.
        """
        now = request_time(request)
        with (
            self.access.recording_refusals(request.agent),
            self.access.open_view(request.agent) as (_, view),
        ):
            for role in roles:
                with self.access.recording_refusals(request.agent, role):
                    self.access.check_role(view, role, has_own_overlay=False)
            no_role = [None] if without_role and view.allows_role(None) else []
            return [
                self.retrieve(request.model_copy(update={"role": role}), None, now)
                for role in dict.fromkeys([*no_role, *roles])
            ]

    def get(
        self,
        reference: str,
        agent: str | None = None,
        *,
        outline: bool = False,
        section: str | None = None,
    ) -> Lookup:
        """Look up the passage, document or lines that a reference names.

        Args:
            reference: a chunk id, a document id, a path, ``path:start-end``, or
                ``#id:from:count``. A path is that of the corpus, or one on this machine if the
                agent may learn where files lie.
            agent: the agent that asks.
            outline: whether to give only the headings of its document.
            section: the heading of the document whose text is wanted; ``None`` for no section.

        Raises:
            UsageError: nothing has this reference, the agent may not see it, or the document has
                no such heading.
            AccessDenied: the agent may see nothing of this corpus, or none of its roles may read
                what the reference names.
        """
        with self.access.open_lookup(agent, reference) as (corpus, rules):
            lookup = lookup_module.look_up(
                corpus, reference, rules, outline=outline, section=section
            )
            self._record("get", agent, allowed=len(lookup.passages))
            return lookup

    def multi_get(self, request: MultiGetRequest) -> Lookups:
        """Look up several references or globs, as :meth:`get` looks up each.

        Raises:
            AccessDenied: the agent may see nothing of this corpus.
        """
        agent, part = request.agent, request.model_dump(include={"outline", "section"})
        with self.access.open_lookup(agent) as (corpus, rules):
            answer = listing_module.look_up_all(corpus, request.ids, rules, **part)
            for number, failure in enumerate(answer.failures):
                hint = self.access.with_unread_note(failure.reference, failure)
                answer.failures[number] = failure.model_copy(update={"hint": hint})
                if failure.code == "role_denied":
                    self.access.record_refusal(agent, None, failure.code)
            allowed = sum(len(lookup.passages) for lookup in answer.lookups)
            self._record("get", agent, allowed=allowed)
            return answer

    def ls(self, request: ListRequest | None = None) -> Listing:
        """List the documents below a path or of a source, as far as an agent may see them.

        Args:
            request: what is listed. Default: the first page of all documents.

        Raises:
            UsageError: no document has this prefix, or the agent may not see it.
            AccessDenied: the agent may see nothing of this corpus.
        """
        request = request or ListRequest()
        with self.access.open_lookup(request.agent, request.prefix or "") as (corpus, rules):
            listing = listing_module.list_documents(corpus, request, rules)
            self._record("get", request.agent, details={"documents": len(listing.documents)})
            return listing

    def grep(self, request: GrepRequest) -> FoundLines:
        """Find the lines with a text in what :meth:`get` would show to an agent.

        Raises:
            UsageError: ``bad_pattern``; or no document has the prefix, or the agent may not see it.
            AccessDenied: the agent may see nothing of this corpus.
            Interrupted: ``search_too_long``.
        """
        with self.access.open_lookup(request.agent, request.prefix or "") as (corpus, rules):
            found = listing_module.find_lines(corpus, request, rules)
            details = {"lines": len(found.lines)}
            self._record("grep", request.agent, query=request.pattern, details=details)
            return found

    def check(
        self, request: memory.CheckRequest, now: datetime | None = None
    ) -> memory.CheckAnswer:
        """Find the decisions that may apply to what an agent is about to do. It is advice.

        Args:
            request: the intent.
            now: the time at which decisions must be valid. Default: the current time. It is no
                field of the request, because an agent could then ask as of an earlier time.

        Raises:
            AccessDenied: the agent may see nothing of this corpus, or may not use this role.
            OverlayError: the role has no valid overlay.
            StorageError: the audit is required, and the answer could not be recorded.
            UsageError, WrongFile, CorpusCorrupt, StorageError: the corpus cannot be read.
        """
        from rolebundle.memory.intents import check_intent

        text = request.intent or request.command or ""
        retrieval_request = RetrievalRequest(
            task=text, role=request.role, agent=request.agent, rerank=NO_RERANK
        )
        with self.access.recording_refusals(request.agent, request.role):
            with self.answering.open_inputs(retrieval_request, None, now) as inputs:
                answer = check_intent(inputs.corpus, request, inputs.request, inputs.provider)
            self._record(
                "check",
                request.agent,
                role=request.role,
                action=request.action or "",
                query=text,
                details={"verdict": answer.verdict, "decisions": len(answer.decisions)},
            )
            return answer

    def decisions(self, agent: str | None = None) -> list[memory.DecisionRecord]:
        """The decisions that an agent sees, with their present states.

        Raises:
            AccessDenied: the agent may see nothing of this corpus.
        """
        from rolebundle.storage.decisions import decisions

        with self.access.recording_refusals(agent):
            with self.access.open_view(agent) as (corpus, view):
                records = decisions(corpus, iso_utc(datetime.now(UTC)), view.decision_scopes)
            self._record("get", agent, details={"decisions": len(records)})
            return records

    def mark(self, request: memory.MarkRequest) -> memory.MarkRecord:
        """Mark a passage or document that an agent sees, or remove the agent's own mark.

        Raises:
            AccessDenied: the policy does not allow the agent to mark, the agent may not set this
                state, or somebody else has marked it.
            UsageError: nothing has this reference, or the agent may not see it; or the reason gives
                instructions to a model.
            CorpusBusy, StorageError: the mark was not stored.
        """
        from rolebundle.memory.marks import mark_as_agent

        with self.access.recording_refusals(request.agent):
            return mark_as_agent(self.access, request)

    def gate_check(
        self, contract: Path, agent: str | None = None, *, no_command: str = ""
    ) -> GateReport:
        """Judge whether the work of a contract is done; see :mod:`rolebundle.gate`.

        Args:
            contract: the contract's file.
            agent: the agent whose view answers the criteria about the corpus.
            no_command: why commands of the contract are not run; empty if those of an approved
                contract are.

        Raises:
            UsageError, ConfigurationError: the contract is missing or wrong.
            AccessDenied: the agent may see nothing of this corpus.
        """
        from rolebundle.gate.baseline import StoredState, stored_state
        from rolebundle.gate.check import GateCheck
        from rolebundle.gate.contract import load_contract

        loaded, stored = load_contract(contract), StoredState()
        try:
            if agent is not None or self.access.agent is not None:
                self.access.view_of(agent)
            if self.workspace.path.exists():
                stored = stored_state(self.workspace.corpus, loaded.path)
        except CorpusCorrupt as error:
            stored = StoredState(damage=self.access.conceal_paths(error.message))
        if not no_command and stored.approved_hash != loaded.content_hash:
            no_command = "commands are run only if the contract is approved (`gate approve`)"
        report = GateCheck(
            loaded,
            stored,
            self.workspace.path,
            no_command,
            lambda request: self.verify(request.model_copy(update={"agent": agent})),
        ).report()
        if self.workspace.path.exists() and not stored.damage:
            details = {"step": "check", "verdict": report.verdict, "met": report.met}
            with self.access.recording_refusals(agent):
                self._record("gate", agent, details=details)
        return report

    def verify(
        self, request: VerifyRequest, overlay: ResolvedOverlay | None = None
    ) -> Verification:
        """Check a draft against passages of the corpus, as its agent and role may see them.

        Args:
            request: the draft, and what it is checked against.
            overlay: used instead of the overlay of the role.

        Raises:
            UsageError: ``bundle_malformed``, or there is no corpus.
            AccessDenied, OverlayError, Interrupted, WrongFile, CorpusCorrupt, StorageError: as for
                :meth:`retrieve`.
        """
        from rolebundle.verify.evidence import role_of_bundle
        from rolebundle.verify.verify import verify

        role = request.role or role_of_bundle(request.bundle)
        with self.access.recording_refusals(request.agent, role):
            retrieval_request = RetrievalRequest(
                task="verify",
                role=role if overlay is None else None,
                agent=request.agent,
                lexical_only=True,
                rerank=NO_RERANK,
                now=request.now,
                deadline_ms=request.deadline_ms,
            )
            with self.answering.open_inputs(retrieval_request, overlay) as inputs:
                if request.chunk_ids:
                    rules = self.access.reference_rules(inputs.request.view)
                    chunk_ids = lookup_module.chunk_ids_of(inputs.corpus, request.chunk_ids, rules)
                    request = request.model_copy(update={"chunk_ids": chunk_ids})
                answer = verify(inputs.corpus, request, inputs.request, self.judge)
            self._record(
                "verify",
                request.agent,
                role=role,
                action="read",
                query=request.draft,
                allowed=len(answer.passages),
                details={"verdict": answer.verdict, "counts": dict(answer.counts)},
            )
            return answer

    def remember(self, request: memory.RememberRequest) -> memory.RememberedFact:
        """File a fact with its source, as an agent that may do so.

        Raises:
            AccessDenied: the policy does not allow the agent to remember, or not in that scope; or
                the agent has reached its quota for the day.
            UsageError: the source is unknown, the agent may not see it, or it does not say the
                fact.
            CorpusBusy, StorageError: the fact was not stored.
        """
        from rolebundle.memory.facts import remember_as_agent

        with self.access.recording_refusals(request.agent):
            return remember_as_agent(self.access, request)

    def status(self, agent: str | None = None) -> CorpusStatus:
        """Describe what the corpus contains, as far as an agent may see it.

        Raises:
            AccessDenied: the agent may see nothing of this corpus.
        """
        from rolebundle.status import corpus_status

        with (
            self.access.recording_refusals(agent),
            self.access.open_view(agent, even_expired=True) as (corpus, _),
        ):
            status = corpus_status(corpus)
            if not corpus.is_restricted:
                return status
            # The size of the file depends on documents that the agent may not see.
            return status.model_copy(update={"location": self.workspace.path.name, "bytes": 0})

    def _record(self, kind: AuditKind, agent: str | None, **fields: Any) -> None:
        """Record a call; the fields are those of :meth:`Recorder.record_event`."""
        agent = self.access.resolve_agent(agent)
        self.workspace.record_event(kind, agent=agent, **fields)

    def warm_up(self) -> None:
        """Open the corpus and load the embedding model before the first request.

        Raises:
            RolebundleError: one of them is not available. It may be available later.
        """
        self.workspace.query_provider(self.workspace.corpus).embed_queries(["warm up"])

    def interrupt(self) -> None:
        """End the query that runs now with :class:`Interrupted`. Any thread may call this."""
        self.workspace.interrupt()

    def refresh(self) -> None:
        """Close the corpus if its file was replaced. It is opened again on demand."""
        self.workspace.refresh()

    def close(self) -> None:
        """Close the corpus file. It is opened again on demand."""
        self.workspace.close()
