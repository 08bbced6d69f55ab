"""Answers that a cross-encoder in a server has reranked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.rerank_server import MAX_PASSAGES
from rolebundle.engine import Engine
from rolebundle.retrieval import rank
from rolebundle.retrieval.rerank import reranker
from rolebundle.retrieval.rerank.scorers import ServerScorer
from rolebundle.storage.location import rerank_cache_path
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.corpora import NOW, build, document
from support.embedding_server import (
    MODEL,
    RERANK_PATHS,
    EmbeddingServer,
    Handler,
    overlap,
)
from support.fake_embedder import HashingProvider
from support.reranking import TASK


@pytest.fixture(scope="module")
def sixty_documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    many = [document(f"d{n:02}", [f"token {'rotation ' * (n % 3)}{n} words"]) for n in range(60)]
    return build(tmp_path_factory.mktemp("sixty"), many, HashingProvider(), name="team.db")


@pytest.fixture
def db(sixty_documents: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sixty_documents, tmp_path))


def reranked(db: Path, server: EmbeddingServer, api: str, **fields: Any) -> RetrievalBundle:
    with Engine(Workspace(db, HashingProvider()), rerank_url=server.url) as engine:
        request = {"task": TASK, "rerank": f"{api}:{MODEL}", "now": NOW, "limit": 60} | fields
        return engine.retrieve(RetrievalRequest(**request))


def contextual(bundle: RetrievalBundle) -> dict[str, float]:
    return {
        chunk.content: chunk.raw.contextual
        for chunk in bundle.selected
        if chunk.raw and chunk.raw.contextual is not None
    }


@pytest.mark.parametrize("api", list(RERANK_PATHS))
def test_the_best_fifty_are_scored(db: Path, server: EmbeddingServer, api: str) -> None:
    bundle = reranked(db, server, api)
    scores = contextual(bundle)
    assert len(scores) == rank.MAX_RESCORED
    assert bundle.rerank is not None and bundle.rerank.scored == rank.MAX_RESCORED
    assert (bundle.rerank.provider, bundle.rerank.model) == (api, MODEL)
    assert (bundle.rerank.digest, bundle.rerank.dimensions) == ("", 0)
    texts = [
        text for seen in server.seen for text in seen.body.get("texts", seen.body.get("documents"))
    ]
    assert len(texts) == len(set(texts)) == rank.MAX_RESCORED
    assert {seen.body["query"] for seen in server.seen} == {TASK}
    for content, score in scores.items():
        [text] = [text for text in texts if content in text]
        assert score == pytest.approx(overlap(TASK, text), abs=1e-6)
    assert not rerank_cache_path(db).exists()
    assert bundle.without_timings() == reranked(db, server, api).without_timings()


def test_a_cross_encoder_is_no_cosine_in_the_reasons(db: Path, server: EmbeddingServer) -> None:
    reasons = reranked(db, server, "tei").selected[0].reasons_selected
    assert any(reason.startswith("reranked: score ") for reason in reasons)


def test_logits_are_brought_between_0_and_1() -> None:
    scorer = ServerScorer(None, TASK)  # type: ignore[arg-type]
    assert scorer.scaled({"a": 0.0, "b": 1.0, "c": 0.3}) == {"a": 0.0, "b": 1.0, "c": 0.3}
    logits = scorer.scaled({"a": -1e308, "b": 0.0, "c": 0.5, "d": 1e308})
    assert logits == pytest.approx({"a": 0.0, "b": 0.5, "c": 0.6224593, "d": 1.0})


def test_a_text_that_the_server_cannot_read_keeps_its_score(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    long = "token " * 3000
    db = build(
        tmp_path,
        [
            document("a", ["token rotation"]),
            document("b", ["audit", long]),
            document("c", ["token"]),
        ],
        HashingProvider(),
        name="long.db",
    )
    bundle = reranked(db, server, "tei")
    assert len(contextual(bundle)) == 3 and long.strip() not in contextual(bundle)
    [warning] = [
        warning.message for warning in bundle.warnings if warning.code == "RERANK_DEGRADED"
    ]
    assert warning.startswith("1 of the best passages could not be read")


@pytest.mark.parametrize("api", list(RERANK_PATHS))
def test_without_the_server_the_answer_is_the_plain_one(
    db: Path, server: EmbeddingServer, api: str
) -> None:
    server.faults[RERANK_PATHS[api]] = lambda handler: handler.json({"error": "broken"}, 500)
    degraded, plain = reranked(db, server, api), reranked(db, server, "none", rerank=None)
    assert degraded.selected == plain.selected and degraded.rerank is None
    assert [warning.code for warning in degraded.warnings].count("RERANK_DEGRADED") == 1
    # The first passages, and the text that harms nobody; not each passage.
    assert len(server.seen) == 2


def test_a_deadline_takes_the_scores_that_are_there(
    db: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranker, "RESERVED_SHARE", 0.9)
    answered = []

    def twice(handler: Handler) -> None:
        if len(answered) == 2:
            handler.state.stopping.wait(5)
        answered.append(handler.body)
        results = [{"index": n, "score": 1 / (n + 2)} for n in range(len(handler.body["texts"]))]
        handler.json(results)

    server.faults["/rerank"] = twice
    bundle = reranked(db, server, "tei", deadline_ms=4000)
    assert bundle.rerank is not None
    # The best passage alone, so that it is there even if the deadline is short, and the next ones.
    assert [len(body["texts"]) for body in answered[:2]] == [1, MAX_PASSAGES]
    assert (bundle.rerank.scored, bundle.rerank.complete) == (1 + MAX_PASSAGES, False)


def test_the_address_is_that_of_the_environment(
    db: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("retrieve", TASK, "--rerank", "tei", "--lexical-only", "--db", db)
    assert invoke(*arguments).code == 3
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", server.url)
    assert invoke(*arguments, "--format", "json").json()["rerank"]["provider"] == "tei"
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", "http://user:secret@127.0.0.1")
    refused = invoke(*arguments)
    assert refused.code == 2 and "secret" not in refused.err
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", "http://192.0.2.1:8080")
    assert "is not on this machine" in invoke(*arguments).out
