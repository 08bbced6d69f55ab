"""The statistics of terms, against counts made by hand."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.authoring.terms import (
    characteristic_terms,
    content_stems,
    terms_named,
    without_repeats,
    words_of_passage,
)


def passages(*texts: str, first: int = 0) -> list:
    return [words_of_passage(f"d{first + n}", text) for n, text in enumerate(texts)]


COMMON = "the garden and the weather"
INSIDE = passages(*[f"{COMMON}. Ripe apple harvest in a basket"] * 6, *[COMMON] * 2)
OUTSIDE = passages(*[f"{COMMON} snow shovel"] * 40, f"{COMMON} apple", first=8)


def test_what_only_the_foreground_has_comes_first_and_as_the_longest_phrase() -> None:
    found = characteristic_terms(INSIDE, OUTSIDE)
    assert found[0].text == "ripe apple harvest"
    assert (found[0].inside, found[0].outside, found[0].documents) == (6, 0, 6)
    # Parts that the phrase explains are left out; what all passages have is no subject.
    assert {term.text for term in found} == {"ripe apple harvest", "basket"}


def test_z_is_the_log_odds_ratio_with_the_prior() -> None:
    [basket] = [term for term in characteristic_terms(INSIDE, OUTSIDE) if term.text == "basket"]
    prior = 10 * 6 / 49
    a, b = 6 + prior, prior
    difference = math.log(a / (8 + 10 - a)) - math.log(b / (41 + 10 - b))
    assert basket.z == round(difference / math.sqrt(1 / a + 1 / b), 2)


def test_stop_words_punctuation_and_code_separate_phrases() -> None:
    words = words_of_passage("d", "Read the docs/setup.md now. Backup, restore `run_all()` quickly")
    assert words.runs == (("Backup",), ("restore",), ("quickly",))


def test_a_link_has_its_words_and_not_those_of_its_target() -> None:
    text = "A [travel card](/first-travel-card/) or [ticket](https://a.example/fare-zones) (paid)"
    text += ' [fare]({% page "/first-travel-fare/" %})'
    words = words_of_passage("d", text)
    assert words.runs == (("travel", "card"), ("ticket",), ("paid",), ("fare",))


def test_a_long_line_without_spaces_is_read_once() -> None:
    # From each of its letters again, it would take hours.
    words = words_of_passage("d", f"Backup {'x1' * 200_000} quickly")
    assert words.runs == (("Backup",), ("quickly",))


def test_a_repeated_or_quoted_line_counts_once() -> None:
    texts = {
        "a": ["Copyright of the whole club\ntext 1"],
        "b": ["> Copyright of the whole club\ntext 1"],
        "c": ["Copyright of the whole club"],
    }
    assert without_repeats(texts) == {"a": texts["a"], "b": ["text 1"], "c": [""]}


def test_names_of_persons_are_no_terms() -> None:
    minutes = passages(*["Ana Silva, Ben Okoro. Apple Harvest"] * 6, "Thanks to ben")
    weather = passages(*["The apple is ripe", "a harvest"] * 10, *["snow"] * 40, first=7)
    found = {term.text for term in characteristic_terms(minutes, weather) if " " in term.text}
    assert found == {"apple harvest"}


def test_named_terms_keep_their_spelling_and_need_two_passages() -> None:
    found = terms_named(["Harvests", "shovel", "unicorn"], INSIDE, OUTSIDE)
    assert [(term.text, term.inside, term.outside) for term in found] == [("Harvests", 6, 0)]


def test_stems_of_a_short_text() -> None:
    assert content_stems("the Release of releases, and tests") == ["releas", "test"]


@given(st.lists(st.text(alphabet="abc -.'\n*_`é漢", max_size=40), max_size=8), st.randoms())
def test_any_text_gives_terms_in_an_order_that_the_passages_do_not_change(
    texts: list[str], chance: random.Random
) -> None:
    inside, outside = passages(*texts[::2]), passages(*texts[1::2], first=100)
    found = characteristic_terms(inside, outside)
    shuffled = sorted(inside, key=lambda _: chance.random())
    assert characteristic_terms(shuffled, outside) == found
    assert all(term.text and term.text == term.text.strip() for term in found)
