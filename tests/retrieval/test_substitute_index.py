"""If the active index's model is down, another complete index answers, and the bundle says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.storage import vector_index
from rolebundle.storage.opening import open_writer
from support.commands import invoke
from support.corpora import NOW
from support.embedding_server import MODEL, EmbeddingServer, embedding_server


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture
def db(tmp_path: Path, server: EmbeddingServer) -> Path:
    """A corpus with an index of the static model, and an active one of a model server."""
    server.faults.clear()
    (tmp_path / "docs").mkdir()
    for name in ("token refresh", "sync conflict", "release plan"):
        text = f"# {name.title()}\n\nHow the {name} works.\n"
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    path = tmp_path / "two.db"
    assert invoke("ingest", tmp_path / "docs", "--workers", "1", "--db", path).code == 0
    model = ("--model", f"ollama:{MODEL}")
    assert invoke("corpus", "embed", *model, "--db", path, embed_url=server.url).code == 0
    return path


def ask(db: Path) -> RetrievalBundle:
    with Engine(db) as engine:
        return engine.retrieve(RetrievalRequest(task="renewing a token", now=NOW))


def degradations(bundle: RetrievalBundle) -> list[str]:
    return [w.message for w in bundle.warnings if w.code == "SEMANTIC_LANE_DEGRADED"]


def comparable(bundle: RetrievalBundle) -> dict[str, object]:
    return bundle.model_dump(exclude={"diagnostics"})


def take_down(server: EmbeddingServer) -> None:
    server.faults["/api/embed"] = lambda handler: handler.text("broken", 500)


def test_the_active_index_answers_while_its_model_is_up(db: Path) -> None:
    bundle = ask(db)
    assert bundle.corpus.index is not None
    assert bundle.corpus.index.provider == "ollama"
    assert degradations(bundle) == []


def test_another_complete_index_answers(db: Path, server: EmbeddingServer) -> None:
    take_down(server)
    bundle = ask(db)
    assert bundle.corpus.index is not None
    assert bundle.corpus.index.provider == "static"
    [message] = degradations(bundle)
    assert message.startswith("the index of static:")
    assert server.url in message
    assert "semantic lane" not in bundle.fallback.message
    assert comparable(ask(db)) == comparable(bundle)

    assert invoke("corpus", "embed", "--model", "static", "--db", db).code == 0
    expected = ask(db)
    assert degradations(expected) == []
    assert [(p.chunk_id, p.scores) for p in bundle.selected] == [
        (p.chunk_id, p.scores) for p in expected.selected
    ]


def test_an_incomplete_index_does_not(db: Path, server: EmbeddingServer) -> None:
    take_down(server)
    with open_writer(db) as corpus, corpus.writing():
        static = next(i for i in vector_index.all_indexes(corpus) if not i.active)
        [(chunk,)] = corpus.rows("SELECT min(id) FROM chunk")
        vector_index.remove(corpus, static, [chunk])
    bundle = ask(db)
    [message] = degradations(bundle)
    assert not message.startswith("the index of")
    assert bundle.corpus.index is not None
    assert bundle.corpus.index.provider == "ollama"
    assert "semantic lane" in bundle.fallback.message
