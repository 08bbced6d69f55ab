"""The best candidates are scored again by a cross-encoder in a server."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.embedding.registry import ProviderSpec
from rolebundle.engine import Engine
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.rank import MAX_RERANKED, rerank
from rolebundle.retrieval.rerank import Reranker
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.corpora import NOW, build, document, overlay, set_policy
from support.embedding_server import MODEL, RERANK_PATHS, EmbeddingServer, Handler, overlap
from support.fake_embedder import HashingProvider
from support.reranking import FAKE, known
from support.values import candidate, passage, weights

TASK = "token rotation audit"
DOCUMENTS = [
    document("plan", ["token rotation plan", "a moon over the audit"]),
    document("rivals", ["token rotation by rivals"], source_id="rivals"),
    document("secret", ["the token audit of salaries"], scope="hr", source_id="hr"),
]
SIXTY = [document(f"d{n:02}", [f"token {'rotation ' * (n % 3)}{n} words"]) for n in range(60)]


@pytest.fixture(scope="module")
def sixty_documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sixty"), SIXTY, HashingProvider(), name="team.db")


@pytest.fixture
def db(sixty_documents: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sixty_documents, tmp_path))


def make_candidate(name: str, semantic: float) -> Candidate:
    return candidate(passage(name), lexical=0.5, semantic=semantic, cosine=0.5)


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


def degradations(bundle: RetrievalBundle) -> list[str]:
    return [warning.message for warning in bundle.warnings if warning.code == "RERANK_DEGRADED"]


class TestTheMix:
    def test_a_worked_example(self) -> None:
        pool = [make_candidate("a", 1.0), make_candidate("b", 0.8), make_candidate("c", 0.6)]
        scores = {"a": 0.2, "b": 0.7, "c": 0.45}
        found = pool
        rerank(pool, lambda _: scores, weights(None, "weighted"))
        # By minimum and maximum a has 0, b 1 and c 0.5: 0.15 · own + 0.85 · score.
        assert [one.semantic for one in found] == pytest.approx([0.15, 0.97, 0.515])
        assert [one.contextual for one in found] == [0.2, 0.7, 0.45]

    def test_what_was_not_read_keeps_its_term_and_what_was_not_asked_counts_as_the_last(
        self,
    ) -> None:
        pool = [make_candidate(f"{n:02}", 1 - n / 100) for n in range(MAX_RERANKED + 1)]
        scores = {one.chunk_id: 1 - n / 100 for n, one in enumerate(pool[:-1]) if n != 3}
        rerank(pool, lambda _: {}, weights(None, "weighted"))
        assert pool[-1].semantic == 0.5
        rerank(pool, lambda _: scores, weights(None, "weighted"))
        assert (pool[3].semantic, pool[3].contextual) == (0.97, None)
        assert pool[-1].semantic == pytest.approx(0.15 * 0.5)

    def test_logits_are_brought_between_0_and_1(self) -> None:
        reranker = Reranker(ProviderSpec("rerank"), TASK)
        reranker._scores = {"a": -1e308, "b": 0.0, "c": 0.5, "d": 1e308}
        known = reranker.known([passage(name) for name in "abcd"])
        assert known == pytest.approx({"a": 0.0, "b": 0.5, "c": 0.6224593, "d": 1.0})


@pytest.mark.parametrize("api", list(RERANK_PATHS))
def test_the_best_fifty_are_scored(db: Path, server: EmbeddingServer, api: str) -> None:
    bundle = reranked(db, server, api)
    scores = contextual(bundle)
    assert bundle.rerank is not None
    assert len(scores) == bundle.rerank.scored == MAX_RERANKED
    assert (bundle.rerank.provider, bundle.rerank.model) == (api, MODEL)
    texts = [
        text for seen in server.seen for text in seen.body.get("texts", seen.body.get("documents"))
    ]
    assert len(texts) == len(set(texts)) == MAX_RERANKED
    assert {seen.body["query"] for seen in server.seen} == {TASK}
    for content, score in scores.items():
        [text] = [text for text in texts if content in text]
        assert score == pytest.approx(overlap(TASK, text), abs=1e-6)
    assert any(
        reason.startswith("reranked: score ") for reason in bundle.selected[0].reasons_selected
    )
    assert bundle.without_timings() == reranked(db, server, api).without_timings()


def test_a_text_that_the_server_cannot_read_keeps_its_score(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    long = "token " * 3000
    documents = [
        document("a", ["token rotation"]),
        document("b", ["audit", long]),
        document("c", ["token"]),
    ]
    db = build(tmp_path, documents, HashingProvider(), name="long.db")
    bundle = reranked(db, server, "rerank")
    assert contextual(bundle) and long.strip() not in contextual(bundle)
    [message] = degradations(bundle)
    assert message.startswith("1 of the best passages could not be read")


@pytest.mark.parametrize("api", list(RERANK_PATHS))
def test_without_the_server_the_answer_is_the_plain_one(
    db: Path, server: EmbeddingServer, api: str
) -> None:
    server.faults[RERANK_PATHS[api]] = lambda handler: handler.json({"error": "broken"}, 500)
    degraded, plain = reranked(db, server, api), reranked(db, server, "none", rerank=None)
    assert [one.chunk_id for one in degraded.selected] == [one.chunk_id for one in plain.selected]
    assert degraded.rerank is None and not contextual(degraded)
    assert len(degradations(degraded)) == 1
    # The first passages, not each passage.
    assert len(server.seen) < 10


def test_a_server_too_slow_for_the_deadline_changes_nothing(
    db: Path, server: EmbeddingServer
) -> None:
    def slow(handler: Handler) -> None:
        handler.state.stopping.wait(0.4)
        count = len(handler.body["documents"])
        rows = [{"index": n, "relevance_score": 0.5} for n in range(count)]
        handler.json({"results": rows})

    server.faults["/v1/rerank"] = slow
    bundle = reranked(db, server, "rerank", deadline_ms=4000)
    assert bundle.selected and bundle.rerank is None and len(degradations(bundle)) == 1


def test_the_address_is_that_of_the_environment(
    db: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("retrieve", TASK, "--rerank", "rerank", "--lexical-only", "--db", db)
    assert invoke(*arguments).code == 3
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", server.url)
    assert invoke(*arguments, "--format", "json").json()["rerank"]["provider"] == "rerank"
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", "http://user:secret@127.0.0.1")
    refused = invoke(*arguments)
    assert refused.code == 2 and "secret" not in refused.err
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", "http://192.0.2.1:8080")
    assert "is not on this machine" in invoke(*arguments).out


def test_only_what_policy_allows_is_sent(tmp_path: Path) -> None:
    db = build(tmp_path, DOCUMENTS, HashingProvider(), name="team.db")
    set_policy(db, {"ada": {"scopes": ["shared"], "access_level": "internal"}})
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "rivals"}]})
    resolved = ResolvedOverlay(role, "digest", Path("reviewer.json"))
    with known() as server, Engine(Workspace(db, HashingProvider())) as engine:
        request = RetrievalRequest(task=TASK, rerank=FAKE, now=NOW, agent="ada")
        bundle = engine.retrieve(request, resolved)
        assert bundle.rejected_summary["forbidden_source"] == 1
        explanation = engine.why(request, "rivals#0", resolved)
    assert server.texts
    assert not any("rivals" in text or "salaries" in text for text in server.texts)
    assert explanation.score.raw.contextual is None


def test_every_interface_takes_the_model(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = tmp_path / "golden.toml"
    golden.write_text(f'[[questions]]\nid = "q"\ntask = "{TASK}"\nexpect = ["d01"]\n')
    ask = ("retrieve", TASK, "--lexical-only", "--db", db, "--format", "json")
    with known():
        assert "rerank" in invoke(*ask, "--rerank", FAKE).json()
        why = invoke("why", "d01", TASK, "--rerank", FAKE, "--lexical-only", "--db", db)
        assert "in context    score" in why.out
        run = invoke("eval", golden, "--db", db, "--lexical-only", "--rerank", FAKE, "--json")
        assert f"governed: reranked by {FAKE}" in run.json()["notes"]
        monkeypatch.setenv("ROLEBUNDLE_RERANK", FAKE)
        assert invoke(*ask).json()["request"]["rerank"] == FAKE
        assert "rerank" not in invoke(*ask, "--rerank", NO_RERANK).json()
    monkeypatch.setenv("ROLEBUNDLE_RERANK", "onnx")
    assert invoke(*ask).code == 3


def test_a_replay_reranks_only_a_reranked_bundle(db: Path, server: EmbeddingServer) -> None:
    with known():
        with Engine(Workspace(db, HashingProvider()), rerank=FAKE) as engine:
            reranked = engine.retrieve(RetrievalRequest(task=TASK))
            plain = engine.retrieve(RetrievalRequest(task=TASK, rerank=NO_RERANK))
            assert (reranked.rerank is None, plain.rerank is None) == (False, True)
            assert engine.replay(reranked).same
            assert engine.replay(plain).same
        with Engine(Workspace(db, HashingProvider())) as engine:
            assert engine.replay(reranked).same
            assert engine.retrieve(RetrievalRequest(task=TASK)).rerank is None
    server.faults["/v1/rerank"] = lambda handler: handler.json({"error": "broken"}, 500)
    with Engine(Workspace(db, HashingProvider()), rerank_url=server.url) as engine:
        replay = engine.replay(reranked)
    assert [(cause.kind, cause.after) for cause in replay.causes] == [("rerank", "degraded")]
