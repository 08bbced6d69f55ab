"""Publish and pull beside each other, and beside ingest and purge."""

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import patch

import pytest

from rolebundle.replication import publish as publishing
from rolebundle.replication.folder import PublishedFolder
from rolebundle.storage import replicas
from rolebundle.storage.publications import carrying
from rolebundle.storage.writing import open_writer
from support.corpora import document, fill
from support.purging import finish_purges, purge
from support.replication_site import Site, assert_renewed, published_file


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Edition 1 is published and pulled, edition 2 is not published yet."""
    site = Site(tmp_path_factory.mktemp("saved") / "site")
    site.write()
    site.publish()
    site.pull()
    site.write(2)
    shutil.copytree(site.folder, site.folder.with_name("copy"))
    return site


@pytest.fixture
def site(saved: Site) -> Site:
    """What was saved, at the same path: its target is known by it."""
    shutil.rmtree(saved.folder)
    shutil.copytree(saved.folder.with_name("copy"), saved.folder)
    return saved


@contextmanager
def inside(owner: object, name: str, action: Callable[[], object]) -> Iterator[None]:
    """Do something once, just before a function of the code is called."""
    function, calls = getattr(owner, name), []

    def call(*args: Any, **options: Any) -> Any:
        if not calls:
            calls.append(True)
            action()
        return function(*args, **options)

    with patch.object(owner, name, call):
        yield
    assert calls


# -- at once ----------------------------------------------------------------------------------------


def test_two_publishes_to_one_target(site: Site) -> None:
    with ThreadPoolExecutor(2) as threads:
        start = Barrier(2)
        works = [threads.submit(lambda: (start.wait(), site.publish())) for _ in range(2)]
    for work in works:
        work.result()
    assert assert_renewed(site) == 2, "one change is counted once"


# -- a purge during a publish ------------------------------------------------------------------------

CANARY = "albatross"


def holding(folder: Path) -> list[Path]:
    """The files that have the secret word."""
    contents = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    return [
        file
        for file, content in contents.items()
        if CANARY.encode() in (gzip.decompress(content) if file.suffix == ".gz" else content)
    ]


def purged_at(site: Site, owner: object, name: str) -> None:
    """Publish a document with a secret word, which is purged meanwhile."""
    with open_writer(site.db) as corpus:
        fill(corpus, [document("secret", [f"token {CANARY} of edition2"])])

    def erase() -> None:
        with open_writer(site.db) as corpus:
            purge(corpus, ["secret"])

    with patch.dict(os.environ, {"ROLEBUNDLE_BUSY_TIMEOUT_MS": "30"}), inside(owner, name, erase):
        site.publish()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (publishing, "_build"),
        (publishing, "copy_visible"),
        (replicas, "content_digest"),
        (publishing, "_record_before_push"),
    ],
)
def test_a_purge_before_the_replica_is_recorded(owner: object, name: str, site: Site) -> None:
    """The replica is built again, without it."""
    purged_at(site, owner, name)
    assert not site.publication().purge_pending
    assert holding(site.share) == []
    with open_writer(site.db) as corpus:
        finish_purges(corpus)
        assert carrying(corpus, ["secret"]) == []
    assert holding(site.folder) == []
    assert_renewed(site)


@pytest.mark.parametrize(
    ("owner", "name"), [(PublishedFolder, "push"), (publishing, "_record_after_push")]
)
def test_a_purge_after_the_replica_is_recorded(owner: object, name: str, site: Site) -> None:
    """It may be out there. So the publication is outdated, until it is published again."""
    purged_at(site, owner, name)
    assert CANARY.encode() in published_file(site.share), "this is what the record must know"
    assert site.publication().purge_pending
    site.pull()
    with open_writer(site.db) as corpus:
        assert [receipt.state for receipt in finish_purges(corpus)] == ["done"]
    site.publish()
    assert not site.publication().purge_pending
    assert_renewed(site)
    assert holding(site.folder) == []
