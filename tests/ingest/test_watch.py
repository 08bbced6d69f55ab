"""`watch` keeps the corpus in step with its roots, whatever happens to the files or to itself."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.upkeep import WatchStatus
from rolebundle.engine import Engine
from rolebundle.errors import CorpusBusy, RolebundleError, UsageError
from rolebundle.ingest import prepare, watch
from rolebundle.ingest.options import IngestOptions
from rolebundle.status import watch_status
from rolebundle.storage.file import heartbeat_path
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.commands import forked_program, invoke
from support.source_tree import write_files

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def _short_ticks(monkeypatch):
    for name, value in (("_TICK_MS", 60), ("_QUIET_MS", 30), ("POLL_SECONDS", 0.05)):
        monkeypatch.setattr(watch, name, value)


def make(folder: Path) -> None:
    docs = folder / "docs"
    write_files(docs, {f"d{number}.md": f"# D{number}\n\nText {number}.\n" for number in range(10)})
    with Admin(folder / "c.db") as admin:
        admin.ingest([docs], IngestOptions(lexical_only=True))


@pytest.fixture
def folder(template):
    return template.put_back() / "docs"


@pytest.fixture
def db(folder):
    return folder.with_name("c.db")


def names(db: Path) -> set[str]:
    with open_reader(db) as corpus:
        return {name for (name,) in corpus.rows("SELECT path FROM file")}


def until(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end, "it did not come true in time"
        sleep(0.02)


class Running:
    """A watch in a thread."""

    def __init__(self, db: Path, *, poll: bool = False) -> None:
        self.db, self.said = db, list[str]()
        self.error: RolebundleError | None = None
        self.stop = threading.Event()
        self._admin = Admin(db)
        self._watcher = self._admin.watcher(self.said.append, self.stop, polls=poll)
        self._watcher.settle_seconds = 0.4
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._watcher.run()
        except RolebundleError as error:
            self.error = error
        finally:
            self._admin.close()

    @property
    def problem(self) -> str | None:
        status = watch_status(self.db)
        return status.problem if status else None

    def wait_for_end(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def until_idle(self) -> None:
        watcher = self._watcher
        until(lambda: not watcher.is_syncing and watcher._next_pass > monotonic())


@contextmanager
def watching(db: Path, *, poll: bool = False) -> Iterator[Running]:
    running = Running(db, poll=poll)
    try:
        running.until_idle()
        yield running
    finally:
        running.stop.set()
        running.wait_for_end()


@pytest.mark.parametrize("poll", [False, True])
def test_each_kind_of_change_is_followed(db, folder, poll):
    with Engine(db) as engine, watching(db, poll=poll) as running:
        before = engine.retrieve(RetrievalRequest(task="zebra", lexical_only=True))
        (folder / "sub").mkdir()
        (folder / "sub" / "new.md").write_text("# New\n\nA zebra.\n")
        (folder / "d1.md").rename(folder / "sub" / "moved.md")
        (folder / "d2.md").unlink()
        until(lambda: {"sub/new.md", "sub/moved.md"} <= names(db))
        until(lambda: not {"d1.md", "d2.md"} & names(db))
        (folder / "sub" / "new.md").write_text("# New\n\nAn okapi.\n")
        request = RetrievalRequest(task="okapi", lexical_only=True)
        # An engine that is open all the time sees it.
        until(lambda: bool(engine.retrieve(request).selected))
        running.until_idle()
        assert not before.selected
        assert watch_status(db) == WatchStatus(running=True)
    assert watch_status(db) == WatchStatus(running=False)


def test_a_root_that_vanishes_keeps_its_documents_until_it_is_back(db, folder):
    away = folder.with_name("away")
    with watching(db) as running:
        folder.rename(away)
        until(lambda: any("is missing" in line for line in running.said))
        until(lambda: running.problem == "root_missing")
        assert len(names(db)) == 10
        # It comes back piece by piece, with something else in it.
        folder.mkdir()
        (folder / "later.md").write_text("# Later\n")
        sleep(0.1)
        for file in sorted(away.iterdir()):
            shutil.copy(file, folder)
        until(lambda: len(names(db)) == 11)
        running.until_idle()
        assert any("is back" in line for line in running.said)
        until(lambda: running.problem == "")


class TestTooMuchDisappears:
    def test_it_stops_and_changes_nothing(self, db, folder):
        with watching(db) as running:
            for number in range(3):
                (folder / f"d{number}.md").unlink()
            running.wait_for_end()
        assert running.error is not None
        assert running.error.code == "too_many_removed"
        assert "3 of its 10 files" in running.error.message
        assert len(names(db)) == 10
        assert watch_status(db) == WatchStatus(running=False, problem="too_many_removed")
        assert invoke("ingest", "--db", db).code == 0
        assert len(names(db)) == 7

    def test_it_goes_on_if_they_come_back(self, db, folder):
        with watching(db) as running:
            texts = {file: file.read_text("utf-8") for file in folder.iterdir()}
            for file in texts:
                file.unlink()
            (folder / "other.md").write_text("# Other\n")
            until(lambda: running.problem == "too_many_removed")
            for file, text in texts.items():
                file.write_text(text)
            until(lambda: "other.md" in names(db))
            running.until_idle()
            assert len(names(db)) == 11

    def test_a_renamed_folder_is_not_missed(self, db, folder):
        with watching(db):
            (folder / "sub").mkdir()
            for file in folder.glob("*.md"):
                file.rename(folder / "sub" / file.name)
            until(lambda: names(db) == {f"sub/d{number}.md" for number in range(10)})


def test_it_waits_for_another_writer(db, folder, monkeypatch):
    with watching(db) as running:
        monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "50")
        with open_writer(db) as writer, writer.writing():
            (folder / "new.md").write_text("# New\n")
            until(lambda: running.problem == "corpus_busy")
        until(lambda: "new.md" in names(db) and running.problem == "")


def test_a_manifest_with_a_mistake_is_reported_and_can_be_corrected(db, folder):
    with watching(db) as running:
        (folder / "rolebundle.toml").write_text("trust = [")
        until(lambda: running.problem == "bad_manifest")
        assert any("bad_manifest" in line for line in running.said)
        (folder / "rolebundle.toml").unlink()
        (folder / "new.md").write_text("# New\n")
        until(lambda: "new.md" in names(db))


def test_what_another_process_wrote_is_compared_with_the_files(db, folder):
    with watching(db) as running, Admin(db) as admin:
        admin.ingest([folder / "d1.md"], IngestOptions(lexical_only=True))
        with open_writer(db) as corpus, corpus.writing():
            corpus.run("DELETE FROM file WHERE path = 'd1.md'")
            corpus.run("UPDATE corpus_state SET generation = generation + 1")
        until(lambda: "d1.md" in names(db))
        running.until_idle()


def test_a_root_of_another_ingest_is_watched_too(db, tmp_path):
    with watching(db), Admin(db) as admin:
        more = tmp_path / "more"
        more.mkdir()
        (more / "a.md").write_text("# A\n")
        admin.ingest([more], IngestOptions(lexical_only=True))
        (more / "b.md").write_text("# B\n")
        until(lambda: "b.md" in names(db))


def test_a_corpus_within_its_root_is_left_alone(folder):
    db = folder / "c.db"
    Admin(db).ingest([folder], IngestOptions(lexical_only=True))
    with watching(db) as running:
        (folder / "new.md").write_text("# New\n")
        until(lambda: "new.md" in names(db))
        running.until_idle()
        said_before = len(running.said)
        sleep(0.5)
        assert len(running.said) == said_before
    assert names(db) == {*(f"d{number}.md" for number in range(10)), "new.md"}


def test_only_one_watches(db):
    with watching(db):
        second = Running(db)
        second.wait_for_end()
    assert isinstance(second.error, CorpusBusy)
    assert second.error.code == "watch_running"


def test_without_roots_there_is_nothing_to_watch(tmp_path):
    open_writer(tmp_path / "c.db").close()
    running = Running(tmp_path / "c.db")
    running.wait_for_end()
    assert isinstance(running.error, UsageError)
    assert running.error.code == "no_roots"


def test_files_that_were_not_touched_are_not_read_again(db, folder, monkeypatch):
    for file in folder.iterdir():
        os.utime(file, (1, 1))
    (folder / "picture.md").write_bytes(b"\x00\x01" * 9)
    os.utime(folder / "picture.md", (1, 1))
    read: list[str] = []
    plain = prepare.read_bytes

    def recorded(location, *arguments):
        read.append(Path(location).name)
        return plain(location, *arguments)

    monkeypatch.setattr(prepare, "read_bytes", recorded)
    with watching(db) as running:
        read.clear()
        (folder / "new.md").write_text("# New\n")
        until(lambda: "new.md" in names(db))
        running.until_idle()
    assert set(read) == {"new.md"}


class TestStatus:
    def test_the_owner_sees_it_and_an_agent_does_not(self, db):
        heartbeat_path(db).write_text('{"running": true, "problem": "corpus_busy"}')
        heartbeat_path(db).chmod(0o600)
        assert "watch: running no, problem corpus_busy" in invoke("status", "--db", db).out
        with Engine(db) as engine:
            assert engine.status().watch is None

    @pytest.mark.parametrize("content", [b'{"state": "idle", "process": 1}', b"\xff" * 9])
    def test_a_file_of_an_earlier_version_or_damaged_is_none(self, db, content):
        heartbeat_path(db).write_bytes(content)
        assert watch_status(db) is None
        assert invoke("status", "--db", db).code == 0


# -- the process, killed and started again ---------------------------------------------------------


def content(db: Path) -> set[tuple[object, ...]]:
    sql = (
        "SELECT d.document_id, d.title, f.path, c.chunk_id, c.content, c.start_line "
        "FROM chunk c JOIN document d ON d.id = c.document JOIN file f ON f.id = d.file"
    )
    with open_reader(db) as corpus:
        return set(corpus.rows(sql))


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_after_a_kill_the_corpus_becomes_what_a_fresh_ingest_gives(db, folder):
    command = [*forked_program(), "corpus", "watch", "--lexical-only", "--db", db]
    with db.with_name("watch.log").open("ab") as log:
        killed = subprocess.Popen(command, stderr=log)
        until(heartbeat_path(db).exists)
        for number in range(3):
            (folder / f"d{number}.md").rename(folder / f"renamed-{number}.md")
            (folder / f"d{number + 4}.md").write_text(f"# {number}\n\nEdited.\n")
        killed.kill()
        killed.wait(PATIENCE)
        (folder / "d7.md").unlink()
        second = subprocess.Popen(command, stderr=log)
    fresh = db.with_name("fresh.db")
    Admin(fresh).ingest([folder], IngestOptions(lexical_only=True))
    until(lambda: content(db) == content(fresh))
    assert watch_status(db) == WatchStatus(running=True)
    second.terminate()
    assert second.wait(PATIENCE) == 0
    assert watch_status(db) == WatchStatus(running=False)
