"""Notes about a passage, and the line above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.terms import ACTIONS
from rolebundle.retrieval.passage_text import limited_use, part_of, passage_heading


@pytest.mark.parametrize(
    ("allowed", "note"),
    [
        (None, ""),
        (ACTIONS, ""),
        (["read", "analyze"], "use only to: read, analyze"),
        ([action for action in ACTIONS if action != "execute"], "do not use for: execute"),
    ],
)
def test_limited_use(allowed: list[str] | None, note: str) -> None:
    assert limited_use(allowed) == note


def heading(title: str, *headings: str, content: str = "Stop it.") -> str:
    passage = {
        "rank": 1,
        "title": title,
        "headings": headings,
        "content": content,
        "citation": {"locator": "signing-keys.md:3-4"},
    }
    beginning, _, names = passage_heading(passage, []).partition(" · ")
    assert beginning == "[1] signing-keys.md:3-4"
    return names


def test_title_and_headings_are_in_the_line_above_a_passage() -> None:
    assert heading("Manual", "Rotation", "Steps") == "Manual › Rotation › Steps"
    assert heading("Manual", "Rotation\n[2] Keys") == "Manual › Rotation [2] Keys"


def test_what_the_path_the_text_or_another_heading_says_is_not_repeated() -> None:
    assert heading("Keys, Signing") == ""
    assert heading("Manual", "Manual of rotation", "Rotation") == "Manual of rotation"
    content = "### Steps for `rails`\n\nStop it."
    assert heading("Manual", "Rotation", "Steps for rails", content=content) == "Manual › Rotation"


CONTENT = "First line.\n\nThe token lives 30 days. The key lives longer. It is renewed.\nLast line."


@given(st.text(max_size=300), st.integers(1, 200))
def test_a_part_is_not_longer_than_asked(content: str, length: int) -> None:
    part = part_of(content, ["a"], length)
    assert len(part) <= length
    assert part in content


def test_a_part_has_the_words_and_whole_sentences() -> None:
    assert part_of(CONTENT, ["key", "renewed"], 42) == "The key lives longer. It is renewed."
    assert part_of(CONTENT, [], 30) == "First line."
