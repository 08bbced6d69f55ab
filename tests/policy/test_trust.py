"""What a passage may be used for: the table, its configuration, and what holds for every table."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.policy import TrustTable
from rolebundle.contracts.terms import ACTIONS, ORIGINS, Action, Origin, Ruling, Sensitivity
from rolebundle.errors import ConfigurationError
from rolebundle.policy.policy_file import parse_policy
from rolebundle.policy.trust import DEFAULT_TABLE, READ_PURPOSE, Labels, Purpose, ruling_of

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
# Those of a policy trust the origin agent no more than external.
tables = st.builds(
    TrustTable.model_construct,
    origins=st.fixed_dictionaries({origin: st.integers(0, 3) for origin in ORIGINS}),
    actions=st.fixed_dictionaries({action: st.integers(1, 4) for action in ACTIONS}),
)


def table_of(mapping: Any) -> TrustTable:
    """The trust table of a policy file."""
    content = json.dumps({"agents": {}, "trust": mapping})
    return parse_policy(content, "json", "policy.json").trust


def strictness(table: TrustTable, of: Labels, action: Action, approved: bool) -> int:
    return STRICTNESS[ruling_of(table, of, action, approved=approved)]


class TestTheDefaultTable:
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
            assert ruling_of(DEFAULT_TABLE, Labels(origin), action) == expected
            approved = ruling_of(DEFAULT_TABLE, Labels(origin), action, approved=True)
            assert approved == ("allowed" if expected == "requires_approval" else expected)

    def test_an_unknown_origin_or_action_is_never_allowed(self) -> None:
        unknown: Any = "elsewhere"
        assert ruling_of(DEFAULT_TABLE, Labels(unknown), "read", approved=True) == "taint_blocked"
        assert (
            ruling_of(DEFAULT_TABLE, Labels("external"), unknown, approved=True) == "taint_blocked"
        )


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

    @given(tables, labels, actions, st.sampled_from(["", "Ana"]))
    def test_what_is_allowed_may_be_used_for_its_purpose(
        self, table: TrustTable, of: Labels, action: Action, name: str
    ) -> None:
        purpose = Purpose(action, name, table)
        allowed = purpose.allowed_actions(of)
        assert (action in allowed) == (purpose.rejection(of) is None)
        assert allowed == sorted(allowed, key=lambda action: (table.risk(action), action))
        assert {*allowed} >= {*Purpose(table=table).allowed_actions(of)}


class TestConfiguration:
    def test_what_agents_filed_is_trusted_no_more_than_what_is_external(self) -> None:
        assert DEFAULT_TABLE.trust("agent") == DEFAULT_TABLE.trust("external")
        for external in range(4):
            table = table_of({"origins": {"external": external}})
            assert table.trust("agent") == min(external, 2)
            with pytest.raises(ConfigurationError, match="agent"):
                origins = {"external": external, "agent": external + 1}
                table_of({"origins": origins})

    def test_the_bounds_are_allowed(self) -> None:
        mapping = {
            "origins": {"untrusted": 0, "internal": 3},
            "actions": {"read": 1, "external_send": 4},
        }
        table = table_of(mapping)
        assert ruling_of(table, Labels("untrusted"), "read", approved=True) == "taint_blocked"
        assert ruling_of(table, Labels("internal"), "external_send") == "requires_approval"
        assert (
            ruling_of(table, Labels("external"), "external_send", approved=True) == "taint_blocked"
        )

    @pytest.mark.parametrize(
        ("mapping", "message"),
        [
            ({"origin": {}}, "trust.origin: unknown key; did you mean origins?"),
            ({"origins": {"external": 4}}, "trust.origins.external: must be 3 or less (it is 4)"),
            ([], "trust: must be an object (it is [])"),
        ],
    )
    def test_an_error_names_the_key_and_what_is_allowed(self, mapping: Any, message: str) -> None:
        with pytest.raises(ConfigurationError) as error:
            table_of(mapping)
        assert error.value.code == "bad_trust_table"
        assert error.value.message.startswith("policy.json: trust")
        assert message in error.value.message
        assert error.value.hint


class TestLabels:
    @pytest.mark.parametrize("sensitivity", ["public", "group", "internal"])
    def test_a_flagged_passage_needs_an_approval_for_effects(self, sensitivity: Any) -> None:
        flagged = Labels("internal", sensitivity, is_flagged=True)
        assert READ_PURPOSE.allowed_actions(flagged) == ["analyze", "read", "suggest"]
        for action in ("execute", "external_send"):
            assert ruling_of(DEFAULT_TABLE, flagged, action) == "requires_approval"
        assert Purpose("execute").rejection(flagged) == (
            "requires_approval",
            "a flagged passage has trust 2, execute has risk 3",
        )

    def test_personal_data_needs_an_approval_to_be_sent_and_nothing_else(self) -> None:
        personal = Labels.of(DocumentMetadata("d", "s", "t", "u"), ["personal_mail_address"])
        assert personal == Labels("internal", is_personal=True)
        assert READ_PURPOSE.allowed_actions(personal) == ["analyze", "read", "suggest", "execute"]
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
        assert READ_PURPOSE.allowed_actions(confidential) == [
            "analyze", "read", "suggest", "execute",
        ]  # fmt: skip

    def test_an_internal_document_of_untrusted_tier_has_no_effects(self) -> None:
        document = DocumentMetadata("d", "s", "t", "u", trust_tier="untrusted")
        assert READ_PURPOSE.allowed_actions(Labels.of(document, [])) == ["analyze", "read"]
        assert Purpose("execute", "Ana").rejection(Labels.of(document, [])) == (
            "taint_blocked",
            "trust tier untrusted has trust 1, execute has risk 3",
        )

    @given(tables, labels, actions, st.booleans())
    def test_a_label_never_allows_more(
        self, table: TrustTable, of: Labels, action: Action, approved: bool
    ) -> None:
        plain = Labels(of.origin)
        assert strictness(table, plain, action, approved) <= strictness(table, of, action, approved)


class TestMonotone:
    @given(tables, tables, labels, actions, st.booleans())
    def test_a_tighter_table_never_allows_more(
        self, table: TrustTable, other: TrustTable, of: Labels, action: Action, approved: bool
    ) -> None:
        tighter = TrustTable.model_construct(
            origins={origin: min(table.trust(origin), other.trust(origin)) for origin in ORIGINS},
            actions={action: max(table.risk(action), other.risk(action)) for action in ACTIONS},
        )
        was = strictness(table, of, action, approved)
        assert was <= strictness(tighter, of, action, approved)
        before = Purpose(action, "Ana" * approved, table).allowed_actions(of)
        after = Purpose(action, "Ana" * approved, tighter).allowed_actions(of)
        assert {*after} <= {*before}

    @given(tables, labels, actions)
    def test_an_approval_changes_only_what_requires_one(
        self, table: TrustTable, of: Labels, action: Action
    ) -> None:
        without = ruling_of(table, of, action)
        expected = "allowed" if without == "requires_approval" else without
        assert ruling_of(table, of, action, approved=True) == expected
