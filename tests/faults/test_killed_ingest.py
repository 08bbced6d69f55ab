"""Row 1: kill -9 at any moment of an ingest. What was reported to be done is there; a re-run ends it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rolebundle.ingest import indexes, sync
from rolebundle.storage.opening import open_reader, open_writer
from support.amounts import rounds
from support.commands import PROGRAM, invoke
from support.corpora import scratch_folder
from support.fake_embedder import HashingProvider
from support.killing import Report, run_child
from support.sound import assert_sound, contents, paths_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

FILES = 24


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_FILES_PER_BATCH", 4)
    monkeypatch.setattr(indexes, "BATCH", 8)


def write_tree(folder: Path, edition: int = 1) -> Path:
    """Small files; the second edition changes a third of them, removes some and adds some."""
    folder.mkdir(exist_ok=True)
    for number in range(FILES):
        path = folder / f"n{number:02}.md"
        text_edition = edition if number % 3 == 0 else 1
        path.write_text(
            f"# Note {number}\n\n{'First part. ' * 60}\n\n## More\n\n{f'Edition {text_edition}. ' * 60}\n",
            encoding="utf-8",
        )
        if edition == 2 and number % 7 == 0:
            path.unlink()
    if edition == 2:
        (folder / "new.md").write_text("A new note.\n", encoding="utf-8")
    return folder


def ingest(db: Path, tree: Path, report: Report = lambda _: None) -> None:
    with open_writer(db) as corpus:
        sync.ingest(
            corpus,
            [tree],
            HashingProvider(),
            progress=lambda what, done, _total: report(f"{what} {done}"),
        )


def done_of(reported: list[str], what: str) -> int:
    return max((int(line.split()[1]) for line in reported if line.startswith(what)), default=0)


@rounds(3, 100)
def test_kill_during_a_first_ingest(rounds: int) -> None:
    with scratch_folder() as folder:
        tree = write_tree(folder / "tree")
        names = sorted(path.name for path in tree.iterdir())
        reference = folder / "reference.db"
        ingest(reference, tree)
        seconds = run_child(lambda report: ingest(folder / "timed.db", tree, report)).seconds
        expected = contents(reference)
        assert len(expected["vectors"]) == len(expected["chunks"]) > FILES
        chance = random.Random(1)
        interrupted = 0
        for number in range(rounds):
            db = folder / f"killed-{number}.db"
            moment = chance.uniform(0, seconds)
            ended = run_child(lambda report, db=db: ingest(db, tree, report), moment)
            interrupted += ended.killed
            assert ended.killed or ended.code == 0
            assert_sound(db)
            if db.exists() and (read := done_of(ended.reported, "reading")):
                with open_reader(db) as corpus:
                    assert set(names[:read]) <= paths_in(corpus), "reported, and not there"
                    embedded = corpus.value("SELECT count(*) FROM embedded")
                    assert embedded >= done_of(ended.reported, "embedding")
            ingest(db, tree)
            assert contents(db) == expected
            assert_sound(db)
        assert interrupted >= rounds // 3


@rounds(3, 100)
def test_kill_during_an_update(rounds: int) -> None:
    with scratch_folder() as folder:
        tree = write_tree(folder / "tree")
        base = folder / "base.db"
        ingest(base, tree)
        before = base.read_bytes()
        write_tree(tree, edition=2)
        seconds = run_child(lambda report: ingest(base, tree, report)).seconds
        expected = contents(base)
        chance = random.Random(2)
        for number in range(rounds):
            db = folder / f"killed-{number}.db"
            db.write_bytes(before)
            moment = chance.uniform(0, seconds)
            run_child(lambda report, db=db: ingest(db, tree, report), moment)
            assert_sound(db)
            ingest(db, tree)
            assert contents(db) == expected
            assert_sound(db)


Moment = Callable[[int, Path], bool]
"""Whether it has come, of a session of processes that ingest into a file."""


def has_begun(_session: int, db: Path) -> bool:
    # Before, there is nothing of ours to end, only a Python that starts.
    return db.exists()


def has_workers(session: int, _db: Path) -> bool:
    # Two, and what multiprocessing starts first, which keeps track of their resources.
    return len(_processes_of(session)) > 3


moments = pytest.mark.parametrize(
    "moment", [pytest.param(has_begun, marks=pytest.mark.slow), has_workers]
)
"""When real processes are ended: they take long to start."""


@contextmanager
def real_ingest(tree: Path, db: Path, moment: Moment) -> Iterator[subprocess.Popen[str]]:
    """A process with two workers, in a session of its own; the moment has come, or it has ended."""
    with subprocess.Popen(
        [*PROGRAM, "ingest", str(tree), "--workers", "2", "--lexical-only", "--db", str(db)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while process.poll() is None and not moment(process.pid, db):
            time.sleep(0.005)
        yield process


@moments
def test_kill_of_a_real_process_with_workers(moment: Moment) -> None:
    with scratch_folder() as folder:
        tree = folder / "tree"
        tree.mkdir()
        for number in range(80):
            (tree / f"{number}.md").write_text(f"# {number}\n\n" + "word " * 200, encoding="utf-8")
        db = folder / "killed.db"
        with real_ingest(tree, db, moment) as process:
            process.kill()
            process.wait()
            assert_no_process_left(process.pid)
        assert_sound(db)
        assert invoke("ingest", tree, "--lexical-only", "--workers", "1", "--db", db).code == 0
        with open_reader(db) as corpus:
            assert len(paths_in(corpus)) == 80
        assert invoke("status", "--check", "--db", db).code == 0


def assert_no_process_left(session: int, patience: float = 10) -> None:
    """Workers of a killed parent end by themselves."""
    deadline = time.monotonic() + patience
    while left := _processes_of(session):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def _processes_of(session: int) -> list[int]:
    pids = []
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                pids += [int(entry.name)] if state != "Z" else []
        except (OSError, ValueError):
            continue
    return pids


@moments
def test_interrupt_during_ingest(moment: Moment) -> None:
    """Ctrl-C goes to every process of the terminal; one line is reported, and the corpus is sound."""
    with scratch_folder() as folder:
        tree = folder / "tree"
        tree.mkdir()
        for number in range(80):
            (tree / f"{number}.md").write_text(f"# {number}\n\n" + "word " * 300, encoding="utf-8")
        db = folder / "stopped.db"
        with real_ingest(tree, db, moment) as process:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=30)
            assert process.returncode in (130, 0), err
            if process.returncode == 130:
                assert (out, err.strip()) == ("", "interrupted; completed work is kept")
            assert_no_process_left(process.pid)
        assert_sound(db)
