"""Which candidates say again what a better one says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import Superseder
from rolebundle.retrieval import duplicates
from rolebundle.retrieval.duplicates import NEAR_DUPLICATE_WINDOW, mark_duplicates
from support.values import passage, ranked

WORDS = [f"word{first}{second}" for first in "abcde" for second in "abcdefgh"]
TEXT = " ".join(WORDS)
RULES = (
    "Patients are isolated in a room of their own. Staff wear gloves and an apron, and wash their "
    "hands before they leave. The room is cleaned twice a day, and the door stays shut. Visitors "
    "ask the nurse in charge first. Isolation ends 72 hours after the last symptom, and then the "
    "curtains are changed. The bed manager is told when the room is free for somebody else."
)


def copies(*texts: str, **fields: Any) -> list[str | None]:
    """For each text the better one that it is a copy of, by its number."""
    candidates = [ranked(passage(f"{n}", text, **fields)) for n, text in enumerate(texts)]
    return [candidate.duplicate_of for candidate in mark_duplicates(candidates)]


def test_the_first_of_equal_texts_is_kept() -> None:
    assert copies("the same", "other", "the same") == [None, None, "0"]


def test_what_an_agent_filed_displaces_no_text_of_others() -> None:
    texts = [RULES, RULES, RULES.replace("an apron", "`an apron`"), RULES]
    origins = ["agent", "agent", "internal", "agent"]
    candidates = [
        ranked(passage(f"{n}", text, origin=origin))
        for n, (text, origin) in enumerate(zip(texts, origins, strict=True))
    ]
    assert [candidate.duplicate_of for candidate in mark_duplicates(candidates)] == [
        None,
        "0",
        None,
        "0",
    ]
    later = [
        candidate.duplicate_of for candidate in mark_duplicates([candidates[2], *candidates[:2]])
    ]
    assert later == [None, "2", "2"]


def test_near_copies_too() -> None:
    # 40 words make 38 shingles of three. A word changed in the middle takes three away and adds
    # three: 35 / 41 = 0.85. Two make it 32 / 44 = 0.73, which is under 0.8.
    changed = TEXT.replace("wordcc", "other")
    assert copies(TEXT, f"{TEXT} more", changed, changed.replace("worddd", "another")) == [
        None,
        "0",
        "0",
        None,
    ]


@pytest.mark.parametrize(
    "variant",
    [
        RULES.replace(". ", ".\n\n"),
        RULES.replace("isolated", "**isolated**").replace("an apron", "`an apron`"),
        RULES.replace("told when", "informed as soon as"),
        f"{RULES} Thank you for helping us.",
        RULES.replace("72 hours", "*72 hours*"),
    ],
    ids=["spacing", "markup", "other words", "one more sentence", "a marked figure"],
)
def test_almost_the_same_text(variant: str) -> None:
    assert copies(RULES, variant) == [None, "0"]
    assert copies(variant, RULES) == [None, "0"]


@pytest.mark.parametrize(
    ("part", "replacement"),
    [
        ("72 hours", "48 hours"),
        ("twice a day", "two times a day"),
        ("are isolated", "are not isolated"),
        ("Visitors ask", "Visitors don't ask"),
        ("The door stays", "The door in Larkfield stays"),
        ("the door stays shut", "the door C3 stays shut"),
        ("the bed manager", "the `bed.manager`"),
    ],
)
def test_what_differs_in_a_figure_a_negation_or_a_name_is_no_copy(
    part: str, replacement: str
) -> None:
    changed = RULES.lower().replace(part.lower(), replacement)
    assert changed != RULES.lower()
    assert copies(RULES.lower(), changed) == [None, None]
    assert copies(changed, RULES.lower()) == [None, None]


def test_a_long_text_with_another_figure_is_no_copy() -> None:
    long = " ".join(f"{RULES} {word} is the next part." for word in ("this", "that", "it"))
    assert copies(long, long.replace("72", "48", 1)) == [None, None]


def test_what_differs_in_a_word_of_its_title_is_no_copy() -> None:
    norovirus = RULES.replace("Patients", "Patients with norovirus")
    influenza = RULES.replace("Patients", "Patients with influenza")

    def marked(first: str, second: str) -> list[str | None]:
        candidates = [
            ranked(passage("0", norovirus, title=first)),
            ranked(passage("1", influenza, title=second)),
        ]
        return [candidate.duplicate_of for candidate in mark_duplicates(candidates)]

    assert marked("Rules", "Rules") == [None, "0"]
    assert marked("Norovirus", "Influenza") == [None, None]
    assert marked("Rules", "Rules: influenza") == [None, None]


@pytest.mark.parametrize("kind", ["code", "table"])
def test_any_sign_of_code_and_tables_counts(kind: str) -> None:
    signs = " ".join(f"{word} = {word} + {word};" for word in WORDS)
    assert copies(signs, signs.replace("+", "-", 1)) == [None, "0"]
    assert copies(signs, signs.replace("+", "-", 1), content_type=kind) == [None, None]
    assert copies(signs, signs.replace(" ", "\n"), content_type=kind) == [None, "0"]


def test_in_a_short_text_every_word_and_sign_counts() -> None:
    short = " ".join(WORDS[:21])
    assert copies(short, f"{short} more") == [None, None]
    assert copies(short, short.replace(" ", "\n").upper()) == [None, "0"]
    assert copies(short, short.replace(" ", ", ", 1)) == [None, None]
    assert copies(" ".join(WORDS[:22]), " ".join(WORDS[:23])) == [None, "0"]


def test_texts_without_words() -> None:
    assert copies("---", "***", "", " ", "---") == [None, None, None, None, "0"]


def test_a_copy_of_a_near_copy_is_a_copy() -> None:
    assert copies(TEXT, f"{TEXT} more", f"{TEXT} more") == [None, "0", "0"]


def test_many_near_duplicates_are_all_recognized() -> None:
    texts = [f"{TEXT} {'x' * n}" for n in range(1, NEAR_DUPLICATE_WINDOW * 2)]
    assert copies(*texts) == [None, *["0"] * (len(texts) - 1)]


def test_near_duplicates_are_compared_once_and_by_the_words_that_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [RULES.replace("curtains", f"{'y' * n} curtains") for n in range(1, 1200)]
    looked_at: list[str] = []
    distinction = duplicates._distinction

    def counted(before: str, word: str) -> str:
        looked_at.append(word)
        return distinction(before, word)

    monkeypatch.setattr(duplicates, "_distinction", counted)
    first = copies(*texts)
    assert first == [None, *["0"] * (len(texts) - 1)]
    assert len(looked_at) < 8 * len(texts)
    # A deeper search has all of them again.
    monkeypatch.delattr(duplicates, "_shingles")
    assert copies(*texts) == first


def test_only_the_best_texts_are_compared() -> None:
    unrelated = [f"another text about {'x' * n}" for n in range(1, NEAR_DUPLICATE_WINDOW + 1)]
    assert copies(*unrelated[2:], TEXT, f"{TEXT} more")[-1] == f"{NEAR_DUPLICATE_WINDOW - 2}"
    assert copies(*unrelated, TEXT, f"{TEXT} more", TEXT)[-2:] == [None, f"{NEAR_DUPLICATE_WINDOW}"]


def test_a_superseded_text_is_no_original() -> None:
    # The newer version may say the same, and must not leave together with the old one.
    old = passage("old", "the same", superseded_by=(Superseder("new", "general"),))
    marked = mark_duplicates([ranked(old), ranked(passage("new", "the same"))])
    assert [candidate.duplicate_of for candidate in marked] == [None, None]


@given(
    st.lists(st.sampled_from([RULES, RULES.replace("72", "48"), TEXT, f"{TEXT} more"]), max_size=6)
)
def test_a_copy_is_always_of_an_earlier_original(texts: list[str]) -> None:
    found = copies(*texts)
    for number, original in enumerate(found):
        assert original is None or (int(original) < number and found[int(original)] is None)
    # Each figure is there once.
    originals = [text for text, original in zip(texts, found, strict=True) if original is None]
    assert len([text for text in originals if "72" in text]) == min(1, texts.count(RULES))
