"""Decisions: recorded, superseded, ended, erased, and who sees them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.admin import records as owner
from rolebundle.admin.purges import PurgeSelection, plan_of, purge_documents
from rolebundle.admin.records import set_audit
from rolebundle.contracts.memory import DecisionRecord, NewDecision
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.storage.publications import decision_name
from rolebundle.verification.decisions import (
    end_decision,
    find_decision,
    list_decisions,
    record_decision,
)
from support.canaries import files_of, found_in
from support.commands import invoke
from support.corpora import build, document, set_policy
from support.publications import stage

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, [document("plan", ["the plan of may"])])


def decide(
    db: Path, text: str = "Do not post", at: datetime = NOW, **fields: Any
) -> DecisionRecord:
    new = NewDecision(text=text, decided_by="Ana", **fields)
    with open_writer(db) as corpus:
        return record_decision(corpus, new, at)


def states(db: Path, at: datetime = NOW) -> dict[str, str]:
    with open_reader(db) as corpus:
        return {record.id: record.state for record in list_decisions(corpus, at)}


def end(db: Path, name: str, at: datetime = NOW) -> DecisionRecord:
    with open_writer(db) as corpus:
        return end_decision(corpus, name, "Bo", "done", at)


def test_decisions_are_numbered_within_their_scope(db: Path) -> None:
    ids = [decide(db, scope=scope).id for scope in ("shared", "hr", "shared", "hr-team")]
    assert ids == ["shared-1", "hr-1", "shared-2", "hr-team-1"]


@pytest.mark.parametrize(
    ("commands", "declared", "effect"),
    [
        ([], None, "warn"),
        (["toot *"], None, "block"),
        (["toot *"], "warn", "warn"),
        ([], "require_approval", "require_approval"),
    ],
)
def test_a_decision_with_commands_blocks_unless_an_effect_is_given(
    db: Path, commands: list[str], declared: Any, effect: str
) -> None:
    record = decide(db, commands=commands, effect=declared)
    assert (record.effect, record.commands) == (effect, commands)


def test_a_decision_has_an_effect_from_its_first_to_its_last_second(db: Path) -> None:
    decide(db, valid_from="2026-11-02", valid_until="2026-11-03")
    seen = [states(db, NOW + n * DAY)["shared-1"] for n in range(4)]
    assert seen == ["not_yet_valid", "active", "active", "expired"]
    last = datetime(2026, 11, 3, 23, 59, 59, tzinfo=UTC)
    assert states(db, last)["shared-1"] == "active"


def test_a_decision_that_is_never_valid_is_refused(db: Path) -> None:
    with pytest.raises(UsageError, match="before"):
        decide(db, valid_until="2026-10-01")
    assert states(db) == {}


class TestSuperseding:
    def test_it_takes_effect_with_the_new_decision(self, db: Path) -> None:
        decide(db)
        decide(db, supersedes=["1"], valid_from="2026-11-03", valid_until="2026-11-04")
        assert states(db)["shared-1"] == "active"
        for days in (2, 30):
            assert states(db, NOW + days * DAY)["shared-1"] == "superseded"

    @pytest.mark.parametrize("how", ["proposed", "ended before it was valid"])
    def test_what_never_has_an_effect_supersedes_nothing(self, db: Path, how: str) -> None:
        decide(db)
        if how == "proposed":
            decide(db, supersedes=["shared-1"], status="proposed")
        else:
            decide(db, supersedes=["1"], valid_from="2026-11-03")
            end(db, "2")
        assert states(db, NOW + 9 * DAY)["shared-1"] == "active"

    def test_what_is_superseded_stays_so_when_the_new_one_ends(self, db: Path) -> None:
        decide(db)
        decide(db, supersedes=["1"])
        end(db, "2", NOW + DAY)
        assert states(db, NOW + 2 * DAY) == {"shared-1": "superseded", "shared-2": "ended"}

    @pytest.mark.parametrize("name", ["7", "hr-1", "x", "shared-", "1-x"])
    def test_only_a_decision_of_its_scope_is_superseded(self, db: Path, name: str) -> None:
        decide(db)
        decide(db, scope="hr")
        with pytest.raises(UsageError):
            decide(db, supersedes=[name])
        assert len(states(db)) == 2


def test_an_ended_decision_stays_listed(db: Path) -> None:
    decide(db)
    record = end(db, "shared-1", NOW + DAY)
    assert (record.state, record.ended_by, record.end_reason) == ("ended", "Bo", "done")
    assert states(db)["shared-1"] == "active", "it had an effect until then"
    with pytest.raises(UsageError, match="ended"):
        end(db, "shared-1", NOW + 2 * DAY)


class TestPurge:
    def test_no_byte_of_a_purged_decision_is_left(self, db: Path) -> None:
        decide(
            db,
            "Never sell Zanzibarflute",
            reason="Quokkareason",
            about=["Xylowortx"],
            commands=["Qwopcommand*"],
        )
        decide(db, "Keep this one")
        end(db, "1")
        words = {b"anzibarf", b"uokkarea", b"ylowortx", b"wopcomma"}
        assert found_in(files_of(db), words) == words
        with Admin(db) as admin:
            assert (
                purge_documents(admin.workspace, PurgeSelection(decisions=["shared-1"])).state
                == "done"
            )
        assert found_in(files_of(db), words) == set()
        assert states(db) == {"shared-1": "erased", "shared-2": "active"}
        assert decide(db, "A new one").id == "shared-3"

    def test_an_erased_decision_has_no_effect_and_what_it_superseded_stays_so(
        self, db: Path
    ) -> None:
        decide(db)
        decide(db, "Do not post at night", supersedes=["1"])
        with Admin(db) as admin:
            purge_documents(admin.workspace, PurgeSelection(decisions=["2"]))
        assert states(db) == {"shared-1": "superseded", "shared-2": "erased"}
        with open_reader(db) as corpus:
            record = find_decision(corpus, "2", NOW)
        assert (record.text, record.reason, record.about, record.decided_by) == ("", "", [], "")

    def test_replicas_with_a_purged_decision_are_outdated(self, db: Path) -> None:
        decide(db)
        stage(db, "/share", [decision_name(("shared", 1))])
        with Admin(db) as admin:
            selection = PurgeSelection(decisions=["1"])
            plan = plan_of(admin.workspace, selection)
            receipt = purge_documents(admin.workspace, selection)
        assert [copy.target for copy in plan.publications] == ["/share"]
        assert receipt.publications == list(plan.publications)

    def test_the_command(self, db: Path) -> None:
        decide(db)
        plan = invoke(
            "corpus", "purge", "--decision", "1", "--dry-run", "--json", "--db", db
        ).json()
        assert plan["decision_ids"] == ["shared-1"]
        assert invoke("corpus", "purge", "--decision", "1", "--yes", "--db", db).code == 0
        assert invoke("corpus", "purge", "--decision", "1", "--yes", "--db", db).code == 2
        assert states(db) == {"shared-1": "erased"}


class TestCommands:
    def test_decide_list_show_and_end(self, db: Path) -> None:
        decision = invoke(
            *("decisions", "add", "Do not post  automatically", "--scope", "shared", "--by", "Ana"),
            *("--about", "schedule, publish", "--about", "bot", "--action", "external_send"),
            *("--until", "2031-01-01", "--reason", "it was wrong", "--json", "--db", db),
        ).json()
        assert decision["id"] == "shared-1"
        assert decision["text"] == "Do not post automatically"
        assert decision["about"] == ["schedule", "publish", "bot"]
        assert decision["valid_until"] == "2031-01-01T23:59:59Z"
        assert invoke("decisions", "show", "1", "--json", "--db", db).json() == decision
        assert "shared-1  active  warn" in invoke("decisions", "list", "--db", db).out
        ended = invoke("decisions", "end", "1", "--by", "Bo", "--reason", "new", "--db", db)
        assert "ended by Bo" in ended.out
        assert invoke("decisions", "list", "--json", "--db", db).json() == {"decisions": []}
        listed = invoke("decisions", "list", "--all", "--json", "--db", db).json()
        assert [record["state"] for record in listed["decisions"]] == ["ended"]

    @pytest.mark.parametrize(
        "arguments",
        [
            ("decisions", "add", "Do not post"),
            ("decisions", "add", " ", "--by", "Ana"),
            ("decisions", "add", "x" * 1001, "--by", "Ana"),
            ("decisions", "add", "Do not\u202e post", "--by", "Ana"),
            ("decisions", "add", "Do not post", "--by", "Ana", "--until", "soon"),
            ("decisions", "add", "Do not post", "--by", "Ana", "--supersedes", "4"),
            ("decisions", "show", "4"),
            ("decisions", "end", "4", "--by", "Bo", "--reason", "x"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, db: Path, arguments: tuple[str, ...]) -> None:
        outcome = invoke(*arguments, "--db", db)
        assert (outcome.code, outcome.out) == (2, "")

    def test_each_act_is_in_the_audit_without_words(self, db: Path) -> None:
        with Admin(db) as admin:
            set_audit(admin.workspace, "on")
            owner.record_decision(
                admin.workspace, NewDecision(text="Never sell Zanzibar", decided_by="Ana")
            )
            owner.end_decision(admin.workspace, "1", "Bo", "Quokka")
        rows = invoke("policy", "audit", "list", "--json", "--db", db).json()["rows"]
        acts = [row["details"] for row in rows if row["kind"] == "decide"]
        assert acts == [
            {"decision": "shared-1", "effect": "warn", "state": "active"},
            {"decision": "shared-1", "state": "ended"},
        ]
        assert "Zanzibar" not in json.dumps(rows)


POLICY = {
    "ada": {"scopes": ["shared", "hr"], "access_level": "internal"},
    "bob": {"scopes": ["shared"], "access_level": "internal"},
    "cy": {"scopes": [], "access_level": "confidential"},
    "pub": {"scopes": ["shared"], "access_level": "public"},
    "nil": {"scopes": [], "access_level": "denied"},
}


class TestAgents:
    @pytest.mark.sample(2)
    @pytest.mark.parametrize(
        ("agent", "ids"),
        [
            ("ada", ["hr-1", "shared-1"]),
            ("bob", ["shared-1"]),
            ("cy", ["hr-1", "shared-1"]),
            ("pub", []),
            ("nil", None),
            ("eve", None),
        ],
    )
    def test_an_agent_sees_the_decisions_of_its_scopes(
        self, db: Path, agent: str, ids: list[str] | None
    ) -> None:
        decide(db, scope="hr")
        decide(db)
        set_policy(db, POLICY)
        with Engine(db) as engine:
            try:
                seen = [record.id for record in engine.decisions(agent)]
            except RolebundleError as error:
                assert error.code == "access_denied"
                seen = None
        assert seen == ids
