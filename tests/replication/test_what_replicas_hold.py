"""What a replica holds: the answers of its publisher, and no byte of what is hidden."""

import gzip
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.admin import Admin
from rolebundle.admin.records import publish_replica
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import Mark
from rolebundle.contracts.memory import NewDecision
from rolebundle.contracts.request import GrepRequest, ListRequest, MultiGetRequest
from rolebundle.contracts.upkeep import PublishReport
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.policy.access import deny_matcher, resolve_audience
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.pull import pull
from rolebundle.storage import marks, store
from rolebundle.storage.corpus import increment_generation
from rolebundle.storage.documents import Scanned, StoredDocument, StoredFile
from rolebundle.storage.file import published_folder
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.canaries import Canary, found_in, make_canary, vector_traces
from support.corpora import (
    QUARANTINED,
    build,
    document,
    embed,
    fill,
    put_decision,
    put_file,
    set_policy,
)
from support.fake_embedder import HashingProvider
from support.publications import published, replica_of
from support.purging import purge
from support.rich_corpus import RICH_ROLE, rich_corpus
from support.values import WORDS

# -- A replica answers its agent like the publisher's corpus ---------------------------------------
# Bundles are equal but for the name of the corpus, what it says of the replica, and timings. So are
# documents, listings, explanations, comparisons and replays.

AT = "2026-11-15T00:00:00Z"
POLICY: dict[str, dict[str, Any]] = {
    "owner": {"scopes": ["*"], "access_level": "confidential"},
    "clerk": {
        "scopes": ["mossline", "shared", "hr"],
        "access_level": "internal",
        "deny_patterns": ["security/**", "support/*", "d7.md"],
    },
    "guest": {"scopes": ["mossline", "shared"], "access_level": "group"},
    # Their patterns split what the others see into several compartments.
    "nobody": {
        "scopes": ["*"],
        "access_level": "internal",
        "deny_patterns": ["engineering/**", "docs/help/*", "d1*.md", "*threat*"],
    },
    "none": {
        "scopes": ["*"],
        "access_level": "internal",
        "deny_patterns": ["**/*sync*", "d2*.md", "wiki/*"],
    },
}
READERS = ("clerk", "owner", "guest")
TASKS = (
    "Can a stolen tablet replay a token?", "What should we worry about before release 3.0?",
    "How is a sync conflict resolved?", 'quotes "and" NEAR(operators) * ^ col:x', "zxqv wvut",
    "Bake a sourdough loaf in a cast iron pot", "Русский текст, ключ, 漢字 and 🎉",
    "Who decides about pricing?", "help", "What is new?",
    "rotate the signing keys of the relay after the incident", "summarize the penetration test",
    "token rotation audit", "kernel threat model release", "naïve ключ release of the kernel 🚀",
)  # fmt: skip
_CHOICES: dict[str, tuple[Any, ...]] = {
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
        replicas[agent] = make(Path(shutil.copyfile(replica_of(db, agent), folder / f"{agent}.db")))
    return replicas


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """Ties, copies, superseded and quarantined documents, marks, decisions and several scopes."""
    folder = tmp_path_factory.mktemp("published")
    db = rich_corpus(folder)
    labelled = Scanned("label", "hash", '["secret_token"]', "[]", "removed")
    added = [
        document(
            f"e{number}",
            [f"token rotation audit {WORDS[number % len(WORDS)]} {number % 4}", "release kernel"],
            (None, None, QUARANTINED, labelled)[number % 4],
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
            put_decision(corpus, new)
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
        request = request_from(fields | {"agent": agent})
        theirs, own = (
            _outcome(partial(engine.retrieve, request, overlay))
            for engine in (corpora.publisher, corpora.replicas[agent])
        )
        assert _comparable(own) == _comparable(theirs), fields
        answered += isinstance(own, RetrievalBundle) and bool(own.selected)
    return answered


@rounds(5, 600)
def test_bundles_of_a_generated_corpus_are_equal(generated: Published, rounds: int) -> None:
    assert _compare(generated, list(_requests(2, rounds))) > rounds / 8


@pytest.mark.parametrize("agent", READERS)
def test_other_answers_are_equal(generated: Published, agent: str) -> None:
    publisher, replica = generated.publisher, generated.replicas[agent]
    fields = {"task": "token rotation", "agent": agent, "now": AT, "lexical_only": True}
    request = request_from(fields)
    bundle = publisher.retrieve(request)
    names = [passage.chunk_id for passage in bundle.selected[:3]]
    names += [passage.citation.locator or "" for passage in bundle.selected[:2]]
    references = [*names, "e1", "e2", "e3", "nothing"]

    def why(engine: Engine, name: str) -> Any:
        # Of equal scores, the rank within a lane depends on the order of the rows.
        return engine.why(request, name).model_copy(update={"lanes": []})

    for ask in (
        *(lambda engine, name=name: engine.get(name, agent) for name in references),
        lambda engine: engine.multi_get(MultiGetRequest(ids=[*references, "*"], agent=agent)),
        lambda engine: engine.ls(ListRequest(agent=agent)),
        lambda engine: engine.grep(GrepRequest(pattern="token", agent=agent)),
        *(lambda engine, name=name: why(engine, name) for name in ("e1", "e3")),
        lambda engine: [record.model_dump() for record in engine.decisions(agent)],
    ):
        theirs, own = (_outcome(partial(ask, engine)) for engine in (publisher, replica))
        assert _plain(own) == _plain(theirs)


_NAMES_AND_TIMINGS = {"file", "replica", "latency_ms", "lexical_ms", "semantic_ms", "rerank_ms"}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _NAMES_AND_TIMINGS}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# -- No byte of what is hidden or purged is left where a replica is built, stored and read ---------
# Each document has words that occur nowhere else, in its text and in all that belongs to it. They are
# searched in every byte of the staged replicas, of the store and of the reader's folder, as they are
# written, without their endings, in either case, and in UTF-16.

COMMON = tuple(f"common{number}" for number in range(400))
ALWAYS_HIDDEN = ("other scope", "confidential", "closed", "quarantined", "beside")
HIDDEN_LATER = ("rescoped", "raised", "scanned", "renamed", "denied", "purged")
FATES = (*ALWAYS_HIDDEN, *HIDDEN_LATER, "visible")
SECRETS = {
    name: f"{name}xqzjvwkpyhgt"
    for name in ("above", "agent", "pattern", "decision", "original", "finding", "hash", "former",
                 "asked", "reason")
}  # fmt: skip
"""What belongs to no hidden document, and is not for the reader either."""


class World:
    """A publisher, a store and a reader, each in a folder of its own."""

    def __init__(self, folder: Path, count: int) -> None:
        self.office, self.laptop, self.share = (
            folder / name for name in ("office", "laptop", "share")
        )
        self.unpacked = folder / "unpacked"
        for path in (self.office, self.laptop, self.unpacked):
            path.mkdir()
        self.db = build(self.office, [], name="corpus.db")
        self.replica = self.laptop / "replica.db"
        self.key = Ed25519PrivateKey.generate()
        self.transport = PublishedFolder(str(self.share))
        chance = Random(7)
        self.canaries: dict[str, list[Canary]] = {fate: [] for fate in FATES}
        for number in range(count):
            self.canaries[FATES[number % len(FATES)]].append(make_canary(chance, COMMON, number))
        self.patterns = ["closed/**"]
        self.set_policy()
        self._fill()

    def set_policy(self) -> None:
        policy = {
            "ada": {
                "scopes": ["shared"],
                "access_level": "internal",
                "deny_patterns": self.patterns,
            },
            SECRETS["agent"]: {
                "scopes": ["*"],
                "access_level": "internal",
                # A class of characters: it matches many of the visible files.
                "deny_patterns": [f"open/[{SECRETS['pattern']}]*"],
            },
        }
        set_policy(self.db, policy)

    def _fill(self) -> None:
        scanned = Scanned("label", SECRETS["hash"], "[]", SECRETS["finding"], SECRETS["original"])
        former = document("former", [SECRETS["former"]], scope="shared")
        with open_writer(self.db) as corpus:
            with corpus.writing():
                put_file(corpus, self._file("open/former.md"), [former])
                embed(corpus, HashingProvider())
            for fate, canaries in self.canaries.items():
                for canary in canaries:
                    self.put(canary, fate)
            with corpus.writing():
                # The vector of what it was before is in the cache.
                later = document("former", ["It says something else."], scanned, scope="shared")
                put_file(corpus, self._file("open/former.md"), [later])
                for canary in self._all():
                    name = canary.document.metadata.document_id
                    for kind, target in (
                        ("document", name),
                        ("chunk", f"{name}#gone {SECRETS['reason']}"),
                    ):
                        mark = Mark("disputed", "Ana", "owner", f"see {name}", "2026-11-01")
                        marks.put_mark(corpus, marks.StoredMark(kind, target, "", mark))  # type: ignore[arg-type]
                increment_generation(corpus)
            new = NewDecision(text=SECRETS["decision"], scope="board", decided_by="Ana")
            put_decision(corpus, new)
        self.embed()
        with Engine(Workspace(self.db, HashingProvider()), agent=None) as engine:
            # It is in the audit of the publisher.
            engine.retrieve(request_from({"task": SECRETS["asked"], "agent": "ada"}))

    def _all(self) -> Iterable[Canary]:
        return (canary for canaries in self.canaries.values() for canary in canaries)

    def embed(self) -> None:
        with open_writer(self.db) as corpus, corpus.writing():
            embed(corpus, HashingProvider())

    @staticmethod
    def _file(path: str) -> StoredFile:
        return StoredFile(f"/home/{SECRETS['above']}/{path}", path, SECRETS["hash"], "recipe")

    def put(self, canary: Canary, fate: str) -> None:
        """Store a canary as its fate is at first; "rescoped" and the like are visible."""
        stored = _labelled(canary, scope="shared", sensitivity="internal")
        path = f"open/{canary.document.metadata.document_id}"
        if fate == "other scope":
            stored = _labelled(canary, scope="hr", sensitivity="internal")
        elif fate == "confidential":
            stored = _labelled(canary, scope="shared", sensitivity="confidential")
        elif fate == "quarantined":
            stored = _labelled(canary, QUARANTINED, scope="shared", sensitivity="internal")
        elif fate in ("closed", "denied"):
            path = f"{fate}/{canary.document.metadata.document_id}"
        documents = [stored]
        if fate == "beside":
            number = abs(hash(canary.document.metadata.document_id))
            path = f"open/beside-{number}.md"
            documents = [
                _labelled(canary, scope="hr", sensitivity="internal"),
                document(f"beside-{number}", ["Another one in this file."], scope="shared"),
            ]
        self._put(path, documents)

    def _put(self, path: str, documents: list[StoredDocument]) -> None:
        with open_writer(self.db) as corpus, corpus.writing():
            [problem] = store.put_files(
                corpus, [(self._file(path), documents)], deny_matcher(corpus)
            )
            assert problem is None
            increment_generation(corpus)

    # -- what happens later

    def rescoped(self, canary: Canary) -> None:
        self.put(canary, "other scope")

    def raised(self, canary: Canary) -> None:
        self.put(canary, "confidential")

    def scanned(self, canary: Canary) -> None:
        self.put(canary, "quarantined")

    def renamed(self, canary: Canary) -> None:
        name = canary.document.metadata.document_id
        with open_writer(self.db) as corpus, corpus.writing():
            store.remove_files(corpus, [self._file(f"open/{name}").location])
        metadata = canary.document.metadata._replace(document_id=f"closed-{name}")
        chunks = tuple(
            part._replace(chunk_id=f"closed-{part.chunk_id}") for part in canary.document.chunks
        )
        moved = Canary(StoredDocument(metadata, chunks), canary.traces)
        self._put(f"closed/{name}", [_labelled(moved, scope="shared", sensitivity="internal")])

    def denied(self, _: Canary) -> None:
        if "denied/**" not in self.patterns:
            self.patterns.append("denied/**")
            self.set_policy()

    def purged(self, canary: Canary) -> None:
        with open_writer(self.db) as corpus:
            purge(corpus, [canary.document.metadata.document_id])

    # -- publishing

    def publish(self) -> PublishReport:
        options = PublishOptions(self.key, "office", timedelta(days=7), timedelta(days=7))
        with Admin(self.db) as admin:
            return publish_replica(admin.workspace, self.transport, options, agent="ada")

    def pull(self) -> None:
        pull(self.transport, self.replica, self.key.public_key())

    def read(self) -> None:
        """Ask the replica, so that the reader has an audit."""
        with Engine(Workspace(self.replica, HashingProvider())) as engine:
            fields = {"task": " ".join(COMMON[:60]), "agent": "ada"}
            assert engine.retrieve(request_from(fields)).selected

    def traces_left(self, traces: Iterable[bytes]) -> dict[str, set[bytes]]:
        """The traces that are left, by folder."""
        wanted = set(traces) | _in_utf_16(traces)
        for packed in self.share.glob("*.gz"):
            unpacked = self.unpacked / packed.name
            unpacked.write_bytes(gzip.decompress(packed.read_bytes()))
        folders = {
            "staged": published_folder(self.db),
            "share": self.unpacked,
            "laptop": self.laptop,
        }
        found = {
            name: found_in([file for file in folder.rglob("*") if file.is_file()], wanted)
            for name, folder in folders.items()
        }
        for file in self.unpacked.iterdir():
            file.unlink()
        return {name: traces for name, traces in found.items() if traces}

    def traces(self, fate: str) -> set[bytes]:
        names = [canary.document.metadata.document_id for canary in self.canaries[fate]]
        with open_reader(self.db) as corpus:
            return {
                trace for canary in self.canaries[fate] for trace in canary.traces
            } | vector_traces(corpus, names)


def _labelled(canary: Canary, scanned: Scanned | None = None, **labels: str) -> StoredDocument:
    stored = canary.document
    return StoredDocument(stored.metadata._replace(**labels), stored.chunks, scanned)


def _in_utf_16(traces: Iterable[bytes]) -> set[bytes]:
    return {trace[:4].decode().encode("utf-16-le") for trace in traces if trace.isalpha()}


def _secret_traces() -> set[bytes]:
    return {
        secret[start : start + 8].encode()
        for name, secret in SECRETS.items()
        for start in (len(name) - 2,)
    }


@rounds(12, 1000)
def test_nothing_hidden_or_purged_is_left(tmp_path: Path, rounds: int) -> None:
    world = World(tmp_path, rounds)
    hidden = _secret_traces().union(*(world.traces(fate) for fate in ALWAYS_HIDDEN))
    later = {fate: world.traces(fate) for fate in HIDDEN_LATER}
    visible = world.traces("visible")
    world.publish()
    world.pull()
    world.read()
    assert world.traces_left(hidden) == {}
    for traces in (visible, *later.values()):
        assert set(world.traces_left(traces)) == {"share", "laptop"}
    for fate in HIDDEN_LATER:
        change: Callable[[Canary], None] = getattr(world, fate)
        for canary in world.canaries[fate]:
            change(canary)
        world.embed()
        hidden |= later[fate]
        assert world.publish().changed
        world.pull()
        assert world.traces_left(hidden) == {}, fate
        world.read()
    assert set(world.traces_left(visible)) == {"share", "laptop"}


def test_what_was_removed_and_comes_back_hidden_is_not_left(tmp_path: Path) -> None:
    """It was no longer in the replica when it was hidden, but it left traces there."""
    world = World(tmp_path, len(FATES))
    canaries = world.canaries["rescoped"]
    traces = world.traces("rescoped")
    world.publish()
    with open_writer(world.db) as corpus, corpus.writing():
        for canary in canaries:
            name = canary.document.metadata.document_id
            store.remove_files(corpus, [world._file(f"open/{name}").location])
    world.publish()
    for canary in canaries:
        world.rescoped(canary)
    world.publish()
    world.pull()
    assert world.traces_left(traces) == {}
