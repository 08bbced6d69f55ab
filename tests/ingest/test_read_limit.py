"""A file whose reading does not end, or ends the process that reads it, is skipped."""

import os
import pickle
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest

from ingest import stuck_reader
from ingest.stuck_reader import BUSY, CRASHING, GREEDY, WAITING
from rolebundle import system
from rolebundle.errors import ConfigurationError
from rolebundle.ingest import workers
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.manifests import FileDefaults, read_manifest
from rolebundle.ingest.prepare import Prepared, RunSettings, Verified
from rolebundle.ingest.walk import FileEntry, walk
from rolebundle.ingest.workers import prepare_parallel
from support.commands import invoke
from support.program_server import forked_python
from support.source_tree import Tree


@pytest.fixture
def stuck(monkeypatch):
    stuck_reader.use(monkeypatch, 0.4)


@pytest.fixture
def processes(monkeypatch):
    """The processes that this test starts."""
    started = []
    forked_python()  # The server that it starts the first time is none of them.

    class Recorded(workers.subprocess.Popen):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(workers.subprocess, "Popen", Recorded)
    return started


def page(words: str) -> str:
    return f"<h1>Page</h1><p>A page that is {words}.</p>"


def paths(tree: Tree) -> list[str]:
    return [document.uri for document in tree.documents().values()]


ONLY_LINUX = pytest.mark.skipif(not system.LIMITS_MEMORY, reason="only Linux limits it")


@pytest.mark.usefixtures("stuck")
@pytest.mark.parametrize(("words", "code", "reason"), [
    (BUSY, "too_slow", "more than 0.4 s of processor time"),
    pytest.param(WAITING, "too_slow", "or 4.0 s in all", marks=pytest.mark.slow),
    pytest.param(GREEDY, "too_much_memory", "takes too much memory", marks=ONLY_LINUX),
    (CRASHING, "reader_crashed", "ended with code -11"),
])  # fmt: skip
def test_the_file_is_skipped_and_all_others_are_read(words, code, reason, tree, processes):
    for name in ("a.html", "c.html", "e.md"):
        tree.write(name, page("sound"))
    tree.write("b.html", page(words))
    report = tree.ingest()
    assert sorted(paths(tree)) == ["a.html", "c.html", "e.md"]
    assert [(skip.path, skip.code) for skip in report.skipped] == [("b.html", code)]
    assert "b.html: " in report.skipped[0].message
    assert reason in report.skipped[0].message
    assert processes
    assert all(process.poll() is not None for process in processes)


@pytest.mark.usefixtures("stuck")
def test_the_former_version_stays_and_a_watch_tries_only_once(tree, processes):
    verified: Verified = {}
    path = tree.write("a.html", page("sound"))
    tree.ingest(verified=verified)
    before = tree.documents()
    path.write_text(page(BUSY))
    os.utime(path, (0, 1))
    first = tree.ingest(verified=verified)
    assert [skip.code for skip in first.skipped] == ["too_slow"]
    assert (first.removed, tree.documents()) == (0, before)
    started = len(processes)
    assert tree.ingest(verified=verified).skipped == first.skipped
    assert (len(processes), tree.documents()) == (started, before)
    path.write_text(page("changed"))
    assert tree.ingest(verified=verified).updated == 1


@pytest.mark.parametrize("value", ["-1", "1.5", "a minute", "٣", "10000000"])
def test_a_limit_that_is_no_number(value, tree, monkeypatch):
    monkeypatch.setenv("ROLEBUNDLE_READ_SECONDS", value)
    tree.write("a.md", "Text.")
    with pytest.raises(ConfigurationError, match=r"\[bad_read_seconds\]"):
        tree.ingest()
    assert tree.documents() == {}


def test_no_limit(tree, monkeypatch):
    monkeypatch.setenv("ROLEBUNDLE_READ_SECONDS", "0")
    monkeypatch.setattr(workers.subprocess, "Popen", None)
    tree.write("a.html", page("sound"))
    assert tree.ingest().added == 1


def test_a_process_that_cannot_start(tree, monkeypatch):
    tree.write("a.html", page("sound"))
    for program in ("raise SystemExit", "import no_such_module"):
        monkeypatch.setattr(workers, "_PROGRAM", program)
        outcome = invoke("ingest", tree.root, "--lexical-only", "--db", tree.db)
        assert (outcome.code, "[worker_died]" in outcome.err) == (10, True)


def test_a_process_whose_parent_is_away_ends_silently():
    command = [sys.executable, "-c", workers._PROGRAM.format(sys.path)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process:
        assert pickle.load(process.stdout) is None
        process.stdout.close()
        pickle.dump(([], RunSettings(), 0), process.stdin)
        process.stdin.flush()  # It stays open: the process sees the end by its answer alone.
        assert process.stderr.read() == b""


@pytest.mark.usefixtures("stuck")
def test_the_processes_end_with_the_iterator(tree, processes, monkeypatch):
    """As after Ctrl-C, while one of them reads a file that takes long."""
    stuck_reader.use(monkeypatch, 0)
    monkeypatch.setattr(workers, "_FILES_PER_GROUP", 1)
    tree.write("a.html", page("sound"))
    tree.write("b.html", page(BUSY))
    defaults = FileDefaults(Authority(default_source="w"))
    files = list(walk(tree.root, tree.root, defaults, read_manifest(tree.root)))
    entries = [file for file in files * 32 if isinstance(file, FileEntry)]
    settings = RunSettings(ChunkSettings(), 1_000_000)
    with closing(prepare_parallel(entries, settings, workers=2)) as outcomes:
        assert isinstance(next(outcomes), Prepared)
    assert len(processes) == 2
    assert all(process.poll() is not None for process in processes)
