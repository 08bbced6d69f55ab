"""How much of the task the visible corpus has, on an absolute scale."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.upkeep import Noise
from rolebundle.retrieval.evidence import (
    HAS_WORDS,
    IS_CLOSE,
    Evidence,
    Support,
    TaskWords,
    weigh_evidence,
)
from support.values import NOISE, evidence

MANY = 1000


class TestWeights:
    WORDS = TaskWords(frequencies=(1, 10, 100, 0), chunks=100, rarities=(1.0, 1.0, 1.0, 0.5))

    @pytest.mark.parametrize(
        ("position", "weight"),
        [
            (0, 4.61512),  # ln(1 + 100 / 1)
            (1, 2.39790),  # ln(1 + 100 / 10)
            (2, 0.69315),  # ln(1 + 100 / 100): a word that every chunk has
            (3, 2.30756),  # Half as rare; a word that no chunk has counts as a word of one chunk.
        ],
    )
    def test_rarity_times_ln_of_1_plus_chunks_by_frequency(
        self, position: int, weight: float
    ) -> None:
        assert self.WORDS.weight([position]) == pytest.approx(weight, abs=1e-5)


class TestCloseness:
    @pytest.mark.parametrize(
        ("cosine", "closeness"),
        [(-1.0, 0.0), (0.2, 0.0), (0.3, 0.25), (0.5, 0.75), (0.6, 1.0), (1.0, 1.0)],
    )
    def test_between_the_noise_and_related_texts(self, cosine: float, closeness: float) -> None:
        assert Noise(floor=0.2, related=0.6).closeness(cosine) == pytest.approx(closeness)


class TestSupport:
    def test_coverage_is_the_share_of_the_words_by_weight(self) -> None:
        found = evidence({1: {0}, 2: {1}, 3: set()}, frequencies=(1, 10), chunks=100)
        # 4.61512 / (4.61512 + 2.39790)
        assert found.support(1) == Support(1, 2, pytest.approx(0.65808, abs=1e-5), None)
        assert found.support(2).coverage == pytest.approx(0.34192, abs=1e-5)
        assert found.support(3) == Support(0, 2, 0.0, None)

    def test_with_other_wordings_it_is_the_mean_of_those_that_have_words(self) -> None:
        own, also = frozenset({0, 1}), frozenset({2, 3})
        matches = {1: {2, 3}, 2: {0, 1, 2}}
        found = evidence(matches, (1,) * 4, wordings=(own, also, frozenset()))
        assert found.support(1).coverage == pytest.approx(0.5)
        assert found.support(2).coverage == pytest.approx(0.75)
        assert (found.support(1).matched, found.support(1).words) == (0, 2)

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


class TestSpecificity:
    def of(self, *matches: set[int]) -> float:
        return evidence(dict(enumerate(matches)), frequencies=(1, 1), chunks=9).specificity

    def test_what_the_best_has_more_than_the_twelve_best_on_average(self) -> None:
        # A word weighs ln 10 = 2.302585.
        assert self.of({0, 1}) == pytest.approx(2 * 2.302585 * 11 / 12, abs=1e-5)
        assert self.of({0, 1}, {0}) == pytest.approx(2.302585 * (2 - 3 / 12), abs=1e-5)


class TestTheTask:
    def test_with_few_of_them_it_is_weak(self) -> None:
        for cosines in (None, {1: 0.6}):
            assert evidence({1: {0}}, (1,) * 4, cosines, chunks=MANY).task == "weak"

    def test_in_a_large_corpus_more_of_them_are_needed(self) -> None:
        tasks = [evidence({1: {0}}, (1,) * 4, chunks=chunks).task for chunks in (9, 10**6)]
        assert tasks == ["supported", "weak"]

    def test_it_is_off_topic_if_no_word_occurs_and_nothing_is_close(self) -> None:
        none = (0,) * 4
        assert evidence({}, none, chunks=MANY).task == "off_topic"
        assert evidence({}, none, cosines={1: 0.1}, chunks=MANY).task == "off_topic"
        assert evidence({}, none, cosines={1: 0.6}, chunks=MANY).task == "weak"
        # Elsewhere one of them occurs.
        assert evidence({}, (0, 0, 0, 1), chunks=MANY).task == "weak"


# -- for every corpus ----------------------------------------------------------------------------

ROWS = 20


@st.composite
def found(draw: st.DrawFn) -> Evidence:
    """Evidence of up to 20 passages for a task of up to 6 words, perhaps with other wordings."""
    chunks = draw(st.integers(0, 10_000))
    frequencies = draw(st.lists(st.integers(0, chunks), max_size=6))
    positions = st.frozensets(st.sampled_from([*range(len(frequencies))]), max_size=6)
    some = positions if frequencies else st.just(frozenset[int]())
    rows = st.integers(0, ROWS)
    matches = draw(st.dictionaries(rows, some))
    bm25 = {row: 1.0 + len(matched) for row, matched in matches.items() if matched}
    cosines = draw(st.none() | st.dictionaries(rows, st.floats(-1, 1)))
    size = len(frequencies)
    rarities = draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    wordings = draw(st.lists(some, min_size=1, max_size=3))
    words = TaskWords(frequencies, chunks, matches, wordings, rarities)
    noise = None if cosines is None else NOISE
    return weigh_evidence(bm25, cosines or {}, words, noise).judged_by([*matches])


@given(found())
def test_coverage_and_closeness_are_between_0_and_1(of: Evidence) -> None:
    for support in (of.best, *map(of.support, of.words.matches)):
        assert 0 <= support.coverage <= 1
        assert support.closeness is None or 0 <= support.closeness <= 1
        assert 0 <= support.matched <= support.words
    assert 0 <= of.specificity < math.inf


@given(found(), st.data())
def test_a_further_word_never_lowers_the_evidence(of: Evidence, data: st.DataObject) -> None:
    words = of.words
    if not words.matches or not words.frequencies:
        return
    row = data.draw(st.sampled_from([*words.matches]))
    word = data.draw(st.integers(0, len(words.frequencies) - 1))
    matches = {**words.matches, row: words.matches[row] | {word}}
    after = of._replace(words=words._replace(matches=matches)).judged_by([*matches])
    assert after.support(row).coverage >= of.support(row).coverage
    states = ["off_topic", "weak", "supported"]
    assert states.index(after.task) >= states.index(of.task)
