"""Targets, transports, and purges that reach them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.replication import transports as files
from rolebundle.replication.publish import publish
from rolebundle.replication.transports import (
    FolderTransport,
    HttpTransport,
    open_transport,
)
from rolebundle.storage.file import PUBLISHED_MANIFEST
from rolebundle.storage.writing import open_writer
from support.commands import Outcome, invoke
from support.corpora import document, fill
from support.local_server import static_host
from support.replication_site import OPTIONS, Site, editions_in, names_in, published_file
from support.transports import PLACES, Place

# -- What holds for every transport. To add one, add its place to ``support.transports`` -----------


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "site")
    site.write()
    return site


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    scratch = tmp_path / "place"
    scratch.mkdir()
    with PLACES[request.param](scratch) as place:
        yield place


def push(place: Place, site: Site) -> int:
    return publish(site.db, site.audience, place.publisher, site.key, OPTIONS).moved_bytes


def test_what_is_published_is_pulled(place: Place, site: Site) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match=r"\[nothing_published\]"):
            site.pull(place.reader)
    assert names_in(site.replica.parent) == []
    site.write(count=300)
    full = push(place, site)
    assert site.pull(place.reader).state == "updated"
    assert site.pull(place.reader).state == "current"
    assert push(place, site) < full / 5, "only the manifest"
    renewed = site.pull(place.reader)
    assert (renewed.former_generation, renewed.manifest.generation) == (1, 1)
    assert renewed.moved_bytes < full / 5
    site.write(2, count=300)
    push(place, site)
    site.pull(place.reader)
    assert editions_in(site.replica) == {"edition2"}
    assert names_in(site.replica.parent) == ["r.db"]


def test_what_may_not_be_seen_any_more_leaves_the_store(place: Place, site: Site) -> None:
    push(place, site)
    hidden = document("d1", ["token rotation of edition1"], sensitivity="confidential")
    with open_writer(site.db) as corpus:
        fill(corpus, [hidden])
    push(place, site)
    assert len(names_in(Path(place.publisher.target))) == 2, "a manifest and its replica"


# -- a folder, and a host that serves it --------------------------------------------------------------


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
        with pytest.raises(UsageError) as raised:
            publish(
                site.db, site.audience, open_transport(str(tmp_path / target)), site.key, OPTIONS
            )
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


@pytest.mark.parametrize("surplus", [1, 1 << 20])
def test_no_more_is_unpacked_than_the_manifest_says(site: Site, surplus: int) -> None:
    """Whoever fills the disk of a reader must have the key."""
    site.publish()
    [packed] = site.share.glob("replica-*.db.gz")
    packed.write_bytes(gzip.compress(published_file(site.share) + bytes(surplus)))
    with pytest.raises(StorageError, match=r"\[bad_response\]"):
        site.pull()


def test_a_host_that_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.publish()
    with static_host(site.share) as address:
        transport = open_transport(address)
        assert site.pull(transport).state == "updated"
        (site.share / PUBLISHED_MANIFEST).write_bytes(b"x" * (2 << 20))
        for seconds in (60.0, -1.0):
            monkeypatch.setattr(files, "_BASE_SECONDS", seconds)
            monkeypatch.setattr(files, "_MIN_BYTES_PER_SECOND", 1 << 40)
            with pytest.raises(RolebundleError) as raised:
                site.pull(transport)
            assert raised.value.code == ("bad_response" if seconds > 0 else "host_too_slow")
            assert "stays" in raised.value.message
    monkeypatch.undo()
    with pytest.raises(StorageError, match=r"\[host_unreachable\]"):
        site.pull(transport)
    with pytest.raises(UsageError, match=r"\[transport_reads_only\]"):
        publish(site.db, site.audience, transport, site.key, OPTIONS)


# -- Which targets there are -----------------------------------------------------------------------

FOLDERS = {
    "share": Path("share").resolve(),
    "/mnt/share": Path("/mnt/share"),
    "./a:b": Path("a:b").resolve(),
    "/mnt/./a/../share/": Path("/mnt/share"),
    "file:///mnt/my%20share": Path("/mnt/my share"),
    "FILE://localhost/mnt/share": Path("/mnt/share"),
}


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        *((target, FolderTransport) for target in FOLDERS),
        ("https://example.org/replicas/", HttpTransport),
        ("https://example.org:8443/a b/ä", HttpTransport),
        ("http://127.0.0.1:8000", HttpTransport),
        ("http://localhost/replicas", HttpTransport),
        ("http://[::1]:8000/", HttpTransport),
    ],
)
def test_a_target(target: str, kind: type) -> None:
    transport = open_transport(target)
    assert isinstance(transport, kind)
    # A folder is the same target however it is written.
    is_folder = isinstance(transport, FolderTransport)
    assert transport.target == (str(FOLDERS[target]) if is_folder else target)


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("", "unknown_transport"),
        ("a\0b", "unknown_transport"),
        ("ftp://example.org/", "unknown_transport"),
        ("s3://bucket/replica", "unknown_transport"),
        ("ssh://ada@example.org/srv/replica.db", "unknown_transport"),
        ("ada@example.org:share", "unknown_transport"),
        ("example.org:/mnt/share", "unknown_transport"),
        ("http://example.org/", "plain_http"),
        ("http://127.0.0.1.example.org/", "plain_http"),
        ("https://", "bad_target"),
        ("https://example.org:x/", "bad_target"),
        ("https://example.org/?signature=hunter2", "bad_target"),
        ("https://example.org/#a", "bad_target"),
        ("file://server/share", "bad_target"),
        ("file://", "bad_target"),
        ("https://[hunter2/", "bad_target"),
        ("https://ada:hunter2@example.org/", "secret_in_target"),
        ("https://hunter2@example.org/", "secret_in_target"),
        ("ftp://ada:hunter2@example.org/", "secret_in_target"),
    ],
)
def test_a_target_that_is_refused(target: str, code: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_transport(target)
    assert raised.value.code == code
    assert raised.value.hint
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
