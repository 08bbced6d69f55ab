"""What holds for every transport. To add one, add its place to ``support.transports``."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.replication import transports as files
from rolebundle.replication.publish import publish
from rolebundle.replication.transports import open_transport
from rolebundle.storage.file import PUBLISHED_MANIFEST
from rolebundle.storage.opening import open_writer
from support.corpora import document, fill
from support.replication_site import OPTIONS, Site, editions_in, names_in, published_file
from support.static_host import static_host
from support.transports import PLACES, Place


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
        with pytest.raises(UsageError) as raised:
            site.pull(place.reader)
        assert raised.value.code == "nothing_published"
    assert names_in(site.replica.parent) == []
    site.write(count=300)
    full = push(place, site)
    assert site.pull(place.reader).state == "updated"
    assert site.pull(place.reader).state == "current"
    assert push(place, site) < full / 5, "only the manifest"
    renewed = site.pull(place.reader)
    assert (renewed.former_generation, renewed.manifest.generation) == (1, 1)
    assert renewed.moved_bytes < full / 5 or place.reads_all
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
    report = publish(site.db, site.audience, place.publisher, site.key, OPTIONS)
    assert report.history is not None and not report.history.left, report.history
    assert publish(site.db, site.audience, place.publisher, site.key, OPTIONS).history is None


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
    with pytest.raises(StorageError) as raised:
        site.pull()
    assert raised.value.code == "bad_response"


def test_a_host_that_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.publish()
    with static_host(site.share) as host:
        transport = open_transport(host.url)
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
    with pytest.raises(StorageError) as raised_by_network:
        site.pull(transport)
    assert raised_by_network.value.code == "host_unreachable"
    with pytest.raises(UsageError) as refused:
        publish(site.db, site.audience, transport, site.key, OPTIONS)
    assert refused.value.code == "transport_reads_only"
