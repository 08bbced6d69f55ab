"""A vague task is answered by what it asks for: a beginning, the newest, what goes wrong; in prose."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.vague import Vagueness, fit_of, weigh_vagueness, with_vagueness
from rolebundle.storage.content.document_openings import MAX_NEWEST_DOCUMENTS
from rolebundle.storage.content.stored_document import StoredDocument
from rolebundle.text.intents import TaskIntent, task_intent
from support.corpora import ask, built, document, overlay, scratch_folder
from support.values import allowed, passage, weights

PROSE = "Every token is rotated once a day, and the old one is still kept for an hour after that moment."
NOW = datetime(2026, 4, 1, tzinfo=UTC)
FIRST = task_intent("What should I look at first?")
LATELY = task_intent("What changed lately?")
WRONG = task_intent("What goes wrong?")


def fit(intent: TaskIntent, *passages: Any) -> list[float]:
    candidates = [allowed(passage) for passage in passages]
    vagueness = weigh_vagueness(1.0, intent, candidates, NOW)
    return [fit_of(passage, vagueness)[0] for passage in passages]


def text(chunk_id: str, content: str = PROSE, **fields: Any) -> Any:
    return passage(chunk_id, content, **fields)


class TestFit:
    def test_an_opening_comes_before_what_follows(self) -> None:
        first, second, later = fit(FIRST, *(text(f"c{n}", ordinal=n) for n in range(3)))
        assert first > second > later

    def test_an_introduction_comes_before_another_opening(self) -> None:
        readme, opening, deep = fit(
            FIRST,
            text("a", path="README.md"),
            text("b", path="docs/tokens.md"),
            text("c", path="a/b/c/README.md"),
        )
        assert readme > opening == deep

    def test_a_reference_is_not_read_first(self) -> None:
        kinds = ("document", "api-reference", "license", "source-code")
        fits = fit(FIRST, *(text(kind, document_type=kind) for kind in kinds))
        assert fits[0] > max(fits[1:])

    def test_the_newest_entry_of_a_changelog(self) -> None:
        kind = {"document_type": "changelog", "path": "CHANGELOG.md"}
        entries = [text(f"c{n}", f"## 1.{9 - n}", ordinal=n, **kind) for n in range(1, 9)]
        heading = text("c0", "All notable changes are here.", ordinal=0, **kind)
        of_heading, *fits = fit(LATELY, heading, *entries)
        assert fits == sorted(fits, reverse=True)
        assert fits[0] > of_heading

    def test_each_file_in_a_folder_of_entries_is_an_entry(self) -> None:
        kind = {"document_type": "changelog", "ordinal": 0}
        entry, preamble = fit(
            LATELY, text("a", path="changes/417.md", **kind), text("b", path="CHANGES.md", **kind)
        )
        assert entry > preamble

    def test_the_newest_document_of_a_journal_and_not_the_newest_guide(self) -> None:
        journal = [
            text(day, document_type="journal", updated_at=f"2026-03-{day}T00:00:00Z")
            for day in ("20", "10", "01")
        ]
        guide = text("guide", document_type="guide", updated_at="2026-03-25T00:00:00Z")
        newest, *older, of_guide = fit(LATELY, *journal, guide)
        assert newest > max(older) and newest > of_guide

    def test_a_thread_is_as_new_as_its_last_mail_and_its_start_comes_first(self) -> None:
        def mail(name: str, title: str, day: str) -> Any:
            date = f"2026-03-{day}T00:00:00Z"
            return text(name, title=title, document_type="mail", updated_at=date)

        question, reply, other_thread = fit(
            FIRST, mail("a", "Tokens", "01"), mail("b", "Tokens", "20"), mail("c", "Rust", "10")
        )
        assert question > reply and question > other_thread

    def test_a_date_after_now_is_not_the_newest(self) -> None:
        kind = {"document_type": "journal"}
        ours, later = fit(
            LATELY,
            text("a", updated_at="2026-03-01T00:00:00Z", **kind),
            text("b", updated_at="2027-03-01T00:00:00Z", **kind),
        )
        assert ours > later == 0.0

    def test_words_about_trouble(self) -> None:
        warning, plain = fit(WRONG, text("a", "Beware: a known issue. It may fail."), text("b"))
        assert warning > plain == 0.0

    @given(st.sampled_from([FIRST, LATELY, WRONG]), st.integers(0, 500), st.sampled_from(
        ["mail", "changelog", "readme", "journal", "faq", "license", "document"]
    ))  # fmt: skip
    def test_it_is_in_0_1(self, intent: TaskIntent, ordinal: int, kind: str) -> None:
        (value,) = fit(intent, text("a", ordinal=ordinal, document_type=kind))
        assert 0 <= value <= 1


class TestScore:
    ROLE = overlay()

    def scored(self, candidate: Candidate, vagueness: Vagueness, floor: float = 0.0) -> Candidate:
        return with_vagueness(candidate, vagueness, weights(self.ROLE), floor)

    def test_a_specific_task_changes_nothing(self) -> None:
        candidate = allowed(text("a", "stub"), lexical=0.7)
        assert self.scored(candidate, Vagueness(0.0, FIRST)) is candidate

    def test_a_stub_is_ranked_lower(self) -> None:
        stub, prose = (
            allowed(text(name, content), lexical=0.5, of_weights=weights(self.ROLE))
            for name, content in (("a", "# Moved"), ("b", PROSE))
        )
        vague = Vagueness(1.0)
        assert self.scored(prose, vague).score.final == prose.score.final
        assert self.scored(stub, vague).score.final < self.scored(prose, vague).score.final
        assert self.scored(stub, vague).score.hits_of("vagueness") == ("vague:little-prose(×0.40)",)

    def test_a_title_may_be_the_whole_document(self) -> None:
        title = "Parallel algorithms"
        candidate = allowed(text("a", title, title=title), of_weights=weights(self.ROLE))
        assert self.scored(candidate, Vagueness(1.0)).score == candidate.score

    def test_old_records_and_old_entries_are_ranked_lower(self) -> None:
        def final(name: str, *other_documents: Any, **fields: Any) -> float:
            own = allowed(text(name, **fields), lexical=0.5, of_weights=weights(self.ROLE))
            vagueness = weigh_vagueness(1.0, TaskIntent(), [own, *other_documents], NOW)
            return self.scored(own, vagueness).score.final

        day = {"document_type": "meeting-notes", "updated_at": "2026-03-20T00:00:00Z"}
        older, newer = (
            allowed(text(name, **{**day, "updated_at": f"2026-03-{number}T00:00:00Z"}))
            for name, number in (("older", "01"), ("newer", "25"))
        )
        assert final("a", newer, **day) < final("a", older, **day)
        entry = {"document_type": "changelog"}
        assert final("a", ordinal=9, **entry) < final("a", ordinal=1, **entry)
        guide = {"document_type": "guide", "updated_at": "2020-01-01T00:00:00Z"}
        assert final("a", newer, **guide) == final("a", **guide)

    def test_a_topic_keeps_its_part(self) -> None:
        """The fit takes no more of the lanes' terms than the task asks for by it."""
        candidate = allowed(text("a", ordinal=9), lexical=1.0)
        fully_vague = self.scored(candidate, Vagueness(1.0, LATELY)).score.lexical
        half = self.scored(candidate, Vagueness(1.0, LATELY._replace(share=0.5))).score.lexical
        assert fully_vague < half < 1.0

    @given(
        lexical=st.floats(0, 1),
        semantic=st.floats(0, 1),
        degree=st.floats(0, 1),
        floor=st.floats(0, 1),
        intent=st.sampled_from([FIRST, LATELY, WRONG, TaskIntent()]),
        content=st.sampled_from([PROSE, "# Moved", "> quoted"]),
    )
    def test_nothing_falls_under_the_floor(
        self,
        lexical: float,
        semantic: float,
        degree: float,
        floor: float,
        intent: TaskIntent,
        content: str,
    ) -> None:
        candidate = allowed(
            text("a", content, ordinal=7),
            lexical=lexical,
            semantic=semantic,
            of_weights=weights(self.ROLE),
        )
        score = self.scored(candidate, Vagueness(degree, intent), floor).score
        assert all(0 <= term <= 1 for term in score.terms)
        if candidate.score.final >= floor * (1 + 1e-8):
            assert score.final >= floor
        parts = sum(part.value * part.weight for part in score.contributions)
        assert parts == pytest.approx(score.final)


class TestAnswer:
    ROLE = overlay(vocabulary={"boost_phrases": ["token rotation"]})
    STUBS: ClassVar = [document(f"stub{n}", ["# Token rotation first"]) for n in range(3)]
    README = document("readme", [PROSE, f"{PROSE} And more."], document_type="readme")

    def answered(self, task: str, role: Overlay | None, *more: StoredDocument) -> RetrievalBundle:
        documents = [*self.STUBS, self.README, *more]
        with scratch_folder() as folder, built(folder, documents) as corpus:
            return ask(corpus, role, task=task)

    def test_what_a_vague_task_asks_for_is_proposed_and_explained(self) -> None:
        best = self.answered("What should I look at first?", self.ROLE).selected[0]
        assert best.document_id == "readme"
        assert any("vague task: orientation(the opening" in why for why in best.reasons_selected)

    @pytest.mark.parametrize(
        ("task", "has_role"),
        [
            ("What should I look at first?", False),
            ("Is the old kernel kept for an hour, when first rotated?", True),
        ],
    )
    def test_without_a_role_or_for_a_specific_task_nothing_changes(
        self, task: str, has_role: bool
    ) -> None:
        unrelated = [document(f"other{n}", [f"the build of release {n}"]) for n in range(60)]
        answer = document("kernel", ["The old kernel is kept for an hour when it is rotated."])
        bundle = self.answered(task, self.ROLE if has_role else None, *unrelated, answer)
        hits = [hit for chunk in bundle.selected for hit in chunk.overlay_hits]
        assert not [hit for hit in hits if hit.startswith("vague:")]

    @pytest.mark.parametrize("has_role", [False, True])
    def test_a_task_that_names_no_topic_is_not_off_topic(self, has_role: bool) -> None:
        many = [document(f"other{n}", [f"the build of release {n}"]) for n in range(400)]
        role = self.ROLE if has_role else None
        bundle = self.answered("What went wrong, and where is trouble?", role, *many)
        assert bundle.evidence is not None
        assert bundle.evidence.support == "weak"

    def test_dates_after_now_do_not_take_the_places_of_the_newest(self) -> None:
        later = [
            document(f"later{n}", ["A calendar."], updated_at="2031-01-01T00:00:00Z")
            for n in range(MAX_NEWEST_DOCUMENTS)
        ]
        entry = document(
            "entry", [PROSE], document_type="journal", updated_at="2026-01-01T00:00:00Z"
        )
        bundle = self.answered("What changed lately?", self.ROLE, *later, entry)
        proposed = [*bundle.selected, *bundle.rejected]
        assert "entry#0" in {candidate.chunk_id for candidate in proposed}

    def test_a_stub_is_not_hidden(self) -> None:
        bundle = self.answered("What should I look at first?", self.ROLE)
        assert {chunk.document_id for chunk in bundle.selected} >= {"stub0"}
