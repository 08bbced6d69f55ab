"""The rerank cache is filled before the first question: by `embed --warm`, and by each ingest."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import click
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.purges import PurgeSelection
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.provider import Unavailable
from rolebundle.embedding.texts import embedding_text, input_hash
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.watch import WatchOptions
from rolebundle.interfaces.cli.main import cli
from rolebundle.interfaces.cli.warm import warming_for
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.retrieval.rerank import fill_cache
from rolebundle.retrieval.rerank.background import Warming
from rolebundle.retrieval.rerank.fill_cache import WarmReport
from rolebundle.storage.content.passages import first_texts, texts_after
from rolebundle.storage.files.lock import try_lock
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import rerank_cache_path, warming_path
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.commands import Outcome, invoke
from support.corpora import NOW
from support.fake_embedder import HashingProvider
from support.reranking import CONTEXTUAL, FAKE, TASK, RecordingProvider, known

TEXTS = ("token rotation plan", "a moon over the audit", "notes on audits", "rotation of crops")
FULL = len(TEXTS)
PATIENCE = 30.0


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number, text in enumerate(TEXTS):
        write(folder, number, text)
    return folder


def write(folder: Path, number: int, text: str) -> None:
    (folder / f"{number}.md").write_text(f"# Note {number}\n\n{text}\n", encoding="utf-8")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@pytest.fixture
def rerank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake model reranks what names no model."""
    monkeypatch.setenv("ROLEBUNDLE_RERANK", FAKE)


def ingest(notes: Path, db: Path, *options: str) -> Outcome:
    run = invoke("ingest", notes, "--lexical-only", "--workers", "1", *options, "--db", db)
    assert run.code == 0, run.err
    return run


def embed(db: Path, *options: str) -> Outcome:
    return invoke("embed", "--warm", "--provider", "fake", *options, "--db", db)


def hashes(db: Path) -> list[str]:
    with open_reader(db) as corpus:
        return [input_hash(embedding_text(*row[1:])) for row in first_texts(corpus, 100)]


def count_waiting(db: Path) -> int:
    """How many chunks of the corpus are not in the cache."""
    texts = hashes(db)
    return len(texts) - len(rerank_cache.load(rerank_cache_path(db), CONTEXTUAL, texts))


def cached(db: Path) -> int:
    return rerank_cache.size(rerank_cache_path(db))[0]


def until(holds: Callable[[], bool]) -> None:
    end = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < end, "it did not come true in time"
        sleep(0.02)


class TestEmbedWarm:
    @pytest.fixture(autouse=True)
    def ingested(self, notes: Path, db: Path) -> None:
        ingest(notes, db)

    def test_a_warm_cache_leaves_nothing_to_embed(self, db: Path) -> None:
        with known() as model, Engine(Workspace(db, HashingProvider())) as engine:
            request = RetrievalRequest(task=TASK, rerank=FAKE, now=NOW)
            cold = engine.retrieve(request)
            rerank_cache.erase(db)
            first, second_report = (embed(db, "--json").json() for _ in range(2))
            assert (first["embedded"], first["waiting"]) == (FULL, 0)
            assert (second_report["embedded"], second_report["waiting"]) == (0, 0)
            texts = len(model.texts)
            answer = engine.retrieve(request)
            assert len(model.texts) == texts and not answer.diagnostics.rerank_embedded
        assert answer.without_timings() == cold.without_timings()
        assert {len(batch) for batch in model.batches} == {1}

    def test_the_model_is_that_of_the_environment(
        self, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert invoke("embed", "--warm", "--db", db).code == 2
        monkeypatch.setenv("ROLEBUNDLE_RERANK", "tei")
        assert "are not cached" in invoke("embed", "--warm", "--db", db).err
        monkeypatch.setenv("ROLEBUNDLE_RERANK", FAKE)
        with known():
            run = invoke("embed", "--warm", "--db", db)
        assert run.code == 0 and "4 texts embedded" in run.out

    def test_a_text_that_cannot_be_embedded_is_left_out(self, db: Path) -> None:
        def too_long(text: str) -> Exception | None:
            return EmbedderError("input_too_long", "a long text", "-") if "moon" in text else None

        with known(RecordingProvider(refuse=too_long)):
            run = embed(db)
        assert "3 texts embedded into the rerank cache, 1 chunk left out" in run.out
        assert "a long text" in run.err and run.code == 0

    def test_a_model_that_is_down_is_an_error(self, db: Path) -> None:
        def down(_text: str) -> Exception:
            return EmbedderError("server_error", "it is ill", "start it")

        with known(RecordingProvider(refuse=down)):
            run = embed(db)
        assert run.code == 9 and "it is ill" in run.err
        assert not rerank_cache_path(db).exists()

    def test_a_full_cache_keeps_what_it_has(
        self, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fill_cache, "BATCH", 2)
        with known():
            embed(db)
            full = rerank_cache.size(rerank_cache_path(db))
            rerank_cache.erase(db)
            monkeypatch.setattr(rerank_cache, "MAX_BYTES", 90)
            run = embed(db)
        assert full[0] == FULL and "is full" in run.err and "4 chunks left out" in run.out

    def test_the_corpus_is_only_read(self, db: Path) -> None:
        before = db.read_bytes()
        with known():
            embed(db)
        assert db.read_bytes() == before

    def test_only_one_process_does_it(self, db: Path) -> None:
        with known(), try_lock(warming_path(db)) as is_alone:
            assert is_alone
            run = embed(db)
        assert run.code == 5 and "[rerank_cache_filling]" in run.err

    def test_it_includes_what_others_ingest_until_the_end(
        self, notes: Path, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def ingest_at_the_end(*arguments: Any) -> list[Any]:
            rows = texts_after(*arguments)
            if not rows and not (notes / "9.md").exists():
                write(notes, 9, "a late token")
                ingest(notes, db)
            return rows

        monkeypatch.setattr(fill_cache, "texts_after", ingest_at_the_end)
        with known():
            assert embed(db, "--json").json() == {
                "embedded": FULL + 1,
                "waiting": 0,
                "recall": None,
                "fast": None,
            }
        assert count_waiting(db) == 0 and len(hashes(db)) == FULL + 1

    def test_what_was_purged_meanwhile_is_not_stored(self, db: Path) -> None:
        texts = hashes(db)

        def purge(text: str) -> None:
            if "moon" in text:
                with Admin(db) as admin:
                    assert admin.purges.purge(PurgeSelection(["1.md"]))

        with known(RecordingProvider(refuse=purge)):
            embed(db)
        assert len(hashes(db)) == FULL - 1 and count_waiting(db) == 0
        assert len(rerank_cache.load(rerank_cache_path(db), CONTEXTUAL, texts)) == FULL - 1


@pytest.mark.usefixtures("rerank")
class TestIngest:
    def test_new_and_changed_chunks_are_embedded_after_the_report(
        self, notes: Path, db: Path
    ) -> None:
        with known() as model:
            first = ingest(notes, db, "--json")
            assert json.loads(first.out)["added"] == FULL
            assert "4 texts embedded into the rerank cache" in first.err
            assert count_waiting(db) == 0
            write(notes, 0, "token rotation changed")
            write(notes, 9, "a new token")
            seen = len(model.texts)
            assert invoke("update", "--lexical-only", "--workers", "1", "--db", db).code == 0
            assert len(model.texts) == seen + 2 and count_waiting(db) == 0
            write(notes, 9, "a newer token")
            assert invoke("watch", "--once", "--lexical-only", "--db", db).code == 0
            assert count_waiting(db) == 0
            assert ingest(notes, db).err == ""

    @pytest.mark.parametrize(
        ("option", "model"), [("--no-warm", FAKE), ("--warm", "none"), ("--warm", "tei")]
    )
    def test_nothing_is_embedded_if_that_is_not_wanted(
        self, notes: Path, db: Path, option: str, model: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ROLEBUNDLE_RERANK", model)
        with known() as provider:
            assert ingest(notes, db, option).err == ""
        assert not provider.texts and not rerank_cache_path(db).exists()

    @pytest.mark.parametrize(
        ("end", "expected"),
        [
            (KeyboardInterrupt(), "interrupted; the next ingest continues"),
            (EmbedderError("embedder_down", "nobody answers", "start it"), "[embedder_down]"),
        ],
        ids=["Ctrl-C", "the server ends"],
    )
    def test_what_was_embedded_before_the_end_is_kept(
        self, notes: Path, db: Path, end: BaseException, expected: str
    ) -> None:
        def fail(text: str) -> None:
            if "audits" in text:
                raise end

        with known(RecordingProvider(refuse=fail)):
            run = ingest(notes, db)
        assert "4 added" in run.out and "is not complete" in run.err and expected in run.err
        assert cached(db) == 2
        with known() as model:
            ingest(notes, db)
        assert len(model.texts) == 2 and count_waiting(db) == 0

    def test_what_was_killed_is_continued(
        self, notes: Path, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fill_cache, "BATCH", 2)

        def kill(text: str) -> None:
            if "crops" in text:
                os.kill(os.getpid(), signal.SIGKILL)

        child = os.fork()
        if child == 0:
            with known(RecordingProvider(refuse=kill)):
                ingest(notes, db)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        assert cached(db) == 2
        with known():
            assert "2 texts embedded" in ingest(notes, db).err
        assert count_waiting(db) == 0

    def test_a_missing_model_is_a_warning(
        self, notes: Path, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        missing = EmbedderError("extra_missing", "the extra is not installed", "install it")
        with known(Unavailable(missing)):
            assert "[extra_missing]\n  next: install it" in ingest(notes, db).err
        monkeypatch.setenv("ROLEBUNDLE_RERANK", "nonsense")
        assert "[unknown_provider]" in ingest(notes, db).err

    def test_a_full_cache_is_reported(
        self, notes: Path, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rerank_cache, "MAX_BYTES", 90)
        with known():
            assert "not complete: the rerank cache is full" in ingest(notes, db).err

    def test_another_process_that_does_it_is_left_alone(self, notes: Path, db: Path) -> None:
        with known() as model, try_lock(warming_path(db)):
            assert "[rerank_cache_filling]" in ingest(notes, db).err
        assert not model.texts

    def test_a_refused_document_keeps_no_other_from_the_cache(self, notes: Path, db: Path) -> None:
        bad = "---\nvalid_from: 2026-07-01\nvalid_until: 2026-06-30\n---\n\nText.\n"
        (notes / "bad.md").write_text(bad, encoding="utf-8")
        with known():
            run = invoke("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
        assert run.code == 10 and count_waiting(db) == 0


@dataclass
class Calls:
    """What a warming is made from, for tests: it embeds texts until it is told to end."""

    texts: int = 0

    def __call__(self, pause: Callable[[], None]) -> WarmReport:
        while True:
            pause()
            self.texts += 1
            sleep(0.001)


class TestBackground:
    def test_it_pauses_for_others_and_ends_when_it_is_stopped(self) -> None:
        warming = Warming(calls := Calls(), print)
        with warming.paused():
            warming.start()
            with warming.paused():
                pass
            assert calls.texts == 0
        until(lambda: calls.texts > 1)
        warming.stop()
        until(lambda: not warming.is_running)
        warming.start()
        assert not warming.is_running

    def test_the_same_problem_is_reported_once(self) -> None:
        reported: list[str] = []
        problems = ["is full", "is full", "", "is full"]
        reports: list[str] = []

        def fill(_pause: object) -> WarmReport:
            reports.append(problems[len(reports)])
            return WarmReport(0, 0, reports[-1])

        warming = Warming(fill, reported.append)
        for number in range(1, 5):
            warming.start()
            until(lambda: len(reports) == number and not warming.is_running)  # noqa: B023
        assert len(reported) == 2 and "is full" in reported[0]

    @pytest.mark.usefixtures("rerank")
    def test_a_server_fills_it_after_an_ingest(self, notes: Path, db: Path) -> None:
        workspace = Workspace(db, HashingProvider())
        with known(), Engine(workspace) as engine, click.Context(cli):
            warming = warming_for(workspace)
            assert warming is not None
            operations = Operations(engine, allow_write=True, warming=warming)
            assert operations.call("ingest", {"paths": [str(notes)]})["added"] == FULL
            until(lambda: cached(db) == FULL and not warming.is_running)
        warming.start()
        assert not warming.is_running, "the command has ended"

    @pytest.mark.usefixtures("rerank")
    def test_a_watch_continues_and_follows_changes(self, notes: Path, db: Path) -> None:
        ingest(notes, db, "--no-warm")
        stop, messages = Event(), list[str]()
        with known(), Admin(db) as admin, click.Context(cli):
            warming = warming_for(admin.workspace, messages.append)
            assert warming is not None
            options = WatchOptions(IngestOptions(), poll=True)
            watcher = admin.watcher(
                options, messages.append, stop, lexical_only=True, warming=warming
            )
            until(lambda: count_waiting(db) == 0)
            write(notes, 9, "a new token")
            thread = Thread(target=watcher.run)
            thread.start()
            until(lambda: len(hashes(db)) == FULL + 1 and count_waiting(db) == 0)
            stop.set()
            thread.join(PATIENCE)
            until(lambda: not warming.is_running)
        assert [line for line in messages if "warning" in line] == []
