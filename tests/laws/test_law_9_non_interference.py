"""Law 9. Non-interference: an answer does not depend on what the agent may not see.

A corpus with documents of several scopes, sensitivities and folders goes through random changes.
Each request of an agent is repeated on a copy from which everything was deleted that the agent may
not see; this test decides that by itself. The answers of `retrieve`, `get`, `multi_get`, `ls`,
`grep`, `why`, `verify`, `compare`, `status`, `gate check`, `check`, `mark`, `roles.list` and the
listings of documents and decisions are equal: passages, order, scores, counts, rejections,
constraints, warnings and errors; so is what the host's program for approvals gets. The policy binds
some agents to roles. Passages are marked, and decisions are made in several scopes.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import Mark
from rolebundle.contracts.memory import CheckRequest, NewDecision
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import (
    GrepRequest,
    ListRequest,
    MultiGetRequest,
    RetrievalRequest,
    Where,
)
from rolebundle.contracts.terms import ACTIONS, Authority, DecisionEffect, MarkState
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.access import deny_matcher, set_policy
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.request import resolve_request
from rolebundle.storage import marks, store
from rolebundle.storage.corpus import increment_generation
from rolebundle.storage.documents import StoredDocument, StoredFile
from rolebundle.storage.marks import MarkKind
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.amounts import FEW_EXAMPLES
from support.bundles import without_timings
from support.corpora import (
    NOW,
    build,
    chunk,
    copy_corpus,
    embed,
    put_decision,
    retrieve,
    scratch_folder,
)
from support.corpora import document as plain_document
from support.corpora import remove as remove_corpus
from support.embedding_server import FAKE, known
from support.fake_embedder import HashingProvider
from support.strategies import (
    AS_OF,
    SEENS,
    WHERES,
    also,
    choices,
    documents,
    overlays,
    passage_text,
    task_text,
    word_text,
)

SCOPES = ("engineering", "hr", "shared")
LEVELS = ("denied", "public", "group", "internal", "confidential")
FOLDERS = ("open", "closed", "attic")
PATTERNS = ("closed/**", "*/d3.md", "ATTIC/*", "nothing-like-it")
NAMES = tuple(f"d{number}" for number in range(9))
DECISION_NAMES = ("d1", "d4")
"""Documents of the type ``decision``."""
AGENTS = ("ada", "bob", "eve")
ROLES: dict[str, dict[str, Any]] = {
    "reviewer": {
        "source_policy": {"forbidden_sources": [{"pattern": "vendor", "reason": "rumours"}]},
        "vocabulary": {"preferred_terms": ["token"]},
    },
    "writer": {"source_policy": {"preferred_sources": [{"pattern": "wiki", "boost": 2.0}]}},
}
"""The overlays that a request names. Another one may be given with the request."""
APPROVERS = ([], None, ["ask"])
REFERENCES = (
    "d1#0", "d3#1", "open/d2.md:1-2", "#d4:1:2", "d3.md", "closed/d3.md", "/docs/closed/d3.md", "d33",
)  # fmt: skip


_rules = choices(
    ((), ("*",), ("engineering",), ("hr",), ("engineering", "shared"), ("shared",), ("nowhere",)),
    LEVELS,
    ((), (), ("closed/**",), ("*/d3.md", "ATTIC/*"), PATTERNS),
    # What the agent may ask with; a rule without roles is drawn most often.
    ({}, {}, {}, {"roles": ["reviewer"]}, {"roles": ["reviewer", "writer"], "role_required": False},
     {"role_required": True}, {"roles": [], "role_required": False}),
    ({}, {"may_write": ["mark"]}),
    ({}, {"show_paths": True}),
)  # fmt: skip
_options = choices(
    (False, True), (None, "rrf"), (None, FAKE), (None, *ACTIONS), (None, "Ana"), APPROVERS
)
_marked = st.builds(
    "{}{}".format, st.sampled_from(NAMES), st.sampled_from(("", "#0", "#1", "#0", "#1"))
)
_authors = st.sampled_from(("Ana", "ada", "bob"))
_places = choices(SCOPES, LEVELS[1:], FOLDERS)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """A rule for each agent; sometimes none for the last one."""
    named = draw(st.sampled_from([AGENTS, AGENTS[:2]]))
    policy = {}
    for agent in named:
        scopes, level, patterns, roles, writes, paths = draw(_rules)
        rule = {"scopes": [*scopes], "access_level": level, "deny_patterns": [*patterns]}
        rule["may_set_time"] = True  # Each question is asked at one time.
        policy[agent] = rule | roles | writes | paths
    return policy


def may_see(rule: dict[str, Any] | None, document: StoredDocument, file: StoredFile) -> bool:
    """Whether an agent with this rule may see a document."""
    if rule is None or rule["access_level"] == "denied":
        return False
    metadata = document.metadata
    return (
        not {"*", metadata.scope}.isdisjoint(rule["scopes"])
        and LEVELS.index(rule["access_level"]) >= LEVELS.index(metadata.sensitivity)
        and not any(
            fnmatchcase(file.path.lower(), pattern.lower()) for pattern in rule["deny_patterns"]
        )
    )


def may_see_decisions(rule: dict[str, Any] | None, scope: str) -> bool:
    """Whether an agent with this rule may see the decisions of a scope."""
    return (
        rule is not None
        and LEVELS.index(rule["access_level"]) >= LEVELS.index("internal")
        and not {"*", scope}.isdisjoint(rule["scopes"])
    )


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        answer = ask()
        return without_timings(answer.model_dump() if isinstance(answer, Contract) else answer)
    except RolebundleError as error:
        return [type(error).__name__, error.code, error.message, error.hint]


def may_ask(rule: dict[str, Any], role: str | None) -> bool:
    """Whether an agent with this rule may ask with a role, or without one."""
    roles = rule.get("roles")
    if role is None:
        return not rule.get("role_required", roles is not None)
    return roles is None or role in roles


def decide(_command: Sequence[str], question: dict[str, Any]) -> tuple[str, str]:
    """The host's program: it approves by what it sees."""
    QUESTIONS.append(question)
    names = [passage["chunk_id"] for passage in question["passages"]]
    return ("Ana", "") if len(names) % 2 else ("", ", ".join(names))


QUESTIONS: list[dict[str, Any]] = []


def _lines_asked(request: RetrievalRequest, reference: str) -> list[GrepRequest]:
    """Searches for lines: for a word of the task, for any word, and below a prefix."""
    word, agent = (request.task.split() or ["token"])[0], request.agent
    return [
        GrepRequest(pattern=word, agent=agent),
        GrepRequest(pattern=word, prefix=reference, agent=agent),
        GrepRequest(pattern=r"\w", regex=True, limit=2, agent=agent),
        GrepRequest(pattern=r"\w", regex=True, limit=2, after="1:d3", agent=agent),
        GrepRequest(pattern="(", regex=True, agent=agent),
    ]


class Machine(RuleBasedStateMachine):
    """One corpus. Each request is made to it and to a copy of the part that the agent may see."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._stack.enter_context(known())
        self._stack.enter_context(patch("rolebundle.answering.ask_program", decide))
        self.folder = self._stack.enter_context(scratch_folder())
        (self.folder / "whole").mkdir()
        self.path = build(self.folder / "whole", [], name="corpus.db")
        for role, values in ROLES.items():
            overlay = {"version": "1.0", "role_id": role, **values}
            (self.folder / f"{role}.json").write_text(json.dumps(overlay), encoding="utf-8")
        self.changes = 0
        self.parts: dict[str, int] = {}
        self.stored: dict[str, tuple[StoredFile, StoredDocument]] = {}
        self.policy: dict[str, Any] = {}
        self.decided: Counter[str] = Counter()

    def teardown(self) -> None:
        self._stack.close()

    @initialize(policy=policies(), drawn=st.lists(st.tuples(documents("d0"), _places), max_size=6))
    def begin(self, policy: dict[str, Any], drawn: list[tuple[StoredDocument, list[str]]]) -> None:
        self.set_policy(policy)
        for name, (document, place) in zip(NAMES, drawn, strict=False):
            self._put(name, document, place)
        self.embed_all(0)

    @rule(policy=policies())
    def set_policy(self, policy: dict[str, Any]) -> None:
        self.policy = policy
        self.changes += 1
        with open_writer(self.path) as corpus:
            set_policy(corpus, json.dumps(policy), "json", "", "2026-11-01T00:00:00Z")

    @rule(name=st.sampled_from(NAMES), document=documents("d0"), place=_places)
    def put(self, name: str, document: StoredDocument, place: list[str]) -> None:
        self._put(name, document, place)

    @rule(name=st.sampled_from(NAMES), text=passage_text, place=_places)
    def put_copies(self, name: str, text: str, place: list[str]) -> None:
        self._put(name, plain_document(name, [text, text]), place)

    def _put(self, name: str, document: StoredDocument, place: list[str]) -> None:
        self.changes += 1
        scope, sensitivity, folder = place
        kind = "decision" if name in DECISION_NAMES else document.metadata.document_type
        metadata = document.metadata._replace(
            document_id=name, scope=scope, sensitivity=sensitivity, document_type=kind
        )
        chunks = tuple(
            chunk(f"{name}#{number}", original.content, excluded_roles=original.excluded_roles)
            for number, original in enumerate(document.chunks)
        )
        if name in self.stored and self.stored[name][0].path != f"{folder}/{name}.md":
            self.remove(name)
        file = StoredFile(f"/docs/{folder}/{name}.md", f"{folder}/{name}.md", "hash", "recipe")
        changed = StoredDocument(metadata, chunks, document.scanned)
        with open_writer(self.path) as corpus, corpus.writing():
            [problem] = store.put_files(corpus, [(file, [changed])], deny_matcher(corpus))
            increment_generation(corpus)
        assert problem is None
        self.stored[name] = (file, changed)

    @precondition(lambda self: self.stored)
    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        if name not in self.stored:
            return
        self.changes += 1
        file, _ = self.stored.pop(name)
        with open_writer(self.path) as corpus, corpus.writing():
            store.remove_files(corpus, [file.location])
            store.drop_unused(corpus)
            increment_generation(corpus)

    @rule(marked=_marked, state=st.sampled_from(get_args(MarkState)), by=_authors)
    def mark(self, marked: str, state: Any, by: str) -> None:
        self.changes += 1
        kind: MarkKind = "chunk" if "#" in marked else "document"
        authority: Authority = "owner" if by == "Ana" else "agent"
        with open_writer(self.path) as corpus, corpus.writing():
            text_hash = marks.text_hash(corpus, kind, marked) or ""
            mark = Mark(state, by, authority, "checked", "2026-11-01T00:00:00Z")
            marks.put_mark(corpus, marks.StoredMark(kind, marked, text_hash, mark))
            increment_generation(corpus)

    @rule(
        text=word_text.filter(str.strip),
        scope=st.sampled_from(SCOPES),
        effect=st.sampled_from(get_args(DecisionEffect)),
        supersedes=st.booleans(),
    )
    def decide(self, text: str, scope: str, effect: Any, supersedes: bool) -> None:
        self.changes += 1
        latest = [str(self.decided[scope])] if supersedes and self.decided[scope] else []
        self.decided[scope] += 1
        what = {"about": text.split()[:1], "commands": [f"{text}*"] if effect == "block" else []}
        new = NewDecision(
            text=text, scope=scope, effect=effect, supersedes=latest, decided_by="Ana", **what
        )
        with open_writer(self.path) as corpus:
            put_decision(corpus, new)

    @rule(waiting=st.integers(0, 3))
    def embed_all(self, waiting: int) -> None:
        self.changes += 1
        with open_writer(self.path) as corpus, corpus.writing():
            embed(corpus, HashingProvider(), waiting=waiting)
            increment_generation(corpus)

    def _visible_part(self, agent: str) -> Path:
        """A copy from which everything that the agent may not see was deleted."""
        part = self.folder / f"part-{agent}" / self.path.name
        if self.parts.get(agent) == self.changes:
            return part
        part.parent.mkdir(exist_ok=True)
        remove_corpus(part)
        copy_corpus(self.path, part)
        rule_ = self.policy.get(agent)
        hidden_locations = [
            file.location
            for file, document in self.stored.values()
            if not may_see(rule_, document, file)
        ]
        with open_writer(part) as corpus, corpus.writing():
            store.remove_files(corpus, hidden_locations)
            store.drop_unused(corpus)
            for marked in marks.all_marks(corpus):
                if marks.text_hash(corpus, marked.kind, marked.target) is None:
                    marks.remove_mark(corpus, marked.kind, marked.target)
            for scope in SCOPES:
                if not may_see_decisions(rule_, scope):
                    corpus.run("DELETE FROM decision WHERE scope = ?", (scope,))
            # What is hidden is also written to.
            for _ in range(3):
                increment_generation(corpus)
        self.parts[agent] = self.changes
        return part

    @rule(
        agent=st.sampled_from((*AGENTS, None)),
        task=task_text,
        also=also,
        role=st.sampled_from((None, *ROLES, "nobody")) | overlays(),
        limit=st.none() | st.integers(1, 4),
        reference=st.sampled_from((*NAMES, *REFERENCES)),
        where=st.sampled_from((*WHERES, {"path": "closed/**"})),
        seen=st.sampled_from(SEENS),
        as_of=st.sampled_from(AS_OF),
        options=_options,
    )
    def ask(
        self,
        agent: str | None,
        task: str,
        also: list[str] | None,
        role: str | Overlay | None,
        limit: int | None,
        reference: str,
        where: dict[str, Any] | None,
        seen: list[str] | None,
        as_of: str | None,
        options: list[Any],
    ) -> None:
        lexical_only, fusion, rerank, action, approval, approver = options
        overlay = None
        if isinstance(role, Overlay):
            overlay = ResolvedOverlay(role, "digest", Path("role.json"), ())
        request = RetrievalRequest(
            task=task,
            also=also,
            role=None if isinstance(role, Overlay) else role,
            agent=agent,
            action=action,
            approval=approval,
            where=Where.model_validate(where) if where else None,
            seen=seen,
            as_of=as_of,  # type: ignore[arg-type]
            limit=limit,
            packet=lexical_only,
            lexical_only=lexical_only,
            fusion=fusion,
            rerank=rerank,
            now=NOW,
        )
        part = self._visible_part(agent or "")
        draft = f'It says "{task}" [2]. And {task} ({reference}). So {task}, see {reference}.'
        # An answer with everything, as if it were this agent's.
        with open_reader(self.path) as corpus:
            unlabelled = request.model_copy(update={"role": None, "rerank": None})
            resolved = resolve_request(unlabelled, NOW, overlay.overlay if overlay else None)
            forged = retrieve(corpus, resolved, HashingProvider())
        complete, alone = (
            self._answers(path, request, overlay, reference, approver, forged, draft)
            for path in (self.path, part)
        )
        assert complete == alone
        self._nothing_hidden_is_shown(request, overlay, complete)

    def _answers(
        self,
        path: Path,
        request: RetrievalRequest,
        overlay: ResolvedOverlay | None,
        reference: str,
        approver: Any,
        forged: RetrievalBundle,
        draft: str,
    ) -> list[Any]:
        """What one corpus answers, and what the host's program is asked."""
        QUESTIONS.clear()
        agent = request.agent
        verified = [
            VerifyRequest(draft=draft, role=request.role, agent=agent, now=NOW, **evidence)
            for evidence in (
                {},
                {"bundle": forged.model_dump()},
                {"chunk_ids": [reference, "d1#0", "d2#0"]},
            )
        ]
        check = CheckRequest(
            intent=request.task,
            command=request.task,
            action=request.action,
            agent=agent,
            role=request.role,
        )
        workspace = Workspace(path, HashingProvider())
        with Engine(workspace, (self.folder,), approver=approver) as engine:
            operations = Operations(engine)
            answers = [
                outcome(lambda: engine.retrieve(request, overlay)),
                outcome(lambda: engine.get(reference, agent)),
                outcome(
                    lambda: engine.multi_get(
                        MultiGetRequest(ids=[reference, "*/d*", "/docs/closed/*"], agent=agent)
                    )
                ),
                outcome(lambda: engine.ls(ListRequest(agent=agent))),
                outcome(lambda: engine.ls(ListRequest(prefix=reference, agent=agent))),
                *(
                    outcome(partial(engine.grep, lines))
                    for lines in _lines_asked(request, reference)
                ),
                outcome(lambda: engine.why(request, reference, overlay)),
                outcome(lambda: engine.status(agent)),
                outcome(lambda: engine.compare(request, [*ROLES])),
                outcome(lambda: operations.call("roles.list", {"agent": agent} if agent else {})),
                outcome(lambda: engine.check(check, NOW)),
                outcome(lambda: [record.model_dump() for record in engine.decisions(agent)]),
                outcome(lambda: engine.gate_check(self._gate(request), agent or "nobody")),
                *(outcome(partial(engine.verify, request, overlay)) for request in verified),
            ]
        if not request.lexical_only:
            return [*answers, [*QUESTIONS]]
        # Marking changes the corpus, so it is done in a copy, and the answer after it is compared.
        copied = path.with_name(f"marked-{path.name}")
        remove_corpus(copied)
        copy_corpus(path, copied)
        with Engine(Workspace(copied, HashingProvider()), (self.folder,)) as engine:
            fields = {"id": reference, "state": "rejected", "reason": "wrong"}
            fields |= {"agent": agent} if agent else {}
            mark = outcome(lambda: Operations(engine, allow_write=True).call("mark", fields))
            if isinstance(mark, dict):
                mark.pop("marked_at")
            answers += [mark, outcome(lambda: engine.retrieve(request, overlay))]
        return [*answers, [*QUESTIONS]]

    def _gate(self, request: RetrievalRequest) -> Path:
        """A contract that asks the corpus whether the task may be stated as it is."""
        (self.folder / "draft.md").write_text(f'It says "{request.task}".', encoding="utf-8")
        fields = {"id": "verify", "check": "verify", "file": "draft.md"}
        fields |= {} if request.role is None else {"role": request.role}
        lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items()]
        path = self.folder / "work.gate.toml"
        path.write_text("[[criteria]]\n" + "\n".join(lines), encoding="utf-8")
        return path

    def _nothing_hidden_is_shown(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None, answers: list[Any]
    ) -> None:
        rule_ = self.policy.get(request.agent or "")
        *outcomes, questions = answers
        if rule_ is None or rule_["access_level"] == "denied":
            assert not questions
            assert all(isinstance(each, list) and each[1] == "access_denied" for each in outcomes)
            return
        visible = {
            name for name, (file, document) in self.stored.items() if may_see(rule_, document, file)
        }
        asked = [passage for question in questions for passage in question["passages"]]
        assert {passage["document_id"] for passage in asked} <= visible
        bundle = answers[0]
        if not may_ask(rule_, request.role) or (overlay and "roles" in rule_):
            assert bundle[1] == "role_denied"
            return
        if isinstance(bundle, list):
            assert bundle[1] == "overlay_missing"
            return
        listed = [each["chunk_id"] for each in (*bundle["selected"], *bundle["rejected"])]
        assert {chunk_id.partition("#")[0] for chunk_id in listed} <= visible
        assert bundle["corpus"]["documents"] == len(visible)


TestNonInterference = Machine.TestCase

# Twelve steps cover every rule; the default of fifty takes minutes.
TestNonInterference.settings = settings(max_examples=FEW_EXAMPLES, stateful_step_count=12)
