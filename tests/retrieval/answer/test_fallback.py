"""The fallback: what the caller should do with an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.admin import Admin
from rolebundle.admin.records import set_policy
from rolebundle.contracts.bundle import BundleWarning, Fallback, SelectedChunk
from rolebundle.contracts.codes import Limitation
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import FALLBACK_ACTIONS, FALLBACK_STATES, WarningCode
from rolebundle.engine import Engine
from rolebundle.retrieval.candidate import Candidate, SemanticReport
from rolebundle.retrieval.warnings import decide_fallback, fallback_of
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.quarantine import Scanned
from support.corpora import build, document, overlay, resolved
from support.values import CORPUS, answer_passage, rejected, retrieval

ROLE = overlay()


def decided(
    *warned: WarningCode,
    selected: list[SelectedChunk] | None = None,
    not_selected: list[Candidate] | None = None,
    role: Overlay | None = ROLE,
    degraded: str = "",
    chunks: int = 9,
) -> Fallback:
    request = resolved(role)
    return decide_fallback(
        [answer_passage()] if selected is None else selected,
        [BundleWarning(code=code, message="m") for code in warned],
        request,
        retrieval(
            request,
            filtered=not_selected or [],
            corpus=CORPUS.model_copy(update={"chunks": chunks}),
            semantic=SemanticReport(degraded),
        ),
    )


def fallback(*warned: WarningCode, **fields: Any) -> tuple[str, str, str]:
    found = decided(*warned, **fields)
    return found.state, found.action, found.message


class TestFallback:
    @pytest.mark.parametrize(
        ("warned", "role", "state", "action"),
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
        self, warned: tuple[WarningCode, ...], role: Overlay | None, state: str, action: str
    ) -> None:
        assert fallback(*warned, role=role)[:2] == (state, action)

    @pytest.mark.parametrize(
        ("warned", "role", "state"),
        [
            ((), ROLE, "healthy"),
            ((), None, "no_overlay"),
            (("FORBIDDEN_SOURCE_HIT",), ROLE, "forbidden_hit"),
        ],
    )
    def test_a_degraded_lane_turns_continue_into_degrade(
        self, warned: tuple[WarningCode, ...], role: Overlay | None, state: str
    ) -> None:
        assert fallback(*warned, role=role, degraded="why")[:2] == (state, "degrade")

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
        found = fallback_of(findings)
        named = {finding.state for finding in findings} - {None}
        assert set(found.states) == (named or {"healthy"})
        assert found.states == sorted(found.states, key=FALLBACK_STATES.index)
        assert found.state == found.states[0]
        strictness = [FALLBACK_ACTIONS.index(finding.action) for finding in findings]
        assert FALLBACK_ACTIONS.index(found.action) == max(strictness, default=0)
        told = [
            finding
            for finding in findings
            if finding.action != "continue" or found.action == "continue"
        ]
        assert found.message.count("why") == sum(finding.sentence == "why" for finding in told)

    def test_an_empty_answer_blocks_with_a_reason(self) -> None:
        state, action, message = fallback(
            selected=[],
            not_selected=[
                rejected(code) for code in ("forbidden_source", "stale", "forbidden_source")
            ],
        )
        assert (state, action) == ("no_strong_match", "block")
        assert message == (
            "the policy of the role reviewer rejected everything relevant "
            "(candidates rejected: 2 forbidden_source, 1 stale; for one: so); "
            "read the notes of the rejected"
        )

    def test_nothing_found_is_reported(self) -> None:
        assert "nothing in the corpus" in fallback(selected=[])[2]

    def test_an_incomplete_search_is_reported(self) -> None:
        assert fallback(selected=[], degraded="why", role=None)[:2] == ("no_strong_match", "block")


class TestNoDocuments:
    """Why there is no document to search: what is true, without what is hidden."""

    @pytest.mark.parametrize("documents", [[], [document("salary", ["the plan"], scope="hr")]])
    def test_under_a_policy_it_does_not_say_whether_there_are_others(
        self, tmp_path: Path, documents: list[StoredDocument]
    ) -> None:
        db = build(tmp_path, documents)
        with Admin(db) as admin:
            policy = {"ada": {"scopes": ["engineering"], "access_level": "internal"}}
            set_policy(admin.workspace, json.dumps(policy), "json")
        assert self.reason(db, "ada") == (
            "this agent sees no document here: ask the owner of the corpus"
        )

    def test_only_quarantined_documents(self, tmp_path: Path) -> None:
        plain = document("plan", ["the plan"])
        scanned = Scanned("quarantine", "hash", '["secret"]', "[]", "")
        db = build(tmp_path, [StoredDocument(plain.metadata, plain.chunks, scanned)])
        assert self.reason(db) == (
            "1 document in quarantine and no other: see `rolebundle corpus quarantine list`"
        )

    @staticmethod
    def reason(db: Path, agent: str | None = None) -> str:
        with Engine(db) as engine:
            bundle = engine.retrieve(RetrievalRequest(task="plan", agent=agent, lexical_only=True))
        assert bundle.fallback is not None
        return bundle.fallback.message.split("; ")[0]
