"""The table of operations: what agents and programs may ask, through each server.

`serve` offers them as methods and `mcp` as tools, so that an operation gives the same answer
through each. A model reads names, descriptions and schemas of all tools before each task, and a
small model chooses badly from long texts. So a tool offers only the fields that a model needs (the
other fields of the request are accepted, too), and each description in ``operations.toml`` says
when to call it and when to call another one. A test bounds the size of the whole list.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from rolebundle.admin import Admin
from rolebundle.admin.indexes import Indexing
from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.compact_bundle import More
from rolebundle.contracts.lookup import Lookup, Lookups
from rolebundle.contracts.memory import CheckRequest, MarkRequest, RememberRequest
from rolebundle.contracts.request import (
    CompareRequest,
    GrepRequest,
    IngestRequest,
    ListRequest,
    MultiGetRequest,
    RetrievalRequest,
    StatusRequest,
    WhyRequest,
)
from rolebundle.contracts.terms import Detail
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, RolebundleError, UsageError
from rolebundle.ingest.indexes import Progress
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.model_text import answer_text, joined_passages, lookups_text
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.servers.arguments import Schema, offered_schema
from rolebundle.interfaces.shape import (
    Answer,
    shaped_bundle,
    shaped_lookup,
    shaped_lookups,
    shaped_verification,
)
from rolebundle.policy.overlays import list_overlays
from rolebundle.resources import data_file
from rolebundle.retrieval.packet import MAX_CHARS
from rolebundle.retrieval.passage_text import best_span, cut_passage, words_searched
from rolebundle.text.references import PLACE, is_glob

DEFAULT_DETAIL: Detail = "compact"
"""How much of a bundle a server answers if the request has no ``detail``."""
MAX_TEXT_CHARS = 20_000
"""Characters of what `get` shows to a model if it asks for no bound; a section has fewer."""
_CITED_NUMBER = re.compile(r"\[\d{1,2}\]")
MAX_ANSWERS = 1_000
"""How many answers of an agent can be named."""
_NAME_CHARS = 20
"""The line with the name of an answer is shorter."""

_TEXTS = data_file(__file__, "operations.toml")
"""What models read: its head says what each field is."""
INSTRUCTIONS: str = _TEXTS["instructions"]


class Operation(NamedTuple):
    """One thing that agents and programs may ask.

    Attributes:
        method: its name for programs.
        contract: its request.
        answer: what answers a request: a contract, or the plain values of one.
        name: its name for models; empty if it is no tool. This and what follows are from
            operations.toml.
    """

    method: str
    contract: type[Contract]
    answer: Callable[[Operations, Any], Contract | Answer]
    name: str = ""
    description: str = ""
    fields: Sequence[str] = ()
    example: Mapping[str, Any] | None = None
    writes: bool = False
    deletes: bool = False

    @property
    def text(self) -> str:
        """The description with the example, if there is one."""
        example = f" Example: {json.dumps(self.example)}" if self.example else ""
        return f"{self.description}{example}"

    def input_schema(self, without: Collection[str] = ()) -> Schema:
        """JSON Schema of the arguments, except for those that this server does not offer."""
        names = [name for name in self.fields if name not in without]
        return offered_schema(self.contract, names, is_first=self.name == "retrieve")


class Given(NamedTuple):
    """An answer that an agent got: the ids of its places, and the words of its task."""

    chunk_ids: list[str]
    words: Collection[str]


class Operations:
    """The operations over one engine. Calls come one at a time.

    The texts of `retrieve` have names, of which each agent has its own: ``a3.2`` is the second
    place of the third answer that this agent got here. No name depends on what others asked.

    Args:
        engine: the corpus, the overlays and the model.
        allow_write: whether the operations that write may be called.
        indexing: embeds after an `ingest`, for a contextual model.
    """

    def __init__(
        self, engine: Engine, *, allow_write: bool = False, indexing: Indexing | None = None
    ) -> None:
        self.engine = engine
        self.allow_write = allow_write
        self.indexing = indexing
        self._progress: Progress | None = None
        self._answers: dict[str | None, dict[int, Given]] = {}

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
        with self._request(method, fields) as request:
            self._progress = progress
            return self._values(method, request)

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
        with self._request(method, fields) as sent:
            self._progress = None
            request = self._with_places(sent)
            if isinstance(request, MultiGetRequest):
                if len(request.ids) == 1 and not is_glob(request.ids[0]):
                    lookup = self._lookup(request)
                    lookups = Lookups(lookups=[self._part_of_section(lookup, request)])
                else:
                    lookups = self.engine.multi_get(request)
                return lookups_text(shaped_lookups(lookups, request.max_chars or MAX_TEXT_CHARS))
            if method == "retrieve" and isinstance(request, RetrievalRequest):
                room = (request.max_chars or MAX_CHARS) - _NAME_CHARS
                update = {"packet": True, "max_chars": room}
                bundle = self.engine.retrieve(request.model_copy(update=update))
                return f"Answer a{self._number(bundle)}.\n{bundle.packet}"
            if isinstance(request, WhyRequest):
                request = request.model_copy(update={"packet": True})
            return answer_text(method, self._values(method, request))

    def _answers_of(self, agent: str | None) -> dict[int, Given]:
        return self._answers.setdefault(self.engine.access.resolve_agent(agent), {})

    def _number(self, bundle: RetrievalBundle) -> int:
        """The number of an answer, by which its agent can name its places."""
        answers = self._answers_of(bundle.request.agent if bundle.request else None)
        number = max(answers, default=0) + 1
        chunk_ids = [chunk.chunk_id for chunk in bundle.selected]
        words = words_searched(bundle.query.lexical_query, bundle.query.task_text)
        answers[number] = Given(chunk_ids, words)
        answers.pop(number - MAX_ANSWERS, None)
        return number

    def _with_places(self, request: Contract) -> Contract:
        """The request with the ids of the places that it names as ``a3.2``.

        ``[2]`` in a draft is the second place of the agent's last answer.
        """
        update: dict[str, object] = {}
        if isinstance(request, VerifyRequest) and not (request.bundle or request.chunk_ids):
            answers = self._answers_of(request.agent)
            if answers and _CITED_NUMBER.search(request.draft):
                update["chunk_ids"] = answers[max(answers)].chunk_ids
        for name in ("ids", "id", "seen", "chunk_ids"):
            value = getattr(request, name, None)
            if isinstance(value, list):
                update[name] = [self._place(reference, request) for reference in value]
            elif isinstance(value, str):
                update[name] = self._place(value, request)
        return request.model_copy(update=update)

    def _place(self, reference: str, request: Contract) -> str:
        found = PLACE.match(reference.strip().strip("[]"))
        given = found and self._answers_of(getattr(request, "agent", None)).get(int(found[1]))
        if not found or not given or not 0 < int(found[2]) <= len(given.chunk_ids):
            return reference
        return given.chunk_ids[int(found[2]) - 1]

    def _part_of_section(self, lookup: Lookup, request: MultiGetRequest) -> Lookup:
        """Of a long section its headings, and the part that fits the agent's last task."""
        most, passages = request.max_chars or MAX_CHARS, joined_passages(lookup.passages)
        if request.section is None or sum(len(p.content) for p in passages) <= most:
            return lookup
        answers = self._answers_of(request.agent)
        words = answers[max(answers)].words if answers else ()
        # The first passage that has most of the words.
        best = max(passages, key=lambda p: sum(word in p.content.casefold() for word in words))
        values = {"content": best.content, "citation": {"locator": best.locator}}
        cut = cut_passage(values, *best_span(best.content, words, most // 2))
        first, last = lookup.passages[0].locator, lookup.passages[-1].locator
        lines = int(first.rpartition(":")[2].partition("-")[0]), int(last.rpartition("-")[2])
        outline = self.engine.get(request.ids[0], request.agent, outline=True).outline or []
        more = More(
            method="get",
            params={"id": f"{first.rpartition('-')[0]}-{lines[1]}"},
            omitted={"passages": len(lookup.passages), "content_chars": 0},
        )
        update = {"content": cut["content"], "locator": cut["citation"]["locator"]}
        inside = [h for h in outline if lines[0] <= h.start_line <= lines[1]]
        return lookup.model_copy(
            update={"passages": [best.model_copy(update=update)], "outline": inside, "more": more}
        )

    @property
    def may_write(self) -> bool:
        """Whether `ingest` is offered. It never is to an agent."""
        return self.allow_write and self.engine.access.agent is None

    @property
    def offered_methods(self) -> list[str]:
        """The methods that this server offers; which of them an agent may call is its policy's."""
        return [
            method
            for method, row in METHODS.items()
            if not row.writes or (self.may_write if row.deletes else self.allow_write)
        ]

    @property
    def takes_approvals(self) -> bool:
        """Whether a request may name the person who approved its action."""
        return self.engine.answering.approver is None

    def warm_up(self) -> None:
        """Open the corpus and load the model. If that fails now, it may work for the first call."""
        try:
            self.engine.warm_up()
        except RolebundleError as error:
            with suppress(OSError):
                sys.stderr.write(f"not loaded ahead: {error}\n")

    @contextmanager
    def _request(self, method: str, fields: Mapping[str, object]) -> Iterator[Contract]:
        """The request, and the block in which it is answered."""
        # A client of a server must not learn where files lie on this machine.
        with self.engine.access.errors_without_paths():
            contract = METHODS[method].contract
            self.engine.refresh()
            request = parsed(contract, fields)
            agent, role = getattr(request, "agent", None), getattr(request, "role", None)
            with self.engine.access.recording_refusals(agent, role):
                yield request

    def _values(self, method: str, request: Contract) -> Answer:
        row = METHODS[method]
        if row.writes and not row.deletes and not self.allow_write:
            raise _read_only("this server may not write", "start it with --allow-write")
        answer = row.answer(self, request)
        return answer.model_dump(exclude_none=True) if isinstance(answer, Contract) else answer

    def _retrieve(self, request: RetrievalRequest) -> Answer:
        bundle = self.engine.retrieve(request)
        # The packet has the passages' texts already, and ``max_chars`` bounds it.
        detail = request.detail or ("ids" if request.packet else DEFAULT_DETAIL)
        return shaped_bundle(bundle, detail, request.max_chars)

    def _lookup(self, request: MultiGetRequest) -> Lookup:
        return self.engine.get(
            request.ids[0], request.agent, outline=request.outline, section=request.section
        )

    def _get(self, request: MultiGetRequest) -> Lookup:
        if len(request.ids) > 1:
            raise UsageError("bad_request", "get takes one reference", "call multi_get for several")
        return shaped_lookup(self._lookup(request), request.max_chars)

    def _roles(self, request: StatusRequest) -> Answer:
        view = self.engine.access.view_of(request.agent)
        # Agents must not learn where a file lies on this machine.
        conceal = self.engine.access.conceal_paths
        roles = [
            entry.model_dump(exclude={"path"}) | {"problem": conceal(entry.problem)}
            for entry in list_overlays(self.engine.access.overlay_folders)
            if view.allows_role(entry.role_id)
        ]
        return {"roles": roles}

    def _ingest(self, request: IngestRequest) -> Answer:
        # Under a policy the callers are agents, and a report would count what they may not see.
        # Neither is a server that only --allow-write is missing.
        is_for_agents = self.engine.access.agent is not None or self.engine.access.has_policy()
        if is_for_agents or not self.may_write:
            raise _read_only(
                "this server may not ingest",
                "the owner of the corpus can run `rolebundle ingest`"
                + ("" if is_for_agents else ", or start the server with --allow-write"),
            )
        missing = [path for path in request.paths if not Path(path).is_absolute()]
        if missing or not request.paths:
            problem = f"paths: {missing[0] if missing else 'none given'} is not an absolute path"
            step = "send absolute paths, because the server has a working folder of its own"
            raise UsageError("bad_request", problem, step)
        report = Admin(self.engine.workspace).ingest(
            [Path(path) for path in request.paths],
            IngestOptions(lexical_only=request.lexical_only, wait=self.indexing is None),
            progress=self._progress,
        )
        if self.indexing:
            self.indexing.start()
        return report.model_dump()


def _read_only(problem: str, step: str) -> AccessDenied:
    return AccessDenied("read_only_server", problem, step)


_ANSWERS: Mapping[str, tuple[type[Contract], Callable[[Operations, Any], Contract | Answer]]] = {
    "retrieve": (RetrievalRequest, Operations._retrieve),
    "get": (MultiGetRequest, Operations._get),
    "multi_get": (
        MultiGetRequest,
        lambda own, request: shaped_lookups(own.engine.multi_get(request), request.max_chars),
    ),
    "ls": (ListRequest, lambda own, request: own.engine.ls(request)),
    "grep": (GrepRequest, lambda own, request: own.engine.grep(request)),
    "why": (WhyRequest, lambda own, request: own.engine.why(request, request.id)),
    "compare": (CompareRequest, lambda own, request: own.engine.compare(request, request.roles)),
    "verify": (
        VerifyRequest,
        lambda own, request: shaped_verification(
            own.engine.verify(request), request.detail or "compact"
        ),
    ),
    "check": (CheckRequest, lambda own, request: own.engine.check(request)),
    "mark": (MarkRequest, lambda own, request: own.engine.mark(request).model_dump()),
    "remember": (RememberRequest, lambda own, request: own.engine.remember(request)),
    "roles.list": (StatusRequest, Operations._roles),
    "status": (StatusRequest, lambda own, request: own.engine.status(request.agent)),
    "ingest": (IngestRequest, Operations._ingest),
}
"""Method → its request, and what answers it."""

METHODS: Mapping[str, Operation] = {
    method: Operation(method, *row, **_TEXTS["methods"].get(method, {}))
    for method, row in _ANSWERS.items()
}
"""The operations by their names for programs."""

TOOLS = [row for row in METHODS.values() if row.name]
"""The operations that models are offered."""


def internal_error(error: BaseException) -> RolebundleError:
    """The coded error for an exception that no code foresaw. It has no detail that could leak."""
    step = "please report it; ROLEBUNDLE_DEBUG=1 shows on standard error where it happened"
    return RolebundleError("internal", f"internal error: {type(error).__name__}", step)
