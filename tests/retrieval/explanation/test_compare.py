"""The comparison of roles: shared passages, own passages and rejections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.retrieval.compare import compare_roles, jaccard
from rolebundle.storage.opening import open_writer
from rolebundle.workspace import Workspace
from support.corpora import ask, build, built, document, fill, overlay
from support.fake_embedder import HashingProvider
from support.overlay_files import write

DOCUMENTS = (
    document("both", ["token plan"]),
    document("posts", ["token news", "token gossip"], source_id="blog"),
    document("words", ["credential plan"]),
)
FORBIDS = overlay(
    role_id="strict",
    source_policy={"forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}]},
    retrieval_policy={"min_score": 0.0},
)
WIDE = overlay(
    role_id="wide",
    vocabulary={"boost_phrases": ["credential"]},
    retrieval_policy={"min_score": 0.0},
)


@pytest.fixture
def bundles(tmp_path: Path) -> list[RetrievalBundle]:
    with built(tmp_path, DOCUMENTS) as corpus:
        return [ask(corpus, role, task="token") for role in (FORBIDS, WIDE)]


class TestCompare:
    def test_a_passage_has_the_rejection_of_the_other_role(
        self, bundles: list[RetrievalBundle]
    ) -> None:
        comparison = {passage.chunk_id: passage for passage in compare_roles(bundles).passages}
        forbidden, has = comparison["posts#0"].standings
        assert (forbidden.role_id, forbidden.state) == ("strict", "rejected")
        assert (forbidden.reason, forbidden.notes) == ("forbidden_source", "blog: hearsay")
        assert (has.state, has.reason) == ("selected", None)
        assert has.rank is not None
        assert has.score is not None
        assert comparison["words#0"].standings[0].state == "not_found"

    def test_what_is_selected_has_the_rules_that_it_met(self, tmp_path: Path) -> None:
        with built(tmp_path, DOCUMENTS) as corpus:
            bundles = [ask(corpus, role, task="token") for role in (None, FORBIDS, WIDE)]
        comparison = compare_roles(bundles)
        assert [view.role_id for view in comparison.roles] == ["", "strict", "wide"]
        hits = {
            passage.chunk_id: [standing.overlay_hits for standing in passage.standings]
            for passage in comparison.passages
        }
        assert hits["words#0"] == [None, None, ["vocab:boost(credential)"]]
        assert hits["both#0"] == [[], [], []]
        shares = [view.role_share for view in comparison.roles]
        assert shares == [bundle.evidence and bundle.evidence.role_share for bundle in bundles]


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [("", "", 1.0), ("a", "", 0.0), ("ab", "ab", 1.0), ("ab", "bc", 0.333333), ("a", "b", 0.0)],
)
def test_jaccard(first: str, second: str, share: float) -> None:
    assert jaccard({*first}, {*second}) == jaccard({*second}, {*first}) == share


class TestTheEngine:
    @pytest.fixture
    def engine(self, tmp_path: Path) -> Engine:
        for role in ("one", "two"):
            write(tmp_path, role)
        return Engine(Workspace(build(tmp_path, DOCUMENTS), HashingProvider()), [tmp_path])

    def test_a_write_between_two_answers_is_an_error(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = engine.retrieve

        def answer_and_write(*arguments: Any) -> RetrievalBundle:
            bundle = answer(*arguments)
            with open_writer(engine.workspace.path) as corpus:
                fill(corpus, [document(f"new-{bundle.role_id}", ["token"])])
            return bundle

        monkeypatch.setattr(engine, "retrieve", answer_and_write)
        with engine:
            before = engine.status().corpus.documents
            found = engine.compare(
                RetrievalRequest(task="token", lexical_only=True), ["one", "two"]
            )
            after = engine.status().corpus.documents
        assert found.corpus.documents == before, "one snapshot for all roles"
        assert after == before + 2
