"""An action and its approval, from the request to the bundle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import Approval, RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.policy import TrustNumbers
from rolebundle.contracts.terms import ACTIONS, Action, Origin
from rolebundle.contracts.why import Why
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.trust import DEFAULT_TABLE, AgentView, TrustTable, purpose_of
from rolebundle.retrieval.lookup import ReferenceScope
from rolebundle.retrieval.pipeline import retrieve
from rolebundle.retrieval.why import explain
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay, resolved, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests

PROVIDER = HashingProvider()
ORIGIN_OF: dict[str, Origin] = {"ours": "internal", "theirs": "external", "web": "untrusted"}
THREE = [document(name, [f"token {name}"], origin=origin) for name, origin in ORIGIN_OF.items()]
FREE = ["analyze", "read"]
ALL = ["analyze", "read", "suggest", "execute", "external_send"]


@pytest.fixture(scope="module")
def three() -> Iterator[Corpus]:
    with scratch_folder() as folder, built(folder, THREE) as corpus:
        yield corpus


def about(
    corpus: Corpus, role: Overlay | None = None, trust: TrustTable = DEFAULT_TABLE, **fields: Any
) -> RetrievalBundle:
    fields = {"task": "token", "lexical_only": True} | fields
    return retrieve(corpus, resolved(role, AgentView(trust), **fields))


def why(
    corpus: Corpus,
    reference: str,
    role: Overlay | None = None,
    trust: TrustTable = DEFAULT_TABLE,
    **fields: Any,
) -> Why:
    fields = {"task": "token", "lexical_only": True} | fields
    return explain(corpus, resolved(role, AgentView(trust), **fields), reference, ReferenceScope())


def selected(bundle: RetrievalBundle) -> set[str]:
    return {passage.document_id for passage in bundle.selected}


def rejection_codes(bundle: RetrievalBundle) -> dict[str, str]:
    return {rejection.chunk_id.partition("#")[0]: rejection.reason for rejection in bundle.rejected}


class TestTheBundle:
    @pytest.mark.parametrize("role", [None, overlay()])
    @pytest.mark.parametrize(
        ("fields", "rejected"),
        [
            ({}, {}),
            ({"action": "read"}, {}),
            ({"action": "analyze"}, {}),
            ({"action": "suggest"}, {"web": "taint_blocked"}),
            ({"action": "suggest", "approval": "Ana"}, {"web": "taint_blocked"}),
            ({"action": "execute"}, {"web": "taint_blocked", "theirs": "requires_approval"}),
            ({"action": "external_send"}, {"web": "taint_blocked", "theirs": "requires_approval"}),
            ({"action": "execute", "approval": "Ana"}, {"web": "taint_blocked"}),
            ({"action": "external_send", "approval": "Ana"}, {"web": "taint_blocked"}),
        ],
    )
    def test_the_rejections_of_each_action(
        self, three: Corpus, fields: dict[str, Any], rejected: dict[str, str], role: Overlay | None
    ) -> None:
        bundle = about(three, role, **fields)
        assert rejection_codes(bundle) == rejected
        assert selected(bundle) == {*ORIGIN_OF} - {*rejected}
        warned = "ACTION_RESTRICTED" in {warning.code for warning in bundle.warnings}
        assert warned == bool(rejected)

    def test_each_passage_lists_its_allowed_actions(self, three: Corpus) -> None:
        actions = {
            passage.document_id: passage.allowed_actions for passage in about(three).selected
        }
        assert actions == {"ours": ALL, "theirs": ALL[:3], "web": FREE}
        bundle = about(three, action="execute", approval="Ana")
        actions = {chunk.document_id: chunk.allowed_actions for chunk in bundle.selected}
        assert actions == {"ours": ALL, "theirs": ALL[:4]}

    def test_approvals_name_the_person_and_the_passages(self, three: Corpus) -> None:
        bundle = about(three, action="execute", approval=" Ana Silva ")
        assert bundle.approvals == [
            Approval(approved_by="Ana Silva", action="execute", chunk_ids=["theirs#0"])
        ]
        assert RetrievalBundle.model_validate_json(bundle.to_json()) == bundle

    def test_another_table(self, three: Corpus) -> None:
        numbers = TrustNumbers(origins={"untrusted": 0}, actions={"execute": 4})
        tight = TrustTable.of(numbers, "p")
        assert rejection_codes(about(three, trust=tight)) == {"web": "taint_blocked"}
        bundle = about(three, trust=tight, action="execute", approval="Ana")
        assert rejection_codes(bundle) == {"web": "taint_blocked", "theirs": "taint_blocked"}
        assert bundle.approvals is not None
        assert bundle.approvals[0].chunk_ids == ["ours#0"]

    def test_an_untrusted_copy_does_not_replace_the_owned_original(self, tmp_path: Path) -> None:
        text = "the token is rotated by the same hand each month"
        documents = [
            document("a-web", [text], origin="untrusted", trust_tier="authoritative"),
            document("ours", [text]),
        ]
        with built(tmp_path, documents) as corpus:
            bundle = about(corpus, action="execute")
        assert selected(bundle) == {"ours"}
        assert rejection_codes(bundle) == {"a-web": "taint_blocked"}


@few_examples
@given(
    documents=corpora(),
    role=st.none() | overlays(),
    fields=requests(approval=None),
    higher=st.sampled_from(ACTIONS),
)
def test_the_laws_of_the_table_are_laws_of_the_filter(
    documents: list[StoredDocument], role: Overlay | None, fields: dict[str, Any], higher: Action
) -> None:
    """For the same candidates: what a riskier action rejects, and what an approval allows again."""
    with scratch_folder() as folder, built(folder, documents, PROVIDER) as corpus:
        bundle = ask(corpus, role, PROVIDER, **fields)
        approved = ask(corpus, role, PROVIDER, **fields | {"approval": "Ana"})
        raised = ask(corpus, role, PROVIDER, **fields | {"action": higher})
    tainted = {"taint_blocked", "requires_approval"}
    purpose = purpose_of(request_from(fields), DEFAULT_TABLE)
    for passage in bundle.selected:
        assert passage.allowed_actions
        assert purpose.action in passage.allowed_actions
    policy = {"forbidden_source", "role_mismatch", "stale", *tainted}

    def refused(of: RetrievalBundle) -> dict[str, str]:
        return {
            rejection.chunk_id: rejection.reason
            for rejection in of.rejected
            if rejection.reason in policy
        }

    before, after = refused(bundle), refused(approved)
    waiting = {name for name, code in before.items() if code == "requires_approval"}
    seen = {passage.chunk_id for passage in (*approved.selected, *approved.rejected)}
    assert {name: code for name, code in before.items() if name not in waiting} == {
        name: code for name, code in after.items() if name in before
    }
    assert "requires_approval" not in after.values()
    assert waiting & {*after} == set()
    named = {name for approval in approved.approvals or () for name in approval.chunk_ids}
    assert named <= {passage.chunk_id for passage in approved.selected}
    assert waiting & {passage.chunk_id for passage in approved.selected} <= named
    assert waiting <= seen
    # What is confidential is rejected for external_send alone.
    is_comparable = purpose.action in ("read", "analyze", "suggest", "execute", higher)
    if is_comparable and DEFAULT_TABLE.risk(higher) >= DEFAULT_TABLE.risk(purpose.action):
        common = {passage.chunk_id for passage in (*raised.selected, *raised.rejected)} & {*before}
        assert common <= {*refused(raised)}
