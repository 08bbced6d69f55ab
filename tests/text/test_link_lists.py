"""Lists of link targets are left out, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.text.references import without_link_lists

LINKS = "- [One](https://a.example/1)\n- <https://a.example/2>\n* [Two][two], [Three](three.md)"
DEFINITIONS = '[two]: https://a.example/2\n[x]: <y.md> "Title"\n.. _z: https://a.example/z'


@pytest.mark.parametrize(
    ("left_out", "lines"),
    [(LINKS, 3), (DEFINITIONS, 3), ("1. https://a.example\n2. https://b.example\n3. [c](c)", 3)],
)
def test_link_lists_are_left_out(left_out: str, lines: int) -> None:
    assert without_link_lists(f"Before.\n\n{left_out}\n\nAfter.") == (
        "Before.\n\n\nAfter.",
        lines,
    )


@pytest.mark.parametrize(
    "content",
    [
        "- [One](one.md): how to begin\n- [Two](two.md): how to go on\n- [Three](three.md): the end",
        "- [One](one.md)\n- [Two](two.md)",
        "[^1]: A footnote that says something.",
        "See [one](one.md), https://a.example and\n[two](two.md).",
        f"```\n{LINKS}\n{DEFINITIONS}\n```",
        ".. _label:\n\nText.",
    ],
)
def test_what_says_something_stays(content: str) -> None:
    assert without_link_lists(content) == (content, 0)


@given(st.text(st.sampled_from("-* [](a)<https://x>:\n`~.1"), max_size=200))
def test_whole_lines_are_left_out_and_counted(content: str) -> None:
    kept, left_out = without_link_lists(content)
    lines = iter(content.split("\n"))
    assert left_out == content.count("\n") + 1 - (len(kept.split("\n")) if kept else 0) or not kept
    assert all(line in lines for line in kept.split("\n")) or not kept
