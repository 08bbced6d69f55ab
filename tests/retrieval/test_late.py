"""Step 3c: the best candidates are scored again in context, and only they."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.candidate import Filtered
from rolebundle.retrieval.late import DEPTH, MARGIN, SHARE, rescored
from rolebundle.retrieval.rerank import best_by_lanes, lane_weights
from support.corpora import overlay
from support.values import filtered, passage

FUSIONS = st.sampled_from(["weighted", "rrf"])


def one(name: str, lexical: float, semantic: float) -> Filtered:
    return filtered(passage(name), lexical=lexical, semantic=semantic, cosine=0.5)


def semantics(found: list[Filtered]) -> dict[str, float]:
    return {each.candidate.passage.chunk_id: each.candidate.semantic for each in found}


def lanes(each: Filtered, role: Any, fusion: Any) -> float:
    by_words, by_meaning = lane_weights(role.retrieval_policy, fusion)
    return by_words * each.candidate.lexical + by_meaning * each.candidate.semantic


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[Filtered], dict[str, float]]:
    # From a seed: drawn one by one, hardly any pool would be larger than what is scored again.
    size = draw(st.sampled_from([0, 1, 3, DEPTH + 1, DEPTH + 25]))
    chance = random.Random(draw(st.integers(0, 10**9)))
    steps = draw(st.sampled_from([1, 4, 10**6]))  # Few steps make ties.

    def some() -> float:
        return chance.randint(0, steps) / steps

    pool = [one(f"c{n:03}", some(), some()) for n in range(size)]
    names = [each.candidate.passage.chunk_id for each in pool if chance.random() < 0.9]
    return pool, {name: 2 * some() - 1 for name in names}


@st.composite
def roles(draw: st.DrawFn) -> Any:
    words = draw(st.sampled_from([0.0, 0.1, 0.3, 0.6]))
    return overlay(
        retrieval_policy={
            "lexical_weight": words,
            "semantic_weight": 0.6 - words,
            "metadata_weight": 0.2,
            "rerank_weight": 0.2,
        }
    )


class TestRescored:
    def test_a_worked_example(self) -> None:
        pool = [one("a", 0.5, 1.0), one("b", 0.5, 0.8), one("c", 0.5, 0.6)]
        found = rescored(pool, {"a": 0.2, "b": 0.7, "c": 0.45}, None, share=0.5)
        # By minimum and maximum a has 0 in context, b 1 and c 0.5.
        assert semantics(found) == pytest.approx({"a": 0.5, "b": 0.9, "c": 0.55})
        assert [each.candidate.contextual for each in found] == [0.2, 0.7, 0.45]
        assert [each.candidate.contextual_score for each in found] == pytest.approx([0, 1, 0.5])
        assert [each.candidate.semantic_before for each in found] == [1.0, 0.8, 0.6]

    def test_what_has_no_cosine_keeps_its_score(self) -> None:
        pool = [one("a", 0.5, 0.9), one("b", 0.5, 0.8), one("c", 0.5, 0.1)]
        found = rescored(pool, {"a": 0.2, "c": 0.7}, None)
        assert semantics(found)["b"] == 0.8
        assert found[1].candidate.contextual is None
        assert rescored(pool, {}, None) == pool

    def test_equal_cosines_are_all_the_best(self) -> None:
        found = rescored([one("a", 0.5, 0.5), one("b", 0.5, 0.5)], {"a": 0.3, "b": 0.3}, None)
        assert semantics(found) == pytest.approx({"a": 0.5 + SHARE * 0.5, "b": 0.5 + SHARE * 0.5})

    def test_without_meanings_the_context_is_the_whole_term(self) -> None:
        found = rescored([one("a", 0.5, 0.0), one("b", 0.4, 0.0)], {"a": 0.1, "b": 0.3}, None)
        assert semantics(found) == pytest.approx({"a": 0.0, "b": SHARE})

    @given(pools(), roles(), FUSIONS)
    def test_nobody_jumps_over_the_best_because_of_their_scale(
        self, drawn: tuple[list[Filtered], dict[str, float]], role: Any, fusion: Any
    ) -> None:
        pool, cosines = drawn
        best = {
            each.candidate.passage.chunk_id for each in best_by_lanes(pool, role, fusion, DEPTH)
        }
        assert len(best) == min(DEPTH, len(pool))
        after = {
            each.candidate.passage.chunk_id: each for each in rescored(pool, cosines, role, fusion)
        }
        assert [*after] == [each.candidate.passage.chunk_id for each in pool]
        others = [after[name] for name in after if name not in best]
        assert all(each in pool for each in others), "an other one was changed"
        bound = max((lanes(each, role, fusion) for each in others), default=0.0)
        for name in best:
            assert lanes(after[name], role, fusion) >= bound - 1e-12
            assert 0 <= after[name].candidate.semantic <= 1
            assert after[name].candidate.lexical == next(
                each.candidate.lexical for each in pool if each.candidate.passage.chunk_id == name
            )

    @given(pools(), roles(), FUSIONS)
    def test_the_order_among_the_best_is_that_of_the_mix(
        self, drawn: tuple[list[Filtered], dict[str, float]], role: Any, fusion: Any
    ) -> None:
        pool, cosines = drawn
        best = best_by_lanes(pool, role, fusion, DEPTH)
        alone = {e.candidate.passage.chunk_id: e for e in rescored(best, cosines, role, fusion)}
        among = {e.candidate.passage.chunk_id: e for e in rescored(pool, cosines, role, fusion)}
        # One that is lifted as far as a semantic score goes is as near as can be.
        names = [name for name in alone if among[name].candidate.semantic < 1]
        names.sort(key=lambda name: lanes(alone[name], role, fusion))
        for lower, upper in pairwise(names):
            below, above = lanes(among[lower], role, fusion), lanes(among[upper], role, fusion)
            assert below <= above + MARGIN
            apart = lanes(alone[upper], role, fusion) - lanes(alone[lower], role, fusion)
            assert below < above or apart < 1e-6

    @given(pools(), FUSIONS, st.randoms(use_true_random=False))
    def test_the_order_of_the_candidates_does_not_matter(
        self,
        drawn: tuple[list[Filtered], dict[str, float]],
        fusion: Any,
        chance: random.Random,
    ) -> None:
        pool, cosines = drawn
        shuffled = pool[:]
        chance.shuffle(shuffled)
        mixed = dict(chance.sample(sorted(cosines.items()), len(cosines)))
        one_way, other_way = (
            rescored(pool, cosines, None, fusion),
            rescored(shuffled, mixed, None, fusion),
        )
        assert semantics(one_way) == semantics(other_way)
