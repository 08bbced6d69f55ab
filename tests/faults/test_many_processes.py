"""Rows 8 and 9: two writers wait for each other; readers see one state or the next, nothing else."""

import multiprocessing
import os
import re
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from rolebundle.admin.backups import create_backup
from rolebundle.ingest import indexes, sync
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus, corpus_counts, increment_generation
from rolebundle.storage.file import BUSY_TIMEOUT_ENVIRONMENT
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.commands import invoke
from support.corpora import ask, build, document, file_of, fill, put_file, scratch_folder
from support.fake_embedder import HashingProvider
from support.killing import Report, run_child
from support.program_server import forked_python
from support.sound import assert_sound, contents, paths_in
from support.source_tree import write_files


def tree_of(folder: Path, name: str) -> Path:
    texts = {
        f"{name}-{n}.md": f"# {name} {n}\n\n{f'token {n} of {name} ' * 60}\n" for n in range(12)
    }
    return write_files(folder / name, texts)


# -- two writers -------------------------------------------------------------------------------


def test_a_second_writer_gives_up_after_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BUSY_TIMEOUT_ENVIRONMENT, "200")
    db = build(tmp_path, [document("d0", ["the token"])])
    tree = tree_of(tmp_path, "late")
    before = contents(db)
    with open_writer(db) as first, first.writing():
        started = time.perf_counter()
        busy = invoke("ingest", tree, "--lexical-only", "--db", db)
        waited = time.perf_counter() - started
        assert busy.code == 5
        assert "[corpus_busy]" in busy.err
        assert 0.2 <= waited < 5
        # Readers do not wait for a writer.
        assert invoke("retrieve", "token", "--lexical-only", "--db", db).code == 0
    assert contents(db) == before
    assert_sound(db)
    assert invoke("ingest", tree, "--lexical-only", "--db", db).code == 0


REPORTING_PROGRAM = """
import apsw, sys
def tell(cursor, statement, bindings):
    if statement.startswith("BEGIN IMMEDIATE"):
        print("begins", file=sys.stderr, flush=True)
    return True
def watch(connection):
    connection.exec_trace = tell
apsw.connection_hooks.append(watch)
from rolebundle.interfaces.cli.main import main; main()
"""


def test_a_second_writer_waits_while_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BUSY_TIMEOUT_ENVIRONMENT, "8000")
    db = build(tmp_path, [document("d0", ["the token"])])
    tree = tree_of(tmp_path, "late")
    command = [*forked_python(), REPORTING_PROGRAM]
    with open_writer(db) as first:
        first.db.execute("BEGIN IMMEDIATE")
        process = subprocess.Popen(
            [*command, "ingest", str(tree), "--lexical-only", "--db", str(db)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stderr.readline() == b"begins\n"
        assert process.poll() is None, "it waits"
        first.db.execute("COMMIT")
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    with open_reader(db) as corpus:
        assert len(paths_in(corpus)) == 13


def _ingest(db: Path, tree: Path, barrier: Any) -> None:
    barrier.wait()
    with open_writer(db) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())


def _race(db: Path, trees: list[Path]) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(trees))
    processes = [context.Process(target=_ingest, args=(db, tree, barrier)) for tree in trees]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(trees)


@rounds(1, 3)
def test_writers_that_race_lose_nothing(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    """Also from the first moment on, when both find no file."""
    monkeypatch.setattr(sync, "_FILES_PER_BATCH", 2)
    monkeypatch.setattr(indexes, "BATCH", 4)
    with scratch_folder() as folder:
        first_tree, second_tree = tree_of(folder, "one"), tree_of(folder, "two")
        for attempt in range(rounds):
            db = folder / f"{attempt}.db"
            _race(db, [first_tree, second_tree, first_tree])
            assert_sound(db)
            with open_reader(db) as corpus:
                assert len(paths_in(corpus)) == 24
                assert len(vector_index.all_indexes(corpus)) == 1, "one index, one model"
                assert corpus.value("SELECT count(*) FROM embedded") == corpus.value(
                    "SELECT count(*) FROM chunk"
                )


def test_a_vector_is_never_that_of_another_text(tmp_path: Path) -> None:
    """While one process embeds, another removes the chunk and gives its number to a new one."""
    db = build(tmp_path, [document("d0", ["the old token"])], HashingProvider())
    with open_writer(db) as corpus:
        fill(corpus, [document("d1", ["an old text"])])

    class Slow(HashingProvider):
        changed = False

        def embed_passages(self, texts: Any) -> Any:
            if not self.changed:
                self.changed = True
                with open_writer(db) as corpus:
                    fill(corpus, [document("d1", ["an entirely new text"], title="d1")])
            return super().embed_passages(texts)

    with open_writer(db) as corpus:
        index = indexes.ensure_index(corpus, HashingProvider())
        indexes.fill_index(corpus, index, Slow(), lambda *_: None)
        indexes.fill_index(corpus, index, HashingProvider(), lambda *_: None)
    documents = [document("d0", ["the old token"]), document("d1", ["an entirely new text"])]
    expected = contents(build(tmp_path, documents, HashingProvider()))
    assert contents(db)["vectors"] == expected["vectors"]
    assert_sound(db)


# -- readers during a write --------------------------------------------------------------------


def counted(corpus: Corpus) -> tuple[int, ...]:
    tables = ("document", "chunk", "embedded")
    return tuple(corpus.value(f"SELECT count(*) FROM {table}") for table in tables)


def _read(db: Path, stop: Any, failures: Any, reads: Any) -> None:
    try:
        while not stop.is_set():
            with open_reader(db) as corpus:
                with corpus.reading():
                    status = corpus_counts(corpus)
                    counts = [counted(corpus)]
                    time.sleep(0.001)
                    counts.append(counted(corpus))
                    texts = corpus.column("SELECT content FROM chunk")
                expected = (status.documents, status.chunks, status.chunks)
                assert counts == [expected, expected], (counts, status)
                assert len({text.split()[1] for text in texts}) <= 1, texts
                bundle = ask(corpus, provider=HashingProvider(), task="token edition")
                assert len({chunk.content.split()[1] for chunk in bundle.selected}) == 1
            with reads.get_lock():
                reads.value += 1
    except BaseException as error:
        failures.put(f"{type(error).__name__}: {error}")
        os._exit(1)


@rounds(6, 20)
def test_readers_see_whole_states_while_a_writer_writes(rounds: int) -> None:
    context = multiprocessing.get_context("fork")
    with scratch_folder() as folder:
        db = build(folder, edition_of(0), HashingProvider())
        stop, failures, reads = context.Event(), context.Queue(), context.Value("i", 0)
        readers = [
            context.Process(target=_read, args=(db, stop, failures, reads)) for _ in range(3)
        ]
        for reader in readers:
            reader.start()
        deadline = time.monotonic() + 20
        edition = 0
        with open_writer(db) as corpus:
            while (edition < rounds or reads.value < 15) and time.monotonic() < deadline:
                edition += 1
                fill(corpus, edition_of(edition), HashingProvider())
        stop.set()
        for reader in readers:
            reader.join(20)
        assert failures.empty(), failures.get()
        assert [reader.exitcode for reader in readers] == [0, 0, 0]
        assert reads.value >= 15
        assert_sound(db)


def edition_of(number: int) -> list[Any]:
    # The number of chunks changes with each edition, too.
    texts = [f"edition {number} of the token, part {n}" for n in range(1 + number % 3)]
    return [document(f"d{n}", texts) for n in range(6)]


# -- A backup under write is a committed state -----------------------------------------------------


TEXT = " ".join(f"word{n}" for n in range(200))


DOCUMENTS = 8


def write_states(db: Path, last: int | None = None) -> Callable[[Report], None]:
    """Commit one state after the other. State n changes ``a``, ``b``, and one of 8 documents."""

    def work(report: Report) -> None:
        with open_writer(db) as corpus:
            for state in count(1 + _written(corpus).get("a", 0)):
                with corpus.writing():
                    for name in ("a", "b", f"n{state % DOCUMENTS}"):
                        texts = [f"the state {state} of {name}: {TEXT}"]
                        put_file(corpus, file_of(name), [document(name, texts)])
                    increment_generation(corpus)
                report(str(state))
                if state == last:
                    return

    return work


def _written(corpus: Corpus) -> dict[str, int]:
    """Document → the state that wrote it."""
    rows = corpus.rows("SELECT content FROM chunk")
    states = (re.match(r"the state (\d+) of (\w+):", content) for (content,) in rows)
    return {match[2]: int(match[1]) for match in states if match}


def state_of(db: Path) -> int:
    """Which state a corpus has. Fails if it is between two."""
    with open_reader(db) as corpus:
        written = _written(corpus)
    state = written["a"]
    newest = {f"n{n % DOCUMENTS}": n for n in range(1, state + 1)[-DOCUMENTS:]}
    assert written == {"a": state, "b": state} | newest
    return state


@rounds(1, 100)
def test_a_backup_under_write_is_a_committed_state(rounds: int) -> None:
    with scratch_folder() as folder:
        db = folder / "c.db"
        run_child(write_states(db, last=3))
        states: list[int] = []
        child = get_context("fork").Process(target=write_states(db), args=(lambda _: None,))
        child.start()
        try:
            for number in range(rounds):
                before = state_of(db)
                with closing(Workspace(db)) as workspace:
                    report = create_backup(workspace, folder / f"{number}.bak")
                assert report.warnings == []
                states.append(state_of(folder / f"{number}.bak"))
                assert before <= states[-1] <= state_of(db)
                assert_sound(folder / f"{number}.bak")
                (folder / f"{number}.bak").unlink()
        finally:
            child.kill()
            child.join()
        print(f"{rounds} backups of the states {states[0]} to {states[-1]}")
        assert states[-1] > states[0] or rounds < 3, "nobody wrote meanwhile"
