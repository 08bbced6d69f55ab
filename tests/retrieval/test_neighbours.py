"""Step 3c: a passage's score is mixed with that of the passages that are about the same."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.candidate import Filtered
from rolebundle.contracts.document import Passage
from rolebundle.retrieval.neighbours import AMONG, NEIGHBOURS, nearest, similarities, supported
from support.corpora import overlay
from support.values import filtered, passage

BLOTS = "ink blots on vellum pages"
TIDES = "tides rise under a full moon"
WORDS = ("rotating", "rotation", "moon")


def one(chunk_id: str, text: str, lexical: float = 0.0, semantic: float = 0.0) -> Filtered:
    return filtered(passage(chunk_id, text, title=""), lexical=lexical, semantic=semantic)


def scores(found: list[Filtered]) -> dict[str, tuple[float, float]]:
    candidates = [each.candidate for each in found]
    return {each.passage.chunk_id: (each.lexical, each.semantic) for each in candidates}


class TestSupported:
    def test_a_share_of_0_4_is_the_neighbours(self) -> None:
        found = supported(
            [
                one("a", f"{BLOTS} today", 1.0, 0.5),
                one("b", f"{BLOTS} yesterday", 0.0, 0.0),
                one("c", TIDES, 0.5, 0.5),
            ],
            None,
        )
        # a and b are each other's only neighbour: 0.6 · 0 + 0.4 · 1. But a is the first.
        assert scores(found)["a"] == (1.0, 0.5)
        assert scores(found)["b"] == pytest.approx((0.4, 0.2))
        assert scores(found)["c"] == (0.5, 0.5)

    def test_what_the_lanes_said_alone_is_kept(self) -> None:
        found = supported([one("a", f"{BLOTS} now", 1.0, 0.5), one("b", f"{BLOTS} then")], None)
        assert (found[1].candidate.lexical_alone, found[1].candidate.semantic_alone) == (0.0, 0.0)
        assert found[0].candidate.lexical_alone is None
        (lonely,) = supported([one("c", TIDES, 0.5)], None)
        assert lonely.candidate.lexical_alone is None

    def test_copies_are_not_neighbours(self) -> None:
        found = supported([one("a", BLOTS, 1.0), one("b", BLOTS, 0.0)], None)
        assert scores(found) == {"a": (1.0, 0.0), "b": (0.0, 0.0)}

    def test_far_neighbours_have_little_say(self) -> None:
        rest = " ".join(f"word{n:04}x" for n in range(400))
        other = " ".join(f"{n:04}other" for n in range(400))
        found = supported([one("a", f"moon {rest}", 1.0), one("b", f"moon {other}", 0.0)], None)
        assert 0 < scores(found)["b"][0] < 0.05

    def test_with_rrf_nothing_is_changed(self) -> None:
        ones = [one("a", f"{BLOTS} now", 1.0), one("b", f"{BLOTS} then", 0.0)]
        assert supported(ones, None, "rrf") == ones

    def test_the_best_by_the_overlays_own_weights_take_part(self) -> None:
        role = overlay(
            retrieval_policy={
                "lexical_weight": 0.0,
                "semantic_weight": 0.6,
                "metadata_weight": 0.2,
                "rerank_weight": 0.2,
            }
        )
        ones = [one(f"c{n:03}", f"{BLOTS} {n}", 1.0, n / 200) for n in range(AMONG + 1)]
        found = supported(ones, role)
        assert found[0] == ones[0]
        assert found[-1] == ones[-1]
        assert all(each.candidate.lexical_alone == 1.0 for each in found[1:-1])

    def test_the_first_of_all_is_so_by_metadata_too(self) -> None:
        ones = [one("a", f"{BLOTS} now", 1.0, 0.5), one("b", f"{BLOTS} then", 0.9, 0.5)]
        found = supported([ones[0], replace(ones[1], metadata_score=5.0)], None)
        assert found[0].candidate.lexical == pytest.approx(0.96)
        assert found[1].candidate.lexical == 0.9

    @given(st.data())
    def test_nothing_vanishes_and_the_order_of_arrival_does_not_count(
        self, data: st.DataObject
    ) -> None:
        words = st.lists(st.sampled_from("ink blot moon tide page rise 月 潮".split()), max_size=8)
        texts = data.draw(st.lists(words.map(" ".join), max_size=12))
        unit = st.floats(0, 1)
        ones = [
            one(f"c{n}", text, data.draw(unit), data.draw(unit)) for n, text in enumerate(texts)
        ]
        shuffled = random.Random(7).sample(ones, len(ones))
        found = supported(ones, None)
        assert [each.candidate.passage for each in found] == [
            each.candidate.passage for each in ones
        ]
        assert scores(supported(shuffled, None)) == scores(found)
        assert all(0 <= score <= 1 for pair in scores(found).values() for score in pair)


def near(*passages: Passage) -> list[list[int]]:
    return [[position for _, position in found] for found in nearest(similarities(passages))]


class TestNearest:
    def test_words_count_by_their_beginnings(self) -> None:
        ones = [passage(name, text, title="") for name, text in zip("abc", WORDS, strict=True)]
        assert near(*ones)[:2] == [[1], [0]]

    def test_a_script_without_spaces_counts_by_pairs(self) -> None:
        ones = [
            passage("a", "令牌轮换策略说明", title="甲"),
            passage("b", "请问令牌轮换是什么", title="乙"),
            passage("c", "潮汐表", title="丙"),
        ]
        assert near(*ones) == [[1], [0], []]

    def test_so_many_at_most_and_ties_in_their_order(self) -> None:
        ones = [passage(f"c{n}", f"ink {n}0000{n}", title="") for n in range(9)]
        assert near(*ones)[8] == list(range(NEIGHBOURS))

    def test_text_without_a_word(self) -> None:
        ones = [passage("a", "!?", title=""), passage("b", "\x00", title="")]
        assert near(*ones) == [[], []]
