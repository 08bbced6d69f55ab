"""`why` agrees with `retrieve` about a passage, and names the score to beat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.why import LaneTrace, Why
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.interfaces.cli.explain import text
from rolebundle.policy.overlays import list_overlays, load_role
from rolebundle.resources import demo_overlays
from rolebundle.retrieval.lanes import POOL_DEPTH
from rolebundle.retrieval.lookup import ReferenceScope
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.commands import SAMPLE
from support.corpora import ask, built, document, overlay, resolved, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import LONG

PROVIDER = HashingProvider()


def why(
    corpus: Corpus,
    reference: str,
    role: Overlay | None = None,
    provider: EmbeddingProvider | None = None,
    **fields: Any,
) -> Why:
    request = resolved(role, **fields)
    return explain(
        corpus,
        request,
        reference,
        ReferenceScope(),
        None if request.echo.lexical_only else provider,
    )


def lane(found: Why, by: str) -> LaneTrace:
    return next(lane for lane in found.lanes if lane.by == by)


def many(number: int = 15) -> list[StoredDocument]:
    # The word sinks ever deeper, so that scores differ.
    return [document("many", [f"token {'filler ' * n}number{n}" for n in range(number)])]


@pytest.fixture
def listed(tmp_path: Path) -> Iterator[Corpus]:
    with built(tmp_path, many()) as corpus:
        yield corpus


class TestPolicy:
    DOCUMENTS = (document("wiki", ["token of the day"]), document("post", ["token token"],
                 source_id="blog", updated_at="2020-01-01T00:00:00Z", excluded_roles=("reviewer",)))  # fmt: skip

    def explain(self, tmp_path: Path, **fields: Any) -> Why:
        self.role = overlay(**fields)
        with built(tmp_path, self.DOCUMENTS) as corpus:
            return why(corpus, "post#0", self.role, task="token")

    def test_a_forbidden_source(self, tmp_path: Path) -> None:
        rules = [{"pattern": "blog", "reason": "hearsay"}, {"pattern": "wi"}, {"pattern": "LOG"}]
        found = self.explain(tmp_path, source_policy={"forbidden_sources": rules}, role_id="other")
        assert (found.outcome, found.step, found.code) == (
            "rejected",
            "filter",
            "forbidden_source",
        )
        assert (found.notes, found.filter.notes) == ("blog: hearsay", "blog: hearsay")
        # What it would have been: the best.
        assert (found.score.supposed, found.score.rank, found.rank) == (True, 1, None)
        assert found.lost_to == []


class TestTheCut:
    def test_the_limit(self, listed: Corpus) -> None:
        found = why(listed, "many#12", task="token", limit=8)
        assert (found.outcome, found.step, found.code) == ("rejected", "cut", "budget_cut")
        bundle = ask(listed, None, task="token", limit=8)
        last = bundle.selected[-1]
        assert [rival.rank for rival in found.lost_to] == [6, 7, 8]
        assert found.lost_to[-1].chunk_id == last.chunk_id
        assert found.lost_to[-1].final == last.scores.final
        assert found.score.to_beat == last.scores.final > found.score.scores.final

    def test_a_low_score_behind_a_full_selection(self, listed: Corpus) -> None:
        role = overlay(retrieval_policy={"min_score": 0.33})
        found = why(listed, "many#14", role, task="token", limit=1)
        best = ask(listed, role, task="token", limit=1).selected[0].scores.final
        assert (found.code, found.score.to_beat) == ("low_score", best)

    def test_evidence_that_is_required(self, listed: Corpus) -> None:
        task = "token " + " ".join(f"unheard{letter}" for letter in "abcdefghi")
        found = why(listed, "many#3", task=task, evidence="required")
        assert (found.step, found.code) == ("cut", "low_score")
        assert why(listed, "many#3", task=task, limit=50).outcome == "selected"

    def test_a_token_budget(self, listed: Corpus) -> None:
        found = why(listed, "many#9", task="token", token_budget=20)
        last = ask(listed, None, task="token", token_budget=20).selected[-1]
        assert (found.code, found.score.to_beat) == ("budget_cut", last.scores.final)

    def test_a_duplicate(self, tmp_path: Path) -> None:
        documents = [document("a", [f"token {LONG}"]), document("b", [f"token {LONG}"])]
        with built(tmp_path, documents) as corpus:
            found = why(corpus, "b", task="token")
        assert (found.code, found.chunk_id) == ("duplicate", "b#0")
        assert [(rival.rank, rival.chunk_id) for rival in found.lost_to] == [(1, "a#0")]

    def test_a_claim_that_is_ignored(self, tmp_path: Path) -> None:
        documents = [
            document("policy", ["the token of the policy"], trust_tier="preferred"),
            document("mail", ["other"], supersedes=("policy",)),
        ]
        with built(tmp_path, documents) as corpus:
            found = why(corpus, "policy", task="token")
        assert (found.outcome, found.ignored_claims) == ("selected", ["mail"])
        line = "mail claims to supersede its document, but may not"
        assert line in text(found).splitlines()

    def test_a_superseded_document(self, tmp_path: Path) -> None:
        documents = [
            document("old", ["token token token"]),
            document("new", ["the token of today"], supersedes=("old",)),
        ]
        with built(tmp_path, documents) as corpus:
            found = why(corpus, "old#0", task="token")
        assert found.code == "conflict_downrank"
        assert [rival.chunk_id for rival in found.lost_to] == ["new#0"]


class TestNeverProposed:
    def test_a_passage_beyond_the_depth_of_the_lanes(self, tmp_path: Path) -> None:
        with built(tmp_path, many(POOL_DEPTH + 20), PROVIDER) as corpus:
            fates = [
                why(corpus, f"many#{n}", None, PROVIDER, task="token")
                for n in range(0, POOL_DEPTH + 20, 5)
            ]
        lost = [answer for answer in fates if answer.outcome == "not_proposed"]
        assert lost
        for answer in lost:
            for trace in (lane(answer, "task_words"), lane(answer, "meaning")):
                assert (trace.pool, trace.depth, trace.rank) == (POOL_DEPTH, POOL_DEPTH, None)
                assert trace.score is not None
                assert trace.least is not None
                assert trace.score <= trace.least


class TestReferences:
    @pytest.mark.parametrize("task", ["jam", "token"])
    def test_a_document_that_was_not_ranked_has_the_passage_that_would_rank_best(
        self, tmp_path: Path, task: str
    ) -> None:
        role = overlay(source_policy={"forbidden_sources": [{"pattern": "blog"}]},
                       vocabulary={"boost_phrases": ["x", "y", "z", "sweet"]})  # fmt: skip
        texts = ["butter", "jam and sweet bread", "salt"]
        with built(tmp_path, [*many(2), document("food", texts, source_id="blog")]) as corpus:
            found = why(corpus, "food", role, task=task)
        assert (found.chunk_id, found.passages) == ("food#1", 3)
        assert found.outcome == ("rejected" if task == "jam" else "not_proposed")


TASK = "What should we worry about before release 3.0, offline sync or the token refresh?"
OVERLAYS = demo_overlays()
ROLES = [entry.role_id for entry in list_overlays([OVERLAYS]) if not entry.problem]


@pytest.fixture(scope="module")
def sample() -> Iterator[Corpus]:
    with scratch_folder() as folder:
        with Admin(Workspace(folder / "sample.db", PROVIDER)) as admin:
            admin.ingest([SAMPLE])
        with open_reader(folder / "sample.db") as corpus:
            yield corpus


class TestSampleCorpus:
    """For every role `why` agrees with `retrieve` about a passage.

    By default every third role is asked about the first two selected passages, one of each
    rejection code, and every 400th of all passages, others for each role; if slow tests run, every
    role about every passage.
    """

    @pytest.mark.parametrize(
        ("role_id", "lexical_only", "step"),
        [
            (ROLES[0], True, 400),
            pytest.param(ROLES[0], True, 1, marks=pytest.mark.slow),
            *(pytest.param(role, False, 1, marks=pytest.mark.slow) for role in ROLES),
        ],
    )
    def test_why_agrees_with_retrieve(
        self, sample: Corpus, role_id: str, lexical_only: bool, step: int
    ) -> None:
        role = load_role(role_id, [OVERLAYS]).overlay
        fields = {"task": TASK, "lexical_only": lexical_only}
        bundle = ask(sample, role, PROVIDER, **fields)
        selected = {chunk.chunk_id: chunk for chunk in bundle.selected}
        expected: dict[str, tuple[object, ...]] = {
            name: ("selected", passage.rank, None, "") for name, passage in selected.items()
        }
        expected |= {
            rejection.chunk_id: ("rejected", None, rejection.reason, rejection.notes)
            for rejection in bundle.rejected
        }
        unfound = ("not_proposed", None, None, "no lane proposed it")
        outcomes = set()
        every = all_chunks(sample)
        rejected = [chunk_id for code in codes(bundle) for chunk_id in of_code(bundle, code)[:1]]
        some = every[8 * ROLES.index(role_id) % step :: step]
        chunk_ids = sorted({*list(selected)[:2], *rejected, *some})
        for chunk_id in chunk_ids:
            found = why(sample, chunk_id, role, PROVIDER, **fields)
            explanation = (found.outcome, found.rank, found.code, found.notes)
            assert explanation == expected.get(chunk_id, unfound), chunk_id
            if chunk_id in selected:
                assert found.score.scores == selected[chunk_id].scores
            assert any(lane_trace.proposed for lane_trace in found.lanes) == (chunk_id in expected)
            is_cut = found.score.code in ("low_score", "budget_cut")
            assert (found.score.to_beat is not None) == is_cut
            in_the_cut = found.outcome == "selected" or found.step == "cut"
            assert found.score.supposed == (not in_the_cut)
            outcomes.add(found.outcome)
        assert outcomes >= {"selected", "rejected"}
        assert ("not_proposed" in outcomes) == any(
            chunk_id not in expected for chunk_id in chunk_ids
        )


def codes(bundle: RetrievalBundle) -> list[str]:
    return sorted({rejection.reason for rejection in bundle.rejected})


def of_code(bundle: RetrievalBundle, code: str) -> list[str]:
    return [rejection.chunk_id for rejection in bundle.rejected if rejection.reason == code]


def all_chunks(corpus: Corpus) -> list[str]:
    return [row[0] for row in corpus.rows("SELECT chunk_id FROM chunk ORDER BY id")]
