"""Which passages conflict: those whose documents declare it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.terms import TRUST_TIERS
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.rank import ALWAYS_COMPARED, conflicts, select
from support.corpora import resolved
from support.values import passage, ranked


def chosen(*passages: Passage, limit: int = 9) -> list[Candidate]:
    ordered = [ranked(chosen_passage, 0.9 - n / 100) for n, chosen_passage in enumerate(passages)]
    select(ordered, resolved(limit=limit))
    return ordered


def found(*passages: Passage, limit: int = 9) -> list[tuple[str, str]]:
    pairs = conflicts(chosen(*passages, limit=limit), limit)
    return [(first.chunk_id, second.chunk_id) for first, second in pairs]


def test_a_declared_contradiction_is_a_conflict_of_any_texts() -> None:
    claim = passage("b", "other", contradicts=("doc-a",))
    assert found(passage("a"), claim) == [("a", "b")]
    assert found(claim, passage("a")) == [("b", "a")]
    by_path = passage("c", contradicts=("notes/old.md",), path="c.md")
    assert found(passage("a", path="notes/old.md"), by_path) == [("a", "c")]


def test_texts_are_not_compared() -> None:
    first, second = (passage(name, f"Tapes are kept for {name} days.") for name in ("30", "90"))
    assert found(first, second) == []


@pytest.mark.parametrize("limit", [1, 3])
def test_a_small_limit_hides_no_disagreement(limit: int) -> None:
    first, second = passage("a"), passage("b", contradicts=("doc-a",))
    others = [passage(f"other{n}", f"Text {n} of the page.") for n in range(ALWAYS_COMPARED)]
    for between in (limit - 1, ALWAYS_COMPARED - 2):
        passages = (first, *others[:between], second)
        assert chosen(*passages, limit=limit)[-1].code == "budget_cut"
        assert found(*passages, limit=limit) == [("a", "b")]
    assert found(first, *others[: ALWAYS_COMPARED - 1], second, limit=limit) == []


drawn_passages = st.lists(
    st.tuples(st.sampled_from(TRUST_TIERS), st.sampled_from("def"), st.sampled_from(" def")),
    max_size=6,
).map(
    lambda drawn: [
        passage(f"{n}", trust_tier=tier, document_id=document, contradicts=(claim,))
        for n, (tier, document, claim) in enumerate(drawn)
    ]
)


@given(drawn_passages)
def test_every_declared_pair_of_equal_trust_is_found(drawn: list[Passage]) -> None:
    expected = {
        frozenset((first.chunk_id, second.chunk_id))
        for first in drawn
        for second in drawn
        if first.document.trust_tier == second.document.trust_tier
        and first.document.document_id != second.document.document_id
        and second.document.document_id in first.document.contradicts
    }
    pairs = [frozenset(pair) for pair in found(*drawn)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected
