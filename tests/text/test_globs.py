"""A manifest's globs: what they match, against a slow and plain reading of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolebundle.text.paths import matches
from support.amounts import EXAMPLES


@pytest.mark.parametrize(
    ("glob", "path", "matched"),
    [
        ("docs/**", "docs", False),
        ("docs/**", "mydocs/a.md", False),
        ("a?c", "a/c", False),
        ("[ab].md", "a.md", False),
        ("[ab].md", "[ab].md", True),
        ("a.md", "axmd", False),
        ("", "", True),
        ("*", "a\nb", True),
    ],
)
def test_matches(glob: str, path: str, matched: bool) -> None:
    assert matches(glob, path) is matched


def slow(glob: str) -> re.Pattern[str]:
    """The plain reading, which can run away."""
    tokens = re.findall(r"(?:(?<=/)|^)\*\*/|\*\*|\*|\?|[^*?]", glob)
    plain = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(plain.get(t, re.escape(t)) for t in tokens), re.DOTALL)


names = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)
globs = st.lists(
    st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "/**/", "*a"]), max_size=8
).map("".join)


@settings(max_examples=5 * EXAMPLES)
@given(globs.filter(lambda glob: "***" not in glob), names)
def test_the_same_as_the_plain_reading(glob: str, path: str) -> None:
    assert matches(glob, path) == bool(slow(glob).fullmatch(path))
