"""Which agent asks an engine, and what it may see and do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

from rolebundle.contracts.documents import Passage, iso_utc
from rolebundle.contracts.lookup import LookupFailure
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import WriteKind
from rolebundle.errors import AccessDenied, RolebundleError, UsageError
from rolebundle.policy.access import restrict_to_agent, role_denied
from rolebundle.policy.overlays import load_role
from rolebundle.policy.trust import UNRESTRICTED_VIEW, AgentView
from rolebundle.retrieval.filter import is_readable
from rolebundle.retrieval.request import ReferenceRules, resolve_request
from rolebundle.storage import compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import ids_outside_validity
from rolebundle.storage.publications import refuse_expired, stored_manifest
from rolebundle.storage.records import has_policy
from rolebundle.text.paths import conceal_paths
from rolebundle.workspace import Workspace


class AccessControl:
    """What the agents of one engine may see and do.

    Args:
        workspace: the corpus.
        overlay_folders: the folders with the roles' overlays.
        agent: the only agent that is answered; ``None`` for any.
        folder: where relative paths in references begin; ``None`` for a caller that has no working
            folder.

    Raises:
        UsageError: ``agent`` is blank.
    """

    def __init__(
        self,
        workspace: Workspace,
        overlay_folders: tuple[Path, ...],
        agent: str | None,
        folder: str | None,
    ) -> None:
        check_agent(agent)
        self.workspace = workspace
        self.overlay_folders = overlay_folders
        self.agent = agent
        self.folder = folder
        self._is_restricted = False
        """Whether a restricted connection was needed once. From then on it alone is used."""
        self._lock = RLock()
        """Held while a request is answered: a connection shows what one agent may see."""

    def resolve_agent(self, agent: str | None) -> str | None:
        """The agent that asks: the one of the request, else the one of this engine.

        Raises:
            AccessDenied: the request names another agent than this engine.
        """
        if self.agent is None or agent in (None, self.agent):
            return self.agent or agent

        raise AccessDenied(
            "access_denied",
            "the request names an agent that is not answered here",
            "leave `agent` out",
        )

    def has_policy(self) -> bool:
        """Whether a policy was ever set for the corpus."""
        return self.workspace.path.exists() and has_policy(self.workspace.corpus)

    def view_of(self, agent: str | None) -> AgentView:
        """What holds for an agent that may see something of the corpus.

        If there is no corpus, it may, with every role.

        Raises:
            AccessDenied: the agent may see nothing of this corpus.
        """
        with self.recording_refusals(agent):
            agent = self.resolve_agent(agent)
            if self.workspace.path.exists():
                with self.open_view(agent) as (_, view):
                    return view
            return UNRESTRICTED_VIEW

    @contextmanager
    def open_view(
        self, agent: str | None, *, even_expired: bool = False
    ) -> Iterator[tuple[Corpus, AgentView]]:
        """Open the corpus as an agent may see it, in one snapshot.

        Without a policy and without quarantined documents, a corpus that is no replica is shown
        whole. Otherwise the connection shows what this agent may see, and nothing after the block.
        Inside the block, a nested call uses the same snapshot.

        Args:
            agent: the agent that asks.
            even_expired: also open a replica that gives no answers any more.

        Raises:
            AccessDenied: the agent may see nothing of this corpus.
            StorageError: ``replica_expired``.
        """
        agent = self.resolve_agent(agent)
        if not self._is_restricted:
            with self._lock, self.workspace.corpus.reading():
                corpus = self.workspace.corpus
                if not even_expired:
                    refuse_expired(corpus)
                if not _has_restrictions(corpus):
                    yield corpus, UNRESTRICTED_VIEW
                    return

        with self._lock, self.workspace.restricted_corpus.reading():
            restricted = self.workspace.restricted_corpus
            if not even_expired:
                refuse_expired(restricted)
            self._is_restricted = True
            yield restricted, restrict_to_agent(restricted, agent)

    @contextmanager
    def open_lookup(
        self, agent: str | None, reference: str = ""
    ) -> Iterator[tuple[Corpus, ReferenceRules]]:
        """Open the corpus as an agent may see it, to look up a reference, and record a refusal.

        Raises:
            AccessDenied, CorpusBusy, StorageError: as for :meth:`open_view`.
        """
        with (
            self.recording_refusals(agent),
            self.explaining_missing(reference, agent),
            self.open_view(agent) as (corpus, view),
        ):
            yield corpus, self.reference_rules(view, corpus)

    def check_role(self, view: AgentView, role: str | None, *, has_own_overlay: bool) -> None:
        """Check that the policy allows an agent to ask with a role, or without one.

        Args:
            view: what holds for the agent.
            role: the role.
            has_own_overlay: whether it brings an overlay, which is no role that a policy names.

        Raises:
            AccessDenied: the policy does not allow it.
        """
        if not view.allows_role(role) or (has_own_overlay and view.roles is not None):
            raise role_denied(view)

    def check_time(self, view: AgentView, moment: datetime | None) -> None:
        """Check that the policy allows an agent to ask as at a time; ``None`` is the present.

        Raises:
            AccessDenied: it does not.
        """
        if moment is not None and not view.may_set_time:
            raise AccessDenied(
                "time_denied",
                "the policy does not allow this agent to choose the time of its question",
                "leave `now` and `as_of` out; the owner can allow it: may_set_time = true",
            )

    def check_write(self, view: AgentView, kind: WriteKind) -> None:
        """Check that the policy allows an agent to write.

        Raises:
            AccessDenied: it does not.
        """
        if kind not in view.may_write:
            raise AccessDenied(
                "write_denied",
                f"the policy does not allow this agent to {kind}",
                f'the owner can allow it: may_write = ["{kind}"] in the agent\'s rule',
            )

    @contextmanager
    def writing(
        self, agent: str | None, kind: WriteKind
    ) -> Iterator[tuple[str, Corpus, Corpus, AgentView, dict[str, Any]]]:
        """One recorded write transaction in which an agent that may do so writes.

        Its view is taken while no other process can write. So a policy that is set, or a passage
        that is purged, in the meantime cannot be missed.

        Yields:
            The agent's name; the corpus, open for writing; the corpus as the agent sees it, in a
            snapshot of the same state; its view; the details of the record in the audit, to be
            filled in.

        Raises:
            AccessDenied: the policy does not allow it.
            CorpusBusy, StorageError: nothing was written.
        """
        agent = self.resolve_agent(agent)
        with self.open_view(agent) as (_, view):
            # Before the lock, which others would wait for.
            self.check_write(view, kind)
        with (
            self.workspace.open_writer() as corpus,
            self.workspace.recorder.change(corpus, kind, agent=agent) as details,
            self.open_view(agent) as (seen, view),
        ):
            self.check_write(view, kind)
            yield agent or "agent", corpus, seen, view, details

    def may_read(self, view: AgentView) -> Callable[[Passage], bool] | None:
        """Whether a role of an agent may read a passage; ``None`` if the agent needs no role.

        An agent without such a rule can ask without a role, so every visible passage is its own.
        """
        if view.roles is None or not view.role_required:
            return None

        request, now = RetrievalRequest(task="read"), datetime.now(UTC)
        roles = [
            resolve_request(request, now, load_role(role, self.overlay_folders).overlay)
            for role in view.roles
        ]
        return lambda passage: any(is_readable(passage, role) for role in roles)

    def reference_rules(self, view: AgentView, corpus: Corpus | None = None) -> ReferenceRules:
        """What the references of somebody with this view may name.

        Args:
            view: what holds for the agent.
            corpus: the corpus as the agent sees it. Under a policy, its documents that are not
                valid now are named by no reference; ``None`` if they may be named.
        """
        outside: frozenset[str] = frozenset()
        if corpus is not None and view.access_level is not None:
            outside = ids_outside_validity(corpus, iso_utc(datetime.now(UTC)))
        return ReferenceRules(view.show_paths, self.folder, self.may_read(view), outside)

    @contextmanager
    def recording_refusals(self, agent: str | None, role: str | None = None) -> Iterator[None]:
        """A block in which an agent is answered. The audit gets one record of a refusal in it.

        Unless the owner of the corpus asks, errors conceal paths. Blocks may be nested.

        Args:
            agent: the agent that asks.
            role: the role that it asks with.

        Raises:
            StorageError: ``audit_unwritable``: a refusal must be recorded, and could not be.
        """
        by_owner = agent is None and self.agent is None
        with self._lock, nullcontext() if by_owner else self.errors_without_paths():
            try:
                yield
            except AccessDenied as error:
                if not error.is_recorded:
                    self.record_refusal(agent, role, error.code)
                    error.is_recorded = True
                raise

    @contextmanager
    def errors_without_paths(self) -> Iterator[None]:
        """A block whose errors do not contain the paths of the corpus and the overlay folders."""
        try:
            yield
        except RolebundleError as error:
            error.message = self.conceal_paths(error.message)
            error.hint = self.conceal_paths(error.hint)
            with suppress(RolebundleError):
                error.hint = error.hint if self.has_policy() else self.workspace.advice(error.hint)
            error.args = (error.message,)
            raise

    def conceal_paths(self, text: str) -> str:
        """Replace the paths of the corpus and the overlay folders by their last component."""
        return conceal_paths(text, (self.workspace.path, *self.overlay_folders))

    def with_unread_note(self, reference: str, error: UsageError | LookupFailure) -> str:
        """The hint of an error, with what was not read, if the reference may name that."""
        is_open = error.code == "not_found" and not self.has_policy()
        note = self.workspace.unread_note(reference, False) if is_open else ""
        return "; ".join(filter(None, [note, error.hint]))

    @contextmanager
    def explaining_missing(self, reference: str, agent: str | None) -> Iterator[None]:
        """A block in which an error says that a reference names what is not read or quarantined.

        Under a policy it says neither; of quarantined documents only the owner learns.
        """
        try:
            yield
        except UsageError as error:
            error.hint = self.with_unread_note(reference, error)
            is_owner = self.resolve_agent(agent) is None and not self.has_policy()
            if error.code == "not_found" and is_owner:
                from rolebundle.retrieval.why import quarantined_error

                rules = self.reference_rules(UNRESTRICTED_VIEW)
                if quarantined := quarantined_error(self.workspace.corpus, reference, rules):
                    raise quarantined from None
            raise

    def record_refusal(self, agent: str | None, role: str | None, code: str) -> None:
        """Record in the audit that an agent was refused, and the code of the error that it got."""
        if self.workspace.path.exists():
            self.workspace.record_event(
                "refused", agent=self.agent or agent, role=role, details={"code": code}
            )


def _has_restrictions(corpus: Corpus) -> bool:
    """Whether answers need a restricted view: there is a policy or a quarantined document.

    A replica always needs one, because it knows of quarantined documents that it does not hold.
    """
    return (
        has_policy(corpus)
        or any(place.quarantined for place in compartments.stored_compartments(corpus))
        or bool(stored_manifest(corpus))
    )


def check_agent(agent: str | None) -> None:
    """Raise a UsageError if the name of an agent is blank, as that of an unset variable."""
    if agent is not None and not agent.strip():
        raise UsageError(
            "blank_agent", "the name of the agent is blank", "name the agent, or leave --agent out"
        )
