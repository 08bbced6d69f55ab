"""Postures, warnings and the fallback: how far an answer can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import (
    BundleWarning,
    ChunkMetadata,
    Citation,
    CorpusState,
    Fallback,
    Freshness,
    Scores,
    SelectedChunk,
)
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import FALLBACK_ACTIONS, FALLBACK_STATES, WarningCode
from rolebundle.retrieval.bundle import freshness_posture, trust_posture, warnings_for
from rolebundle.retrieval.candidate import Candidate, RejectedCandidate, SemanticReport
from rolebundle.retrieval.conflicts import Conflict
from rolebundle.retrieval.fallback import Limitation, decide_fallback, fallback_of
from support.corpora import overlay
from support.values import candidate, passage, rejected


def chosen(
    tier: Any = "authoritative", status: Any = "fresh", source: str = "", hits: tuple[str, ...] = ()
) -> SelectedChunk:
    return SelectedChunk(
        chunk_id="c",
        document_id="d",
        source_id=source or f"{tier}-{status}",
        source_type="internal-document",
        content="text",
        content_type="paragraph",
        scores=Scores(lexical=0, semantic=0, metadata=0, rerank=0, final=0),
        reasons_selected=[],
        overlay_hits=[*hits],
        metadata=ChunkMetadata(trust_tier=tier, freshness=Freshness(status=status), tags=[]),
        citation=Citation(reference="r"),
    )


class TestTrust:
    @pytest.mark.parametrize(
        ("tiers", "posture"),
        [
            (["untrusted", "authoritative"], "strong"),
            (["authoritative", "preferred"], "strong"),
            (["general", "preferred"], "mixed"),
            (["general"], "weak"),
            (["untrusted"], "weak"),
            ([], "weak"),
        ],
    )
    def test_strong_with_any_authoritative_mixed_with_any_preferred_else_weak(
        self, tiers: list[str], posture: str
    ) -> None:
        assert trust_posture([chosen(tier) for tier in tiers]) == posture


class TestFreshness:
    @pytest.mark.parametrize(
        ("statuses", "posture"),
        [
            (["fresh"], "fresh"),
            (["fresh", "aging", "undated"], "fresh"),
            (["fresh", "stale"], "mixed"),
            (["aging"], "mixed"),
            (["undated"], "mixed"),
            (["stale", "aging"], "stale"),
            (["stale"], "stale"),
            ([], "mixed"),
        ],
    )
    def test_fresh_mixed_or_stale(self, statuses: list[str], posture: str) -> None:
        assert freshness_posture([chosen(status=status) for status in statuses]) == posture


def codes(
    selected: list[SelectedChunk],
    rejected: dict[Any, int] | None = None,
    conflicts: list[Any] | None = None,
    role: Overlay | None = None,
    degraded: str = "",
    waiting: int = 0,
    forbidden_hits: Sequence[Candidate] = (),
    passages: Sequence[Passage] = (),
    candidate_sources: Sequence[str] = ("w", "v"),
) -> dict[str, str]:
    found = warnings_for(
        selected,
        rejected or {},
        forbidden_hits,
        conflicts or [],
        passages,
        role,
        SemanticReport(degraded, waiting=waiting),
        candidate_sources,
    )
    assert len({warning.code for warning in found}) == len(found)
    return {warning.code: warning.message for warning in found}


def conflict(first: str, second: str) -> Conflict:
    return Conflict(passage(first), passage(second), ("30 days", "90 days"))


ROLE = overlay()
OWN = "boost:domain(security×2)"
SOUND = [chosen(hits=(OWN,)), chosen("preferred", hits=(OWN,))]


class TestWarnings:
    def test_a_sound_answer_has_none(self) -> None:
        assert codes(SOUND, role=ROLE) == {}

    @pytest.mark.parametrize("selected", [[], [chosen("general", hits=(OWN,))]])
    def test_no_high_trust_match(self, selected: list[SelectedChunk]) -> None:
        assert [*codes(selected, role=ROLE)] == ["NO_HIGH_TRUST_MATCH"]

    def test_only_shared_corpus_without_a_role(self) -> None:
        assert [*codes(SOUND)] == ["ONLY_SHARED_CORPUS"]

    def test_only_shared_corpus_if_no_passage_is_role_specific(self) -> None:
        # A trust tier and an age speak for every role alike.
        general = ("boost:trust-tier(authoritative×2)", "penalty:stale(9d > 1d)")
        assert [*codes([chosen(hits=general)], role=ROLE)] == ["ONLY_SHARED_CORPUS"]

    @pytest.mark.parametrize(
        "hit",
        [
            "boost:applicable-role",
            "boost:doc-type(x×2)",
            "boost:domain(x×2)",
            "boost:preferred-source(x×2)",
            "vocab:boost(threat)",
            "vocab:preferred(owasp)",
        ],
    )
    def test_one_role_specific_hit_is_enough(self, hit: str) -> None:
        assert codes([chosen(), chosen(hits=(hit,))], role=ROLE) == {}

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
        stale = chosen(status="stale", hits=(OWN,))
        assert "STALE_DOMINANT" not in codes([*SOUND, stale, stale], role=ROLE)
        found = codes([*SOUND, stale, stale, stale], role=ROLE)
        assert found["STALE_DOMINANT"] == "stale passages: 3 of 5"

    def test_stale_rejections_count(self) -> None:
        found = codes(SOUND, {"stale": 3}, role=ROLE)
        assert found["STALE_DOMINANT"] == "stale passages: 3 of 5"

    def test_an_empty_answer_is_not_stale(self) -> None:
        assert "STALE_DOMINANT" not in codes([], role=ROLE)

    def test_forbidden_source_hit(self) -> None:
        assert codes(SOUND, {"forbidden_source": 2}, role=ROLE) == {}
        hits = [candidate(passage(source_id=source)) for source in ("w", "v", "w")]
        assert codes(SOUND, role=ROLE, forbidden_hits=hits) == {
            "FORBIDDEN_SOURCE_HIT": "3 passages of forbidden sources would have been selected: v, w"
        }

    def test_low_diversity_from_three_passages_of_one_source(self) -> None:
        same = chosen(source="w", hits=(OWN,))
        assert "LOW_DIVERSITY" not in codes([same, same], role=ROLE)
        assert codes([same] * 3, role=ROLE)["LOW_DIVERSITY"] == "every passage comes from w"
        assert "LOW_DIVERSITY" not in codes([same, same, *SOUND], role=ROLE)
        assert "LOW_DIVERSITY" not in codes([same] * 3, role=ROLE, candidate_sources=["w"])

    def test_conflicting_evidence_names_both_passages_and_values(self) -> None:
        assert codes(SOUND, conflicts=[conflict("a", "b")], role=ROLE) == {
            "CONFLICTING_EVIDENCE": "a says '30 days', b says '90 days'"
        }

    def test_conflicting_evidence_once_for_two_documents(self) -> None:
        again = conflict("a", "b")._replace(relevance=1, values=("1 day", "2 days"))
        conflicts = [conflict("a", "b"), again, conflict("a", "c")]
        assert codes(SOUND, conflicts=conflicts, role=ROLE)["CONFLICTING_EVIDENCE"] == (
            "a says '1 day', b says '2 days'; a says '30 days', c says '90 days'"
        )

    def test_at_most_five_conflicts_and_the_number_of_the_others(self) -> None:
        conflicts = [conflict("a", f"b{n}") for n in range(7)]
        message = codes(SOUND, conflicts=conflicts, role=ROLE)["CONFLICTING_EVIDENCE"]
        assert message.count("a says '30 days'") == 5
        assert message.endswith("; so do 2 further pairs of documents")

    def test_a_claim_that_is_ignored_is_said_once(self) -> None:
        old = passage("a", document_id="d", ignored_claims=("mail", "note"))
        assert codes(SOUND, role=ROLE, passages=[old, old, passage("b")]) == {
            "SUPERSEDE_IGNORED": "mail claims to supersede d, but may not; "
            "note claims to supersede d, but may not"
        }

    def test_semantic_lane_degraded_with_its_reason(self) -> None:
        assert codes(SOUND, role=ROLE, degraded="no model") == {
            "SEMANTIC_LANE_DEGRADED": "no model"
        }

    def test_index_stale_with_the_number_of_missing_vectors(self) -> None:
        assert codes(SOUND, role=ROLE, waiting=7)["INDEX_STALE"].startswith("7 chunks")

    def test_the_order_is_fixed(self) -> None:
        same = chosen("general", "stale", "w")
        found = codes([same] * 3, {}, [conflict("a", "b")], None, "why", 1, [candidate()])
        assert [*found] == [
            "NO_HIGH_TRUST_MATCH",
            "ONLY_SHARED_CORPUS",
            "STALE_DOMINANT",
            "FORBIDDEN_SOURCE_HIT",
            "LOW_DIVERSITY",
            "CONFLICTING_EVIDENCE",
            "SEMANTIC_LANE_DEGRADED",
            "INDEX_STALE",
        ]


def decided(
    *said: WarningCode,
    selected: list[SelectedChunk] | None = None,
    left_out: list[RejectedCandidate] | None = None,
    role: Overlay | None = ROLE,
    degraded: str = "",
    chunks: int = 9,
) -> Fallback:
    corpus = CorpusState(
        file="f", corpus_id="i", schema_version=1, generation=1, documents=1, chunks=chunks
    )
    warnings = [BundleWarning(code=code, message="m") for code in said]
    return decide_fallback(
        SOUND if selected is None else selected,
        left_out or [],
        warnings,
        role,
        corpus,
        SemanticReport(degraded),
    )


def fallback(*said: WarningCode, **fields: Any) -> tuple[str, str, str]:
    made = decided(*said, **fields)
    return made.state, made.action, made.message


class TestFallback:
    @pytest.mark.parametrize(
        ("said", "role", "state", "action"),
        [
            ((), ROLE, "healthy", "continue"),
            ((), None, "no_overlay", "continue"),
            (("NO_HIGH_TRUST_MATCH",), ROLE, "no_strong_match", "degrade"),
            (("STALE_DOMINANT",), ROLE, "stale_dominant", "warn"),
            (("FORBIDDEN_SOURCE_HIT",), ROLE, "forbidden_hit", "continue"),
            (("CONFLICTING_EVIDENCE",), ROLE, "conflicting", "warn"),
        ],
    )
    def test_each_state(
        self, said: tuple[WarningCode, ...], role: Overlay | None, state: str, action: str
    ) -> None:
        assert fallback(*said, role=role)[:2] == (state, action)

    @pytest.mark.parametrize(
        ("said", "role", "state"),
        [
            ((), ROLE, "healthy"),
            ((), None, "no_overlay"),
            (("FORBIDDEN_SOURCE_HIT",), ROLE, "forbidden_hit"),
        ],
    )
    def test_a_degraded_lane_turns_continue_into_degrade(
        self, said: tuple[WarningCode, ...], role: Overlay | None, state: str
    ) -> None:
        assert fallback(*said, role=role, degraded="why")[:2] == (state, "degrade")

    def test_all_states_that_hold_are_listed_the_worst_first(self) -> None:
        made = decided(
            "STALE_DOMINANT",
            "FORBIDDEN_SOURCE_HIT",
            "NO_HIGH_TRUST_MATCH",
            "CONFLICTING_EVIDENCE",
            role=None,
        )
        assert made.states == [
            "no_strong_match", "forbidden_hit", "conflicting", "stale_dominant", "no_overlay",
        ]  # fmt: skip
        assert (made.state, made.action) == ("no_strong_match", "degrade")
        assert len(made.message.split("; ")) >= 5

    def test_an_empty_answer_lists_the_other_states_and_gives_one_reason(self) -> None:
        made = decided(
            "FORBIDDEN_SOURCE_HIT",
            "NO_HIGH_TRUST_MATCH",
            selected=[],
            left_out=[rejected("forbidden_source")],
        )
        assert made.states == ["no_strong_match", "forbidden_hit"]
        assert (made.action, made.verdict) == ("block", "all_forbidden")
        assert "left out" not in made.message

    @given(
        st.lists(
            st.builds(
                Limitation,
                st.none() | st.sampled_from(FALLBACK_STATES[:-1]),
                st.sampled_from(FALLBACK_ACTIONS),
                st.sampled_from(["", "why"]),
            ),
            max_size=6,
        )
    )
    def test_no_state_hides_another_one(self, findings: list[Limitation]) -> None:
        made = fallback_of(findings)
        named = {finding.state for finding in findings} - {None}
        assert set(made.states) == (named or {"healthy"})
        assert made.states == sorted(made.states, key=FALLBACK_STATES.index)
        assert made.state == made.states[0]
        strictness = [FALLBACK_ACTIONS.index(finding.action) for finding in findings]
        assert FALLBACK_ACTIONS.index(made.action) == max(strictness, default=0)
        assert made.message.count("why") == sum(finding.sentence == "why" for finding in findings)

    def test_an_empty_answer_blocks_with_a_reason(self) -> None:
        state, action, message = fallback(
            selected=[],
            left_out=[rejected(code) for code in ("forbidden_source", "stale", "forbidden_source")],
        )
        assert (state, action) == ("no_strong_match", "block")
        assert message == (
            "the policy of the role reviewer rejected everything relevant "
            "(candidates rejected: 2 forbidden_source, 1 stale; for one: so); "
            "read the notes of the rejected"
        )

    def test_an_empty_corpus_is_reported(self) -> None:
        assert "the corpus is empty" in fallback(selected=[], chunks=0)[2]

    def test_nothing_found_is_reported(self) -> None:
        assert "nothing in the corpus" in fallback(selected=[])[2]

    def test_an_incomplete_search_is_reported(self) -> None:
        assert fallback(selected=[], degraded="why", role=None)[:2] == ("no_strong_match", "block")
