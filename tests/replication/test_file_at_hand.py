"""What is at hand when a replica is pulled: another file, a damaged replica, a link, nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from rolebundle.admin.purges import PurgeSelection, purge
from rolebundle.errors import RolebundleError
from rolebundle.replication.pull import pull, verify_replica
from rolebundle.storage.opening import open_writer
from support.corpora import build
from support.replication_site import Site, edition_documents, editions_in, names_in
from support.tampering import AT_HAND, Bare, World, new_world, other_application


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return new_world(tmp_path_factory.mktemp("tampering"))


def own_corpus(path: Path) -> None:
    build(path.parent, edition_documents(1), name=path.name)


def own_damaged_corpus(path: Path) -> None:
    own_corpus(path)
    with closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE corpus_state SET documents = 99")


def own_torn_corpus(path: Path) -> None:
    own_corpus(path)
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (own_corpus, "not_a_replica"),
        (own_damaged_corpus, "not_a_replica"),
        (own_torn_corpus, "damaged_at_hand"),
        (other_application, "foreign_file"),
        (lambda path: path.write_text("a text\n" * 1000), None),
        (Path.mkdir, "corpus_is_folder"),
        (os.mkfifo, "corpus_missing"),
    ],
)
def test_what_is_no_replica_is_not_replaced(
    make: Callable[[Path], object], code: str | None, world: World, tmp_path: Path
) -> None:
    world.publish(world.new)
    path = tmp_path / "mine.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(RolebundleError) as raised:
        pull(world.site.transport, path, world.site.key.public_key())
    assert code is None or raised.value.code == code
    assert (path.read_bytes() if path.is_file() else None) == before
    assert all(name.startswith("mine.db") for name in names_in(tmp_path))


def test_a_damaged_replica_at_hand_is_replaced(world: World) -> None:
    """Also if it is the published one: a pull heals it."""
    site = world.site
    for damage in (
        lambda content: content[:50_000] + bytes(100) + content[50_100:],
        lambda content: b"",
    ):
        for transport in (site.transport, Bare(str(site.share))):
            world.publish(world.new, {AT_HAND: damage(world.new[AT_HAND])})
            site.pull(transport)
            assert_healed(site)
    with closing(apsw.Connection(str(site.replica))) as db:
        db.execute("UPDATE corpus_state SET documents = 99")
        db.execute("UPDATE replica SET manifest = '{}'")
    site.pull()
    assert_healed(site)


def assert_healed(site: Site) -> None:
    verify_replica(site.replica, "", site.key.public_key())
    assert editions_in(site.replica) == {"edition2"}


def test_a_link_to_a_replica_stays_a_link(world: World, tmp_path: Path) -> None:
    world.publish(world.new)
    (tmp_path / "data").mkdir()
    link = tmp_path / "r.db"
    link.symlink_to(tmp_path / "data" / "real.db")
    for _ in range(2):
        pull(world.site.transport, link, world.site.key.public_key())
        assert link.is_symlink()
        assert names_in(tmp_path / "data") == ["real.db"]


def test_after_a_purge_nothing_older_is_accepted(tmp_path: Path) -> None:
    """The replica at hand is erased before the next one is there. Then an older one is refused."""
    site = Site(tmp_path / "site")
    site.write()
    site.publish()
    site.pull()
    old = shutil.copytree(site.share, tmp_path / "old")
    with open_writer(site.db) as corpus:
        purge(corpus, PurgeSelection(["d1"]))
    site.publish()
    new = shutil.copytree(site.share, tmp_path / "new")
    [packed] = site.share.glob("*.gz")
    packed.write_bytes(b"torn")
    with pytest.raises(RolebundleError) as raised:
        site.pull()
    assert "stays" not in raised.value.message
    assert not site.replica.exists(), "it holds what was purged"
    for transport in (site.transport, Bare(str(site.share))):
        shutil.rmtree(site.share)
        shutil.copytree(old, site.share)
        with pytest.raises(RolebundleError) as raised:
            site.pull(transport)
        assert raised.value.code == "replica_rolled_back"
        assert not site.replica.exists()
    shutil.rmtree(site.share)
    shutil.copytree(new, site.share)
    report = site.pull()
    assert (report.state, report.former_generation) == ("updated", None)
    assert names_in(site.replica.parent) == [site.replica.name]
