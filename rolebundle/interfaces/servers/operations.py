"""The methods of the servers: plain values in, plain values out.

`serve` and `mcp` both call these, so that a method gives the same answer through each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rolebundle.admin import Admin
from rolebundle.admin.indexing import Indexing
from rolebundle.contracts.base import Contract
from rolebundle.contracts.decisions import CheckRequest
from rolebundle.contracts.facts import RememberRequest
from rolebundle.contracts.ingest import IngestResult
from rolebundle.contracts.lookup import Lookup, Lookups
from rolebundle.contracts.marks import MarkRequest
from rolebundle.contracts.operation_requests import (
    CompareRequest,
    GetRequest,
    GrepRequest,
    IngestRequest,
    ListRequest,
    MultiGetRequest,
    ReplayRequest,
    RoleRequest,
    StatusRequest,
    WhyRequest,
)
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.roles import Role, RoleDetails, RoleList
from rolebundle.contracts.terms import Detail
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, RolebundleError, UsageError
from rolebundle.interfaces.model_text import answer_text, lookups_text
from rolebundle.interfaces.parse import bundle_from, parsed
from rolebundle.interfaces.shape import (
    shaped_bundle,
    shaped_lookup,
    shaped_lookups,
    shaped_verification,
)
from rolebundle.policy.overlays import list_overlays, load_role
from rolebundle.text.references import is_glob

Answer = dict[str, Any]
Progress = Callable[[str, int, int], None]

WRITING_METHODS = frozenset({"mark", "remember"})
"""Methods that write and that an agent may call if the server was started with --allow-write."""

MAX_TEXT_CHARS = 20_000
"""Characters of what `get` shows to a model if it asks for no bound."""


class Operations:
    """The methods over one engine. Calls come one at a time; :meth:`interrupt` from any thread.

    Args:
        engine: the corpus, the overlays and the model.
        detail: how much of a bundle comes back if the request has no ``detail``.
        allow_write: whether `ingest` and the ``WRITING_METHODS`` may be called.
        indexing: embeds after an `ingest`, for a contextual model.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        detail: Detail = "compact",
        allow_write: bool = False,
        indexing: Indexing | None = None,
    ) -> None:
        self.engine = engine
        self.detail: Detail = detail
        self.allow_write = allow_write
        self.indexing = indexing

    def call(
        self, method: str, fields: Mapping[str, object], progress: Progress | None = None
    ) -> Answer:
        """Answer one call.

        Args:
            method: one of ``METHODS``.
            fields: the request's fields, by any of the names that :mod:`parse` takes.
            progress: called with what an `ingest` is doing.

        Raises:
            RolebundleError: with a code; see :mod:`rolebundle.errors`.
            KeyError: there is no such method.
        """
        with self._answering():
            return self._call(method, fields, progress)

    def text(self, method: str, fields: Mapping[str, object]) -> str:
        """Answer one call with a text for a model.

        Args:
            method: as for :meth:`call`.
            fields: as for :meth:`call`. ``max_chars`` bounds the text of `retrieve` and of
                `multi_get`.

        Raises:
            RolebundleError: as for :meth:`call`, and if the only reference names nothing.
            KeyError: there is no such method.
        """
        with self._answering():
            return self._text(method, fields)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        # A client of a server must not learn where files lie on this machine.
        with self.engine.access.errors_without_paths():
            yield

    @property
    def may_write(self) -> bool:
        """Whether `ingest` is offered. It never is to an agent."""
        return self.allow_write and self.engine.agent is None

    @property
    def offered_methods(self) -> list[str]:
        """The methods that this server offers; which of them an agent may call is its policy's."""
        return [
            method
            for method in METHODS
            if (method != "ingest" or self.may_write)
            and (method not in WRITING_METHODS or self.allow_write)
        ]

    def interrupt(self) -> None:
        """End the call that runs now."""
        self.engine.interrupt()

    def warm_up(self) -> None:
        """Open the corpus and load the model. If that fails now, it may work for the first call."""
        try:
            self.engine.warm_up()
        except RolebundleError as error:
            with suppress(OSError):
                sys.stderr.write(f"not loaded ahead: {error}\n")

    def _call(self, method: str, fields: Mapping[str, object], progress: Progress | None) -> Answer:
        contract, answer = METHODS[method]
        with self._request(contract, fields) as request:
            if isinstance(request, IngestRequest):
                return self._ingest(request, progress)
            return answer(self, request)

    def _text(self, method: str, fields: Mapping[str, object]) -> str:
        contract, answer = METHODS[method]
        with self._request(contract, fields) as request:
            if isinstance(request, MultiGetRequest):
                if len(request.ids) == 1 and not is_glob(request.ids[0]):
                    lookups = Lookups(lookups=[self._lookup(request.ids[0], request)])
                else:
                    lookups = self._lookups(request)
                return lookups_text(shaped_lookups(lookups, request.max_chars or MAX_TEXT_CHARS))
            if method == "retrieve" and isinstance(request, RetrievalRequest):
                bundle = self.engine.retrieve(request.model_copy(update={"packet": True}))
                return bundle.packet or ""
            return answer_text(method, answer(self, request))

    @contextmanager
    def _request(
        self, contract: type[Contract], fields: Mapping[str, object]
    ) -> Iterator[Contract]:
        """The request, and the block in which it is answered."""
        self.engine.refresh()
        request = parsed(contract, fields)
        agent, role = getattr(request, "agent", None), getattr(request, "role", None)
        with self.engine.access.call(agent, role):
            yield request

    def _retrieve(self, request: RetrievalRequest) -> Answer:
        bundle = self.engine.retrieve(request)
        # The packet has the passages' texts already, and ``max_chars`` bounds it.
        detail = request.detail or ("ids" if request.packet else self.detail)
        return shaped_bundle(bundle, detail, request.max_chars)

    def _get(self, request: GetRequest) -> Answer:
        lookup = shaped_lookup(self._lookup(request.id, request), request.max_chars)
        return lookup.model_dump(exclude_none=True)

    def _multi_get(self, request: MultiGetRequest) -> Answer:
        lookups = shaped_lookups(self._lookups(request), request.max_chars)
        return lookups.model_dump(exclude_none=True)

    def _lookup(self, reference: str, request: GetRequest | MultiGetRequest) -> Lookup:
        return self.engine.get(
            reference, request.agent, outline=request.outline, section=request.section
        )

    def _lookups(self, request: MultiGetRequest) -> Lookups:
        return self.engine.multi_get(
            request.ids, request.agent, outline=request.outline, section=request.section
        )

    def _ls(self, request: ListRequest) -> Answer:
        return self.engine.ls(request).model_dump(exclude_none=True)

    def _grep(self, request: GrepRequest) -> Answer:
        return self.engine.grep(request).model_dump(exclude_none=True)

    def _why(self, request: WhyRequest) -> Answer:
        return self.engine.why(request, request.id).model_dump(exclude_none=True)

    def _compare(self, request: CompareRequest) -> Answer:
        return self.engine.compare(request, request.roles).model_dump(exclude_none=True)

    def _replay(self, request: ReplayRequest) -> Answer:
        # Whoever may see nothing gets the same answer to every bundle.
        self.engine.access.view_of(request.agent)
        bundle = bundle_from(request.bundle)
        return self.engine.replay(bundle, agent=request.agent).model_dump(exclude_none=True)

    def _verify(self, request: VerifyRequest) -> Answer:
        return shaped_verification(self.engine.verify(request), request.detail or "compact")

    def _roles(self, request: StatusRequest) -> Answer:
        view = self.engine.access.view_of(request.agent)
        roles = [
            Role(
                role_id=entry.role_id,
                label=entry.label,
                mission=entry.mission,
                extends=entry.extends,
                # Agents must not learn where a file lies on this machine.
                problem=self.engine.access.conceal_paths(entry.problem),
            )
            for entry in list_overlays(self.engine.overlay_folders)
            if view.allows_role(entry.role_id)
        ]
        return RoleList(roles=roles).model_dump()

    def _role(self, request: RoleRequest) -> Answer:
        access = self.engine.access
        access.check_role(access.view_of(request.agent), request.role, has_own_overlay=False)
        resolved = load_role(request.role, self.engine.overlay_folders)
        # Notes may name sources that the agent may not see.
        overlay = resolved.overlay.model_copy(update={"notes": {}})
        return RoleDetails(digest=resolved.digest, overlay=overlay).model_dump()

    def _status(self, request: StatusRequest) -> Answer:
        return self.engine.status(request.agent).model_dump(exclude_none=True)

    def _check(self, request: CheckRequest) -> Answer:
        return self.engine.check(request).model_dump(exclude_none=True)

    def _mark(self, request: MarkRequest) -> Answer:
        self._check_allow_write()
        return self.engine.mark(request).model_dump()

    def _remember(self, request: RememberRequest) -> Answer:
        self._check_allow_write()
        return self.engine.remember(request).model_dump(exclude_none=True)

    def _check_allow_write(self) -> None:
        if not self.allow_write:
            raise AccessDenied(
                "read_only_server",
                "this server may not write",
                "start it with --allow-write",
            )

    def _ingest(self, request: IngestRequest, progress: Progress | None = None) -> Answer:
        from rolebundle.ingest.options import IngestOptions

        # Under a policy the callers are agents, and a report would count what they may not see.
        # Neither is a server that only --allow-write is missing.
        is_for_agents = self.engine.agent is not None or self.engine.access.has_policy()
        if is_for_agents or not self.may_write:
            raise AccessDenied(
                "read_only_server",
                "this server may not ingest",
                "the owner of the corpus can run `rolebundle ingest`"
                + ("" if is_for_agents else ", or start the server with --allow-write"),
            )
        missing = [path for path in request.paths if not Path(path).is_absolute()]
        if missing or not request.paths:
            raise UsageError(
                "bad_request",
                f"paths: {missing[0] if missing else 'none given'} is not an absolute path",
                "send absolute paths, because the server has a working folder of its own",
            )
        report = Admin(self.engine.workspace).ingest(
            [Path(path) for path in request.paths],
            IngestOptions(lexical_only=request.lexical_only, wait=self.indexing is None),
            progress=progress,
        )
        if self.indexing:
            self.indexing.start()
        return IngestResult.model_validate(asdict(report)).model_dump()


METHODS: Mapping[str, tuple[type[Contract], Callable[[Operations, Any], Answer]]] = {
    "retrieve": (RetrievalRequest, Operations._retrieve),
    "get": (GetRequest, Operations._get),
    "multi_get": (MultiGetRequest, Operations._multi_get),
    "ls": (ListRequest, Operations._ls),
    "grep": (GrepRequest, Operations._grep),
    "why": (WhyRequest, Operations._why),
    "compare": (CompareRequest, Operations._compare),
    "replay": (ReplayRequest, Operations._replay),
    "verify": (VerifyRequest, Operations._verify),
    "roles.list": (StatusRequest, Operations._roles),
    "roles.show": (RoleRequest, Operations._role),
    "status": (StatusRequest, Operations._status),
    "check": (CheckRequest, Operations._check),
    "mark": (MarkRequest, Operations._mark),
    "remember": (RememberRequest, Operations._remember),
    "ingest": (IngestRequest, Operations._ingest),
}
"""The request of each method, and what answers it."""


def internal_error(error: BaseException) -> RolebundleError:
    """The coded error for an exception that no code foresaw. It has no detail that could leak."""
    return RolebundleError(
        "internal",
        f"internal error: {type(error).__name__}",
        "please report it; ROLEBUNDLE_DEBUG=1 shows on standard error where it happened",
    )
