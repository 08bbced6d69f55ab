"""Which agent may remember what, and what of it others see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import forget_fact, promote_fact
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.storage.opening import open_reader, open_writer
from support.commands import invoke
from support.corpora import document, file_of, put_file, set_policy_after_first_check
from support.facts import (
    FACT,
    PAGE,
    POLICY,
    bundle_for,
    file_as,
    file_as_owner,
    listed,
    refusal,
)


class TestAgents:
    def test_an_agent_files_what_its_policy_allows(self, governed: Path) -> None:
        fact = file_as("ada", governed)
        assert (fact.scope, fact.sensitivity) == ("shared", "internal")
        assert listed(governed)[FACT].remembered_by == "ada"
        for agent in ("eve", "mia"):
            assert refusal(lambda: file_as(agent, governed))[1] == "write_denied"  # noqa: B023
        assert refusal(lambda: file_as(None, governed))[1] == "access_denied"
        assert refusal(lambda: file_as("nobody", governed))[1] == "access_denied"
        assert listed(governed)[FACT].count == 1

    def test_a_server_files_only_with_allow_write(self, governed: Path) -> None:
        fields = {"fact": FACT, "source": "limits#0", "agent": "ada"}
        with Engine(governed) as engine:
            reading, writing = Operations(engine), Operations(engine, allow_write=True)
            assert refusal(lambda: reading.call("remember", fields))[1] == "read_only_server"
            assert "remember" not in reading.offered_methods
            assert "remember" in writing.offered_methods
            assert writing.call("remember", fields)["state"] == "stored"

    @pytest.mark.parametrize("source", ["salary#0", "board#0", "salary.md:1-1", "board"])
    def test_what_an_agent_may_not_see_is_an_unknown_source(
        self, governed: Path, source: str
    ) -> None:
        hidden = refusal(lambda: file_as("ada", governed, source=source))
        unknown = refusal(lambda: file_as("ada", governed, source="unknown"))
        assert hidden[2].replace(source, "unknown") == unknown[2]
        assert (hidden[0], hidden[1], hidden[3]) == (unknown[0], unknown[1], unknown[3])
        assert listed(governed) == {}

    def test_what_no_role_of_an_agent_may_read_is_an_unknown_source(self, governed: Path) -> None:
        assert refusal(lambda: file_as("rea", governed, source="rumours#0"))[1] == "not_found"
        assert file_as("rea", governed).count == 1

    def test_a_fact_belongs_to_the_scope_of_its_source(self, governed: Path) -> None:
        fact = "The salary limit"
        assert file_as("bob", governed, fact, "salary#0").scope == "hr"
        assert file_as("bob", governed, fact, "salary#0", scope="hr").count == 2
        for scope in ("shared", "nowhere"):
            denied = refusal(lambda: file_as("bob", governed, fact, "salary#0", scope=scope))  # noqa: B023
            assert denied[:2] == ("AccessDenied", "scope_denied")

    def test_an_address_is_the_document_that_was_fetched_from_it(self, governed: Path) -> None:
        """An agent invents no address, and learns of none that it may not see."""
        for name, scope in (("fetched", "shared"), ("hidden", "hr")):
            fetched = document(name, [FACT], uri=f"https://example.com/{name}", scope=scope)
            with open_writer(governed) as corpus, corpus.writing():
                put_file(corpus, file_of(name), [fetched])
        fact = file_as("ada", governed, source="https://example.com/fetched")
        assert (fact.source, fact.scope) == ("fetched.md:1-1", "shared")
        refused = refusal(lambda: file_as("ada", governed, "x", "https://example.com/fetched"))
        assert refused[1] == "source_does_not_say"
        hidden, invented = (
            refusal(lambda: file_as("ada", governed, source=f"https://example.com/{name}"))  # noqa: B023
            for name in ("hidden", "never")
        )
        assert hidden[2].replace("hidden", "never") == invented[2]
        assert (hidden[1], invented[1]) == ("not_found", "not_found")
        # Nor is a fact of the owner such a document.
        file_as_owner(governed, source=PAGE)
        assert refusal(lambda: file_as("ada", governed, source=PAGE))[1] == "not_found"

    def test_deny_patterns_of_the_source_match_the_fact(self, governed: Path) -> None:
        fact = file_as("ada", governed)
        assert fact.chunk_id in {chunk.chunk_id for chunk in bundle_for(governed, "eve").selected}
        assert fact.chunk_id not in {
            chunk.chunk_id for chunk in bundle_for(governed, "cy").selected
        }
        # For an agent that does not see it, the same fact is new.
        filed = file_as("cy", governed, "The limit may rise.", source="rumours#0")
        assert (filed.state, filed.count) == ("stored", 1)

    def test_what_a_role_rejects_does_not_come_back_as_a_fact(self, governed: Path) -> None:
        fact = file_as("ada", governed, "The limit may rise soon.", "rumours#0")
        assert fact.chunk_id in {chunk.chunk_id for chunk in bundle_for(governed, "eve").selected}
        bundle = bundle_for(governed, "rea", "reviewer")
        assert {rejection.chunk_id: rejection.reason for rejection in bundle.rejected}[
            fact.chunk_id
        ] == ("forbidden_source")

    def test_a_fact_holds_as_long_as_its_source(self, governed: Path) -> None:
        fact = file_as("ada", governed)
        with open_reader(governed) as corpus:
            row = corpus.rows(
                "SELECT valid_until, domain FROM document WHERE document_id = ?",
                (fact.document_id,),
            )
        assert row == [("2027-01-01T00:00:00Z", "api")]

    def test_a_policy_that_changes_meanwhile_counts(
        self, governed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The agent is checked again when nobody else can write."""
        set_policy_after_first_check(monkeypatch, governed, {**POLICY, "ada": POLICY["eve"]})
        assert refusal(lambda: file_as("ada", governed))[1] == "write_denied"
        assert listed(governed) == {}

    def test_nobody_who_sees_less_than_the_agent_sees_what_it_files(self, governed: Path) -> None:
        fact = file_as("bob", governed)
        assert fact.sensitivity == "confidential"
        assert fact.chunk_id not in {
            chunk.chunk_id for chunk in bundle_for(governed, "eve").selected
        }
        # The same fact of another agent is new, and stays apart.
        assert file_as("ada", governed).count == 1


def test_without_a_policy_an_agent_files_in_the_scope_of_the_source(db: Path) -> None:
    assert file_as(None, db).scope == "shared"
    assert file_as(None, db, "The salary limit", "salary#0").scope == "hr"
    assert refusal(lambda: file_as(None, db, scope="new"))[1] == "scope_denied"
    assert file_as(None, db, "The board limit", "board#0").sensitivity == "confidential"
    assert file_as_owner(db, source=PAGE, scope="new").scope == "new"


def test_every_act_is_in_the_audit(governed: Path) -> None:
    fact = file_as("ada", governed)
    file_as("ada", governed)
    refusal(lambda: file_as("eve", governed))
    with Admin(governed) as admin:
        promote_fact(admin.workspace, fact.document_id, "Ben")
        forget_fact(admin.workspace, fact.document_id, "Ana")
    rows = invoke("policy", "audit", "list", "--json", "--db", governed).json()["rows"]
    acts = [
        (row["kind"], row["agent"], row["details"])
        for row in rows
        if row["kind"] in ("remember", "promote", "forget", "refused")
    ]
    assert acts == [
        ("remember", "ada", {"state": "stored"}),
        ("remember", "ada", {"state": "counted"}),
        ("refused", "eve", {"code": "write_denied"}),
        ("promote", "", {"state": "stored", "by": "Ben"}),
        ("forget", "", {"state": "stored", "by": "Ana"}),
    ]
    assert FACT not in json.dumps(rows)


def test_nothing_is_stored_that_a_required_audit_cannot_record(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("policy", "audit", "set", "required", "--db", db).code in (0, 2)
    monkeypatch.setattr(
        "rolebundle.policy.audit.Recorder.note",
        lambda *_, **__: (_ for _ in ()).throw(RolebundleError("audit_unwritable", "no", "")),
    )
    assert refusal(lambda: file_as(None, db))[1] == "audit_unwritable"
    assert refusal(lambda: file_as_owner(db))[1] == "audit_unwritable"
    assert listed(db) == {}
