"""The folder of a publication, and purges that reach it."""

import gzip
from pathlib import Path

import pytest

from rolebundle.contracts.upkeep import SignedManifest
from rolebundle.errors import StorageError, UsageError
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import publish
from rolebundle.storage.backup import sha256_of
from rolebundle.storage.file import PUBLISHED_MANIFEST
from rolebundle.storage.writing import open_writer
from support.commands import Outcome, invoke
from support.replication_site import Site, editions_in, names_in, options_with, published_file


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "site")
    site.write()
    return site


def test_what_is_published_is_pulled(site: Site) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match=r"\[nothing_published\]"):
            site.pull()
    assert names_in(site.replica.parent) == []
    site.write(count=100)
    full = site.publish().moved_bytes
    assert site.pull().state == "updated"
    assert site.pull().state == "current"
    assert site.publish().moved_bytes < full / 5, "only the manifest"
    renewed = site.pull()
    assert (renewed.former_generation, renewed.manifest.generation) == (1, 1)
    assert renewed.moved_bytes < full / 5
    site.write(2, count=100)
    site.publish()
    site.pull()
    assert editions_in(site.replica) == {"edition2"}
    assert names_in(site.replica.parent) == ["r.db"]
    assert len(names_in(site.share)) == 2, "a manifest and its replica"


def test_a_folder_of_something_else_is_not_changed(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "other", site.key)
    other.write()
    with open_writer(other.db) as corpus, corpus.writing():
        corpus.run("UPDATE corpus_state SET corpus_id = 'other'")
    other.publish()
    site.share.symlink_to(other.share)
    before = published_file(other.share)
    with pytest.raises(UsageError) as raised:
        site.publish()
    assert raised.value.code == "foreign_folder"
    assert published_file(other.share) == before
    for target, code in (("file", "target_is_file"), ("no/folder", "target_missing")):
        (tmp_path / "file").touch()
        folder = PublishedFolder(str(tmp_path / target))
        with pytest.raises(UsageError) as raised:
            publish(site.db, site.audience, folder, options_with(site.key))
        assert raised.value.code == code


def test_leftovers_are_removed_and_a_damaged_file_is_replaced(site: Site) -> None:
    site.publish()
    [packed] = site.share.glob("replica-*.db.gz")
    (site.share / "replica-0.sync-conflict-1.db.gz").touch()
    packed.write_bytes(b"torn")
    with pytest.raises(StorageError):
        site.pull()
    site.publish()
    assert published_file(site.share)
    assert site.pull().state == "updated"


def test_no_more_is_unpacked_than_the_manifest_says(site: Site) -> None:
    """Whoever fills the disk of a reader must have the key."""
    site.publish()
    [packed] = site.share.glob("replica-*.db.gz")
    packed.write_bytes(gzip.compress(published_file(site.share) + bytes(1 << 20)))
    with pytest.raises(StorageError, match=r"\[bad_response\]"):
        site.pull()
    signed = SignedManifest.model_validate_json(site.transport.manifest())
    manifest = signed.manifest.model_copy(update={"packed_digest": sha256_of(packed)})
    renamed = site.share / f"replica-{manifest.packed_digest[:32]}.db.gz"
    packed.rename(renamed)
    with pytest.raises(StorageError, match="too large"):
        site.transport.fetch(site.folder / "copy", manifest)
    (site.share / PUBLISHED_MANIFEST).write_bytes(b"x" * (2 << 20))
    with pytest.raises(StorageError, match="too large"):
        site.pull()


def test_one_folder_is_one_target_however_it_is_written() -> None:
    assert PublishedFolder("share").target == str(Path("share").resolve())
    assert PublishedFolder("./a:b").target == str(Path("a:b").resolve())
    assert PublishedFolder("/mnt/./a/../share/").target == "/mnt/share"


@pytest.mark.parametrize("target", ["", "a\0b", "https://ada:hunter2@example.org/", "host:share"])
def test_a_target_that_is_refused(target: str) -> None:
    with pytest.raises(UsageError) as raised:
        PublishedFolder(target)
    assert raised.value.code == "unknown_transport"
    assert "hunter2" not in str(raised.value), "a secret is not repeated"


# -- A purge reaches what was published: bytes of what was purged, from the publisher to a reader

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
    assert (after["changed"], world.pending()) == (False, [False])
    for name in ("generation", "purge_generation", "content_digest"):
        assert after["manifest"][name] == before[name]
