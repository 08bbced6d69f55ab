"""Texts and long words in capitals are lowered; acronyms and the rest of a text stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.text.words import lower_capitals


@pytest.mark.parametrize(
    ("text", "lowered"),
    [
        ("THE BOUNDARY LAYER OF A WING", "the boundary layer of a wing"),
        ("VACUUM", "vacuum"),
        ("Clean up with VACUUM in SQL", "Clean up with vacuum in SQL"),
        ("raise the setting MAX_CONNECTIONS", "raise the setting MAX_connections"),
    ],
)
def test_texts_and_long_words_in_capitals_are_lowered(text: str, lowered: str) -> None:
    assert lower_capitals(text) == lowered


@pytest.mark.parametrize(
    "text", ["HTTP API", "The JSON of an HTTP reply", "HTTPSConnection", "Boundary Layers", "", "№"]
)
def test_acronyms_and_names_stay(text: str) -> None:
    assert lower_capitals(text) == text


@given(st.text() | st.text("aB cDEFGH"))
def test_only_case_changes_and_only_once(text: str) -> None:
    lowered = lower_capitals(text)
    assert lowered.lower() == text.lower()
    assert lower_capitals(lowered) == lowered
