"""An intent is about a decision, or it is not: the figures, and what the words must do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.verification.decisions.matching import (
    Match,
    Topic,
    is_about,
    is_prohibition,
    languages_of,
    match,
    topic_of,
    windows,
)
from support.intents import DECISIONS, UNRELATED, Decided


def found(topic: Topic, intent: str, *, has_same_action: bool = False) -> Match:
    return match(topic, windows(intent), lambda _: 1.0, has_same_action=has_same_action)


def about(decided: Decided, intent: str, action: str) -> bool:
    """Whether the words say so, with the same rarity for all of them."""
    if action and decided.action and action != decided.action:
        return False
    topic = topic_of(decided.text, [words for words in decided.about.split(", ") if words])
    same = bool(action) and action == decided.action
    return is_about(found(topic, intent, has_same_action=same), None)


def of(text: str, *about_words: str) -> Topic:
    return topic_of(text, about_words)


def words_of(topic: Topic) -> list[str]:
    return [token.word for entry in topic.words for token in entry]


def test_intents_that_a_decision_is_about_match() -> None:
    intents = [(decided, *intent) for decided in DECISIONS for intent in decided.intents]
    assert len(intents) == 40
    assert sum(about(*intent) for intent in intents) >= 38


def test_unrelated_intents_match_none_of_the_decisions() -> None:
    assert len(UNRELATED) == 40
    passing = [
        intent
        for intent, action in UNRELATED
        if not any(about(decided, intent, action) for decided in DECISIONS)
    ]
    assert len(passing) >= 38


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Never deploy on Fridays", ["deploy", "fridays"]),
        ("Hiring is frozen until the second quarter", ["hiring"]),
        ("No discounts above 20% without the sales director", ["discounts"]),
        ("Release notes are reviewed by Mira before publication", ["release", "notes", "publication"]),
        ("Do not upgrade Postgres before the audit", ["upgrade", "postgres"]),
        ("Don't use tracking cookies", ["tracking", "cookies"]),
        ("Never", ["never"]),
    ],
)  # fmt: skip
def test_a_topic_has_no_conditions_and_no_words_of_rules(text: str, words: list[str]) -> None:
    assert words_of(of(text)) == words or words == ["never"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Do not post automatically", True),
        ("Never deploy on Fridays", True),
        ("No flights for short trips", True),
        ("Agents must not send mail", True),
        ("Stop ordering from Nordwind", True),
        ("You can't merge alone", True),
        ("Photos are not allowed", True),
        ("We stop using Slack for incidents", True),
        ("We no longer ship to Norway", True),
        ("Posts are scheduled by the marketing team", False),
        ("The note is stopped in the hall", False),
        ("Ask Ana before you publish", False),
    ],
)
def test_a_prohibition_is_known(text: str, expected: bool) -> None:
    assert is_prohibition(text) is expected


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Do not delete patient records", "deleting a patient's record"),
        ("Do not delete patient records", "the deletion of patient records"),
        ("Do not publish comparisons", "publish how we compare"),
        ("Customer mails are sent by Ana", "send the mail to the client"),
        ("Keine Rabatte für Händler", "Gib dem Händler einen Rabatt"),
        ("不要自动发布文章", "发布文章"),
    ],
)
def test_forms_of_a_word_match(text: str, intent: str) -> None:
    assert is_about(found(of(text), intent), None)


def test_one_word_in_common_is_not_enough_unless_both_name_the_action() -> None:
    topic = of("Never deploy on Fridays")
    assert not is_about(found(topic, "write about Friday"), None)
    assert is_about(found(topic, "write about Friday", has_same_action=True), None)


def test_a_word_of_about_is_as_good_as_one_of_the_text() -> None:
    bare, with_about = of("Do not post automatically"), of("Do not post automatically", "publish")
    assert not is_about(found(bare, "publish the appointment"), None)
    assert is_about(found(with_about, "publish the appointment"), None)


def test_closeness_helps_only_what_has_words_in_common() -> None:
    assert is_about(Match(0.3, ("post",)), 0.9)
    assert not is_about(Match(0.3, ("post",)), 0.7)
    assert not is_about(Match(0.0, ()), 1.0)


def test_a_long_intent_does_not_match_by_its_length() -> None:
    topic = of("Never change the production database by hand", "update")
    filler = "one two three apples pears and further fruit are sorted by color " * 12
    scattered = f"change the label. {filler} production is fine. {filler} a database of birds"
    assert not is_about(found(topic, scattered), None)
    assert is_about(found(topic, f"{filler} change the production database {filler}"), None)


def test_languages_are_known() -> None:
    assert languages_of("Do not post automatically") == frozenset()
    assert "de" in languages_of("Nicht ohne die Freigabe posten")
    assert "unspaced" in languages_of("不要自动发布")


@given(st.lists(st.text(max_size=60), max_size=3), st.text(max_size=200))
def test_a_match_is_in_range_for_any_text(texts: Sequence[str], intent: str) -> None:
    topic = topic_of(intent[:50], texts)
    result = found(topic, intent)
    assert 0.0 <= result.strength <= 1.0
    assert bool(result.words) == (result.strength > 0)
    assert found(topic, intent) == result
