"""Which passages conflict, which of two is outdated, and what is said about it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import RetrievalPolicy
from rolebundle.contracts.terms import TRUST_TIERS
from rolebundle.retrieval.conflicts import MAX_COMPARED, Comparison, Conflict
from rolebundle.retrieval.outcome import Selection
from rolebundle.retrieval.select import ALWAYS_COMPARED, MAX_COMPARED_PAST_LIMIT, select
from rolebundle.text.disagreements import disagreement
from support.corpora import resolved
from support.values import passage, ranked

MONTH = "Tapes leave the building. Backups of the shop are kept for 30 days. A log is written."
QUARTER = "Restores are rare. Backups of the shop are kept for 90 days. Ask the desk."
UNRELATED = "Dogs are allowed on the trains of the line. Bicycles need a ticket."


def found(*passages: Passage, task: str = "") -> list[Conflict]:
    comparison = Comparison(task)
    return [conflict for passage in passages for conflict in comparison.add(passage)]


def ids(conflicts: list[Conflict]) -> list[tuple[str, str]]:
    return [(conflict.first.chunk_id, conflict.second.chunk_id) for conflict in conflicts]


def test_another_figure_is_a_conflict() -> None:
    [conflict] = found(passage("a", MONTH), passage("b", UNRELATED), passage("c", QUARTER))
    assert conflict.sentence == "a says '30 days', c says '90 days'"


def test_a_negation_is_a_conflict() -> None:
    denied = "Dogs are not allowed on the trains of the line."
    assert found(passage("a", UNRELATED), passage("b", denied))[0].values == (
        "are allowed",
        "are not allowed",
    )


def test_passages_of_one_document_do_not_conflict() -> None:
    assert not found(passage("a", MONTH, document_id="d"), passage("b", QUARTER, document_id="d"))


def test_a_declared_contradiction_is_a_conflict_of_any_texts() -> None:
    claim = passage("b", UNRELATED, contradicts=("doc-a",))
    message = "{} and {} disagree, as one of their documents declares"
    assert [conflict.sentence for conflict in found(passage("a", MONTH), claim)] == [
        message.format("a", "b")
    ]
    assert [conflict.sentence for conflict in found(claim, passage("a", MONTH))] == [
        message.format("b", "a")
    ]
    by_path = passage("c", UNRELATED, contradicts=("notes/old.md",), path="c.md")
    assert ids(found(passage("a", MONTH, path="notes/old.md"), by_path)) == [("a", "c")]


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "Changelog"},
        {"title": "Release notes 3.0"},
        {"path": "docs/NEWS.md"},
        {"document_type": "change history"},
    ],
)
def test_records_of_what_happened_do_not_conflict(fields: Any) -> None:
    assert not found(passage("a", MONTH, **fields), passage("b", QUARTER))
    assert not found(passage("b", QUARTER), passage("a", MONTH, **fields))


class TestIdentifiers:
    TEXT = "The driver of the {} has a buffer of {} bytes."

    def pair(self, titles: tuple[str, str], texts: tuple[str, str]) -> list[Conflict]:
        first, second = (
            passage(name, text, title=title)
            for name, title, text in zip("ab", titles, texts, strict=True)
        )
        return found(first, second)

    def test_passages_about_different_identifiers_do_not_conflict(self) -> None:
        texts = "See lm80. The buffer of a port has 64 bytes.", "The buffer of a port has 32 bytes."
        assert not self.pair(("Driver lm80", "Drivers"), texts)
        assert self.pair(("Drivers", "Drivers"), texts)

    def test_an_identifier_that_the_text_does_not_have_is_a_number_of_the_document(self) -> None:
        assert self.pair(("Memo m17", "Memo m18"), (MONTH, QUARTER))


class TestWhichSentence:
    FIRST = "Invoices are paid within 14 days. Backups of the shop are kept for 30 days."
    SECOND = "Invoices are paid within 28 days. Backups of the shop are kept for 90 days."

    @pytest.mark.parametrize(
        ("task", "values"),
        [("How long are backups kept?", "30 days"), ("When is an invoice paid?", "14 days")],
    )
    def test_the_nearest_to_the_task(self, task: str, values: str) -> None:
        [conflict] = found(passage("a", self.FIRST), passage("b", self.SECOND), task=task)
        assert conflict.values is not None
        assert conflict.values[0] == values


def test_only_so_many_passages_are_compared() -> None:
    fillers = [passage(f"f{n}", f"Filler {n} of the text.") for n in range(MAX_COMPARED - 1)]
    assert found(*fillers, passage("a", MONTH), passage("b", QUARTER)) == []
    assert ids(found(*fillers[1:], passage("a", MONTH), passage("b", QUARTER))) == [("a", "b")]


passages = st.lists(
    st.builds(
        lambda subject, days, tier, document: (subject, days, tier, document),
        st.sampled_from(["Backups of the shop", "Invoices of the shop"]),
        st.sampled_from(["30", "90", "thirty"]),
        st.sampled_from(TRUST_TIERS),
        st.sampled_from("def"),
    ),
    max_size=6,
).map(
    lambda drawn: [
        passage(
            f"{n}", f"{subject} are kept for {days} days.", trust_tier=tier, document_id=document
        )
        for n, (subject, days, tier, document) in enumerate(drawn)
    ]
)


@given(passages)
def test_laws(drawn: list[Passage]) -> None:
    conflicts = found(*drawn)
    for conflict in conflicts:
        assert conflict.first.document.trust_tier == conflict.second.document.trust_tier
        assert conflict.first.document.document_id != conflict.second.document.document_id
        assert conflict.first.content != conflict.second.content
    # In the other order the same pairs.
    pairs = {frozenset(pair) for pair in ids(conflicts)}
    assert {frozenset(pair) for pair in ids(found(*reversed(drawn)))} == pairs
    # And all of them: each statement was compared with each other.
    expected = {
        frozenset((first.chunk_id, second.chunk_id))
        for first in drawn
        for second in drawn
        if first.document.trust_tier == second.document.trust_tier
        and first.document.document_id != second.document.document_id
        and first.content.split()[0] == second.content.split()[0]
        and ("90" in first.content) != ("90" in second.content)
    }
    assert pairs == expected


def test_a_small_limit_hides_no_disagreement() -> None:
    first, second = days("a", 30, None), days("b", 90, None)
    unrelated = [passage(f"other{n}", f"Text {n} of the page.") for n in range(ALWAYS_COMPARED)]
    for between in (0, 3, ALWAYS_COMPARED - 2):
        selection = chosen(first, *unrelated[:between], second, limit=1)
        assert selected(selection) == ["a"]
        assert selection.rejected[-1].code == "budget_cut"
        (conflict,) = selection.conflicts
        assert (conflict.first.chunk_id, conflict.second.chunk_id) == ("a", "b")
    assert chosen(first, *unrelated[: ALWAYS_COMPARED - 1], second, limit=1).conflicts == ()


# -- the newest of several -----------------------------------------------------------------------


def chosen(*passages: Passage, prefer_newest: bool = True, **fields: Any) -> Selection:
    request = resolved(**{"limit": 9, **fields})
    policy = RetrievalPolicy(prefer_newest=prefer_newest)
    ordered = [ranked(chosen_passage, 0.9 - n / 100) for n, chosen_passage in enumerate(passages)]
    return select(ordered, request._replace(policy=policy))


def selected(selection: Selection) -> list[str]:
    return [candidate.chunk_id for candidate in selection.selected]


def days(name: str, number: int, date: str | None, **fields: Any) -> Passage:
    text = f"Backups of the shop are kept for {number} days."
    return passage(name, text, updated_at=date and f"{date}T00:00:00Z", **fields)


class TestNewest:
    OLD, NEW = days("old", 30, "2024-05-01"), days("new", 90, "2026-03-01")
    NOTE = "new of 2026-03-01 is newer and says '90 days', not '30 days'"

    @pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
    def test_the_older_one_is_rejected_and_names_the_newer_one(
        self, order: tuple[Passage, Passage]
    ) -> None:
        selection = chosen(*order)
        assert selected(selection) == ["new"]
        [rejection] = selection.rejected
        assert (rejection.candidate.chunk_id, rejection.code) == ("old", "conflict_downrank")
        assert rejection.note == self.NOTE
        # It is still said that they disagree.
        [conflict] = selection.conflicts
        assert conflict.sentence.endswith(", and the older one was left out")

    def test_without_the_setting_both_stay(self) -> None:
        selection = chosen(self.OLD, self.NEW, prefer_newest=False)
        assert selected(selection) == ["old", "new"]
        assert [conflict.sentence for conflict in selection.conflicts] == [
            "old says '30 days', new says '90 days'"
        ]

    @pytest.mark.parametrize(
        "newer",
        [
            days("other", 90, None),
            days("other", 90, "2024-05-01"),
            days("other", 30, "2026-03-01"),
            days("other", 90, "2026-03-01", trust_tier="preferred"),
            days("other", 90, "2026-03-01", document_id="doc-old"),
            passage("other", UNRELATED, updated_at="2026-03-01T00:00:00Z"),
            passage(
                "other", UNRELATED, updated_at="2026-03-01T00:00:00Z", contradicts=("doc-old",)
            ),
        ],
        ids=["undated", "same date", "same", "more trusted", "same document", "other", "declared"],
    )
    def test_both_stay(self, newer: Passage) -> None:
        assert selected(chosen(self.OLD, newer)) == ["old", "other"]

    def test_what_an_agent_filed_replaces_only_what_agents_filed(self) -> None:
        old, new = days("old", 30, "2024-05-01"), days("new", 90, "2026-03-01")
        by_agent = [
            version._replace(document=version.document._replace(origin="agent"))
            for version in (old, new)
        ]
        assert selected(chosen(old, by_agent[1])) == ["old", "new"]
        assert selected(chosen(by_agent[0], new)) == ["new"]
        assert selected(chosen(*by_agent)) == ["new"]

    def test_the_newest_of_three(self) -> None:
        middle = days("middle", 60, "2025-01-01")
        for order in ((self.OLD, middle, self.NEW), (middle, self.NEW, self.OLD)):
            assert selected(chosen(*order)) == ["new"]

    def test_what_is_left_out_takes_no_place_and_no_tokens(self) -> None:
        third = passage("third", "x" * len(self.NEW.content))
        assert selected(chosen(self.OLD, self.NEW, third, limit=2)) == ["new", "third"]
        tokens = 2 * -(-len(self.OLD.content) // 4)
        selection = chosen(self.OLD, self.NEW, third, token_budget=tokens)
        assert selected(selection) == ["new", "third"]

    @pytest.mark.parametrize("limit", [1, 2])
    def test_a_newer_one_past_the_limit_takes_the_place(self, limit: int) -> None:
        undated = passage("other", UNRELATED)
        distant = [days(f"d{n}", 30, "2025-01-01") for n in range(MAX_COMPARED_PAST_LIMIT - 1)]
        passages = [self.OLD, undated, *distant, self.NEW]
        assert selected(chosen(*passages, limit=limit)) == [*["other"] * (limit - 1), "new"]
        additional = days("one more", 30, "2025-01-01")
        later = chosen(*passages[:-1], additional, self.NEW, limit=limit)
        assert selected(later) == ["old", *["other"] * (limit - 1)]

    def test_one_past_the_limit_that_is_no_newer_is_cut(self) -> None:
        selection = chosen(self.NEW, self.OLD, limit=1)
        assert selected(selection) == ["new"]
        assert [(rejection.code, rejection.note) for rejection in selection.rejected] == [
            ("budget_cut", "score 0.890 is past the limit of 1 passage")
        ]
        assert selection.conflicts == ()

    def test_the_rejected_stay_in_the_order_of_the_ranking(self) -> None:
        low = [passage(f"low{n}", f"Text {n} of the page.") for n in range(3)]
        selection = chosen(self.OLD, low[0], self.NEW, *low[1:], limit=2)
        assert selected(selection) == ["low0", "new"]
        codes = [(rejection.candidate.chunk_id, rejection.code) for rejection in selection.rejected]
        assert codes == [
            ("old", "conflict_downrank"),
            ("low1", "budget_cut"),
            ("low2", "budget_cut"),
        ]

    def test_what_is_outdated_replaces_nothing(self) -> None:
        # "middle" disagrees with both others, which do not disagree with each other.
        mail = "The mail of the shop is read at {}."
        old = passage("old", mail.format("9:00"), updated_at="2024-01-01T00:00:00Z")
        middle = passage(
            "middle",
            f"{mail.format('8:00')} Backups of the shop are kept for 30 days.",
            updated_at="2025-01-01T00:00:00Z",
        )
        assert selected(chosen(old, middle)) == ["middle"]
        assert selected(chosen(old, self.NEW, middle)) == ["old", "new"]

    @given(st.permutations(["2023-01-01", "2024-01-01", "2025-01-01", "2026-01-01", None]))
    def test_nothing_vanishes_and_no_older_one_is_selected(self, dates: list[str | None]) -> None:
        passages = [days(f"p{n}", 10 + n, date) for n, date in enumerate(dates)]
        selection = chosen(*passages)
        chunk_ids = selected(selection) + [
            rejection.candidate.chunk_id for rejection in selection.rejected
        ]
        assert sorted(chunk_ids) == [passage.chunk_id for passage in passages]
        dates_selected = [candidate.passage.document.updated_at for candidate in selection.selected]
        assert [date for date in dates_selected if date] == ["2026-01-01T00:00:00Z"]
        scores = [candidate.score.final for candidate in selection.selected]
        assert all(first >= second for first, second in pairwise(scores))


def test_passages_are_compared_with_selected_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each of them is newer than the last one, and takes its place.
    passages = [days(f"{n}", n, f"2026-01-{n}") for n in range(10, 29)]
    pairs = []

    def counted(first: str, second: str) -> tuple[str, str] | None:
        pairs.append((first, second))
        return disagreement(first, second)

    monkeypatch.setattr("rolebundle.text.disagreements.disagreement", counted)
    assert selected(chosen(*passages, limit=3)) == ["28"]
    assert len(pairs) == len(passages) - 1
