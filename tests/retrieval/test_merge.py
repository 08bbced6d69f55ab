"""Step 2: hits of two lanes become candidates with comparable scores."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from rolebundle.contracts.terms import LANES, Fusion
from rolebundle.retrieval import merge as step
from rolebundle.retrieval.candidate import Candidate, Hit, Pool
from rolebundle.retrieval.merge import RRF_K
from support.values import passage, weights


def merge(
    lexical: dict[int, tuple[float, float]],
    semantic: dict[int, float],
    fusion: Fusion = "weighted",
    only_scored: Collection[tuple[str, int]] = (),
    **fields: Any,
) -> list[Candidate]:
    """The candidates of hits, by number; ``only_scored`` are those that a lane did not propose."""
    hits = {
        n: Hit(
            passage(f"c{n}", rowid=n),
            tuple(
                lane
                for lane, found in zip(LANES, (lexical, semantic), strict=True)
                if n in found and (lane, n) not in only_scored
            ),
            0,
            *lexical.get(n, (None, None)),
            semantic.get(n),
        )
        for n in lexical.keys() | semantic.keys()
    }
    return step.merge(Pool(hits, **fields), weights(fusion=fusion))


def by_id(candidates: list[Candidate]) -> dict[str, Candidate]:
    return {candidate.passage.chunk_id: candidate for candidate in candidates}


class TestWeighted:
    def test_bm25_is_divided_by_its_maximum(self) -> None:
        found = by_id(merge({1: (8.0, 0), 2: (2.0, 0)}, {}))
        assert found["c1"].lexical == 1.0
        assert found["c2"].lexical == 0.25  # 2 / 8

    def test_task_and_role_are_divided_by_their_own_maximum(self) -> None:
        hits = {1: (4.0, 0.0), 2: (1.0, 10.0), 3: (0.0, 5.0)}
        found = merge(hits, {})
        # Only the task's words count in the lexical score. The role's are a part of its own terms.
        assert [candidate.lexical for candidate in found] == [1.0, 0.25, 0.0]
        assert [candidate.expansion for candidate in found] == [0.0, 1.0, 0.5]

    def test_cosines_are_scaled_by_minimum_and_maximum(self) -> None:
        hits = {1: 0.9, 2: 0.5, 3: 0.1}
        found = by_id(merge({}, hits))
        assert [found[name].semantic for name in ("c1", "c2", "c3")] == pytest.approx([1, 0.5, 0])

    def test_equal_cosines_become_1(self) -> None:
        found = by_id(merge({}, {1: 0.2, 2: 0.2}))
        assert found["c1"].semantic == found["c2"].semantic == 1.0

    def test_the_score_of_a_lane_that_did_not_propose_counts_fully(self) -> None:
        hits = {1: 0.9, 2: 0.1}
        found = by_id(merge({1: (1.0, 0)}, hits, only_scored=[("semantic", 1)]))
        assert found["c1"].semantic == 1.0
        assert found["c1"].lanes == ("lexical",)

    def test_what_only_the_role_proposed_does_not_move_the_scale(self) -> None:
        lexical = {1: (2.0, 0.0), 2: (1.0, 0.0), 3: (0.0, 5.0)}
        semantic = {1: 0.9, 2: 0.5, 3: 0.1}
        proposed = {"by_task": {1: 2.0, 2: 1.0}, "by_role": {2: 1.0, 3: 5.0}}
        scored = [("semantic", 2), ("semantic", 3)]
        found = merge(lexical, semantic, only_scored=scored, **proposed)
        assert [candidate.semantic for candidate in found] == [1.0, 0.0, 0.0]
        # What the semantic lane proposed, too, is there for the task.
        found = merge(lexical, semantic, only_scored=scored[:1], **proposed)
        assert [candidate.semantic for candidate in found] == pytest.approx([1.0, 0.5, 0.0])


class TestReciprocalRanks:
    def test_a_worked_example(self) -> None:
        # k = 10; the score is (k + 1) / (k + rank), which is 1 for the first.
        lexical = {1: (9.0, 0), 2: (5.0, 0), 3: (1.0, 0)}
        semantic = {3: 0.9, 1: 0.8}
        found = by_id(merge(lexical, semantic, fusion="rrf"))
        assert RRF_K == 10
        assert found["c1"].lexical == 11 / 11
        assert found["c2"].lexical == 11 / 12
        assert found["c3"].lexical == 11 / 13
        assert found["c3"].semantic == 11 / 11
        assert found["c1"].semantic == 11 / 12
        assert found["c2"].semantic == 0.0

    def test_only_what_a_lane_proposed_has_a_rank(self) -> None:
        lexical = {1: (9.0, 0), 2: (5.0, 0)}
        found = by_id(merge(lexical, {1: 0.5}, "rrf", [("lexical", 1)]))
        assert (found["c1"].lexical, found["c2"].lexical) == (0.0, 1.0)
