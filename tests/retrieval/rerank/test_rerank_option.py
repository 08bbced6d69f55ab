"""Every interface takes the name of a rerank model, and replays and evaluations use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.fake_embedder import HashingProvider
from support.reranking import FAKE, TASK, RecordingProvider, Silent, known


class TestInterfaces:
    def test_the_command_line_and_the_environment_name_the_model(
        self, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with known():
            flag = invoke(
                "retrieve", TASK, "--rerank", FAKE, "--lexical-only", "--db", db, "--format", "json"
            ).json()
            assert flag["request"]["rerank"] == FAKE and "rerank" in flag
            monkeypatch.setenv("ROLEBUNDLE_RERANK", FAKE)
            by_setting = invoke(
                "retrieve", TASK, "--lexical-only", "--db", db, "--format", "json"
            ).json()
            assert by_setting["request"]["rerank"] == FAKE
            off = ("retrieve", TASK, "--rerank", NO_RERANK, "--lexical-only", "--db", db)
            assert "rerank" not in invoke(*off, "--format", "json").json()
            why = invoke("why", "plan", TASK, "--lexical-only", "--db", db)
            assert "in context    score" in why.out
            roles = (
                "compare",
                TASK,
                "--roles",
                "mossline-security-reviewer,mossline-docs-writer",
                "--lexical-only",
            )
            assert invoke(*roles, "--db", db).code == 0
            monkeypatch.setenv("ROLEBUNDLE_RERANK", "nonsense")
            assert invoke("retrieve", TASK, "--db", db).code == 3

    def test_a_replay_reranks_only_a_reranked_bundle(self, db: Path) -> None:
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
        second_model = RecordingProvider(replace(RecordingProvider().identity, digest="other"))
        with known(second_model), Engine(Workspace(db, HashingProvider())) as engine:
            replay = engine.replay(reranked)
        assert [(cause.kind, cause.message) for cause in replay.causes] == [
            ("rerank", "another model reranks")
        ]
        with known(Silent()), Engine(Workspace(db, HashingProvider())) as engine:
            replay = engine.replay(reranked)
        assert [(cause.kind, cause.after) for cause in replay.causes] == [("rerank", "degraded")]

    def test_a_server_refuses_a_model_folder_in_a_request(self, db: Path) -> None:
        from rolebundle.errors import AccessDenied
        from rolebundle.interfaces.servers.operations import Operations

        folder = "sentence-transformers:/home/somebody/model"
        with Engine(db) as engine:
            for method, more in (("retrieve", {}), ("why", {"id": "plan"})):
                with pytest.raises(AccessDenied) as caught:
                    Operations(engine).call(method, {"task": TASK, "rerank": folder} | more)
                assert caught.value.code == "rerank_folder"
        with Engine(db, rerank=folder) as engine:
            answer = Operations(engine).call("retrieve", {"task": TASK, "lexical_only": True})
            codes = [warning["code"] for warning in answer["warnings"]]
            assert "RERANK_DEGRADED" in codes  # There is no such folder.

    def test_a_compact_answer_repeats_the_model_in_its_next_request(self, db: Path) -> None:
        from rolebundle.interfaces.servers.operations import Operations

        with known(), Engine(Workspace(db, HashingProvider())) as engine:
            answer = Operations(engine).call("retrieve", {"task": TASK, "rerank": FAKE})
        assert answer["more"]["params"]["rerank"] == FAKE

    def test_an_evaluation_is_reranked(self, db: Path, tmp_path: Path) -> None:
        golden = tmp_path / "golden.toml"
        golden.write_text(f'[[questions]]\nid = "q"\ntask = "{TASK}"\nexpect = ["plan"]\n')
        with known() as model:
            run = invoke("eval", golden, "--db", db, "--lexical-only", "--rerank", FAKE, "--json")
            assert run.code == 0, run.err
            assert f"governed: reranked by {FAKE}" in run.json()["notes"]
            assert model.texts

    def test_at_most_two_models_stay_loaded(self, db: Path) -> None:
        with known(), Engine(Workspace(db, HashingProvider())) as engine:
            for number in range(9):
                engine.retrieve(RetrievalRequest(task=TASK, rerank=f"fake:{number}"))
            assert len(engine.answering.rerank_models._models) == 2
