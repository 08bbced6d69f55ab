"""What a passage may be used for."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.terms import ACTIONS, ORIGINS, Action, Origin, Ruling, Sensitivity
from rolebundle.policy.trust import Labels, Purpose, risk_of, ruling_of

STRICTNESS: dict[Ruling, int] = {"allowed": 0, "requires_approval": 1, "taint_blocked": 2}

origins, actions = st.sampled_from(ORIGINS), st.sampled_from(ACTIONS)
labels = st.builds(
    Labels,
    origins,
    st.sampled_from(get_args(Sensitivity)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def strictness(of: Labels, action: Action, approved: bool) -> int:
    return STRICTNESS[ruling_of(of, action, approved=approved)]


class TestTheTable:
    @pytest.mark.parametrize(
        ("origin", "free", "approvable"),
        [
            ("internal", "read analyze suggest execute external_send", ""),
            ("external", "read analyze suggest", "execute external_send"),
            ("untrusted", "read analyze", ""),
        ],
    )
    def test_each_origin_and_action(self, origin: Origin, free: str, approvable: str) -> None:
        for action in ACTIONS:
            expected = (
                "allowed" if action in free.split()
                else "requires_approval" if action in approvable.split()
                else "taint_blocked"
            )  # fmt: skip
            assert ruling_of(Labels(origin), action) == expected
            approved = ruling_of(Labels(origin), action, approved=True)
            assert approved == ("allowed" if expected == "requires_approval" else expected)

    def test_an_unknown_origin_or_action_is_never_allowed(self) -> None:
        unknown: Any = "elsewhere"
        assert ruling_of(Labels(unknown), "read", approved=True) == "taint_blocked"
        assert ruling_of(Labels("external"), unknown, approved=True) == "taint_blocked"


class TestPurpose:
    def test_origins_that_are_allowed_by_approval(self) -> None:
        purpose = Purpose("execute", "Ana")
        assert [origin for origin in ORIGINS if purpose.is_allowed_by_approval(Labels(origin))] == [
            "external",
            "agent",
        ]
        assert not any(
            Purpose("read", "Ana").is_allowed_by_approval(Labels(origin)) for origin in ORIGINS
        )
        assert not any(
            Purpose("execute").is_allowed_by_approval(Labels(origin)) for origin in ORIGINS
        )

    @given(labels, actions, st.sampled_from(["", "Ana"]))
    def test_what_is_allowed_may_be_used_for_its_purpose(
        self, of: Labels, action: Action, name: str
    ) -> None:
        purpose = Purpose(action, name)
        allowed = purpose.allowed_actions(of)
        assert (action in allowed) == (purpose.rejection(of) is None)
        assert allowed == sorted(allowed, key=lambda action: (risk_of(action), action))
        assert {*allowed} >= {*Purpose().allowed_actions(of)}


def test_what_agents_filed_is_trusted_as_what_is_external() -> None:
    for action in ACTIONS:
        assert ruling_of(Labels("agent"), action) == ruling_of(Labels("external"), action)


class TestLabels:
    @pytest.mark.parametrize("sensitivity", ["public", "group", "internal"])
    def test_a_flagged_passage_needs_an_approval_for_effects(self, sensitivity: Any) -> None:
        flagged = Labels("internal", sensitivity, is_flagged=True)
        assert Purpose().allowed_actions(flagged) == ["analyze", "read", "suggest"]
        for action in ("execute", "external_send"):
            assert ruling_of(flagged, action) == "requires_approval"
        assert Purpose("execute").rejection(flagged) == (
            "requires_approval",
            "a flagged passage has trust 2, execute has risk 3",
        )

    def test_personal_data_needs_an_approval_to_be_sent_and_nothing_else(self) -> None:
        personal = Labels.of(DocumentMetadata("d", "s", "t", "u"), ["personal_mail_address"])
        assert personal == Labels("internal", is_personal=True)
        assert Purpose().allowed_actions(personal) == ["analyze", "read", "suggest", "execute"]
        assert Purpose("external_send").rejection(personal) == (
            "requires_approval",
            "a passage with personal data has trust 2, external_send has risk 3",
        )
        labels = Labels.of(
            DocumentMetadata("d", "s", "t", "u"), ["personal_iban", "instruction_override"]
        )
        assert labels == Labels("internal", is_flagged=True, is_personal=True)

    def test_a_confidential_passage_is_never_sent(self) -> None:
        confidential = Labels("internal", "confidential")
        assert Purpose("external_send", "Ana").rejection(confidential) == (
            "taint_blocked",
            "a confidential passage has trust 1, external_send has risk 3",
        )
        assert Purpose().allowed_actions(confidential) == [
            "analyze", "read", "suggest", "execute",
        ]  # fmt: skip

    def test_an_internal_document_of_untrusted_tier_has_no_effects(self) -> None:
        document = DocumentMetadata("d", "s", "t", "u", trust_tier="untrusted")
        assert Purpose().allowed_actions(Labels.of(document, [])) == ["analyze", "read"]
        assert Purpose("execute", "Ana").rejection(Labels.of(document, [])) == (
            "taint_blocked",
            "trust tier untrusted has trust 1, execute has risk 3",
        )

    @given(labels, actions, st.booleans())
    def test_a_label_never_allows_more(self, of: Labels, action: Action, approved: bool) -> None:
        plain = Labels(of.origin)
        assert strictness(plain, action, approved) <= strictness(of, action, approved)


@given(labels, actions)
def test_an_approval_changes_only_what_requires_one(of: Labels, action: Action) -> None:
    without = ruling_of(of, action)
    expected = "allowed" if without == "requires_approval" else without
    assert ruling_of(of, action, approved=True) == expected
