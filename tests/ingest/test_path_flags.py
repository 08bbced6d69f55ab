"""What flags say of governance holds for later ingests, until the owner says otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.engine import Engine
from rolebundle.errors import ConfigurationError
from rolebundle.ingest import sync
from rolebundle.ingest.authority import (
    UNTRUSTED,
    Flags,
    FlagsByPath,
    flags_after,
    flags_at,
    limits_in,
)
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.storage import records
from rolebundle.storage.documents import all_documents
from rolebundle.storage.opening import open_reader, open_writer
from support.commands import invoke
from support.sound import assert_sound

CLAIMS = {
    "trust_tier": "authoritative",
    "origin": "internal",
    "sensitivity": "public",
    "scope": "taken",
    "source_id": "taken",
    "supersedes": ["all/ours.md"],
    "applicable_roles": ["reviewer"],
}
PLACES = ["/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/"]
TRUST = {"trust_tier", "origin", "max_trust"}

command_flags = st.fixed_dictionaries(
    {},
    optional={
        "trust_tier": st.sampled_from(["preferred", "untrusted", None]),
        "origin": st.sampled_from(["external", "untrusted"]),
        "max_trust": st.sampled_from(["general", "authoritative"]),
        "scope": st.sampled_from(["hr", None]),
    },
)


def test_flags_of_trust_are_replaced_together_and_others_alone() -> None:
    remembered = {"/a": {"trust_tier": "untrusted", "origin": "untrusted", "scope": "hr"}}
    after = flags_after(remembered, ["/a/b"], {"max_trust": "preferred"})
    assert flags_at(after, "/a/b") == {"max_trust": "preferred", "scope": "hr"}
    assert flags_at(after, "/a") == remembered["/a"]


@given(
    st.lists(st.tuples(st.lists(st.sampled_from(PLACES), min_size=1), command_flags), max_size=6)
)
def test_the_last_word_on_a_path_or_above_it_holds(
    ingests: Sequence[tuple[list[str], Flags]],
) -> None:
    remembered: FlagsByPath = {}
    for paths, new_flags in ingests:
        remembered = flags_after(remembered, paths, new_flags)
    for place in PLACES:
        expected: dict[str, Any] = {}
        for paths, new_flags in ingests:
            if any((place + "/").startswith(path.rstrip("/") + "/") for path in paths):
                keys = TRUST if TRUST & new_flags.keys() else set()
                unlifted = {key: value for key, value in expected.items() if key not in keys}
                expected = {**unlifted, **new_flags}
        assert limits_in(flags_at(remembered, place)) == limits_in(expected), place


class World:
    """A folder with documents of one's own and a downloaded folder, and a corpus beside it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.db = folder / "all", folder / "c.db"
        self.downloads = self.root / "dl"
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in CLAIMS.items())
        for name in ("dl/a.md", "dl/deep/b.md"):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"---\n{front}---\nThe text of {name}.\n")
        (self.root / "ours.md").write_text("---\ntrust_tier: preferred\n---\nOur text.\n")

    def ingest(self, *paths: Path, **options: Any) -> list[str]:
        """Ingest paths, and return the codes of the notes."""
        with open_writer(self.db) as corpus:
            report = sync.ingest(corpus, paths or [self.root], None, IngestOptions(**options))
        assert report.refused() == []
        return [note.code for note in report.notes if note.code != "claim_refused"]

    def documents(self) -> dict[str, DocumentMetadata]:
        """The document of each file, by the name of the file."""
        with open_reader(self.db) as corpus:
            return {Path(metadata.uri).name: metadata for _, metadata in all_documents(corpus)}

    def governed(self) -> dict[str, list[Any]]:
        """What the documents of the download have of what they claim."""
        return {
            name: [
                *(getattr(metadata, key) for key in CLAIMS if key != "source_id"),
                metadata.source_id == "taken",
            ]
            for name, metadata in self.documents().items()
            if name != "ours.md"
        }


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


LIMITS: dict[str, dict[str, Any]] = {
    "untrusted": {"flags": UNTRUSTED},
    "max_trust": {"max_trust": "general"},
    "tier and scope": {"flags": {"trust_tier": "general", "scope": "hr"}},
    "the rest": {
        "flags": {
            "origin": "external",
            "sensitivity": "confidential",
            "source_id": "downloads",
            "applicable_roles": ["auditor"],
        }
    },
}


def ingest_again(world: World) -> None:
    world.ingest(world.downloads)


def ingest_file(world: World) -> None:
    world.ingest(world.downloads / "a.md", reread=True)


def ingest_subfolder(world: World) -> None:
    world.ingest(world.downloads / "deep", reread=True)


def ingest_parent(world: World) -> None:
    world.ingest()
    assert world.documents()["ours.md"].trust_tier == "preferred"


def another_flag(world: World) -> None:
    world.ingest(flags={"excluded_roles": ["guest"]})


def through_a_link(world: World) -> None:
    link = world.root.parent / "link"
    link.symlink_to(world.root)
    for path in (link / "dl", link / "dl" / "deep"):
        with open_writer(world.db) as corpus:
            # The ids of the documents may be taken, by the files under their real path.
            sync.ingest(corpus, [path], None, IngestOptions(reread=True))


def by_a_server(world: World) -> None:
    with Engine(world.db) as engine:
        operations = Operations(engine, allow_write=True)
        paths = [str(world.downloads), str(world.root)]
        report = operations.call("ingest", {"paths": paths, "lexical_only": True})
    assert "flags_remembered" in {note["code"] for note in report["notes"]}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "later",
    [
        ingest_again,
        ingest_file,
        ingest_subfolder,
        ingest_parent,
        another_flag,
        through_a_link,
        by_a_server,
    ],
)
@pytest.mark.parametrize("limit", LIMITS)
def test_no_later_ingest_lifts_a_limit(
    world: World, limit: str, later: Callable[[World], None]
) -> None:
    world.ingest(world.downloads, **LIMITS[limit])
    before = world.governed()
    later(world)
    after = world.governed()
    assert after.keys() <= before.keys()
    assert {name: before[name] for name in after} == after
    assert_sound(world.db)


def test_a_limit_of_one_file_holds_when_its_folder_is_read(world: World) -> None:
    world.ingest(world.downloads / "a.md", flags=UNTRUSTED)
    assert world.ingest() == ["flags_remembered"]
    tiers = {name: metadata.trust_tier for name, metadata in world.documents().items()}
    assert tiers == {"a.md": "untrusted", "b.md": "authoritative", "ours.md": "preferred"}


def test_the_owner_lifts_limits(world: World) -> None:
    world.ingest(world.downloads, flags={**UNTRUSTED, "scope": "hr"})
    assert world.ingest(world.downloads, max_trust="preferred") == [
        "flags_remembered",
        "flags_replaced",
    ]
    found = world.documents()["a.md"]
    assert (found.trust_tier, found.origin, found.scope) == ("preferred", "internal", "hr")
    # Of a folder above, and of one key.
    world.ingest(max_trust="authoritative", flags={"scope": None})
    assert (world.documents()["a.md"].trust_tier, world.documents()["a.md"].scope) == (
        "authoritative",
        "taken",
    )
    assert world.ingest() == []
    with open_reader(world.db) as corpus:
        assert records.load_path_flags(corpus) == {}


def test_a_limit_is_remembered_before_the_first_document(world: World) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with open_writer(world.db) as corpus, pytest.raises(KeyboardInterrupt):
        sync.ingest(corpus, [world.root], None, IngestOptions(flags=UNTRUSTED), killed)
    world.ingest()
    assert {document.trust_tier for document in world.documents().values()} == {"untrusted"}


def test_a_run_that_is_refused_remembers_nothing(world: World) -> None:
    (world.root / "rolebundle.toml").write_text("no TOML")
    with pytest.raises(ConfigurationError):
        world.ingest(max_trust="general")
    with open_reader(world.db) as corpus:
        assert records.load_path_flags(corpus) == {}


def test_limits_are_reported_and_listed(world: World) -> None:
    arguments = ("ingest", world.downloads, "--lexical-only", "--db", world.db)
    invoke(*arguments, "--untrusted", "--meta", "scope=hr")
    assert (
        f"note [flags_remembered] {world.downloads}: origin=untrusted scope=hr "
        "trust_tier=untrusted, as in an earlier ingest; "
        "--max-trust authoritative --meta scope= lifts it"
    ) in invoke(*arguments).err
    status = invoke("status", "--db", world.db, "--json").json()
    assert status["path_flags"] == [
        {
            "location": str(world.downloads),
            "flags": ["origin=untrusted", "scope=hr", "trust_tier=untrusted"],
        }
    ]
    line = f"{world.downloads}: origin=untrusted scope=hr trust_tier=untrusted"
    assert line in invoke("status", "--db", world.db).out
    assert "is replaced" in invoke(*arguments, "--meta", "scope=").err
    assert "untrusted, as in an earlier ingest" in invoke(*arguments).err


def test_a_backup_keeps_limits(world: World, tmp_path: Path) -> None:
    backup = tmp_path / "kept.backup"
    world.ingest(world.downloads, flags=UNTRUSTED)
    assert invoke("corpus", "backup", backup, "--db", world.db).code == 0
    world.ingest(max_trust="authoritative")
    assert invoke("corpus", "restore", backup, "--yes", "--db", world.db).code == 0
    assert world.ingest() == ["flags_remembered"]
    assert world.documents()["a.md"].trust_tier == "untrusted"
