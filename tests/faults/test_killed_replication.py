"""Kill -9 in publish, in the push of a replica and in pull: the old replica or the new one.

Every other run is killed after a random time, and the others before a random operation on a file.
After it a reader gets the old replica or the new one, or is refused and keeps the one at hand. The
same command again completes it, with the generation of an undisturbed run, and no files are left.
"""

import gzip
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rolebundle.errors import UsageError
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.pull import pull, verify_replica
from rolebundle.storage.opening import open_reader
from rolebundle.storage.publications import carried_hash, find_publication
from rolebundle.storage.writing import open_writer
from support.amounts import rounds
from support.corpora import scratch_folder
from support.fake_embedder import HashingProvider
from support.faulty_file_system import shimmed_disk
from support.killing import Report, run_child
from support.purging import purge
from support.replication_site import Site, assert_renewed, editions_in, manifest_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and SIGKILL")

CALLS = ("replace", "fsync", "unlink", "open", "mkdir")


@contextmanager
def killed_at(operation: int | None) -> Iterator[list[int]]:
    """Kill this process before this operation on a file; the list counts them."""
    operations = [0]

    def count(_: object = None) -> None:
        operations[0] += 1
        if operations[0] == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            count()
            return function(*args, **options)

        return call

    with shimmed_disk() as disk, ExitStack() as stack:
        for name in CALLS:
            stack.enter_context(patch.object(os, name, counted(getattr(os, name))))
        disk.fail = count  # type: ignore[assignment]
        yield operations
        disk.fail = None


def purge_one(site: Site) -> None:
    with open_writer(site.db) as corpus:
        purge(corpus, ["d1"])


Step = Callable[[Site], object]
OLDER: tuple[Step, ...] = (Site.write, Site.publish, Site.pull, lambda site: site.write(2))
"""What is there before: a replica of edition 1, at hand also."""
CASES: dict[str, tuple[tuple[Step, ...], Step, Step, int]] = {
    "publish": (OLDER, Site.publish, Site.publish, 50),
    "first publish": (OLDER[3:], Site.publish, Site.publish, 50),
    "publish after a purge": ((*OLDER, purge_one), Site.publish, Site.publish, 50),
    "pull": ((*OLDER, Site.publish), Site.pull, Site.pull, 50),
    "first pull": (
        (*OLDER, Site.publish, lambda site: site.replica.unlink()), Site.pull, Site.pull, 40
    ),
    "pull after a purge": ((*OLDER, purge_one, Site.publish), Site.pull, Site.pull, 30),
}  # fmt: skip
"""What is done before, what is killed, what is done again, and the rounds of the full count."""


@pytest.mark.sample(3)
@rounds(1, 150)
@pytest.mark.parametrize("name", CASES)
def test_a_kill_leaves_the_old_replica_or_the_new_one(name: str, rounds: int) -> None:
    chance = random.Random(name)
    before, step, again, full = CASES[name]
    rounds = min(rounds, full)
    with scratch_folder() as folder:
        # Always the same path: it is the target.
        site = Site(folder / "site", provider=HashingProvider())
        for prepare in before:
            prepare(site)
        saved = shutil.copytree(site.folder, folder / "saved")

        def work(report: Report, operation: int | None = None) -> None:
            with killed_at(operation) as operations:
                step(site)
            report(f"{operations[0]}")

        undisturbed = run_child(work)
        assert undisturbed.code == 0
        operations = int(undisturbed.reported[-1])
        again(site)
        site.pull()
        expected = manifest_in(site.replica).manifest
        killed = runs = 0
        while killed < rounds:
            runs += 1
            assert runs <= 5 * rounds + 5, "it ends before it is killed"
            shutil.rmtree(site.folder)
            shutil.copytree(saved, site.folder)
            if runs % 2:
                moment = chance.randint(1, operations)
                ended = run_child(lambda report, n=moment: work(report, n))
            else:
                ended = run_child(work, chance.uniform(0, undisturbed.seconds))
            assert ended.killed or ended.code == 0
            killed += ended.killed
            # What is at hand is complete. It is missing if it never was there.
            if site.replica.exists():
                assert_generations_agree(site, site.replica)
            check_published(site)
            again(site)
            assert assert_renewed(site) == expected.generation, "counted twice"
        print(f"{name}: {killed} of {runs} runs killed, {operations} operations")


def assert_generations_agree(site: Site, file: Path) -> None:
    assert editions_in(file) in ({"edition1"}, {"edition2"})
    verify_replica(file, str(file), site.key.public_key())


def check_published(site: Site) -> None:
    """Another reader gets a whole replica, or is refused; the records know what it gets."""
    look = site.folder / "look" / "r.db"
    try:
        pull(site.transport, look, site.key.public_key())
    except UsageError as error:
        assert error.code == "nothing_published"
    else:
        assert_generations_agree(site, look)
    carried: set[bytes] = set()
    with open_reader(site.db) as corpus:
        known = find_publication(corpus, site.transport.target)
    if known is not None:
        carried = {known.carried[at : at + 8] for at in range(0, len(known.carried), 8)}
    for packed in site.share.glob("replica-*.db.gz"):
        file = look.with_name("unpacked.db")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(gzip.decompress(packed.read_bytes()))
        manifest = manifest_in(file).manifest
        assert manifest.generation <= known.generation
        with open_reader(file) as corpus:
            names = [name for (name,) in corpus.rows("SELECT document_id FROM document")]
        hashes = {carried_hash(manifest.corpus_id, name) for name in names}
        # What was purged is no longer known by its name: the publication is outdated.
        assert hashes <= carried or manifest.purge_generation < known.purge_generation
    shutil.rmtree(look.parent, ignore_errors=True)


def test_a_killed_publish_is_found_by_a_purge(tmp_path: Path) -> None:
    """Before the replica has its name, what it holds is recorded."""
    site = Site(tmp_path / "site")
    site.write(count=2)
    site.publish()
    site.write(count=3)
    with (
        patch.object(PublishedFolder, "push", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        site.publish()
    with open_writer(site.db) as corpus:
        purge(corpus, ["d2"])
    assert site.publication().purge_pending
    site.publish()
    assert not site.publication().purge_pending
