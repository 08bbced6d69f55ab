"""Vectors of a model server: what happens if it is down, changes or dies, and who asks it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rolebundle.admin.indexes import use_index
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.registry import ProviderSpec, spec_to_json
from rolebundle.engine import Engine
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.embedding_server import (
    DIGEST,
    MODEL,
    ROUTES,
    EmbeddingServer,
    Handler,
    embedding_server,
)
from support.fake_embedder import IDENTITY
from support.index_builds import BATCH, FILES, active, codes, embed_with, write
from support.vectors import assert_never_mixed

# -- a server that is down, dies or changes -------------------------------------------------------


def test_the_server_down_during_ingest(db: Path, notes: Path) -> None:
    with embedding_server() as server:
        embed_with(server, db)
        port = server.port
    write(notes, "later")
    write(notes, "n1")
    (notes / "n1.md").write_text("# n1\n\nAnother text.\n", encoding="utf-8")
    outcome = invoke("ingest", notes, "--workers", "1", "--db", db)
    assert outcome.code == 9
    assert "1 added, 1 updated" in outcome.out
    assert "2 waiting for a vector" in outcome.out
    assert "every document was stored, but 2 chunks without a vector" in outcome.err
    assert "cannot be reached" in outcome.err
    assert "rolebundle corpus embed" in outcome.err
    found = invoke("retrieve", "later tokens", "--format", "json", "--db", db)
    assert found.code == 0
    [warning] = [w for w in found.json()["warnings"] if w["code"] == "SEMANTIC_LANE_DEGRADED"]
    assert "cannot be reached" in warning["message"]
    with embedding_server(port) as server:
        outcome = invoke("corpus", "embed", "--db", db)
        assert (outcome.code, outcome.out) == (0, "2 chunks embedded, 0 waiting\n")
        texts = [text for body in server.bodies_for("/api/embed") for text in body["input"]]
        assert len(texts) == 2
        assert all(text.startswith("search_document: ") for text in texts)
    assert assert_never_mixed(db) == {"hashed-words": FILES - 1, f"{MODEL}:latest": FILES + 1}


def dies_after(server: EmbeddingServer, good: int, fault: Callable[[Handler], None]) -> None:
    answered: list[str] = []

    def answer(handler: Handler) -> None:
        if len(answered) < good:
            answered.append("well")
            ROUTES["/api/embed"](handler)
        else:
            fault(handler)

    server.faults["/api/embed"] = answer


@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (lambda handler: handler.reset(), 6),  # three attempts, for two batches under way
        (lambda handler: handler.json({"error": "out of memory"}, 500), 4),
    ],
    ids=["dead", "failing"],
)
def test_a_server_that_dies_in_mid_embedding(
    db: Path, server: EmbeddingServer, fault: Callable[[Handler], None], most: int
) -> None:
    """What was embedded is kept, and a server that fails on everything is not asked for ever."""
    dies_after(server, 2, fault)
    arguments = ("corpus", "embed", "--model", f"ollama:{MODEL}", "--db", db)
    outcome = invoke(*arguments, embed_url=server.url)
    assert outcome.code == 9, outcome.err
    assert f"{2 * BATCH} chunks embedded, {FILES - 2 * BATCH} waiting" in outcome.out
    assert len(server.bodies_for("/api/embed")) <= 2 + most
    assert active(db).identity.model == IDENTITY
    server.faults.clear()
    server.seen.clear()
    embed_with(server, db)
    texts = [text for body in server.bodies_for("/api/embed") for text in body["input"]]
    assert len(texts) == FILES - 2 * BATCH
    assert active(db).identity.model.model == f"{MODEL}:latest"
    assert assert_never_mixed(db)[f"{MODEL}:latest"] == FILES


def test_chunks_over_the_context_wait_until_they_are_smaller(
    db: Path, notes: Path, server: EmbeddingServer
) -> None:
    """The next step that the message names is possible, and the old index stays active until then."""
    (notes / "long.md").write_text("# Long\n\n" + "A paragraph of words. " * 75, encoding="utf-8")
    ingest = ("ingest", notes, "--lexical-only", "--workers", "1", "--db", db)
    assert invoke(*ingest).code == 0
    over = {"error": "the input length exceeds the context length"}

    def answer(handler: Handler) -> None:
        if any(len(text.split()) > 200 for text in handler.body["input"]):
            handler.json(over, 400)
        else:
            ROUTES["/api/embed"](handler)

    server.faults["/api/embed"] = answer
    embed = ("corpus", "embed", "--model", f"ollama:{MODEL}")
    outcome = invoke(*embed, "--db", db, embed_url=server.url)
    assert (outcome.code, outcome.out) == (9, f"{FILES} chunks embedded, 1 waiting\n")
    assert "--chunk-size 400" in outcome.err
    assert active(db).identity.model == IDENTITY
    assert invoke(*ingest, "--chunk-size", "400").code == 0
    assert invoke(*embed, "--db", db, embed_url=server.url).code == 0
    assert active(db).identity.model.model == f"{MODEL}:latest"


def test_the_model_behind_the_name_changed(db: Path, notes: Path, server: EmbeddingServer) -> None:
    embed_with(server, db)
    server.digest = DIGEST[::-1]
    before = db.read_bytes()
    write(notes, "more")
    outcome = invoke("ingest", notes, "--workers", "1", "--db", db)
    assert outcome.code == 9
    assert "model_mismatch" in outcome.err
    assert db.read_bytes() == before
    # Built anew, and still reached at the server that the corpus knows.
    assert invoke("corpus", "embed", "--db", db).code == 0
    assert active(db).identity.model.digest == DIGEST[::-1]
    assert json.loads(active(db).connection)["url"] == server.url
    assert invoke("ingest", notes, "--workers", "1", "--db", db).code == 0


# -- the engine asks the model of the index that answers -----------------------------------------


@pytest.mark.parametrize(("kind", "path"), [("ollama", "/api/embed"), ("openai", "/v1/embeddings")])
def test_queries_use_the_model_of_the_index(
    db: Path, server: EmbeddingServer, kind: str, path: str
) -> None:
    embed_with(server, db, kind)
    server.seen.clear()
    with Engine(db) as engine:
        bundle = engine.retrieve(RetrievalRequest(task="n3 tokens"))
    assert "SEMANTIC_LANE_DEGRADED" not in codes(bundle)
    assert bundle.corpus.index is not None
    assert bundle.corpus.index.provider == kind
    texts = [text for body in server.bodies_for(path) for text in body["input"]]
    assert "search_query: n3 tokens" in texts
    assert not any(text.startswith("search_document: ") for text in texts)


def test_an_open_engine_uses_the_new_model_after_activation(
    db: Path, server: EmbeddingServer
) -> None:
    embed_with(server, db, "ollama")
    with Engine(db) as engine:
        engine.retrieve(RetrievalRequest(task="n3"))
        embed_with(server, db, "openai")
        server.seen.clear()
        bundle = engine.retrieve(RetrievalRequest(task="n3"))
        assert "SEMANTIC_LANE_DEGRADED" not in codes(bundle)
        assert server.bodies_for("/v1/embeddings")
        assert not server.bodies_for("/api/embed")
        use_index(engine.workspace, "ollama:" + MODEL + ":latest")
        server.seen.clear()
        engine.retrieve(RetrievalRequest(task="n3"))
        assert server.bodies_for("/api/embed")


def test_the_new_address_of_a_server_is_stored(db: Path) -> None:
    with embedding_server() as first:
        embed_with(first, db)
    with embedding_server() as second:
        embed_with(second, db)
        assert active(db).connection == spec_to_json(ProviderSpec("ollama", MODEL, second.url))
        with Engine(db) as engine:
            bundle = engine.retrieve(RetrievalRequest(task="n3"))
        assert "SEMANTIC_LANE_DEGRADED" not in codes(bundle)


def test_the_url_option_overrides_the_stored_address(db: Path) -> None:
    with embedding_server() as first:
        embed_with(first, db)
    with embedding_server() as second, Engine(Workspace(db, embed_url=second.url)) as engine:
        assert "SEMANTIC_LANE_DEGRADED" not in codes(engine.retrieve(RetrievalRequest(task="n3")))
