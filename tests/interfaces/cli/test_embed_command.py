"""`rolebundle corpus embed`: what it prints, what it refuses, and with which exit code."""

from pathlib import Path

import pytest

from rolebundle.contracts.models import ModelIdentity
from rolebundle.storage import vector_index
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.commands import Outcome, invoke, is_coded
from support.corpora import build, document
from support.embedding_faults import closed_port
from support.embedding_server import MODEL, EmbeddingServer, embedding_server
from support.fake_embedder import HashingProvider

OLD = ModelIdentity("fake", "old", "0123456789abcdef", 8)


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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

    def test_a_server_that_is_not_there(self, db: Path) -> None:
        url = f"http://127.0.0.1:{closed_port()}"
        outcome = invoke("corpus", "embed", "--model", f"ollama:{MODEL}", "--db", db, embed_url=url)
        is_coded(outcome)
        assert outcome.code == 9
        assert "embedder_down" in outcome.err
        assert active(db) == "old"

    def test_what_could_not_be_embedded(self, db: Path, server: EmbeddingServer) -> None:
        server.faults["/api/embed"] = lambda handler: handler.json({"error": "no memory"}, 500)
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
            (("--model", "openai:m"), 3, "needs its url"),
            (("--nonsense",), 2, "No such option"),
            (("nonsense",), 2, "No such command"),
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


class TestDryRun:
    def test_json(self, db: Path, server: EmbeddingServer) -> None:
        plan = new(db, server, "--dry-run", "--json").json()
        assert plan.pop("seconds") >= 0
        assert plan == {"chunks": 6, "waiting": 6, "bytes": 6 * 8 * 4}
        assert new(db, server).code == 0
        assert new(db, server, "--dry-run", "--json").json()["waiting"] == 0


class TestList:
    def test_status_says_which_one_answers(self, db: Path, server: EmbeddingServer) -> None:
        new(db, server)
        text = invoke("status", "--db", db).out
        assert "index 1, inactive: fake:old, 6 vectors, 0 waiting" in text
        assert f"index 2, active: ollama:{MODEL}:latest, 6 vectors, 0 waiting" in text


class TestUseAndDrop:
    def test_back_and_away(self, db: Path, server: EmbeddingServer) -> None:
        new(db, server)
        assert invoke("corpus", "embed", "use", "fake:old", "--db", db).code == 0
        assert active(db) == "old"
        outcome = invoke("corpus", "embed", "drop", "2", "--db", db)
        assert (outcome.code, outcome.err) == (0, "2 was removed\n")
        assert len(invoke("status", "--json", "--db", db).json()["indexes"]) == 1

    def test_the_one_that_answers_is_not_dropped(self, db: Path) -> None:
        outcome = invoke("corpus", "embed", "drop", "1", "--db", db)
        is_coded(outcome)
        assert outcome.code == 2
        assert "index_in_use" in outcome.err
        assert active(db) == "old"

    def test_an_incomplete_one_is_not_used(self, db: Path, server: EmbeddingServer) -> None:
        new(db, server)
        invoke("corpus", "embed", "use", "1", "--db", db)
        with open_writer(db) as corpus, corpus.writing():
            ours = vector_index.all_indexes(corpus)[1]
            vector_index.remove(corpus, ours, [3])
        outcome = invoke("corpus", "embed", "use", "2", "--db", db)
        is_coded(outcome)
        assert (outcome.code, active(db)) == (2, "old")
        assert "index_incomplete" in outcome.err

    @pytest.mark.parametrize("command", ["use", "drop"])
    def test_unknown(self, db: Path, command: str) -> None:
        outcome = invoke("corpus", "embed", command, "ollama:nothing", "--db", db)
        assert (outcome.code, "unknown_index" in outcome.err) == (2, True)
        assert "1 (fake:old)" in outcome.err
        assert invoke("corpus", "embed", command, "--db", db).code == 2

    @pytest.mark.sample(2)
    @pytest.mark.parametrize(
        "stray", [("--db", "team.db"), ("--dry-run",), ("--model", "static"), ("--json",)]
    )
    def test_options_before_the_command_are_refused(
        self, db: Path, server: EmbeddingServer, stray: tuple[str, ...]
    ) -> None:
        """Dropped in silence they would drop from another corpus, or in earnest."""
        new(db, server)
        outcome = invoke("corpus", "embed", *stray, "drop", "1", "--db", db)
        assert outcome.code == 2
        assert f"{stray[0]} has no effect before drop" in outcome.err
        assert len(invoke("status", "--json", "--db", db).json()["indexes"]) == 2


@pytest.mark.parametrize("url", ["//host", "//127.0.0.1:11434", "localhost:11434"])
def test_an_address_that_is_no_url_is_a_usage_error(url: str, tmp_path: Path) -> None:
    for command in (("corpus", "embed"), ("ingest", tmp_path), ("retrieve", "token")):
        outcome = invoke(*command, "--db", tmp_path / "c.db", embed_url=url)
        assert (outcome.code, "[bad_url]" in outcome.err) == (2, True)
    assert not (tmp_path / "c.db").exists()


def test_an_unchanged_ingest_does_not_need_the_server(tmp_path: Path) -> None:
    docs, db = tmp_path / "docs", tmp_path / "c.db"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n\nThe token.\n", encoding="utf-8")
    with embedding_server() as running:
        assert invoke("ingest", docs, "--lexical-only", "--db", db).code == 0
        assert new(db, running).code == 0
    unchanged = invoke("ingest", docs, "--db", db)
    assert (unchanged.code, unchanged.err) == (0, "")
    (docs / "b.md").write_text("# B\n\nThe key.\n", encoding="utf-8")
    changed = invoke("ingest", docs, "--db", db)
    assert (changed.code, "1 chunk without a vector" in changed.err) == (9, True)
