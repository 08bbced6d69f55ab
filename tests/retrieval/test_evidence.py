"""How much of the task the visible corpus has, on an absolute scale."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.index import Noise
from rolebundle.retrieval.evidence import (
    ANSWERED_SPECIFICITY,
    BEST_BY_MEANING,
    BEST_BY_WORDS,
    HALF_SPECIFIC,
    HAS_WORDS,
    IS_CLOSE,
    MAX_ROLE_FACTOR,
    Evidence,
    Support,
    TaskWords,
    best_passages,
    weigh_evidence,
)
from support.values import NOISE, evidence

MANY = 1000


class TestWeights:
    WORDS = TaskWords(frequencies=(1, 10, 100, 0), chunks=100)

    @pytest.mark.parametrize(
        ("position", "weight"),
        [
            (0, 4.61512),  # ln(1 + 100 / 1)
            (1, 2.39790),  # ln(1 + 100 / 10)
            (2, 0.69315),  # ln(1 + 100 / 100): a word that every chunk has
            (3, 4.61512),  # A word that no chunk has weighs as much as a word of one chunk.
        ],
    )
    def test_ln_of_1_plus_chunks_by_frequency(self, position: int, weight: float) -> None:
        assert self.WORDS.weight([position]) == pytest.approx(weight, abs=1e-5)

    def test_the_total_is_of_all_words_and_the_unit_of_one_that_one_chunk_has(self) -> None:
        assert self.WORDS.total == pytest.approx(2 * 4.61512 + 2.39790 + 0.69315, abs=1e-4)
        assert self.WORDS.unit == self.WORDS.weight([0])
        assert TaskWords().total == TaskWords(frequencies=(0,), chunks=0).total == 0


class TestCloseness:
    @pytest.mark.parametrize(
        ("cosine", "closeness"),
        [(-1.0, 0.0), (0.2, 0.0), (0.3, 0.25), (0.5, 0.75), (0.6, 1.0), (1.0, 1.0)],
    )
    def test_between_the_noise_and_related_texts(self, cosine: float, closeness: float) -> None:
        assert Noise(floor=0.2, related=0.6).closeness(cosine) == pytest.approx(closeness)

    def test_a_model_that_does_not_separate_them(self) -> None:
        assert Noise(0.5, 0.5).closeness(0.5) == 0.0
        assert Noise(0.5, 0.5).closeness(0.6) == 1.0

    def test_a_passage_without_a_cosine_is_not_close(self) -> None:
        assert evidence({1: {0}}, cosines={2: 0.6}).support(1).closeness == 0.0
        assert evidence({1: {0}}, cosines=None).support(1).closeness is None


class TestSupport:
    def test_coverage_is_the_share_of_the_words_by_weight(self) -> None:
        found = evidence({1: {0}, 2: {1}, 3: set()}, frequencies=(1, 10), chunks=100)
        # 4.61512 / (4.61512 + 2.39790)
        assert found.support(1) == Support(1, 2, pytest.approx(0.65808, abs=1e-5), None)
        assert found.support(2).coverage == pytest.approx(0.34192, abs=1e-5)
        assert found.support(3) == Support(0, 2, 0.0, None)

    def test_strength_is_the_mean_of_coverage_and_closeness(self) -> None:
        assert Support(1, 2, 0.5, 0.8).strength == pytest.approx(0.65)
        assert Support(1, 2, 0.5, 0.0).strength == pytest.approx(0.25)
        assert Support(1, 2, 0.5, None).strength == 0.5

    @pytest.mark.parametrize(
        ("coverage", "closeness", "is_for_task"),
        [
            (HAS_WORDS, 0.0, True),
            (HAS_WORDS, None, True),
            (0.0, IS_CLOSE, True),
            (HAS_WORDS - 0.01, IS_CLOSE - 0.01, False),
            (HAS_WORDS - 0.01, None, False),
        ],
    )
    def test_words_or_meaning_make_a_passage_evidence(
        self, coverage: float, closeness: float | None, is_for_task: bool
    ) -> None:
        assert Support(1, 4, coverage, closeness).is_for_task == is_for_task


class TestTheBest:
    def test_those_with_the_best_scores_of_either_lane_decide(self) -> None:
        bm25 = {row: 100.0 - row for row in range(50)}
        cosines = {row: row / 100 for row in range(50)}
        expected = [*range(BEST_BY_WORDS), *range(49, 49 - BEST_BY_MEANING, -1)]
        assert best_passages(bm25, cosines) == expected

    def test_ties_go_to_the_one_that_comes_first(self) -> None:
        same = dict.fromkeys(range(50, 0, -1), 1.0)
        assert best_passages(same, {}) == [*range(50, 50 - BEST_BY_WORDS, -1)]

    def test_the_strongest_passage_is_the_best(self) -> None:
        found = evidence({1: {0}, 2: {0, 1}, 3: set()}, cosines={1: 0.3, 2: 0.2, 3: 0.6})
        # (0.5 + 0.25) / 2, (1 + 0) / 2 and (0 + 1) / 2: of equals the lower rowid.
        assert found.best == found.support(2)
        assert found.best.strength == pytest.approx(0.5)

    def test_words_of_different_passages_do_not_add_up(self) -> None:
        apart = evidence({1: {0}, 2: {1}})
        together = evidence({1: {0, 1}, 2: set()})
        assert (apart.best.coverage, together.best.coverage) == (0.5, 1.0)


class TestSpecificity:
    def of(self, *matches: set[int]) -> float:
        found = evidence(dict(enumerate(matches)), frequencies=(1, 1), chunks=9)
        return found.specificity

    def test_what_the_best_has_more_than_the_twelve_best_on_average(self) -> None:
        # A word weighs ln 10 = 2.302585.
        assert self.of({0, 1}) == pytest.approx(2 * 2.302585 * 11 / 12, abs=1e-5)
        assert self.of({0, 1}, {0}) == pytest.approx(2.302585 * (2 - 3 / 12), abs=1e-5)

    def test_it_is_0_if_all_have_the_same_or_none_has_a_word(self) -> None:
        for chunks in range(BEST_BY_WORDS, 99):
            same = {row: {0} for row in range(BEST_BY_WORDS + 5)}
            assert 0 <= evidence(same, chunks=chunks).specificity < 1e-12
        assert self.of() == 0

    def test_nearness_does_not_count(self) -> None:
        near = evidence({1: {0}}, cosines={1: 0.9, 2: 0.1})
        assert near.specificity == evidence({1: {0}}).specificity


# Four words, one of which a passage has: 3 of 4 are missing.
RARE: dict[str, Any] = {"frequencies": (1, 1, 1, 1), "chunks": MANY}


class TestTheTask:
    def test_with_all_of_its_words_it_is_supported(self) -> None:
        assert evidence({1: {0, 1, 2, 3}}, **RARE).task == "supported"
        assert evidence({1: {0, 1, 2, 3}}, cosines={1: 0.4}, **RARE).task == "supported"

    def test_without_its_words_it_is_off_topic(self) -> None:
        assert evidence({}, **RARE).task == "off_topic"
        assert evidence({}, cosines={1: 0.1}, **RARE).task == "off_topic"

    def test_if_a_passage_is_close_in_meaning_it_is_not_off_topic(self) -> None:
        assert evidence({}, cosines={1: 0.6}, **RARE).task == "weak"
        assert evidence({1: {0, 1}}, cosines={1: 0.6}, **RARE).task == "supported"

    @pytest.mark.parametrize(
        ("frequencies", "confidence", "task"),
        [((0, 0), 0.1, "off_topic"), ((0, 0), 0.2, "weak"), ((0, 1), 0.1, "weak")],
    )
    def test_closeness_says_nothing_of_words_that_neither_the_corpus_nor_the_model_knows(
        self, frequencies: tuple[int, ...], confidence: float, task: str
    ) -> None:
        words = TaskWords(frequencies, MANY)
        assert weigh_evidence({}, {1: 0.6}, words, NOISE, confidence).task == task

    @pytest.mark.parametrize(("closeness", "task"), [(0.65, "weak"), (0.64, "off_topic")])
    def test_how_close_a_passage_must_be_if_all_words_are_missing(
        self, closeness: float, task: str
    ) -> None:
        # It lacks 8 · (0.55 − closeness / 2) words, which is more than 1.8.
        found = evidence({}, cosines={}, frequencies=(0,) * 8, chunks=MANY)
        near = Support(0, 8, 0.0, closeness)
        assert found._replace(best=near, best_by_topic=near).task == task

    @pytest.mark.parametrize("missing", [8, 40])
    def test_a_long_task_lacks_no_more_than_one_of_eight_words(self, missing: int) -> None:
        # At strength 0.5 it lacks 8 · 0.05 = 0.4 words, however long it is.
        words = {"frequencies": (1,) * missing + (0,) * missing, "chunks": MANY}
        half = evidence({1: set(range(missing))}, cosines={1: 0.4}, **words)
        assert half.best.strength == pytest.approx(0.5)
        assert half.task == "weak"

    def test_what_it_lacks_of_half_of_its_words_decides(self) -> None:
        # It has 1 of n words and nothing is close: strength 1 / 2n, it lacks n · (0.55 − 1/2n)
        # = 0.55 n − 1/2 words, and more than 0.7 of a word is too much.
        for words, task in ((1, "weak"), (2, "weak"), (3, "off_topic"), (9, "off_topic")):
            found = evidence({1: {0}}, frequencies=(1,) * words, cosines={}, chunks=MANY)
            assert found.task == task, words

    def test_common_words_are_no_reason(self) -> None:
        # It is vague and not off-topic: what it lacks weighs little.
        common: dict[str, Any] = {"frequencies": (MANY // 2, MANY, MANY // 3), "chunks": MANY}
        assert evidence({1: {1}}, cosines={1: 0.2}, **common).task == "weak"
        assert evidence({1: {0, 1}}, **common).task == "supported"

    def test_without_meanings_coverage_alone_decides(self) -> None:
        # 1 of 7 words is 0.143, of 6 is 0.167, of 4 is 0.25, of 3 is 0.333.
        states = {7: "off_topic", 6: "weak", 4: "weak", 3: "supported"}
        for words, task in states.items():
            found = evidence({1: {0}}, frequencies=(1,) * words, chunks=MANY)
            assert found.task == task, words

    @pytest.mark.parametrize(
        ("coverage", "task"), [(0.149, "off_topic"), (0.15, "weak"), (0.3, "supported")]
    )
    def test_without_meanings_a_threshold_belongs_to_the_better_state(
        self, coverage: float, task: str
    ) -> None:
        found = evidence({}, **RARE)
        assert found._replace(best=Support(1, 4, coverage, None)).task == task

    def test_general_words_do_not_make_a_task_off_topic(self) -> None:
        task: Any = {"frequencies": (8, 3, 9), "chunks": MANY, "cosines": {1: 0.1}}
        assert evidence({1: {0}}, **task).task == "off_topic"
        assert evidence({1: {0}}, general={1}, **task).task == "weak"

    def test_general_words_that_occur_do_not_make_a_task_on_topic(self) -> None:
        task: Any = {"frequencies": (2, 2, 0, 0, 0), "chunks": MANY, "cosines": {1: 0.1}}
        passages = {1: {0, 1}}
        assert evidence(passages, general={0, 1}, **task).best_by_topic.coverage == 0
        assert evidence(passages, general={0, 1}, **task).task == "off_topic"

    def test_general_words_count_for_how_specific_a_task_is(self) -> None:
        task: Any = {"frequencies": (1, 9), "chunks": MANY, "cosines": {1: 0.1}}
        plain, marked = (evidence({1: {0}}, general=words, **task) for words in ((), {0}))
        assert plain.specificity == marked.specificity > 0
        assert plain.best == marked.best

    @pytest.mark.parametrize("cosines", [None, {1: 0.1}])
    def test_a_rare_name_that_occurs_keeps_it_from_being_off_topic(
        self, cosines: dict[int, float] | None
    ) -> None:
        rare: dict[str, Any] = {"frequencies": (2,) + (0,) * 5, "chunks": MANY, "cosines": cosines}
        weak = "off_topic" if cosines else "weak"
        assert evidence({1: {0}}, **rare).task == weak
        assert evidence({1: {0}}, names={0}, **rare).task == "weak"
        assert evidence({1: {0}}, names={1}, **rare).task == weak  # It does not occur.
        common = rare | {"frequencies": (MANY // 4,) + (0,) * 5}
        assert evidence({1: {0}}, names={0}, **common).task == "off_topic"

    @pytest.mark.parametrize(("frequency", "has_name"), [(2, True), (MANY // 4, False)])
    def test_a_common_name_is_no_rare_one_whatever_else_the_passage_has(
        self, frequency: int, has_name: bool
    ) -> None:
        words = TaskWords((frequency, 1), MANY, {1: frozenset({0, 1})}, names=frozenset({0}))
        assert words.has_name == has_name

    @pytest.mark.parametrize("cosines", [None, {1: 0.1}])
    def test_one_name_of_a_long_task_may_occur_by_chance(
        self, cosines: dict[int, float] | None
    ) -> None:
        long: dict[str, Any] = {"frequencies": (2,) + (0,) * 9, "chunks": MANY, "cosines": cosines}
        assert evidence({1: {0}}, names={0}, **long).task == "off_topic"

    def test_the_words_of_further_passages_do_not_change_it(self) -> None:
        found = evidence({}, names={0}, **RARE)
        more = found._replace(words=found.words._replace(matches={7: frozenset({0, 1})}))
        assert more.support(7).matched == 2
        assert more.task == found.task == "off_topic"

    def test_a_task_without_words_or_an_empty_corpus_says_nothing(self) -> None:
        assert evidence({}, frequencies=()).task == "supported"
        assert evidence({}, frequencies=(0, 0), chunks=0).task == "supported"


class TestTheRole:
    def factor(self, specificity: float) -> float:
        return evidence()._replace(specificity=specificity).role_factor

    def test_a_vague_task_gives_the_role_2_2_times_its_share(self) -> None:
        assert self.factor(0) == MAX_ROLE_FACTOR == 2.2

    def test_a_half_specific_task_gives_it_half_of_that(self) -> None:
        assert self.factor(HALF_SPECIFIC) == pytest.approx(1.1)

    def test_a_specific_task_leaves_it_little(self) -> None:
        assert self.factor(2 * HALF_SPECIFIC) == pytest.approx(2.2 / 17)

    @given(st.floats(0, 50), st.floats(0, 50))
    def test_it_decreases(self, first: float, second: float) -> None:
        low, high = sorted((first, second))
        assert 0 < self.factor(high) <= self.factor(low) <= MAX_ROLE_FACTOR
        if high - low > 0.01 and high > 0.1:
            assert self.factor(high) < self.factor(low)

    def test_a_surely_answered_task_is_specific_although_many_passages_have_its_words(self) -> None:
        matches = {row: {0, 1} for row in range(BEST_BY_WORDS)}
        of = evidence(matches, frequencies=(12, 12), chunks=10_000, cosines={0: 1.0})
        assert of.specificity == pytest.approx(0)
        assert of.certainty == 1
        assert of.role_factor == self.factor(ANSWERED_SPECIFICITY) < MAX_ROLE_FACTOR / 2

    @pytest.mark.parametrize("frequency", [12, 9_000])
    @pytest.mark.parametrize("cosine", [1.0, -1.0, None])
    def test_a_task_is_answered_by_rare_words_and_by_meaning(
        self, frequency: int, cosine: float | None
    ) -> None:
        cosines = {} if cosine is None else {0: cosine}
        matches = {row: {0, 1} for row in range(BEST_BY_WORDS)}
        of = evidence(matches, frequencies=(frequency,) * 2, chunks=10_000, cosines=cosines)
        assert (of.certainty == 1) == (frequency == 12 and cosine == 1.0)

    @pytest.mark.parametrize("cosines", [{}, {0: -1.0}, {0: 1.0}])
    def test_a_passage_with_all_of_three_words_answers_the_task_however_close_it_is(
        self, cosines: dict[int, float]
    ) -> None:
        def certainty(words: int, matched: int) -> float:
            matches = {row: set(range(matched)) for row in range(BEST_BY_WORDS)}
            return evidence(
                matches, frequencies=(12,) * words, chunks=10_000, cosines=cosines
            ).certainty

        assert certainty(3, 3) == certainty(6, 6) == 1
        is_close = cosines == {0: 1.0}
        assert certainty(2, 2) == certainty(3, 2) == certainty(6, 5) == is_close

    def test_words_that_nothing_close_in_meaning_has_do_not_make_a_task_specific(self) -> None:
        far, near = (
            evidence({0: {0}}, frequencies=(1,), chunks=10_000, cosines={0: cosine})
            for cosine in (-1.0, 1.0)
        )
        assert far.specificity == near.specificity > HALF_SPECIFIC
        assert far.role_factor == MAX_ROLE_FACTOR > 10 * near.role_factor

    def test_a_rare_name_makes_it_specific_whatever_is_close(self) -> None:
        of = evidence({0: {0}}, frequencies=(1,), chunks=10_000, cosines={0: -1.0}, names={0})
        assert of.role_factor < 1


# -- for every corpus ----------------------------------------------------------------------------

ROWS = 20
Matches = dict[int, frozenset[int]]


@st.composite
def found(draw: st.DrawFn) -> Evidence:
    """Evidence of up to 20 passages for a task of up to 6 words."""
    chunks = draw(st.integers(0, 10_000))
    frequencies = draw(st.lists(st.integers(0, chunks), max_size=6))
    positions = st.frozensets(st.sampled_from([*range(len(frequencies))] or [0]), max_size=6)
    rows = st.integers(0, ROWS)
    matches: Matches = draw(st.dictionaries(rows, positions)) if frequencies else {}
    bm25 = draw(st.dictionaries(rows, st.floats(0.1, 30)))
    cosines = draw(st.none() | st.dictionaries(rows, st.floats(-1, 1)))
    names, general = draw(st.tuples(positions, positions)) if frequencies else (frozenset(),) * 2
    words = TaskWords(frequencies, chunks, matches, names, general)
    return weigh_evidence(bm25, cosines or {}, words, None if cosines is None else NOISE)


@given(found())
def test_strength_coverage_and_closeness_are_between_0_and_1(of: Evidence) -> None:
    for support in (of.best, *map(of.support, range(ROWS))):
        assert 0 <= support.coverage <= 1
        assert 0 <= support.strength <= 1
        assert support.closeness is None or 0 <= support.closeness <= 1
        assert 0 <= support.matched <= support.words
    assert 0 <= of.specificity <= of.words.total
    assert 0 < of.role_factor <= MAX_ROLE_FACTOR


@given(found(), st.integers(0, ROWS), st.integers(0, 5), st.data())
def test_a_further_word_never_lowers_the_strength(
    of: Evidence, row: int, word: int, data: st.DataObject
) -> None:
    words = of.words
    if word >= len(words.frequencies):
        return
    bm25 = data.draw(st.dictionaries(st.integers(0, ROWS), st.floats(0.1, 30)))
    having = words.matches.get(row, frozenset()) | {word}
    more = words._replace(matches={**words.matches, row: having})
    before = weigh_evidence(bm25, of.cosines, words, of.noise)
    after = weigh_evidence(bm25, of.cosines, more, of.noise)
    assert after.support(row).strength >= before.support(row).strength
    assert after.best.strength >= before.best.strength
    states = ["off_topic", "weak", "supported"]
    assert states.index(after.task) >= states.index(before.task)


@given(found(), st.randoms(use_true_random=False))
def test_the_order_of_words_and_passages_does_not_matter(of: Evidence, random: Any) -> None:
    words = of.words
    positions = random.sample(range(len(words.frequencies)), len(words.frequencies))
    rows = random.sample([*words.matches], len(words.matches))
    shuffled = TaskWords(
        [words.frequencies[position] for position in positions],
        words.chunks,
        {row: frozenset(map(positions.index, words.matches[row])) for row in rows},
        frozenset(map(positions.index, words.names)),
        frozenset(map(positions.index, words.general)),
    )
    # All different: of more than twelve equal scores the order decides which count.
    bm25 = {row: len(matched) + row / 100 for row, matched in words.matches.items() if matched}
    cosines = dict(random.sample([*of.cosines.items()], len(of.cosines)))
    before = weigh_evidence(bm25, of.cosines, words, of.noise)
    after = weigh_evidence(dict(reversed(bm25.items())), cosines, shuffled, of.noise)
    assert after[3:] == before[3:]  # The best, the specificity, and whether it has a name.
    assert after.task == before.task
    assert [*map(after.support, range(ROWS))] == [*map(before.support, range(ROWS))]


def test_the_weight_is_finite_for_any_corpus() -> None:
    assert math.isfinite(TaskWords((0,), 10**9).total)


def test_a_task_of_several_subjects_is_not_off_topic_if_all_its_words_occur() -> None:
    """No passage has much of it, but the corpus has each of its subjects."""
    words = TaskWords([2] * 8, 30, {rowid: frozenset([rowid, rowid + 1]) for rowid in range(4)})
    bm25, cosines = dict.fromkeys(range(4), 3.0), dict.fromkeys(range(4), 0.4)
    scale = Noise(0.2, 0.6)
    assert weigh_evidence(bm25, cosines, words, scale).task == "weak"
    absent = words._replace(frequencies=[2] * 7 + [0])
    assert weigh_evidence(bm25, cosines, absent, scale).task == "off_topic"
