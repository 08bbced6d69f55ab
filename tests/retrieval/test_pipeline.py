"""The pipeline on real corpus files: lanes, refills, limits and their report in the bundle."""

from __future__ import annotations

from pathlib import Path

from rolebundle.retrieval.lanes import MAX_DEPTH, POOL_DEPTH
from support.corpora import ask, built, document, overlay
from support.fake_embedder import HashingProvider

PROVIDER = HashingProvider()
FORBIDS = overlay(
    source_policy={"forbidden_sources": [{"pattern": "blog", "reason": "hearsay"}]},
    retrieval_policy={"min_score": 0.0},
)


def ids(bundle: object) -> list[str]:
    return [passage.chunk_id for passage in bundle.selected]  # type: ignore[attr-defined]


class TestLanes:
    DOCUMENTS = (
        document("both", ["token rotation plan"]),
        document("meaning", ["rotation rotation"]),
        document("neither", ["bread butter jam"]),
    )

    def test_hybrid_scores_each_candidate_in_both_lanes(self, tmp_path: Path) -> None:
        role = overlay(retrieval_policy={"min_score": 0.0})
        with built(tmp_path, self.DOCUMENTS, PROVIDER) as corpus:
            bundle = ask(corpus, role, PROVIDER, task="token")
        assert {*ids(bundle)} == {"both#0", "meaning#0", "neither#0"}
        raw = {chunk.chunk_id: chunk.raw for chunk in bundle.selected}
        assert all(
            raw_score is not None and raw_score.cosine is not None for raw_score in raw.values()
        )
        assert raw["both#0"].bm25 > 0  # type: ignore[union-attr,operator]
        assert raw["meaning#0"].bm25 is None  # type: ignore[union-attr]


class TestRefills:
    def crowd(self, **metadata: object) -> list[object]:
        texts = [f"token token token x{n}" for n in range(POOL_DEPTH + 20)]
        return [document("crowd", texts, **metadata), document("wanted", ["one token of many"])]

    def test_the_refill_searches_only_allowed_documents(self, tmp_path: Path) -> None:
        with built(tmp_path, self.crowd(source_id="blog")) as corpus:
            bundle = ask(corpus, FORBIDS, task="token", limit=3)
        assert ids(bundle) == ["wanted#0"]
        assert bundle.diagnostics.refills == 1
        assert bundle.diagnostics.dropped_forbidden_count == POOL_DEPTH
        assert bundle.rejected[0].notes == "blog: hearsay"

    def test_copies_take_no_place(self, tmp_path: Path) -> None:
        # More copies than a lane proposes at first: they leave as duplicates, and the passages
        # behind them are looked for.
        copies = document("copies", ["token token"] * (POOL_DEPTH + 20))
        wanted = document("wanted", [f"{'filler ' * 90} token y{n}" for n in (1, 2)])
        with built(tmp_path, [copies, wanted]) as corpus:
            bundle = ask(corpus, FORBIDS, task="token", limit=4)
        assert ids(bundle)[1:] == ["wanted#0", "wanted#1"]
        assert ids(bundle)[0].startswith("copies")

    def test_what_a_hard_limit_leaves_out_takes_no_place(self, tmp_path: Path) -> None:
        role = overlay(retrieval_policy={"diversity": "hard", "max_chunks_per_source": 2})
        wanted = document("wanted", [f"{'filler ' * 90} token"], source_id="other")
        with built(tmp_path, [*self.crowd()[:1], wanted]) as corpus:
            bundle = ask(corpus, role, task="token", limit=5)
        assert [passage.source_id for passage in bundle.selected] == ["wiki", "wiki", "other"]

    def test_the_depth_grows_with_the_limit_and_has_a_bound(self, tmp_path: Path) -> None:
        assert (POOL_DEPTH, MAX_DEPTH) == (100, 4096)
        texts = [f"token x{n}" for n in range(300)]
        with built(tmp_path, [document("many", texts)]) as corpus:
            bundle = ask(corpus, FORBIDS, task="token", limit=200)
        assert len(bundle.selected) == 200
        assert bundle.diagnostics.candidate_pool_size == 300
