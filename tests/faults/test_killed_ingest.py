"""Row 1: kill -9 and Ctrl-C of an ingest with workers, as real processes; see also `test_killed_writes`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rolebundle.storage.opening import open_reader
from support.commands import invoke
from support.corpora import scratch_folder
from support.program_server import MAIN
from support.sound import assert_sound, paths_in
from support.source_tree import write_files

HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A shell in the background starts programs that ignore it."""
SLOW = """
import time
from rolebundle.ingest import sync
store = sync._Run._store
sync._Run._store = lambda *arguments, **named: (time.sleep(1), store(*arguments, **named))[1]
"""
"""Code before the start of an ingest that is not over before the test has seen its workers."""
Moment = Callable[[int, Path], bool]
"""Whether it has come, of a session of processes that ingest into a file."""


def has_begun(_session: int, db: Path) -> bool:
    # Before, there is nothing of ours to end, only a Python that starts.
    return db.exists()


def has_workers(session: int, _db: Path) -> bool:
    return len(_processes_of(session)) > 1


moments = pytest.mark.parametrize(
    "moment", [pytest.param(has_begun, marks=pytest.mark.slow), has_workers]
)
"""When real processes are ended: they take long to start."""


def tree_of(folder: Path, files: int, words: int) -> Path:
    """A folder of files with so many words each."""
    texts = {f"{number}.md": f"# {number}\n\n" + "word " * words for number in range(files)}
    return write_files(folder / "tree", texts)


@contextmanager
def real_ingest(tree: Path, db: Path, moment: Moment) -> Iterator[subprocess.Popen[str]]:
    """A process with two workers, in a session of its own; the moment has come, or it has ended."""
    options = ("--workers", "2", "--lexical-only", "--db", db)
    with subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C + SLOW + MAIN, "ingest", tree, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while process.poll() is None and not moment(process.pid, db):
            time.sleep(0.005)
        yield process


@pytest.mark.slow
@moments
def test_kill_of_a_real_process_with_workers(moment: Moment) -> None:
    with scratch_folder() as folder:
        tree = tree_of(folder, 80, words=200)
        db = folder / "killed.db"
        with real_ingest(tree, db, moment) as process:
            process.kill()
            process.wait()
            assert_no_process_left(process.pid)
        assert_sound(db)
        assert invoke("ingest", tree, "--lexical-only", "--workers", "1", "--db", db).code == 0
        with open_reader(db) as corpus:
            assert len(paths_in(corpus)) == 80
        assert invoke("corpus", "doctor", "--db", db).code == 0


def assert_no_process_left(session: int, patience: float = 10) -> None:
    """Workers of a killed parent end by themselves."""
    deadline = time.monotonic() + patience
    while running := _processes_of(session):
        assert time.monotonic() < deadline, f"left behind: {running}"
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


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("send", "number"),
    [
        pytest.param("killpg", signal.SIGINT, id="Ctrl-C"),
        pytest.param("kill", signal.SIGTERM, id="SIGTERM"),
        pytest.param("killpg", signal.SIGTERM, id="SIGTERM to all", marks=pytest.mark.slow),
    ],
)
@moments
def test_interrupt_during_ingest(moment: Moment, send: str, number: signal.Signals) -> None:
    """Ctrl-C goes to every process of the terminal; one line is reported, and the corpus is sound."""
    with scratch_folder() as folder:
        tree = tree_of(folder, 80, words=200)
        db = folder / "stopped.db"
        with real_ingest(tree, db, moment) as process:
            getattr(os, send)(process.pid, number)
            out, err = process.communicate(timeout=30)
            assert process.returncode == 130, err
            assert (out, err.strip()) == ("", "interrupted; completed work is kept")
            assert_no_process_left(process.pid)
        assert_sound(db)
