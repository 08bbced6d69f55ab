"""The warnings of an answer, each with its rule and its message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rolebundle.contracts.bundle import SelectedChunk
from rolebundle.contracts.documents import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.candidate import SemanticReport
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.warnings import decide_fallback, warnings_for
from support.corpora import overlay, resolved
from support.values import (
    answer_passage,
    candidate,
    evidence,
    passage,
    ranked,
    rejected,
    retrieval,
)

ROLE = overlay(vocabulary={"preferred_terms": ["rotation"]})
OWN = "boost:domain(security×2)"
SOUND = [answer_passage(hits=(OWN,)), answer_passage("preferred", hits=(OWN,))]


def codes(
    selected: Sequence[SelectedChunk],
    counts: dict[Any, int] | None = None,
    role: Overlay | None = None,
    passages: Sequence[Passage] = (),
    task: str = "token rotation",
    candidate_sources: Sequence[str] = ("w", "v"),
    **fields: Any,
) -> dict[str, str]:
    """Code → message of each warning about an answer with these passages.

    Args:
        selected: the passages, as the answer shows them.
        counts: rejection code → number of candidates.
        role: the overlay.
        passages: those of the answer, as they are in the corpus.
        task: of the request.
        candidate_sources: the sources of all candidates.
        fields: of the retrieval.
    """
    request = resolved(role, task=task)
    found = warnings_for(
        selected,
        request,
        retrieval(
            request,
            [*map(ranked, passages)],
            evidence=evidence({passage.rowid: {0, 1} for passage in passages}),
            candidates=[
                *(candidate(passage(source_id=source)) for source in candidate_sources),
                *(rejected(code) for code, count in (counts or {}).items() for _ in range(count)),
            ],
            **fields,
        ),
    )
    assert len({warning.code for warning in found}) == len(found)
    return {warning.code: warning.message or "" for warning in found}


class TestWarnings:
    def test_a_sound_answer_has_none(self) -> None:
        assert codes(SOUND, role=ROLE) == {}

    @pytest.mark.parametrize("selected", [[], [answer_passage("general", hits=(OWN,))]])
    def test_no_high_trust_match(self, selected: list[SelectedChunk]) -> None:
        assert [*codes(selected, role=ROLE)] == ["NO_HIGH_TRUST_MATCH"]

    def test_only_shared_corpus_if_no_passage_is_role_specific(self) -> None:
        # A trust tier and an age speak for every role alike.
        general = ("boost:trust-tier(authoritative×2)", "penalty:stale(9d > 1d)")
        assert [*codes([answer_passage(hits=general)], role=ROLE)] == ["ONLY_SHARED_CORPUS"]

    @pytest.mark.parametrize(
        ("rejected", "message"),
        [
            ({"taint_blocked": 2}, "not trusted enough for the action: 2"),
            (
                {"requires_approval": 3},
                "usable for the action only with an approval: 3",
            ),
        ],
    )
    def test_action_restricted(self, rejected: dict[Any, int], message: str) -> None:
        assert codes(SOUND, rejected, role=ROLE) == {"ACTION_RESTRICTED": message}

    def test_stale_dominant_over_a_half(self) -> None:
        stale = answer_passage(status="stale", hits=(OWN,), updated_at="2020-01-01T00:00:00Z")
        undeclared = answer_passage(status="stale", hits=(OWN,))
        assert "STALE_DOMINANT" not in codes([undeclared] * 3, role=ROLE)
        assert "STALE_DOMINANT" not in codes([*SOUND, stale, stale], role=ROLE)
        found = codes([*SOUND, stale, stale, stale], role=ROLE)
        assert found["STALE_DOMINANT"] == "stale passages: 3 of 5"

    @pytest.mark.parametrize(
        ("task", "is_warned"),
        [
            ("Who were the members in 2017?", False),
            ("What was decided in 2018 and in March 2019?", False),
            ("Who were the members on 2018-03-01?", False),
            ("Who were the members in 2019?", True),
            ("Who are the members?", True),
            ("Who was a member since 2017?", True),
            ("Compare 2017 with 2026", True),
            ("Does ISO 9001:2015 hold?", True),
        ],
    )
    def test_what_is_of_the_past_that_the_task_names_is_not_too_old(
        self, task: str, *, is_warned: bool
    ) -> None:
        old = answer_passage(status="stale", hits=(OWN,), updated_at="2018-05-01T00:00:00Z")
        assert ("STALE_DOMINANT" in codes([old], role=ROLE, task=task)) is is_warned

    def test_forbidden_source_hit(self) -> None:
        assert codes(SOUND, {"forbidden_source": 2}, role=ROLE) == {}
        hits = [candidate(passage(source_id=source)) for source in ("w", "v", "w")]
        assert codes(SOUND, role=ROLE, forbidden_hits=hits) == {
            "FORBIDDEN_SOURCE_HIT": "3 passages of forbidden sources would have been selected: v, w"
        }

    def test_at_most_five_conflicts_and_the_number_of_the_others(self) -> None:
        others = [passage(f"b{n}", contradicts=("doc-a",)) for n in range(7)]
        message = codes(SOUND, passages=[passage("a"), *others], role=ROLE)["CONFLICTING_EVIDENCE"]
        assert message.startswith("a and b0 disagree, as one of their documents declares; ")
        assert message.count("a and b") == 5
        assert message.endswith("; so do 2 further pairs of documents")

    def test_an_ignored_claim_is_reported_once(self) -> None:
        old = passage("a", document_id="d", ignored_claims=("mail", "note"))
        assert codes(SOUND, role=ROLE, passages=[old, old, passage("b")]) == {
            "SUPERSEDE_IGNORED": "mail claims to supersede d, but may not; "
            "note claims to supersede d, but may not"
        }

    def test_semantic_lane_degraded_with_its_reason(self) -> None:
        assert codes(SOUND, role=ROLE, semantic=SemanticReport("no model")) == {
            "SEMANTIC_LANE_DEGRADED": "no model"
        }

    def test_index_stale_with_the_number_of_missing_vectors(self) -> None:
        assert codes(SOUND, role=ROLE, semantic=SemanticReport(waiting=7))[
            "INDEX_STALE"
        ].startswith("7 chunks")


class TestWeakEvidence:
    def caution(self, of_evidence: Evidence, **fields: Any) -> str:
        """The message of the warning, which comes first and is a part of the fallback's."""
        request = resolved(ROLE, task=" ".join(f"word{n}" for n in range(9)), **fields)
        answer = retrieval(
            request,
            [ranked(passage(rowid=1, trust_tier="authoritative"))],
            evidence=of_evidence,
        )
        warnings = warnings_for([answer_passage()], request, answer)
        if "WEAK_EVIDENCE" not in {warning.code for warning in warnings}:
            return ""
        assert warnings[0].code == "WEAK_EVIDENCE"
        message = warnings[0].message or ""
        fallback = decide_fallback([answer_passage()], warnings, request, answer)
        assert message in fallback.message
        assert fallback.action == "warn"
        return message

    def test_it_says_how_many_words_the_best_passage_has(self) -> None:
        thin = evidence({1: {0}}, frequencies=(1,) * 9, chunks=999)
        assert "1 of the task's 9 words" in self.caution(thin)
