"""Law 9. Non-interference: an answer does not depend on what the agent may not see.

A corpus with documents of several scopes, sensitivities and folders goes through random changes.
Each request of an agent is repeated on a copy from which everything was deleted that the agent may
not see; this test decides that by itself. The answers of `retrieve`, `get`, `why` and `status` are
equal: passages, order, scores, counts, rejections, warnings and errors.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest, Where
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.policy.access import deny_matcher, set_policy
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.storage import rerank_cache, store
from rolebundle.storage.opening import open_writer
from rolebundle.storage.store import StoredDocument, StoredFile
from rolebundle.workspace import Workspace
from support.amounts import FEW_EXAMPLES
from support.corpora import NOW, build, chunk, embed, scratch_folder
from support.corpora import document as plain_document
from support.fake_embedder import HashingProvider
from support.reranking import FAKE, known
from support.strategies import (
    AS_OF,
    SEENS,
    WHERES,
    choices,
    documents,
    overlays,
    passage_text,
    word_text,
)

SCOPES = ("engineering", "hr", "shared")
LEVELS = ("denied", "public", "group", "internal", "confidential")
FOLDERS = ("open", "closed", "attic")
PATTERNS = ("closed/**", "*/d3.md", "ATTIC/*", "nothing-like-it")
NAMES = tuple(f"d{number}" for number in range(9))
AGENTS = ("ada", "bob", "eve")

_rules = choices(
    ((), ("engineering",), ("hr",), ("engineering", "shared"), ("shared",), ("nowhere",)),
    LEVELS,
    ((), (), ("closed/**",), ("*/d3.md", "ATTIC/*"), PATTERNS),
)
_places = choices(SCOPES, LEVELS[1:], FOLDERS)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """A rule for each agent; sometimes none for the last one."""
    named = draw(st.sampled_from([AGENTS, AGENTS[:2]]))
    policy = {}
    for agent in named:
        scopes, level, patterns = draw(_rules)
        policy[agent] = {
            "scopes": list(scopes),
            "access_level": level,
            "deny_patterns": list(patterns),
        }
    return policy


def may_see(rule: dict[str, Any] | None, document: StoredDocument, file: StoredFile) -> bool:
    """Whether an agent with this rule may see a document."""
    if rule is None or rule["access_level"] == "denied":
        return False
    metadata = document.metadata
    return (
        (not rule["scopes"] or metadata.scope in rule["scopes"])
        and LEVELS.index(rule["access_level"]) >= LEVELS.index(metadata.sensitivity)
        and not any(
            fnmatchcase(file.path.lower(), pattern.lower()) for pattern in rule["deny_patterns"]
        )
    )


def without_timings(value: Any) -> Any:
    """The same values without the timings."""
    if isinstance(value, dict):
        return {
            key: without_timings(item)
            for key, item in value.items()
            if key not in {"latency_ms", "lexical_ms", "semantic_ms", "rerank_ms"}
        }
    return [without_timings(item) for item in value] if isinstance(value, list) else value


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return without_timings(ask().model_dump())
    except RolebundleError as error:
        return [type(error).__name__, error.code, error.message, error.hint]


class Machine(RuleBasedStateMachine):
    """One corpus. Each request is made to it and to a copy of the part that the agent may see."""

    def __init__(self) -> None:
        super().__init__()
        self._reranking = known()
        self._reranking.__enter__()
        self._scratch = scratch_folder()
        self.folder = self._scratch.__enter__()
        (self.folder / "whole").mkdir()
        self.path = build(self.folder / "whole", [], name="corpus.db")
        self.stored: dict[str, tuple[StoredFile, StoredDocument]] = {}
        self.policy: dict[str, Any] = {}

    def teardown(self) -> None:
        self._reranking.__exit__(None, None, None)
        self._scratch.__exit__(None, None, None)

    @initialize(policy=policies(), drawn=st.lists(st.tuples(documents("d0"), _places), max_size=6))
    def begin(self, policy: dict[str, Any], drawn: list[tuple[StoredDocument, list[str]]]) -> None:
        self.set_policy(policy)
        for name, (document, place) in zip(NAMES, drawn, strict=False):
            self._put(name, document, place)
        self.embed_all(0)

    @rule(policy=policies())
    def set_policy(self, policy: dict[str, Any]) -> None:
        self.policy = policy
        with open_writer(self.path) as corpus:
            set_policy(corpus, json.dumps(policy), "json", "", "2026-11-01T00:00:00Z")

    @rule(name=st.sampled_from(NAMES), document=documents("d0"), place=_places)
    def put(self, name: str, document: StoredDocument, place: list[str]) -> None:
        self._put(name, document, place)

    @rule(name=st.sampled_from(NAMES), text=passage_text, place=_places)
    def put_copies(self, name: str, text: str, place: list[str]) -> None:
        self._put(name, plain_document(name, [text, text]), place)

    def _put(self, name: str, document: StoredDocument, place: list[str]) -> None:
        scope, sensitivity, folder = place
        metadata = document.metadata.__class__(
            **{
                **document.metadata._asdict(),
                "document_id": name,
                "scope": scope,
                "sensitivity": sensitivity,
            }
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
            store.increment_generation(corpus)
        assert problem is None
        self.stored[name] = (file, changed)

    @precondition(lambda self: self.stored)
    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        if name not in self.stored:
            return
        file, _ = self.stored.pop(name)
        with open_writer(self.path) as corpus, corpus.writing():
            store.remove_files(corpus, [file.location])
            store.drop_unused(corpus)
            store.increment_generation(corpus)

    @rule(waiting=st.integers(0, 3))
    def embed_all(self, waiting: int) -> None:
        with open_writer(self.path) as corpus, corpus.writing():
            embed(corpus, HashingProvider(), waiting=waiting)
            store.increment_generation(corpus)

    def _visible_part(self, agent: str) -> Path:
        """A copy from which everything that the agent may not see was deleted."""
        (self.folder / "part").mkdir(exist_ok=True)
        part = self.folder / "part" / self.path.name
        shutil.copyfile(self.path, part)
        rule_ = self.policy.get(agent)
        gone = [
            file.location
            for file, document in self.stored.values()
            if not may_see(rule_, document, file)
        ]
        with open_writer(part) as corpus, corpus.writing():
            store.remove_files(corpus, gone)
            store.drop_unused(corpus)
        return part

    @rule(
        agent=st.sampled_from((*AGENTS, None)),
        task=word_text,
        role=st.none() | overlays(),
        limit=st.none() | st.integers(1, 4),
        lexical_only=st.booleans(),
        reference=st.sampled_from((*NAMES, "d1#0", "d3#1", "open/d2.md:1-2", "#d4:1:2")),
        rrf=st.booleans(),
        reranked=st.booleans(),
        where=st.sampled_from((*WHERES, {"path": "closed/**"})),
        seen=st.sampled_from(SEENS),
        as_of=st.sampled_from(AS_OF),
    )
    def ask(
        self,
        agent: str | None,
        task: str,
        role: Overlay | None,
        limit: int | None,
        lexical_only: bool,
        reference: str,
        rrf: bool,
        reranked: bool,
        where: dict[str, Any] | None,
        seen: list[str] | None,
        as_of: str | None,
    ) -> None:
        part = self._visible_part(agent or "")
        request = RetrievalRequest(
            task=task,
            agent=agent,
            where=Where.model_validate(where) if where else None,
            seen=seen,
            as_of=as_of,  # type: ignore[arg-type]
            limit=limit,
            lexical_only=lexical_only,
            fusion="rrf" if rrf else None,
            # The copy has no cache; the cache of the corpus has every earlier request.
            rerank=FAKE if reranked else None,
            now=NOW,
        )
        overlay = ResolvedOverlay(role, "digest", Path("role.json"), ()) if role else None
        answers = []
        rerank_cache.erase(part)
        for path in (self.path, part):
            with Engine(Workspace(path, HashingProvider())) as engine:
                answers.append(
                    [
                        outcome(lambda: engine.retrieve(request, overlay)),
                        outcome(lambda: engine.get(reference, agent)),
                        outcome(lambda: engine.why(request, reference, overlay)),
                        outcome(lambda: engine.status(agent)),
                    ]
                )
        whole, alone = answers
        assert whole == alone
        self._nothing_hidden_is_shown(agent, whole)

    def _nothing_hidden_is_shown(self, agent: str | None, answers: list[Any]) -> None:
        rule_ = self.policy.get(agent or "")
        if rule_ is None or rule_["access_level"] == "denied":
            assert all(
                isinstance(answer, list) and answer[1] == "access_denied" for answer in answers
            )
            return
        visible = {
            name for name, (file, document) in self.stored.items() if may_see(rule_, document, file)
        }
        bundle = answers[0]
        assert {chunk["document_id"] for chunk in bundle["selected"]} <= visible
        assert {
            rejection["chunk_id"].partition("#")[0] for rejection in bundle["rejected"]
        } <= visible
        assert bundle["corpus"]["documents"] == len(visible)


TestNonInterference = Machine.TestCase
# Twelve steps cover every rule; the default of fifty takes minutes.
TestNonInterference.settings = settings(max_examples=FEW_EXAMPLES, stateful_step_count=12)
