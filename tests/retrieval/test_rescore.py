"""Step 4: only the best candidates are scored again by a model."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.retrieval import rank
from rolebundle.retrieval.candidate import Candidate, best_by_lanes
from rolebundle.retrieval.rank import CONTEXTUAL_SHARE, LIFT_MARGIN, MAX_RESCORED
from support.corpora import overlay
from support.values import candidate, passage, weights

FUSIONS = st.sampled_from(["weighted", "rrf"])


def make_candidate(name: str, lexical: float, semantic: float) -> Candidate:
    return candidate(passage(name), lexical=lexical, semantic=semantic, cosine=0.5)


def semantics(found: list[Candidate]) -> dict[str, float]:
    return {scored.chunk_id: scored.score.semantic for scored in found}


def lanes(scored: Candidate, role: Any, fusion: Any) -> float:
    return weights(role, fusion).lane_score(scored.score.lexical, scored.score.semantic)


def rescored(
    pool: list[Candidate], cosines: dict[str, float], role: Any = None, fusion: Any = "weighted"
) -> list[Candidate]:
    return rank.rescore(pool, lambda _: cosines, weights(role, fusion))


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[Candidate], dict[str, float]]:
    # From a seed: drawn one by one, hardly any pool would be larger than what is scored again.
    size = draw(st.sampled_from([0, 1, 3, MAX_RESCORED + 1, MAX_RESCORED + 25]))
    chance = random.Random(draw(st.integers(0, 10**9)))
    steps = draw(st.sampled_from([1, 4, 10**6]))  # Few steps make ties.

    def random_share() -> float:
        return chance.randint(0, steps) / steps

    pool = [make_candidate(f"c{n:03}", random_share(), random_share()) for n in range(size)]
    names = [scored.chunk_id for scored in pool if chance.random() < 0.9]
    return pool, {name: 2 * random_share() - 1 for name in names}


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
        pool = [
            make_candidate("a", 0.5, 1.0),
            make_candidate("b", 0.5, 0.8),
            make_candidate("c", 0.5, 0.6),
        ]
        found = rescored(pool, {"a": 0.2, "b": 0.7, "c": 0.45})
        # By minimum and maximum a has 0 in context, b 1 and c 0.5: 0.15 · own + 0.85 · context.
        assert semantics(found) == pytest.approx({"a": 0.15, "b": 0.97, "c": 0.515})
        assert [scored.contextual for scored in found] == [0.2, 0.7, 0.45]
        changes = [scored.score.changed_by("rerank")[1] for scored in found]
        assert changes == pytest.approx([-0.85, 0.17, -0.085])

    def test_a_candidate_without_a_cosine_keeps_its_score(self) -> None:
        pool = [
            make_candidate("a", 0.5, 0.9),
            make_candidate("b", 0.5, 0.8),
            make_candidate("c", 0.5, 0.1),
        ]
        found = rescored(pool, {"a": 0.2, "c": 0.7}, None)
        assert semantics(found)["b"] == 0.8
        assert found[1].contextual is None
        assert rescored(pool, {}, None) == pool

    def test_equal_cosines_become_1(self) -> None:
        found = rescored(
            [make_candidate("a", 0.5, 0.5), make_candidate("b", 0.5, 0.5)],
            {"a": 0.3, "b": 0.3},
            None,
        )
        assert semantics(found) == pytest.approx(
            {"a": 0.5 + CONTEXTUAL_SHARE * 0.5, "b": 0.5 + CONTEXTUAL_SHARE * 0.5}
        )

    def test_without_semantic_scores_only_the_contextual_score_counts(self) -> None:
        found = rescored(
            [make_candidate("a", 0.5, 0.0), make_candidate("b", 0.4, 0.0)],
            {"a": 0.1, "b": 0.3},
            None,
        )
        assert semantics(found) == pytest.approx({"a": 0.0, "b": CONTEXTUAL_SHARE})

    @given(pools(), roles(), FUSIONS)
    def test_the_scale_does_not_move_other_candidates_before_the_best(
        self, drawn: tuple[list[Candidate], dict[str, float]], role: Any, fusion: Any
    ) -> None:
        pool, cosines = drawn
        best = {
            scored.chunk_id for scored in best_by_lanes(pool, weights(role, fusion), MAX_RESCORED)
        }
        assert len(best) == min(MAX_RESCORED, len(pool))
        after = {scored.chunk_id: scored for scored in rescored(pool, cosines, role, fusion)}
        assert [*after] == [scored.chunk_id for scored in pool]
        unscored = [after[name] for name in after if name not in best]
        assert all(scored in pool for scored in unscored), "an other one was changed"
        bound = max((lanes(scored, role, fusion) for scored in unscored), default=0.0)
        for name in best:
            assert lanes(after[name], role, fusion) >= bound - 1e-12
            assert 0 <= after[name].score.semantic <= 1
            assert after[name].score.lexical == next(
                scored.score.lexical for scored in pool if scored.chunk_id == name
            )

    @given(pools(), roles(), FUSIONS, st.integers(1, MAX_RESCORED))
    def test_what_a_deadline_left_out_does_not_come_before_what_was_scored(
        self, drawn: tuple[list[Candidate], dict[str, float]], role: Any, fusion: Any, number: int
    ) -> None:
        pool, cosines = drawn
        best = best_by_lanes(pool, weights(role, fusion), number)
        in_time = {scored.chunk_id: cosines.get(scored.chunk_id, 0.0) for scored in best}
        after = {scored.chunk_id: scored for scored in rescored(pool, in_time, role, fusion)}
        unscored = [after[name] for name in after if name not in in_time]
        assert all(scored in pool for scored in unscored), "an other one was changed"
        bound = max((lanes(scored, role, fusion) for scored in unscored), default=0.0)
        for name in in_time:
            assert lanes(after[name], role, fusion) >= bound - 1e-12

    @given(pools(), roles(), FUSIONS)
    def test_the_order_among_the_best_is_that_of_the_mix(
        self, drawn: tuple[list[Candidate], dict[str, float]], role: Any, fusion: Any
    ) -> None:
        pool, cosines = drawn
        best = best_by_lanes(pool, weights(role, fusion), MAX_RESCORED)
        alone = {e.chunk_id: e for e in rescored(best, cosines, role, fusion)}
        among = {e.chunk_id: e for e in rescored(pool, cosines, role, fusion)}
        # One that is lifted as far as a semantic score goes is as near as can be.
        names = [name for name in alone if among[name].score.semantic < 1]
        names.sort(key=lambda name: lanes(alone[name], role, fusion))
        for lower, upper in pairwise(names):
            below, above = lanes(among[lower], role, fusion), lanes(among[upper], role, fusion)
            assert below <= above + LIFT_MARGIN
            apart = lanes(alone[upper], role, fusion) - lanes(alone[lower], role, fusion)
            assert below < above or apart < 1e-6

    @given(pools(), FUSIONS, st.randoms(use_true_random=False))
    def test_the_order_of_the_candidates_does_not_matter(
        self,
        drawn: tuple[list[Candidate], dict[str, float]],
        fusion: Any,
        chance: random.Random,
    ) -> None:
        pool, cosines = drawn
        shuffled = pool[:]
        chance.shuffle(shuffled)
        mixed = dict(chance.sample(sorted(cosines.items()), len(cosines)))
        in_order, other_way = (
            rescored(pool, cosines, None, fusion),
            rescored(shuffled, mixed, None, fusion),
        )
        assert semantics(in_order) == semantics(other_way)
