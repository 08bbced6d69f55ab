"""Step 3d: what the first passages have in common lifts the others that have it, too."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.candidate import Filtered
from rolebundle.retrieval.feedback import AGREE, FIRST, SHARE, agreeing, feedback
from rolebundle.retrieval.neighbours import circle, supported
from support.values import filtered, passage


def one(chunk_id: str, text: str, lexical: float, semantic: float = 0.0) -> Filtered:
    return filtered(passage(chunk_id, text, title=""), lexical=lexical, semantic=semantic)


def fed(ones: list[Filtered]) -> dict[str, tuple[float, float]]:
    found = agreeing(ones, circle(ones, None), None)
    assert [each.candidate.passage for each in found] == [each.candidate.passage for each in ones]
    return {
        each.candidate.passage.chunk_id: (each.candidate.lexical, each.candidate.semantic)
        for each in found
    }


class TestAgreeing:
    def test_what_is_like_the_first_passes_what_is_not(self) -> None:
        texts = ["ink blots on vellum", "ink blots on linen", "ink blots on paper"]
        ones = [one(f"c{n}", text, 1.0 - n / 10) for n, text in enumerate(texts)]
        # Twelve that are first enough, so that the last two are judged and do not judge.
        ones += [one(f"d{n}", f"ink blots no {n}0", 0.6) for n in range(FIRST)]
        ones += [one("x", "tides and moons", 0.31), one("y", "ink blots at last", 0.3)]
        scores = fed(ones)
        assert scores["y"] > scores["x"]
        assert scores["x"][0] < 0.31

    def test_the_first_stays_first(self) -> None:
        ones = [one("a", "tides and moons", 1.0)]
        ones += [one(f"b{n}", f"ink blots no {n}0", 0.99) for n in range(FIRST)]
        scores = fed(ones)
        assert max(scores, key=lambda name: scores[name]) == "a"
        assert scores["a"][0] == pytest.approx(1.0)

    def test_first_results_that_disagree_tell_nothing(self) -> None:
        ones = [one(f"c{n}", f"{n}word {n}thing", 1.0 - n / 10) for n in range(5)]
        assert fed(ones) == {
            each.candidate.passage.chunk_id: (each.candidate.lexical, 0.0) for each in ones
        }

    def test_with_rrf_nothing_is_changed(self) -> None:
        ones = [one("a", "ink blots", 1.0), one("b", "ink stains", 0.5)]
        assert agreeing(ones, circle(ones, None), None, "rrf") == ones

    @given(st.data())
    def test_scores_stay_in_range_and_the_order_of_arrival_does_not_count(
        self, data: st.DataObject
    ) -> None:
        words = st.lists(st.sampled_from("ink blot moon tide page rise 月 潮".split()), max_size=8)
        texts = data.draw(st.lists(words.map(" ".join), max_size=12))
        unit = st.floats(0, 1)
        ones = [
            one(f"c{n}", text, data.draw(unit), data.draw(unit)) for n, text in enumerate(texts)
        ]

        def both(candidates: list[Filtered]) -> dict[str, tuple[float, float]]:
            among = circle(candidates, None)
            found = agreeing(supported(candidates, None, "weighted", among), among, None)
            return {
                each.candidate.passage.chunk_id: (each.candidate.lexical, each.candidate.semantic)
                for each in found
            }

        found = both(ones)
        assert both(random.Random(7).sample(ones, len(ones))) == found
        assert all(0 <= score <= 1 for pair in found.values() for score in pair)


class TestFeedback:
    def test_the_formula(self) -> None:
        cosines = np.array([[0.0, 0.4, 0.2], [0.4, 0.0, 0.1], [0.2, 0.1, 0.0]])
        scores, share = feedback(cosines, [0, 1])
        # The first two say 1 and 1/log2(3); each is compared with the others alone.
        second = 1 / np.log2(3)
        first, other = 1 / (1 + second), second / (1 + second)
        common = [0.4 * other / (1 - first), 0.4 * first / (1 - other), 0.2 * first + 0.1 * other]
        assert scores == pytest.approx([1.0, common[1] / 0.4, common[2] / 0.4])
        assert share == SHARE

    def test_the_share_shrinks_with_the_agreement(self) -> None:
        near = AGREE / 2
        cosines = np.array([[0.0, near], [near, 0.0]])
        assert feedback(cosines, [0, 1])[1] == pytest.approx(SHARE / 2)
        assert feedback(np.zeros((2, 2)), [0, 1]) == ([0.0, 0.0], 0.0)
