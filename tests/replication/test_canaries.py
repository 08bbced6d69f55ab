"""No byte of what is hidden or purged is left where a replica is built, stored and read.

Each document has words that occur nowhere else, in its text and in all that belongs to it. They are
searched in every byte of the staged replicas, of the store and of the reader's folder, as they are
written, without their endings, in either case, and in UTF-16.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from random import Random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rolebundle.admin import Admin
from rolebundle.admin.purges import PurgeSelection, purge
from rolebundle.admin.records import publish_replica
from rolebundle.contracts.documents import Mark
from rolebundle.contracts.memory import NewDecision
from rolebundle.contracts.upkeep import PublishReport
from rolebundle.engine import Engine
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.access import deny_matcher
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.pull import pull
from rolebundle.replication.transports import FolderTransport
from rolebundle.storage import marks, store
from rolebundle.storage.corpus import increment_generation
from rolebundle.storage.documents import StoredDocument, StoredFile
from rolebundle.storage.file import published_folder
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.storage.quarantine import Scanned
from rolebundle.verification.decisions import record_decision
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.canaries import Canary, found_in, make_canary, vector_traces
from support.corpora import NOW, build, document, embed, put_file, set_policy
from support.fake_embedder import HashingProvider

COMMON = tuple(f"common{number}" for number in range(400))
ALWAYS_HIDDEN = ("other scope", "confidential", "closed", "quarantined", "beside")
HIDDEN_LATER = ("rescoped", "raised", "scanned", "renamed", "denied", "purged")
FATES = (*ALWAYS_HIDDEN, *HIDDEN_LATER, "visible")
QUARANTINED = Scanned("quarantine", "hash", '["instruction_override"]', "[]", "")
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
        self.transport = FolderTransport(str(self.share))
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
                "scopes": [],
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
            record_decision(corpus, new, NOW)
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
            purge(corpus, PurgeSelection([canary.document.metadata.document_id]))

    # -- publishing

    def publish(self) -> PublishReport:
        options = PublishOptions("office", timedelta(days=7), timedelta(days=7))
        with Admin(self.db) as admin:
            return publish_replica(admin.workspace, self.transport, self.key, options, agent="ada")

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
        assert set(world.traces_left(traces)) == {"staged", "share", "laptop"}
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
    assert set(world.traces_left(visible)) == {"staged", "share", "laptop"}


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
