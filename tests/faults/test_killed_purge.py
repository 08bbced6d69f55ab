"""Row 3: kill -9 at any moment of a purge. All of it is gone or none, and a re-run ends it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rolebundle.admin import Admin
from rolebundle.errors import UsageError
from rolebundle.ingest import sync
from rolebundle.policy.purge import PurgeSelection, finish_purges, purge
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.canaries import files_of, found_in, make_canary, vector_traces
from support.corpora import build, scratch_folder
from support.fake_embedder import HashingProvider
from support.killing import run_child
from support.sound import assert_sound, contents, copied

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

COMMON = tuple(f"common{number}" for number in range(200))
# A third of them goes. The look for their traces takes the longest, and grows with the corpus.
DOCUMENTS = 24


class Base(NamedTuple):
    """A filled corpus, what is to go, its traces, and what has to be there afterwards."""

    image: bytes
    selection: PurgeSelection
    traces: set[bytes]
    before: dict[str, object]
    after: dict[str, object]


@pytest.fixture(scope="module")
def base() -> Iterator[Base]:
    with scratch_folder() as folder:
        chance = random.Random(7)
        canaries = [make_canary(chance, COMMON, number) for number in range(DOCUMENTS)]
        db = build(folder, (canary.document for canary in canaries), HashingProvider(), name="c.db")
        ids = {canary.document.metadata.document_id for canary in canaries[::3]}
        with open_reader(db) as corpus:
            remaining = vector_traces(
                corpus, {canary.document.metadata.document_id for canary in canaries} - ids
            )
            traces = vector_traces(corpus, ids) - remaining
        traces |= {trace for canary in canaries[::3] for trace in canary.traces}
        assert found_in(files_of(db), traces) == traces, "the look finds what is there"
        image, before = db.read_bytes(), contents(db)
        selection = PurgeSelection(sorted(ids))
        purge_it(db, selection)
        yield Base(image, selection, traces, before, contents(db))


def purge_it(db: Path, selection: PurgeSelection) -> None:
    with open_writer(db) as corpus:
        assert purge(corpus, selection).state == "done"


def by_the_same_command(db: Path, base: Base) -> None:
    """Where the names are gone already, what was left to do is done."""
    with Admin(db) as admin:
        try:
            admin.purge(base.selection)
        except UsageError as error:
            assert error.code == "nothing_to_purge"
            admin.finish_purges()


def by_finishing(db: Path, base: Base) -> None:
    with open_writer(db) as corpus:
        finish_purges(corpus)
        if corpus.value("SELECT count(*) FROM purge") == 0:
            purge(corpus, base.selection)


def by_an_ingest(db: Path, base: Base) -> None:
    with Admin(Workspace(db, HashingProvider())) as admin:
        (db.parent / "nothing").mkdir(exist_ok=True)
        admin.ingest([db.parent / "nothing"], sync.IngestOptions())
    by_finishing(db, base)


@rounds(3, 200)
def test_kill_during_a_purge(base: Base, rounds: int) -> None:
    with scratch_folder() as folder:
        timed = folder / "timed.db"
        timed.write_bytes(base.image)
        seconds = run_child(lambda _: purge_it(timed, base.selection)).seconds
        chance = random.Random(3)
        interrupted = undone = pending = 0
        for number in range(rounds):
            (folder / str(number)).mkdir()
            db = folder / str(number) / "c.db"
            db.write_bytes(base.image)
            ended = run_child(
                lambda _, db=db: purge_it(db, base.selection), chance.uniform(0, seconds)
            )
            assert ended.killed or ended.code == 0
            interrupted += ended.killed
            # Closing a corpus cleans its log away. What is run again is to find what the kill left.
            (folder / str(number) / "copy").mkdir()
            copy = copied(db, folder / str(number) / "copy")
            assert_sound(copy)
            after_kill = contents(copy)
            assert after_kill in (base.before, base.after), "a part of it is gone"
            undone += after_kill == base.before
            pending += after_kill == base.after and bool(found_in(files_of(db), base.traces))
            again = (by_the_same_command, by_finishing, by_an_ingest)[number % 3]
            again(db, base)
            assert found_in(files_of(db), base.traces) == set()
            assert contents(db) == base.after
            assert_sound(db)
            with open_reader(db) as corpus:
                assert corpus.rows("SELECT state, documents FROM purge") == [
                    ("done", len(base.selection.names))
                ]
            assert {path.name for path in db.parent.iterdir()} <= {
                "c.db", "c.db-wal", "c.db-shm", "copy", "nothing",
            }  # fmt: skip
        print(f"{rounds} runs, {interrupted} killed: {undone} undone, {pending} left bytes behind")
        assert interrupted >= rounds // 3
        assert undone or rounds < 10
