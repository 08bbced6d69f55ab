"""Copies: passages with the same headings and the same text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolebundle.retrieval.rank import mark_duplicates
from support.amounts import EXAMPLES
from support.corpora import ask, built, document, overlay
from support.values import passage, ranked

RULES = (
    "Patients are isolated in a room of their own. Staff wear gloves and an apron, and wash their "
    "hands before they leave. Isolation ends 72 hours after the last symptom."
)
WORDS = RULES.split()


def copies(*of: dict[str, Any]) -> list[str | None]:
    """For each passage, by its number, the one that stands for it; ``text`` is its content."""
    candidates = [
        ranked(passage(f"{n}", fields.pop("text", RULES), **fields))
        for n, fields in enumerate(map(dict, of))
    ]
    mark_duplicates(candidates)
    return [candidate.duplicate_of for candidate in candidates]


@given(
    place=st.integers(0, len(WORDS) - 1),
    word=st.sampled_from(["left", "right", "not", "48", "before", "after", "Germany", "France"]),
    is_added=st.booleans(),
)
@settings(max_examples=max(500, EXAMPLES))
def test_texts_that_differ_in_one_word_are_no_copies(
    place: int, word: str, *, is_added: bool
) -> None:
    changed = [*WORDS[:place], word, *WORDS[place + (not is_added) :]]
    assert changed == WORDS or copies({}, {"text": " ".join(changed)}) == [None, None]


@pytest.mark.parametrize(
    ("better", "other"),
    [
        ({"trust_tier": "preferred"}, {"updated_at": "2026-10-01T00:00:00Z"}),
        ({"updated_at": "2026-10-01T00:00:00Z"}, {"updated_at": "2026-09-30T00:00:00Z"}),
        ({"updated_at": "2016-10-01T00:00:00Z", "path": "long/path.md"}, {"path": "a.md"}),
        ({"path": "a/rules.md"}, {"path": "a/b/rules.md"}),
        ({"path": "guides/for-all/rules.md"}, {"path": "old/rules.md"}),
        ({"path": "guides/rules-of-all.md"}, {"path": "Copy of rules.md"}),
        ({"path": "guides/rules-of-all.md"}, {"path": "rules (copy).md"}),
    ],
    ids=[
        "trust", "newer", "dated", "shorter path", "not old", "not a copy", "not (copy)",
    ],
)  # fmt: skip
def test_which_stands_for_the_other(better: dict[str, Any], other: dict[str, Any]) -> None:
    assert copies(better, other) == [None, "0"]
    assert copies(other, better) == ["1", None]


class TestInAnAnswer:
    VERSIONS = tuple(
        document(name, [RULES], trust_tier=tier, source_id=name)
        for name, tier in (
            ("copy", "general"), ("original", "preferred"), ("latest", "authoritative"),
        )
    )  # fmt: skip

    def test_it_names_where_else_it_stands(self, tmp_path: Path) -> None:
        with built(tmp_path, self.VERSIONS) as corpus:
            bundle = ask(corpus, task="isolation of patients", lexical_only=True)
        [shown] = bundle.selected
        assert shown.document_id == "latest"
        assert sorted(shown.same_in or ()) == ["copy.md", "original.md"]
        codes = {rejection.chunk_id: rejection.reason for rejection in bundle.rejected}
        assert codes == {"copy#0": "duplicate", "original#0": "duplicate"}

    def test_what_policy_rejects_stands_for_none(self, tmp_path: Path) -> None:
        role = overlay(source_policy={"forbidden_sources": [{"pattern": "latest"}]})
        with built(tmp_path, self.VERSIONS) as corpus:
            bundle = ask(corpus, role, task="isolation of patients", lexical_only=True)
        [shown] = bundle.selected
        assert (shown.document_id, shown.same_in) == ("original", ["copy.md"])
