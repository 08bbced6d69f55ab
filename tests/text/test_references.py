"""How references are written, and which name was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.text.paths import locations
from rolebundle.text.references import (
    Lines,
    Passages,
    named_document,
    parse_lines,
    parse_passages,
    similar_names,
)

KNOWN = [
    ("docs/guides/setup.md", "guides/setup.md"),
    ("docs/old/setup.md", "old/setup.md"),
    ("docs/README.md", "README.md"),
    ("wiki/deep/rollback-plan.md", "deep/rollback-plan.md"),
]


@pytest.mark.parametrize(
    ("reference", "lines", "passages", "name"),
    [
        ("a.md:1-2", Lines("a.md", 1, 2), None, "a.md"),
        ("a:b.md:10-2", Lines("a:b.md", 10, 2), None, "a:b.md"),
        ("#d:1:2", None, Passages("d", 1, 2), "d"),
        ("a.md", None, None, "a.md"),
        ("a.md:1", Lines("a.md", 1, 1), None, "a.md"),
    ],
)
def test_the_parts_of_a_reference(
    reference: str, lines: Lines | None, passages: Passages | None, name: str
) -> None:
    assert parse_lines(reference) == lines
    assert parse_passages(reference) == passages
    assert named_document(reference) == name


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("setup.md", "docs/old/setup.md"),
        ("guide/setup.txt", "docs/guides/setup.md"),
        ("odl/setup.md", "docs/old/setup.md"),
        ("readme.md", "docs/README.md"),
        ("rolback-plan.md", "wiki/deep/rollback-plan.md"),
        ("rollback-plan", "wiki/deep/rollback-plan.md"),
        ("zzzz", None),
        ("", None),
        ("/", None),
    ],
)
def test_the_most_likely_name_comes_first(name: str, first: str | None) -> None:
    assert (similar_names(name, KNOWN) or [None])[0] == first


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_suggestions_are_known_names_in_any_order_of_the_documents(
    name: str, known: list[str]
) -> None:
    pairs = [(document, document) for document in dict.fromkeys(known)]
    found = similar_names(name, pairs)
    assert set(found) <= set(known)
    assert found == similar_names(name, pairs[::-1])


def test_locations_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = str(tmp_path)
    assert locations("link/a.md", folder) == [f"{folder}/link/a.md", f"{folder}/real/a.md"]
    assert locations(f"{folder}/link/../a.md", None) == [f"{folder}/a.md"]
    assert locations("a.md", None) == []
    assert locations("a\0.md", folder) == []
