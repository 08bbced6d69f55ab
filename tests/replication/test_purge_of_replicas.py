"""A purge reaches what was published: bytes of what was purged, from the publisher to a reader."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from support.commands import Outcome, invoke

WORD = b"xqvzkjwolvex"


class World:
    """A publisher with a share, and a reader, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.share, self.tree = folder / "share", folder / "docs"
        self.db, self.replica = folder / "office" / "c.db", folder / "laptop" / "r.db"
        self.key = folder / "team.key"
        for path in (self.tree, self.db.parent, self.replica.parent):
            path.mkdir()
        (self.tree / "pay.md").write_text(f"# Pay\n\nSome {WORD.decode()} text.\n")
        (self.tree / "plan.md").write_text("# Plan\n\nAn ordinary text.\n")
        assert invoke("replica", "keygen", self.key).code == 0
        assert invoke("ingest", self.tree, "--lexical-only", "--db", self.db).code == 0

    def publish(self) -> Outcome:
        options = ("--level", "internal", "--key", self.key, "--json", "--db", self.db)
        outcome = invoke("replica", "publish", self.share, *options)
        assert outcome.code == 0, outcome.err
        return outcome

    def pull(self) -> Outcome:
        public = self.key.with_suffix(".pub")
        outcome = invoke("replica", "pull", self.share, "--key", public, "--db", self.replica)
        assert outcome.code == 0, outcome.err
        return outcome

    def has_word(self) -> set[str]:
        """The folders with a file that has the word."""
        return {
            folder.name
            for folder in (self.db.parent, self.share, self.replica.parent)
            for path in folder.rglob("*")
            if path.is_file() and WORD in unpacked(path).lower()
        }

    def pending(self) -> list[bool]:
        status = invoke("status", "--json", "--db", self.db).json()
        return [publication["purge_pending"] for publication in status["publications"]]


def unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_purge_is_followed_by_a_publish_and_a_pull(world: World) -> None:
    world.publish()
    world.pull()
    assert world.has_word() == {"office", "share", "laptop"}
    outcome = invoke("corpus", "purge", "pay.md", "--yes", "--json", "--db", world.db)
    [receipt] = outcome.json()["receipts"]
    assert receipt["state"] == "done"
    [copy] = receipt["publications"]
    assert copy["target"] == str(world.share)
    assert world.has_word() == {"share", "laptop"}, "named in the receipt, and not reached"
    assert world.pending() == [True]
    report = world.publish().json()
    assert report["manifest"]["purge_generation"] == 1
    assert report["history"]["left"] == []
    assert world.has_word() == {"laptop"}
    assert world.pending() == [False]
    world.pull()
    assert world.has_word() == set()


def test_a_purge_of_what_was_never_published_changes_no_manifest(world: World) -> None:
    world.publish()
    secret = world.tree / "secret.md"
    secret.write_text("---\nsensitivity: confidential\n---\n# Secret\n\nA hidden text.\n")
    assert invoke("ingest", world.tree, "--lexical-only", "--db", world.db).code == 0
    before = world.publish().json()["manifest"]
    outcome = invoke("corpus", "purge", "secret.md", "--yes", "--json", "--db", world.db)
    assert outcome.json()["receipts"][0]["publications"] == []
    after = world.publish().json()
    assert (after["changed"], after["history"], world.pending()) == (False, None, [False])
    for name in ("generation", "purge_generation", "content_digest"):
        assert after["manifest"][name] == before[name]
