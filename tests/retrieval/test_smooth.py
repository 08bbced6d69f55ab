"""Step 4: a candidate's score is mixed with that of the candidates that are like it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.smooth import (
    AGREEMENT_COSINE,
    FEEDBACK_CANDIDATES,
    FEEDBACK_SHARE,
    MAX_COMPARED,
    NEIGHBOURS,
    apply_feedback,
    apply_neighbours,
    compare,
    feedback,
    nearest,
    similarities,
    smooth,
)
from support.corpora import overlay
from support.values import allowed, passage, weights

BLOTS = "ink blots on vellum pages"
TIDES = "tides rise under a full moon"
WORDS = ("rotating", "rotation", "moon")


def make_candidate(
    chunk_id: str, text: str, lexical: float = 0.0, semantic: float = 0.0
) -> Candidate:
    return allowed(passage(chunk_id, text, title=""), lexical=lexical, semantic=semantic)


_texts = st.lists(st.sampled_from("ink blot moon tide page rise 月 潮".split()), max_size=8).map(
    " ".join
)
_scores = st.floats(0, 1)
pools = st.lists(st.tuples(_texts, _scores, _scores), max_size=12).map(
    lambda drawn: [make_candidate(f"c{n}", *values) for n, values in enumerate(drawn)]
)


def scores(found: list[Candidate]) -> dict[str, tuple[float, float]]:
    return {scored.chunk_id: (scored.score.lexical, scored.score.semantic) for scored in found}


def smoothed(candidates: list[Candidate], role: Overlay | None = None) -> list[Candidate]:
    return apply_neighbours(candidates, compare(candidates, weights(role)), weights(role))


class TestNeighbours:
    def test_the_neighbours_have_a_share_of_0_4(self) -> None:
        found = smoothed(
            [
                make_candidate("a", f"{BLOTS} today", 1.0, 0.5),
                make_candidate("b", f"{BLOTS} yesterday", 0.0, 0.0),
                make_candidate("c", TIDES, 0.5, 0.5),
            ]
        )
        # a and b are each other's only neighbour: 0.6 · 0 + 0.4 · 1. But a is the first.
        assert scores(found)["a"] == (1.0, 0.5)
        assert scores(found)["b"] == pytest.approx((0.4, 0.2))
        assert scores(found)["c"] == (0.5, 0.5)

    def test_the_change_is_a_contribution(self) -> None:
        found = smoothed(
            [make_candidate("a", f"{BLOTS} now", 1.0, 0.5), make_candidate("b", f"{BLOTS} then")]
        )
        assert found[1].score.changed_by("neighbours") == pytest.approx((0.4, 0.2))
        assert found[0].score.changed_by("neighbours") == (0.0, 0.0)

    def test_copies_are_not_neighbours(self) -> None:
        found = smoothed([make_candidate("a", BLOTS, 1.0), make_candidate("b", BLOTS, 0.0)])
        assert scores(found) == {"a": (1.0, 0.0), "b": (0.0, 0.0)}

    def test_far_neighbours_have_a_small_share(self) -> None:
        filling = " ".join(f"word{n:04}x" for n in range(400))
        other_filling = " ".join(f"{n:04}other" for n in range(400))
        found = smoothed(
            [
                make_candidate("a", f"moon {filling}", 1.0),
                make_candidate("b", f"moon {other_filling}", 0.0),
            ]
        )
        assert 0 < scores(found)["b"][0] < 0.05

    def test_the_best_by_the_overlays_own_weights_take_part(self) -> None:
        role = overlay(
            retrieval_policy={
                "lexical_weight": 0.0,
                "semantic_weight": 0.6,
                "metadata_weight": 0.2,
                "rerank_weight": 0.2,
            }
        )
        candidates = [
            make_candidate(f"c{n:03}", f"{BLOTS} {n}", 1.0, n / 200)
            for n in range(MAX_COMPARED + 1)
        ]
        found = smoothed(candidates, role)
        assert found[0] == candidates[0]
        assert found[-1] == candidates[-1]
        assert all(scored.score.changed_by("neighbours") != (0.0, 0.0) for scored in found[1:-1])

    def test_the_first_candidate_is_first_by_the_lanes_whatever_the_role_prefers(self) -> None:
        candidates = [
            make_candidate("a", f"{BLOTS} now", 1.0, 0.5),
            make_candidate("b", f"{BLOTS} then", 0.9, 0.5),
        ]
        found = smoothed([candidates[0], candidates[1]._replace(metadata_score=5.0)])
        assert found[0].score.lexical == 1.0
        assert found[1].score.lexical == pytest.approx(0.94)

    @given(pools)
    def test_nothing_vanishes_and_the_input_order_does_not_matter(
        self, candidates: list[Candidate]
    ) -> None:
        shuffled = random.Random(7).sample(candidates, len(candidates))
        found = smoothed(candidates)
        assert [scored.passage for scored in found] == [scored.passage for scored in candidates]
        assert scores(smoothed(shuffled)) == scores(found)
        assert all(0 <= score <= 1 for pair in scores(found).values() for score in pair)


def near(*passages: Passage) -> list[list[int]]:
    return [[position for _, position in found] for found in nearest(similarities(passages))]


class TestNearest:
    def test_words_are_compared_by_their_prefixes(self) -> None:
        passages = [passage(name, text, title="") for name, text in zip("abc", WORDS, strict=True)]
        assert near(*passages)[:2] == [[1], [0]]

    def test_a_script_without_spaces_counts_by_pairs(self) -> None:
        passages = [
            passage("a", "令牌轮换策略说明", title="甲"),
            passage("b", "请问令牌轮换是什么", title="乙"),
            passage("c", "潮汐表", title="丙"),
        ]
        assert near(*passages) == [[1], [0], []]

    def test_the_number_is_bounded_and_ties_keep_their_order(self) -> None:
        passages = [passage(f"c{n}", f"ink {n}0000{n}", title="") for n in range(9)]
        assert near(*passages)[8] == list(range(NEIGHBOURS))

    def test_text_without_a_word(self) -> None:
        passages = [passage("a", "!?", title=""), passage("b", "\x00", title="")]
        assert near(*passages) == [[], []]


def after_feedback(candidates: list[Candidate]) -> dict[str, tuple[float, float]]:
    found = apply_feedback(candidates, compare(candidates, weights()), weights())
    assert [scored.passage for scored in found] == [scored.passage for scored in candidates]
    return scores(found)


class TestApplyFeedback:
    def test_a_candidate_like_the_first_passes_others(self) -> None:
        texts = ["ink blots on vellum", "ink blots on linen", "ink blots on paper"]
        candidates = [make_candidate(f"c{n}", text, 1.0 - n / 10) for n, text in enumerate(texts)]
        # Twelve that are first enough, so that the last two are judged and do not judge.
        candidates += [
            make_candidate(f"d{n}", f"ink blots no {n}0", 0.6) for n in range(FEEDBACK_CANDIDATES)
        ]
        candidates += [
            make_candidate("x", "tides and moons", 0.31),
            make_candidate("y", "ink blots at last", 0.3),
        ]
        scores = after_feedback(candidates)
        assert scores["y"] > scores["x"]
        assert scores["x"][0] < 0.31

    def test_the_first_stays_first(self) -> None:
        candidates = [make_candidate("a", "tides and moons", 1.0)]
        candidates += [
            make_candidate(f"b{n}", f"ink blots no {n}0", 0.99) for n in range(FEEDBACK_CANDIDATES)
        ]
        scores = after_feedback(candidates)
        assert max(scores, key=lambda name: scores[name]) == "a"
        assert scores["a"][0] == pytest.approx(1.0)

    def test_first_candidates_without_agreement_change_nothing(self) -> None:
        candidates = [make_candidate(f"c{n}", f"{n}word {n}thing", 1.0 - n / 10) for n in range(5)]
        assert after_feedback(candidates) == {
            scored.passage.chunk_id: (scored.score.lexical, 0.0) for scored in candidates
        }

    @given(pools)
    def test_scores_stay_in_range_and_the_input_order_does_not_matter(
        self, pool: list[Candidate]
    ) -> None:
        def smoothed_with_feedback(candidates: list[Candidate]) -> dict[str, tuple[float, float]]:
            return scores(smooth(candidates, compare(candidates, weights()), weights()))

        found = smoothed_with_feedback(pool)
        assert smoothed_with_feedback(random.Random(7).sample(pool, len(pool))) == found
        assert all(0 <= score <= 1 for pair in found.values() for score in pair)


class TestFeedback:
    def test_the_formula(self) -> None:
        cosines = np.array([[0.0, 0.4, 0.2], [0.4, 0.0, 0.1], [0.2, 0.1, 0.0]])
        scores, share = feedback(cosines, [0, 1])
        # The first two say 1 and 1/log2(3); each is compared with the others alone.
        second = 1 / np.log2(3)
        first, second_weight = 1 / (1 + second), second / (1 + second)
        common = [
            0.4 * second_weight / (1 - first),
            0.4 * first / (1 - second_weight),
            0.2 * first + 0.1 * second_weight,
        ]
        assert scores == pytest.approx([1.0, common[1] / 0.4, common[2] / 0.4])
        assert share == FEEDBACK_SHARE

    def test_the_share_shrinks_with_the_agreement(self) -> None:
        near = AGREEMENT_COSINE / 2
        cosines = np.array([[0.0, near], [near, 0.0]])
        assert feedback(cosines, [0, 1])[1] == pytest.approx(FEEDBACK_SHARE / 2)
        assert feedback(np.zeros((2, 2)), [0, 1]) == ([0.0, 0.0], 0.0)
