"""Step 2: hits of two lanes become candidates with comparable scores."""

from __future__ import annotations

import pytest

from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval import merge as step
from rolebundle.retrieval.candidate import Candidate, LexicalHit, Pool, SemanticHit
from rolebundle.retrieval.merge import RRF_K
from support.values import passage, weights

PASSAGES: dict[int, Passage] = {
    rowid: passage(name, rowid=rowid) for rowid, name in ((1, "c1"), (2, "c2"), (3, "c3"))
}


def merge(
    lexical: list[LexicalHit],
    semantic: list[SemanticHit],
    passages: dict[int, Passage] = PASSAGES,
    fusion: Fusion = "weighted",
) -> list[Candidate]:
    pool = Pool({hit.rowid: hit for hit in lexical}, {hit.rowid: hit for hit in semantic}, passages)
    return step.merge(pool, weights(fusion=fusion))


def by_id(candidates: list[Candidate]) -> dict[str, Candidate]:
    return {candidate.passage.chunk_id: candidate for candidate in candidates}


class TestWeighted:
    def test_bm25_is_divided_by_its_maximum(self) -> None:
        found = by_id(merge([LexicalHit(1, 8.0, 0), LexicalHit(2, 2.0, 0)], []))
        assert found["c1"].score.lexical == 1.0
        assert found["c2"].score.lexical == 0.25  # 2 / 8

    def test_task_and_role_are_divided_by_their_own_maximum(self) -> None:
        hits = [LexicalHit(1, 4.0, 0.0), LexicalHit(2, 1.0, 10.0), LexicalHit(3, 0.0, 5.0)]
        found = merge(hits, [])
        # Only the task's words count in the lexical score. The role's are a part of its own terms.
        assert [candidate.score.lexical for candidate in found] == [1.0, 0.25, 0.0]
        assert [candidate.expansion for candidate in found] == [0.0, 1.0, 0.5]

    def test_cosines_are_scaled_by_minimum_and_maximum(self) -> None:
        hits = [SemanticHit(1, 0.9), SemanticHit(2, 0.5), SemanticHit(3, 0.1)]
        found = by_id(merge([], hits))
        assert [found[name].score.semantic for name in ("c1", "c2", "c3")] == pytest.approx(
            [1, 0.5, 0]
        )

    def test_equal_cosines_become_1(self) -> None:
        found = by_id(merge([], [SemanticHit(1, 0.2), SemanticHit(2, 0.2)]))
        assert found["c1"].score.semantic == found["c2"].score.semantic == 1.0

    def test_the_score_of_a_lane_that_did_not_propose_counts_fully(self) -> None:
        hits = [SemanticHit(1, 0.9, proposed=False), SemanticHit(2, 0.1)]
        found = by_id(merge([LexicalHit(1, 1.0, 0)], hits))
        assert found["c1"].score.semantic == 1.0
        assert found["c1"].lanes == ("lexical",)

    def test_what_only_the_role_proposed_does_not_move_the_scale(self) -> None:
        lexical = [LexicalHit(1, 2.0, 0.0), LexicalHit(2, 1.0, 0.0), LexicalHit(3, 0.0, 5.0)]
        semantic = [
            SemanticHit(1, 0.9),
            SemanticHit(2, 0.5, proposed=False),
            SemanticHit(3, 0.1, proposed=False),
        ]
        pool = Pool(
            {hit.rowid: hit for hit in lexical},
            {hit.rowid: hit for hit in semantic},
            PASSAGES,
            by_task={1: 2.0, 2: 1.0},
            by_role={2: 1.0, 3: 5.0},
        )
        assert [candidate.score.semantic for candidate in step.merge(pool, weights())] == [
            1.0,
            0.0,
            0.0,
        ]
        # What the semantic lane proposed, too, is there for the task.
        found = step.merge(
            pool._replace(semantic={**pool.semantic, 3: SemanticHit(3, 0.1)}), weights()
        )
        assert [candidate.score.semantic for candidate in found] == pytest.approx([1.0, 0.5, 0.0])


class TestReciprocalRanks:
    def test_a_worked_example(self) -> None:
        # k = 10; the score is (k + 1) / (k + rank), which is 1 for the first.
        lexical = [LexicalHit(1, 9.0, 0), LexicalHit(2, 5.0, 0), LexicalHit(3, 1.0, 0)]
        semantic = [SemanticHit(3, 0.9), SemanticHit(1, 0.8)]
        found = by_id(merge(lexical, semantic, fusion="rrf"))
        assert RRF_K == 10
        assert found["c1"].score.lexical == 11 / 11
        assert found["c2"].score.lexical == 11 / 12
        assert found["c3"].score.lexical == 11 / 13
        assert found["c3"].score.semantic == 11 / 11
        assert found["c1"].score.semantic == 11 / 12
        assert found["c2"].score.semantic == 0.0

    def test_only_what_a_lane_proposed_has_a_rank(self) -> None:
        lexical = [LexicalHit(1, 9.0, 0, proposed=False), LexicalHit(2, 5.0, 0)]
        found = by_id(merge(lexical, [SemanticHit(1, 0.5)], fusion="rrf"))
        assert (found["c1"].score.lexical, found["c2"].score.lexical) == (0.0, 1.0)
