"""A replica answers its agent like the publisher's corpus.

Bundles are equal but for the name of the corpus, what it says of the replica, and timings. So are
documents, listings, explanations, comparisons and replays.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import Mark
from rolebundle.contracts.memory import NewDecision
from rolebundle.contracts.request import GrepRequest, ListRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.policy.access import resolve_audience
from rolebundle.policy.overlays import ResolvedOverlay, overlay_folders
from rolebundle.storage import marks
from rolebundle.storage.file import staged_replica
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.storage.quarantine import Scanned
from rolebundle.verification.decisions import record_decision
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.corpora import NOW, document, fill, set_policy
from support.facts import POLICY as FACT_POLICY
from support.facts import bundle_for, facts_corpus, file_as_owner
from support.fake_embedder import HashingProvider
from support.publications import published
from support.rich_corpus import RICH_ROLE, rich_corpus
from support.values import WORDS

AT = "2026-11-15T00:00:00Z"
ROLES = (
    "mossline-code-reviewer",
    "mossline-docs-writer",
    "mossline-incident-responder",
    "mossline-product-strategist",
    "mossline-security-reviewer",
)
POLICY: dict[str, dict[str, Any]] = {
    "owner": {"scopes": [], "access_level": "confidential"},
    "clerk": {
        "scopes": ["mossline", "shared", "hr"],
        "access_level": "internal",
        "deny_patterns": ["security/**", "support/*", "d7.md"],
    },
    "guest": {"scopes": ["mossline", "shared"], "access_level": "group"},
    "bound": {
        "scopes": [],
        "access_level": "confidential",
        "roles": list(ROLES[:3]),
        "role_required": True,
        "deny_patterns": ["product/**"],
    },
    # Their patterns split what the others see into several compartments.
    "nobody": {
        "scopes": [],
        "access_level": "internal",
        "deny_patterns": ["engineering/**", "docs/help/*", "d1*.md", "*threat*"],
    },
    "none": {
        "scopes": [],
        "access_level": "internal",
        "deny_patterns": ["**/*sync*", "d2*.md", "wiki/*"],
    },
}
READERS = ("clerk", "owner", "guest", "bound")
TASKS = (
    "Can a stolen tablet replay a token?",
    "What should we worry about before release 3.0?",
    "How is a sync conflict resolved?",
    'quotes "and" NEAR(operators) * ^ col:x',
    "zxqv wvut",
    "Bake a sourdough loaf in a cast iron pot",
    "Русский текст, ключ, 漢字 and 🎉",
    "Who decides about pricing?",
    "help",
    "What is new?",
    "rotate the signing keys of the relay after the incident",
    "summarize the penetration test",
    "token rotation audit",
    "kernel threat model release",
    "naïve ключ release of the kernel 🚀",
)
_CHOICES: dict[str, tuple[Any, ...]] = {
    "role": (None, *ROLES),
    "limit": (None, None, 1, 3, 25),
    "lexical_only": (False, True),
    "fusion": (None, "weighted", "rrf"),
    "packet": (False, False, True),
    "detail": ("ids", "compact", "full"),
    "as_of": (None, None, "2026-03-01", "2026-10-10"),
    "where": (
        None,
        None,
        None,
        {"domain": ["product", "security"]},
        {"path": "engineering/**"},
        {"updated_after": "2026-01-01"},
        {"source": "source-1"},
        {"tags": [WORDS[0], "tokens"]},
    ),
    "token_budget": (None, None, 900),
    "evidence": (None, None, "required"),
    "action": (None, "read", "execute"),
    "rerank": (None, "none"),
}


def _requests(seed: int, count: int) -> Iterator[dict[str, Any]]:
    chance = Random(seed)
    for _ in range(count):
        fields = {name: chance.choice(values) for name, values in _CHOICES.items()}
        fields["task"] = chance.choice(TASKS)
        if chance.random() < 0.3:
            fields["task"] = " ".join(chance.choices(WORDS, k=4))
        yield {name: value for name, value in fields.items() if value is not None} | {"now": AT}


# -- a corpus and its replicas ---------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """The engines of a publisher's corpus and of its replicas, by agent."""

    publisher: Engine
    replicas: dict[str, Engine]
    overlay: ResolvedOverlay | None = None


def _published(folder: Path, db: Path, make: Callable[[Path], Engine]) -> dict[str, Engine]:
    key = Ed25519PrivateKey.generate()
    set_policy(db, POLICY)
    replicas = {}
    for agent in READERS:
        with open_reader(db) as corpus:
            audience = resolve_audience(corpus, agent, agent, [], "")
        published(db, audience, agent, key)
        replicas[agent] = make(
            Path(shutil.copyfile(staged_replica(db, agent), folder / f"{agent}.db"))
        )
    return replicas


@pytest.fixture(scope="module")
def sample(
    sample_with_vectors: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Published]:
    folder = tmp_path_factory.mktemp("published")
    db = Path(shutil.copyfile(sample_with_vectors, folder / "corpus.db"))
    with ExitStack() as stack:

        def engine(path: Path) -> Engine:
            return stack.enter_context(Engine(path, overlay_folders()))

        replicas = _published(folder, db, engine)
        yield Published(engine(db), replicas)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """Ties, copies, superseded and quarantined documents, marks, decisions and several scopes."""
    folder = tmp_path_factory.mktemp("published")
    db = rich_corpus(folder)
    quarantined = Scanned("quarantine", "hash", '["instruction_override"]', "[]", "")
    labelled = Scanned("label", "hash", '["secret_token"]', "[]", "removed")
    added = [
        document(
            f"e{number}",
            [f"token rotation audit {WORDS[number % len(WORDS)]} {number % 4}", "release kernel"],
            (None, None, quarantined, labelled)[number % 4],
            scope=("shared", "hr", "board")[number % 3],
            sensitivity=("public", "group", "internal", "confidential")[number % 4],
            updated_at=f"2026-0{1 + number % 9}-01T00:00:00Z",
            supersedes=(f"e{number - 3}",) if number % 5 == 4 else (),
            attributes=(("status", ("draft",)),) if number % 2 else (),
        )
        for number in range(24)
    ]
    with open_writer(db) as corpus:
        # What is hidden is written between what is visible, and some of it again.
        fill(corpus, [*added[::2], *added[1::2]], HashingProvider())
        fill(corpus, added[4:9], HashingProvider())
        with corpus.writing():
            for target in ("d3", "e1", "e4", "e6"):
                mark = Mark("disputed", "Ana", "owner", "checked", AT)
                marks.put_mark(corpus, marks.StoredMark("document", target, "", mark))
        for scope in ("shared", "hr", "board"):
            new = NewDecision(text="rotate every token", scope=scope, decided_by="Ana")
            record_decision(corpus, new, NOW)
    with ExitStack() as stack:

        def engine(path: Path) -> Engine:
            return stack.enter_context(Engine(Workspace(path, HashingProvider())))

        replicas = _published(folder, db, engine)
        role = ResolvedOverlay(RICH_ROLE, "digest", Path("role.json"), ())
        yield Published(engine(db), replicas, role)


# -- comparing -------------------------------------------------------------------------------------


def _outcome(ask: Callable[[], Any]) -> Any:
    try:
        answer = ask()
    except RolebundleError as error:
        return [error.code, error.message, error.hint]
    return answer if isinstance(answer, dict | list | RetrievalBundle) else answer.model_dump()


def _comparable(answer: Any) -> Any:
    """A bundle without the names of corpora and timings; another answer as it is."""
    if not isinstance(answer, RetrievalBundle):
        return answer
    plain = answer.without_timings()
    plain["corpus"].pop("file")
    plain["corpus"].pop("replica", None)
    # With room for all: what a bundle says of the replica takes characters, too.
    shaped = [shaped_bundle(answer, detail, 1_000_000) for detail in ("ids", "compact")]
    return [plain, answer.packet, _plain(shaped)]


def _compare(corpora: Published, requests: Sequence[dict[str, Any]]) -> int:
    """Compare the bundles of all requests. Return how many had passages."""
    answered = 0
    for number, fields in enumerate(requests):
        agent = READERS[number % len(READERS)]
        overlay = corpora.overlay if number % 2 else None
        if corpora.overlay:
            fields.pop("role", None)
        request = request_from(fields | {"agent": agent})
        theirs, own = (
            _outcome(partial(engine.retrieve, request, overlay))
            for engine in (corpora.publisher, corpora.replicas[agent])
        )
        assert _comparable(own) == _comparable(theirs), fields
        answered += isinstance(own, RetrievalBundle) and bool(own.selected)
    return answered


@rounds(5, 1400)
def test_bundles_of_the_sample_corpus_are_equal(sample: Published, rounds: int) -> None:
    assert _compare(sample, list(_requests(1, rounds))) > rounds / 4


@rounds(5, 600)
def test_bundles_of_a_generated_corpus_are_equal(generated: Published, rounds: int) -> None:
    assert _compare(generated, list(_requests(2, rounds))) > rounds / 8


@pytest.mark.sample(4)
@pytest.mark.parametrize("agent", READERS)
def test_other_answers_are_equal(sample: Published, agent: str) -> None:
    publisher, replica = sample.publisher, sample.replicas[agent]
    role = ROLES[0]
    request = request_from(
        {"task": TASKS[0], "role": role, "agent": agent, "now": AT, "lexical_only": True}
    )
    bundle = publisher.retrieve(request)
    hidden = ["security/pentest-2026-09-summary.pdf", "product/strategy-2026.md", "nothing"]
    names = [passage.chunk_id for passage in bundle.selected[:3]]
    names += [passage.citation.locator or "" for passage in bundle.selected[:2]]
    references = [*names, *hidden, "engineering/review-checklist.md"]
    for ask in (
        *(lambda engine, name=name: engine.get(name, agent) for name in references),
        lambda engine: engine.multi_get([*references, "docs/**", "*.pdf"], agent),
        lambda engine: engine.ls(ListRequest(agent=agent)),
        lambda engine: engine.ls(ListRequest(agent=agent, prefix="docs")),
        lambda engine: engine.grep(GrepRequest(pattern="token", agent=agent)),
        *(lambda engine, name=name: engine.why(request, name) for name in [names[0], hidden[0]]),
        lambda engine: engine.compare(request, ROLES[:3]),
        lambda engine: [record.model_dump() for record in engine.decisions(agent)],
    ):
        theirs, own = (_outcome(partial(ask, engine)) for engine in (publisher, replica))
        assert _plain(own) == _plain(theirs)


_NAMES_AND_TIMINGS = {"file", "replica", "latency_ms", "lexical_ms", "semantic_ms", "rerank_ms"}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _NAMES_AND_TIMINGS}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("agent", ["cy", "bob"])
def test_facts_take_no_place_in_a_replica(tmp_path: Path, agent: str) -> None:
    """Also for an agent with a deny pattern that other documents match."""
    db = facts_corpus(tmp_path)
    set_policy(db, FACT_POLICY)
    file_as_owner(db, source="rumours#0", fact="The limit may rise.")
    with open_reader(db) as corpus:
        audience = resolve_audience(corpus, agent, agent, [], "")
    published(db, audience, agent, Ed25519PrivateKey.generate())
    replica = Path(shutil.copyfile(staged_replica(db, agent), tmp_path / "replica.db"))
    task = "The limit may rise."
    own, theirs = (bundle_for(path, agent, task=task) for path in (replica, db))
    assert any(passage.metadata.remembered_from for passage in own.selected)
    assert _comparable(own) == _comparable(theirs)
