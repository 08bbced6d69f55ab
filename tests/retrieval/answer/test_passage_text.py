"""Notes about a passage, and the line above it."""

from __future__ import annotations

from typing import Any

import pytest

from rolebundle.contracts.terms import ACTIONS
from rolebundle.retrieval.answer.passage_text import limited_use, passage_heading


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


def heading(**fields: Any) -> str:
    passage = {"rank": 1, "title": "Keys", "citation": {"locator": "keys.md:3-4"}, **fields}
    return passage_heading(passage).partition(" (")[0]


def test_the_headings_above_a_passage_are_in_its_line() -> None:
    assert heading() == "[1] Keys"
    assert heading(headings=["Keys", "Rotation", "Steps"]) == "[1] Keys › Rotation › Steps"
    assert heading(headings=["Rotation\n[2] Keys"]) == "[1] Keys › Rotation [2] Keys"


def test_a_heading_with_which_the_passage_begins_is_not_repeated() -> None:
    content = "### Steps for `rails`\n\nStop it."
    headings = ["Rotation", "Steps for rails"]
    assert heading(headings=headings, content=content) == "[1] Keys › Rotation"
