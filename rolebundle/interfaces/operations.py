"""What every door offers: methods by name, plain values in, plain values out.

The one-shot command, `serve` and `mcp` all call these, so that an answer is the same through each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.request import (
    NO_RERANK,
    GetRequest,
    IngestRequest,
    RetrievalRequest,
    RoleRequest,
    StatusRequest,
    WhyRequest,
)
from rolebundle.contracts.terms import Detail
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, RolebundleError, UsageError
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.shape import shaped_bundle, shaped_lookup

Answer = dict[str, Any]
R = TypeVar("R", bound=RetrievalRequest)
Progress = Callable[[str, int, int], None]

METHODS = ("retrieve", "get", "why", "roles.list", "roles.show", "status", "ingest")


class Operations:
    """The methods over one engine. Calls come one at a time; :meth:`interrupt` from any thread.

    Args:
        engine: the corpus, the overlays and the model.
        detail: how much of a bundle comes back where a request does not say.
        allow_write: whether `ingest` may be called.
    """

    def __init__(
        self, engine: Engine, *, detail: Detail = "compact", allow_write: bool = False
    ) -> None:
        self.engine = engine
        self.detail: Detail = detail
        self.allow_write = allow_write

    def call(
        self, method: str, fields: Mapping[str, object], progress: Progress | None = None
    ) -> Answer:
        """Answer one call.

        Args:
            method: one of ``METHODS``.
            fields: the request's fields, by any of the names that :mod:`parse` takes.
            progress: told what an `ingest` is doing.

        Raises:
            RolebundleError: with a code; see :mod:`rolebundle.errors`.
            LookupError: there is no such method.
        """
        try:
            return self._called(method, fields, progress)
        except RolebundleError as error:
            # Whoever calls through a door need not know where files lie on this machine.
            conceal = self.engine.concealed
            error.message, error.hint = conceal(error.message), conceal(error.hint)
            error.args = (error.message,)
            raise

    def documents(self, listed: int, count: int) -> list[DocumentMetadata]:
        """The next documents of the listing, after so many that were listed before.

        Raises:
            RolebundleError: as for :meth:`call`.
        """
        self.engine.refresh()
        return self.engine.documents(None, listed, count)

    @property
    def may_write(self) -> bool:
        """Whether `ingest` is offered: never to an agent."""
        return self.allow_write and self.engine.agent is None

    def _called(
        self, method: str, fields: Mapping[str, object], progress: Progress | None
    ) -> Answer:
        self.engine.refresh()
        if method == "retrieve":
            return self._retrieve(self._allowed(parsed(RetrievalRequest, fields)))
        if method == "get":
            wanted = parsed(GetRequest, fields)
            return shaped_lookup(self.engine.get(wanted.id, wanted.agent), wanted.max_chars)
        if method == "why":
            return self._why(self._allowed(parsed(WhyRequest, fields)))
        if method == "roles.list":
            self.engine.admit(parsed(StatusRequest, fields).agent)
            return self._roles()
        if method == "roles.show":
            shown = parsed(RoleRequest, fields)
            self.engine.admit(shown.agent)
            return self._role(shown.role)
        if method == "status":
            asking = parsed(StatusRequest, fields).agent
            return self.engine.status_for(asking).model_dump(exclude_none=True)
        if method == "ingest":
            return self._ingest(parsed(IngestRequest, fields), progress)
        raise LookupError(method)

    def interrupt(self) -> None:
        """End the call that runs now."""
        self.engine.interrupt()

    def _allowed(self, request: R) -> R:
        """The request, whose sender may choose a model, but no folder to load one from.

        Raises:
            AccessDenied: it names a folder that whoever started this server did not.
            ConfigurationError: it names no known provider.
        """
        named = request.rerank
        if named is None or named in (NO_RERANK, self.engine.rerankers.default):
            return request
        from rolebundle.embedding.registry import names_folder

        if names_folder(named):
            raise AccessDenied(
                "rerank_folder",
                "rerank: a request may not name a folder to load a model from",
                "leave it out, or start the server with ROLEBUNDLE_RERANK set to that model",
            )
        return request

    def _retrieve(self, request: RetrievalRequest) -> Answer:
        bundle = self.engine.retrieve(request)
        return shaped_bundle(bundle, request.detail or self.detail, request.max_chars)

    def _why(self, request: WhyRequest) -> Answer:
        return self.engine.why(request, request.id).model_dump(exclude_none=True)

    def _roles(self) -> Answer:
        from rolebundle.policy.overlays import list_overlays

        entries = [asdict(entry) for entry in list_overlays(self.engine.overlay_folders)]
        # Where a file lies on this machine is no agent's business.
        plain = [{k: v for k, v in one.items() if k != "path"} for one in entries]
        for one in plain:
            one["problem"] = self.engine.concealed(one["problem"])
        return {"roles": plain}

    def _role(self, role: str) -> Answer:
        from rolebundle.policy.overlays import load_role

        resolved = load_role(role, self.engine.overlay_folders)
        return {"digest": resolved.digest, "overlay": resolved.overlay.model_dump()}

    def _ingest(self, request: IngestRequest, progress: Progress | None) -> Answer:
        # Under a policy callers are agents, and a report would count what they may not see.
        if not self.may_write or self.engine.is_under_policy():
            raise AccessDenied(
                "read_only_server",
                "this server may not write",
                "start it with --allow-write, or run `rolebundle ingest`",
            )
        missing = [path for path in request.paths if not Path(path).is_absolute()]
        if missing or not request.paths:
            raise UsageError(
                "bad_request",
                f"paths: {missing[0] if missing else 'none given'} is not an absolute path",
                "the server's own folder is not the caller's: send absolute paths",
            )
        report = self.engine.ingest(
            [Path(path) for path in request.paths],
            lexical_only=request.lexical_only,
            progress=progress,
        )
        return asdict(report)
