"""`rolebundle corpus embed`: what it prints, what it refuses, and with which exit code."""

import shutil
from pathlib import Path

import pytest

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding.provider import PROBE_TEXT
from rolebundle.storage import vector_index
from rolebundle.storage.opening import open_reader
from support.commands import Outcome, invoke, is_coded
from support.corpora import build, document
from support.embedding_server import MODEL, ROUTES, EmbeddingServer, Handler
from support.fake_embedder import HashingProvider
from support.model_folders import write_model

OLD = ModelIdentity("fake", "old", "0123456789abcdef", 8)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Six chunks with vectors of the old model; nothing else is at hand."""
    documents = [document(f"d{n}", [f"token {n}", f"threat {n}"]) for n in range(3)]
    return build(tmp_path, documents, HashingProvider(OLD), name="c.db")


def new(db: Path, server: EmbeddingServer, *more: str) -> Outcome:
    return invoke(
        "corpus", "embed", "--model", f"ollama:{MODEL}", "--db", db, *more, embed_url=server.url
    )  # fmt: skip


def active(db: Path) -> str:
    with open_reader(db) as corpus:
        index = vector_index.active_index(corpus)
    assert index is not None
    return index.identity.model.model


class TestEmbed:
    def test_a_new_index(self, db: Path, server: EmbeddingServer) -> None:
        outcome = new(db, server)
        assert (outcome.code, outcome.out) == (0, "6 chunks embedded, 0 waiting\n")
        assert active(db) == f"{MODEL}:latest"
        assert new(db, server).out == "0 chunks embedded, 0 waiting\n"

    def test_what_could_not_be_embedded(self, db: Path, server: EmbeddingServer) -> None:
        def only_the_probe(handler: Handler) -> None:
            if handler.body["input"] == [PROBE_TEXT]:
                ROUTES["/api/embed"](handler)
            else:
                handler.json({"error": "no memory"}, 500)

        server.faults["/api/embed"] = only_the_probe
        outcome = new(db, server, "--json")
        is_coded(outcome)
        assert outcome.code == 9
        assert outcome.json() == {"embedded": 0, "waiting": 6}
        assert "6 chunks still without a vector" in outcome.err
        assert "no memory" in outcome.err

    @pytest.mark.parametrize(
        ("arguments", "code", "shown_text"),
        [
            (("--model", "nothing"), 3, "unknown_provider"),
            (("--model", "ollama"), 3, "needs its model"),
            (("nonsense",), 2, "unexpected extra argument"),
        ],
    )
    def test_refused(
        self, db: Path, arguments: tuple[str, ...], code: int, shown_text: str
    ) -> None:
        before = db.read_bytes()
        outcome = invoke("corpus", "embed", "--db", db, *arguments)
        is_coded(outcome)
        assert outcome.code == code
        assert shown_text in outcome.err
        assert db.read_bytes() == before


class TestDrop:
    def test_an_inactive_index(self, db: Path, server: EmbeddingServer) -> None:
        new(db, server)
        text = invoke("status", "--db", db).out
        assert "indexes: id 1, provider fake, model old, dimensions " in text
        assert f"indexes: id 2, provider ollama, model {MODEL}:latest, dimensions " in text
        outcome = invoke("corpus", "embed", "drop", "fake:old", "--db", db)
        assert (outcome.code, outcome.err) == (0, "fake:old was removed\n")
        assert len(invoke("status", "--json", "--db", db).json()["indexes"]) == 1

    @pytest.mark.parametrize("stray", [("--db", "team.db"), ("--model", "static")])
    def test_options_before_the_command_are_refused(
        self, db: Path, server: EmbeddingServer, stray: tuple[str, ...]
    ) -> None:
        """Dropped in silence they would drop from another corpus, or in earnest."""
        new(db, server)
        outcome = invoke("corpus", "embed", *stray, "drop", "1", "--db", db)
        assert outcome.code == 2
        assert "unexpected extra argument" in outcome.err
        assert len(invoke("status", "--json", "--db", db).json()["indexes"]) == 2


def test_a_model_of_a_folder_and_the_same_folder_changed(tmp_path: Path, db: Path) -> None:
    folder = write_model(tmp_path / "bert-tiny")
    embed = ("corpus", "embed", "--db", db, "--model", f"folder:{folder}")
    assert invoke(*embed).out == "6 chunks embedded, 0 waiting\n"
    assert invoke(*embed).out == "0 chunks embedded, 0 waiting\n"
    assert active(db) == "bert-tiny"

    def answer() -> Outcome:
        return invoke("retrieve", "token", "--db", db, "--json")

    found = answer()
    assert "SEMANTIC_LANE_DEGRADED" not in found.out and str(tmp_path) not in found.out
    assert any("semantic" in chunk["lanes"] for chunk in found.json()["selected"])
    shutil.rmtree(folder)
    assert "there is no such folder" in answer().out
    write_model(folder, hidden_act="relu")
    changed = answer()
    assert "SEMANTIC_LANE_DEGRADED" in changed.out
    assert "corpus embed --model folder:PATH" in changed.out
    assert all(chunk["lanes"] == ["lexical"] for chunk in changed.json()["selected"])
    assert invoke(*embed).out == "6 chunks embedded, 0 waiting\n"
    assert "SEMANTIC_LANE_DEGRADED" not in answer().out


def test_a_missing_folder_is_refused_and_the_old_index_stays(tmp_path: Path, db: Path) -> None:
    outcome = invoke("corpus", "embed", "--db", db, "--model", f"folder:{tmp_path / 'none'}")
    is_coded(outcome)
    assert outcome.code == 9 and "model_missing" in outcome.err and active(db) == "old"
