"""Non-interference of replicas: a replica does not depend on what its agent may not see.

A corpus with visible and hidden documents is published, and a second one with the same id that never
had the hidden ones. Both go through the same random changes of what is visible, and the first one
through changes of what is hidden. After each publish the two replicas are equal, row by row; this
test decides by itself what is visible.

Documents that only the quarantine hides are counted for an agent, in its answers and in the
manifest. The second corpus has others in their place.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import IndexIdentity, Mark
from rolebundle.contracts.memory import NewDecision
from rolebundle.contracts.upkeep import PublishReport
from rolebundle.policy.access import deny_matcher, resolve_audience, set_policy
from rolebundle.replication import publish as publishing
from rolebundle.storage import marks, store, vector_index
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.documents import Scanned, StoredDocument, StoredFile
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.amounts import few_examples
from support.corpora import NOW, build, embed, put_decision, scratch_folder
from support.corpora import document as plain_document
from support.fake_embedder import IDENTITY, HashingProvider
from support.publications import published, replica_of
from support.strategies import choices, documents, word_text
from support.vectors import TextByText

LEVELS = ("denied", "public", "group", "internal", "confidential")
SCOPES = ("engineering", "hr", "shared")
FOLDERS = ("open", "closed", "attic")
PATTERNS = ("closed/**", "ATTIC/*", "open/f1.md")
FILES = 4
NAMES = tuple(f"d{number}-{place}" for number in range(FILES) for place in range(3))
PROVIDERS = (HashingProvider(), TextByText(IDENTITY._replace(model="other", dimensions=12)))
QUARANTINED = Scanned("quarantine", "hash", '["instruction_override"]', "[]", "its words")
AT = "2026-11-01T00:00:00Z"
KEY = Ed25519PrivateKey.generate()


# -- what is drawn ---------------------------------------------------------------------------------

_AUDIENCES: tuple[dict[str, Any], ...] = (
    {"agent": "ada"},
    {"agent": "ada"},
    {"agent": "ada"},
    {"level": "internal"},
    {"level": "confidential", "scopes": ["engineering", "shared"]},
)
_rules = choices(
    ((), ("*",), ("engineering",), ("engineering", "shared")),
    LEVELS[1:],
    ((), ("closed/**",), ("ATTIC/*", "open/f1.md"), PATTERNS),
)
_other_rules = choices((("*",), ("hr",)), LEVELS, ((), ("open/**",), ("closed/**", "ATTIC/*")))
_labels = choices(
    SCOPES,
    LEVELS[1:],
    (False, False, False, True),
    ((), (), ("d0-0",), ("d1-1", "d2-0"), ("d3-0",)),
)
_documents = st.lists(st.tuples(documents("d"), _labels), min_size=1, max_size=3)
_files = st.tuples(st.sampled_from(FOLDERS), _documents)
_number = st.integers(0, FILES - 1)
_name = st.sampled_from(NAMES)
_changes = st.one_of(
    st.tuples(st.just("put"), _number, _files),
    st.tuples(st.just("put"), _number, _files),
    st.tuples(st.just("remove"), _number),
    st.tuples(st.just("move"), _number, st.sampled_from(FOLDERS)),
    st.tuples(st.just("relabel"), _name, _labels),
    st.tuples(st.just("relabel"), _name, _labels),
    st.tuples(st.just("mark"), _name, st.sampled_from(("", "#0", "#1"))),
    st.tuples(st.just("decide"), st.sampled_from(SCOPES), word_text.filter(str.strip)),
    st.tuples(st.just("embed"), st.integers(0, 1)),
    st.tuples(st.just("change_rule"), _other_rules),
)
_steps = st.lists(st.lists(_changes, min_size=1, max_size=4), min_size=1, max_size=2)


def _rule(scopes: tuple[str, ...], level: str, patterns: tuple[str, ...]) -> dict[str, Any]:
    return {"scopes": list(scopes), "access_level": level, "deny_patterns": list(patterns)}


# -- two corpora -----------------------------------------------------------------------------------


class Held(NamedTuple):
    """A file of the corpus with its documents."""

    folder: str
    documents: tuple[StoredDocument, ...]


class Pair:
    """A corpus, and one that never had what the audience may not see."""

    def __init__(self, folder: Path, audience: dict[str, Any], rule: list[Any]) -> None:
        self.audience = audience
        self.whole, self.part = (
            build(folder / name, [], name="corpus.db") for name in ("whole", "part")
        )
        self.opened: dict[Path, Corpus] = {}
        own = _rule(*rule)
        # What decides for this audience.
        scopes = tuple(audience.get("scopes", ("*",)))
        self.rule = own if "agent" in audience else _rule(scopes, audience["level"], ())
        self.policy = {"ada": own}
        self.files: dict[str, Held] = {}
        self.marks: dict[str, Mark] = {}
        self.decided: Counter[str] = Counter()
        self.embedded: list[int] = []

    def is_allowed(self, held: Held, number: str, document: StoredDocument) -> bool:
        """Whether nothing but the quarantine hides a document."""
        path = self._file(number, held).path
        return (
            not {"*", document.metadata.scope}.isdisjoint(self.rule["scopes"])
            and LEVELS.index(self.rule["access_level"])
            >= LEVELS.index(document.metadata.sensitivity)
            and not any(
                fnmatchcase(path.lower(), pattern.lower()) for pattern in self.rule["deny_patterns"]
            )
        )

    def documents(self, *, visible: bool) -> dict[str, StoredDocument]:
        return {
            document.metadata.document_id: document
            for number, held in self.files.items()
            for document in held.documents
            if visible == (self.is_allowed(held, number, document) and not is_quarantined(document))
        }

    # -- changes

    def change(self, changes: Iterable[tuple[Any, ...]]) -> None:
        """Apply changes to both corpora, and publish them."""
        with open_writer(self.whole) as complete, open_writer(self.part) as part:
            self.opened = {self.whole: complete, self.part: part}
            for name, *arguments in changes:
                getattr(self, name)(*arguments)
            self._embed_all()
            self._write_marks()
            with complete.writing():
                # What is hidden is written to more often.
                increment_generation(complete)
        self.check()

    def put(self, number: int, drawn: tuple[str, list[Any]]) -> None:
        folder, contents = drawn
        documents = tuple(
            _named(f"d{number}-{place}", document, labels)
            for place, (document, labels) in enumerate(contents)
        )
        self._hold(f"f{number}", Held(folder, documents))

    def remove(self, number: int) -> None:
        self._hold(f"f{number}", None)

    def move(self, number: int, folder: str) -> None:
        held = self.files.get(f"f{number}")
        if held:
            self._hold(f"f{number}", held._replace(folder=folder))

    def relabel(self, name: str, labels: list[Any]) -> None:
        number, held = self._file_of(name)
        if held:
            documents = tuple(
                _named(name, document, labels)
                if document.metadata.document_id == name
                else document
                for document in held.documents
            )
            self._hold(number, held._replace(documents=documents))

    def mark(self, name: str, place: str) -> None:
        self.marks[name + place] = Mark("disputed", "Ana", "owner", f"see {name}", AT)

    def decide(self, scope: str, text: str) -> None:
        self.decided[scope] += 1
        visible = LEVELS.index(self.rule["access_level"]) >= LEVELS.index("internal") and (
            not {"*", scope}.isdisjoint(self.rule["scopes"])
        )
        earlier = [str(self.decided[scope] - 1)] if self.decided[scope] % 3 == 0 else []
        new = NewDecision(text=text, scope=scope, supersedes=earlier, decided_by="Ana")
        for path in self.opened if visible else (self.whole,):
            put_decision(self.opened[path], new)

    def embed(self, which: int) -> None:
        """From now on passages are embedded by this provider, too, and found by its vectors."""
        self.embedded = [*(number for number in self.embedded if number != which), which]

    def _embed_all(self) -> None:
        """Hidden passages have vectors. So they must have them, too, when they become visible."""
        identities = [IndexIdentity(PROVIDERS[n].identity, "test-chunker") for n in self.embedded]
        for corpus in self.opened.values():
            with corpus.writing():
                for index in vector_index.all_indexes(corpus):
                    if index.identity not in identities:
                        vector_index.delete_index(corpus, index)
                for which, identity in zip(self.embedded, identities, strict=True):
                    found = vector_index.find_index(corpus, identity)
                    index = found or vector_index.create_index(corpus, identity)
                    vector_index.activate_index(corpus, index)
                    embed(corpus, PROVIDERS[which])

    def change_rule(self, rule: list[Any]) -> None:
        self.policy["bob"] = _rule(*rule)
        for corpus in self.opened.values():
            set_policy(corpus, json.dumps(self.policy), "json", "", AT)

    # -- writing

    def _file_of(self, name: str) -> tuple[str, Held | None]:
        for number, held in self.files.items():
            if any(document.metadata.document_id == name for document in held.documents):
                return number, held
        return "", None

    def _file(self, number: str, held: Held) -> StoredFile:
        location = f"/docs/{held.folder}/{number}.md"
        return StoredFile(location, f"{held.folder}/{number}.md", f"hash of {held}", "recipe")

    def _hold(self, number: str, held: Held | None) -> None:
        former = self.files.pop(number, None)
        if held:
            self.files[number] = held
        for path, corpus in self.opened.items():
            with corpus.writing():
                self._write(corpus, number, former, held, is_whole=path == self.whole)
                increment_generation(corpus)

    def _write(
        self, corpus: Corpus, number: str, former: Held | None, held: Held | None, *, is_whole: bool
    ) -> None:
        present = held.documents if held and is_whole else ()
        if held and not is_whole:
            present = tuple(
                _instead(document) if is_quarantined(document) else document
                for document in held.documents
                if self.is_allowed(held, number, document)
            )
        if former and (not held or not present or held.folder != former.folder):
            store.remove_files(corpus, [self._file(number, former).location])
        if held and present:
            [problem] = store.put_files(
                corpus, [(self._file(number, held), present)], deny_matcher(corpus)
            )
            assert problem is None
        store.drop_unused(corpus)

    def _write_marks(self) -> None:
        """The second corpus gets the marks of what is visible now."""
        if not self.marks:
            return
        visible = self.documents(visible=True)
        targets = set(visible) | {
            part.chunk_id for document in visible.values() for part in document.chunks
        }
        for path, corpus in self.opened.items():
            with corpus.writing():
                for old in marks.all_marks(corpus):
                    marks.remove_mark(corpus, old.kind, old.target)
                for target, mark in self.marks.items():
                    if path == self.whole or target in targets:
                        kind: Any = "chunk" if "#" in target else "document"
                        marks.put_mark(corpus, marks.StoredMark(kind, target, "", mark))

    # -- publishing

    def publish(self, path: Path, target: str = "target") -> PublishReport:
        with open_reader(path) as corpus:
            audience_values = {"agent": "", "scopes": [], "level": ""} | self.audience
            audience = resolve_audience(corpus, target, **audience_values)
        return published(path, audience, target, KEY)

    def check(self) -> None:
        """Publish both corpora, and compare the two replicas."""
        visible = self.documents(visible=True)
        complete, part = self.publish(self.whole), self.publish(self.part)
        replica = replica_of(self.whole, "target")
        rows, other_rows = _rows(replica), _rows(replica_of(self.part, "target"))
        assert [
            name for name in rows.keys() | other_rows if rows.get(name) != other_rows.get(name)
        ] == []
        assert complete.manifest == part.manifest
        assert complete.manifest.documents == len(visible)
        with open_reader(replica) as corpus:
            assert corpus.rows("SELECT document_id FROM document ORDER BY 1") == [
                (name,) for name in sorted(visible)
            ]
        second_target = self.publish(self.whole, "another")
        assert second_target.manifest.content_digest == complete.manifest.content_digest
        replica_of(self.whole, "another").unlink()


def is_quarantined(document: StoredDocument) -> bool:
    return document.scanned is not None and document.scanned.verdict == "quarantine"


def _named(name: str, drawn: StoredDocument, labels: list[Any]) -> StoredDocument:
    scope, sensitivity, quarantined, supersedes = labels
    metadata = drawn.metadata._replace(
        document_id=name,
        uri=f"file:{name}",
        scope=scope,
        sensitivity=sensitivity,
        supersedes=tuple(superseded for superseded in supersedes if superseded != name),
    )
    chunks = tuple(
        part._replace(chunk_id=f"{name}#{place}") for place, part in enumerate(drawn.chunks)
    )
    scanned = drawn.scanned
    if quarantined or is_quarantined(drawn):
        scanned = QUARANTINED if quarantined else None
    return StoredDocument(metadata, chunks, scanned)


def _instead(document: StoredDocument) -> StoredDocument:
    """Another quarantined document, which the agent may see as little."""
    name = f"instead of {document.metadata.document_id}"
    labels = {"scope": document.metadata.scope, "sensitivity": document.metadata.sensitivity}
    return plain_document(name, ["other words"], QUARANTINED, **labels)


def _rows(replica: Path) -> dict[str, list[Any]]:
    """Every row of every table, in the order in which they are stored."""
    with closing(sqlite3.connect(replica)) as db:
        names = [
            name
            for name, sql in db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
            if name not in ("replica", "seal") and not str(sql).startswith("CREATE VIRTUAL")
        ]
        return {
            name: db.execute(f'SELECT * FROM "{name}" NOT INDEXED').fetchall() for name in names
        }


# -- the law ---------------------------------------------------------------------------------------


class _Clock:
    @staticmethod
    def now(_zone: object) -> Any:
        return NOW


@pytest.fixture(autouse=True)
def _fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "datetime", _Clock)


@few_examples
@given(st.sampled_from(_AUDIENCES), _rules, st.lists(_files, min_size=1, max_size=FILES), _steps)
def test_replicas_do_not_depend_on_what_is_hidden(
    audience: dict[str, Any], rule: list[Any], files: list[Any], steps: list[list[Any]]
) -> None:
    with scratch_folder() as folder:
        for name in ("whole", "part"):
            (folder / name).mkdir()
        pair = Pair(folder, audience, rule)
        first = [("put", number, drawn) for number, drawn in enumerate(files)]
        for changes in ([("change_rule", [(), "denied", ()]), *first, ("embed", 0)], *steps):
            pair.change(changes)
