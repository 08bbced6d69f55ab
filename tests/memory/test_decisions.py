"""Decisions: recorded, ended, erased, and quoted to intents."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.admin.records import set_audit
from rolebundle.contracts.memory import CheckAnswer, CheckRequest, DecisionRecord, NewDecision
from rolebundle.embedding.provider import Unavailable
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, EmbedderError, RolebundleError, UsageError
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.memory.decisions import all_decisions, end_decision, record_decision
from rolebundle.storage.publications import decision_name
from rolebundle.workspace import Workspace
from support.amounts import few_examples
from support.canaries import files_of, found_in
from support.commands import Outcome, audit_rows, invoke
from support.corpora import NOW as NOW_CHECK
from support.corpora import as_owner, build, document, set_policy
from support.fake_embedder import HashingProvider
from support.publications import stage

# -- Decisions: recorded, superseded, ended, erased, and who sees them -----------------------------

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, [document("plan", ["the plan of may", "a post about the plan"])])


def decide(
    db: Path, text: str = "Do not post", at: datetime = NOW, **fields: Any
) -> DecisionRecord:
    new = NewDecision(text=text, decided_by="Ana", **fields)
    return as_owner(db, record_decision, new, at)


def states(db: Path, at: datetime = NOW) -> dict[str, str]:
    return {record.id: record.state for record in as_owner(db, all_decisions, at)}


def end(db: Path, name: str, at: datetime = NOW) -> DecisionRecord:
    return as_owner(db, end_decision, name, "Bo", "done", at)


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
    with pytest.raises(UsageError, match="before"):
        decide(db, valid_until="2026-10-01")
    last = datetime(2026, 11, 3, 23, 59, 59, tzinfo=UTC)
    assert states(db, last)["shared-1"] == "active"


def test_it_takes_effect_with_the_new_decision(db: Path) -> None:
    decide(db)
    decide(db, supersedes=["1"], valid_from="2026-11-03", valid_until="2026-11-04")
    assert states(db)["shared-1"] == "active"
    for days in (2, 30):
        assert states(db, NOW + days * DAY)["shared-1"] == "superseded"


def test_what_never_has_an_effect_supersedes_nothing(db: Path) -> None:
    decide(db)
    decide(db, supersedes=["shared-1"], status="proposed")
    # It ends before it is valid.
    decide(db, supersedes=["1"], valid_from="2026-11-03")
    end(db, "3")
    assert states(db, NOW + 9 * DAY)["shared-1"] == "active"


@pytest.mark.parametrize("name", ["7", "hr-1", "x", "shared-", "1-x"])
def test_only_a_decision_of_its_scope_is_superseded(db: Path, name: str) -> None:
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


def test_no_byte_of_a_purged_decision_is_left(db: Path) -> None:
    about = {"about": ["Xylowortx"], "commands": ["Qwopcommand*"]}
    decide(db, "Never sell Zanzibarflute", reason="Quokkareason", **about)
    decide(db, "Keep this one")
    end(db, "1")
    words = {b"anzibarf", b"uokkarea", b"ylowortx", b"wopcomma"}
    assert found_in(files_of(db), words) == words
    stage(db, "/share", [decision_name(("shared", 1))])
    command = ("corpus", "purge", "--decision", "1", "--db", db)
    plan = invoke(*command, "--dry-run", "--json").json()
    assert plan["decision_ids"] == ["shared-1"]
    # Replicas with it are outdated.
    assert [copy["target"] for copy in plan["publications"]] == ["/share"]
    [receipt] = invoke(*command, "--yes", "--json").json()["receipts"]
    assert (receipt["state"], receipt["publications"]) == ("done", plan["publications"])
    assert invoke(*command, "--yes").code == 2
    assert found_in(files_of(db), words) == set()
    assert states(db) == {"shared-1": "erased", "shared-2": "active"}
    assert decide(db, "A new one").id == "shared-3"


def test_decide_list_show_and_end(db: Path) -> None:
    decision = invoke(
        *("decisions", "add", "Do not post  automatically", "--scope", "shared", "--by", "Ana"),
        *("--about", "schedule, publish", "--about", "bot", "--action", "external_send"),
        *("--until", "2031-01-01", "--reason", "it was wrong", "--json", "--db", db),
    ).json()
    assert decision["id"] == "shared-1"
    assert decision["text"] == "Do not post automatically"
    assert decision["about"] == ["schedule", "publish", "bot"]
    assert decision["valid_until"] == "2031-01-01T23:59:59Z"
    shown = invoke("decisions", "list", "--json", "--db", db).json()
    assert shown == {"decisions": [decision]}
    assert "id shared-1, text Do not post" in invoke("decisions", "list", "--db", db).out
    ended = invoke("decisions", "end", "1", "--by", "Bo", "--reason", "new", "--db", db)
    assert "ended by: Bo\n" in ended.out
    assert invoke("decisions", "list", "--json", "--db", db).json() == {"decisions": []}
    listed = invoke("decisions", "list", "--all", "--json", "--db", db).json()
    assert [record["state"] for record in listed["decisions"]] == ["ended"]


def test_each_act_is_in_the_audit_without_words(db: Path) -> None:
    as_owner(db, set_audit, "on")
    new = NewDecision(text="Never sell Zanzibar", decided_by="Ana")
    as_owner(db, record_decision, new)
    as_owner(db, end_decision, "1", "Bo", "Quokka")
    rows = audit_rows(db)
    acts = [row["details"] for row in rows if row["kind"] == "decide"]
    assert acts == [
        {"decision": "shared-1", "effect": "warn", "state": "active"},
        {"decision": "shared-1", "state": "ended"},
    ]
    assert "Zanzibar" not in json.dumps(rows)


POLICY = {
    "ada": {"scopes": ["shared", "hr"], "access_level": "internal"},
    "bob": {"scopes": ["shared"], "access_level": "internal"},
    "cy": {"scopes": ["*"], "access_level": "confidential"},
    "pub": {"scopes": ["shared"], "access_level": "public"},
    "nil": {"scopes": [], "access_level": "denied"},
}


def test_an_agent_sees_the_decisions_of_its_scopes(db: Path) -> None:
    decide(db, scope="hr")
    decide(db)
    set_policy(db, POLICY)
    with Engine(db) as engine:
        seen = {
            agent: [record.id for record in engine.decisions(agent)]
            for agent in ("ada", "bob", "cy", "pub")
        }
        for agent in ("nil", "eve"):
            with pytest.raises(AccessDenied):
                engine.decisions(agent)
    both = ["hr-1", "shared-1"]
    assert seen == {"ada": both, "bob": ["shared-1"], "cy": both, "pub": []}


# -- `check` and the constraints of bundles: which decisions may apply -----------------------------

POST = "schedule a post about 3.0"


def decide_check(db: Path, text: str = "Do not post automatically", **fields: Any) -> str:
    fields = {"about": ["post"], "effect": "require_approval"} | fields
    new = NewDecision(text=text, decided_by="Ana", **fields)
    return as_owner(db, record_decision, new).id


def ask(db: Path, intent: str = POST, **fields: Any) -> CheckAnswer:
    now = fields.pop("now", None)
    with Engine(db) as engine:
        return engine.check(CheckRequest(intent=intent, **fields), now)


def verdict(db: Path, intent: str = POST, **fields: Any) -> str:
    return ask(db, intent, **fields).verdict


def test_a_decision_is_quoted_to_the_next_matching_intent(db: Path) -> None:
    assert verdict(db) == "none_found"
    decide_check(db, about=["schedule"], reason="the last post was wrong", action="external_send")
    answer = ask(db, action="external_send")
    assert answer.verdict == "require_approval"
    [found] = answer.decisions
    assert (found.id, found.text, found.decided_by) == (
        "shared-1",
        "Do not post automatically",
        "Ana",
    )
    assert found.reason == "the last post was wrong"
    assert found.decided_at is not None
    assert (found.match, found.verdict, found.words) == ("about", "require_approval", ["schedule"])
    assert "1 decision may apply: shared-1" in answer.message
    assert "the last post was wrong" in answer.message
    assert "advice" in answer.advisory
    other = ask(db, "water the flowers", action="external_send")
    assert (other.verdict, other.decisions) == ("none_found", [])
    assert "allow" not in other.message


def test_only_a_command_blocks(db: Path) -> None:
    decide_check(
        db, "Backups stay", about=["snapshots"], commands=["restic forget*"], effect="block"
    )
    answer = ask(db, "tidy up", command="cd /srv && sudo /usr/bin/restic forget --prune")
    assert answer.verdict == "block"
    assert answer.decisions[0].words == ["restic forget*"]
    assert verdict(db, "delete the old snapshots") == "require_approval"
    assert verdict(db, "tidy up", command="restic snapshots") == "none_found"


def test_what_only_reads_gets_the_decision_for_information(db: Path) -> None:
    decide_check(db)
    for fields in ({}, {"action": "read"}, {"action": "analyze"}):
        answer = ask(db, "explain how a post is written", **fields)
        assert answer.verdict == "none_found"
        assert [(found.id, found.verdict) for found in answer.decisions] == [("shared-1", None)]
        assert "for information: shared-1" in answer.message
    decide_check(db, "Nobody reads the post of others", action="read")
    assert verdict(db, "read the post", action="read") == "require_approval"


def test_a_decision_about_another_action_does_not_count(db: Path) -> None:
    decide_check(db, action="external_send")
    assert verdict(db, action="execute") == "none_found"
    assert verdict(db, action="external_send") == "require_approval"
    assert verdict(db) == "require_approval", "without an action any may be meant"


def test_only_active_decisions_count(db: Path) -> None:
    decide_check(db, status="proposed")
    decide_check(db, valid_from="2030-01-01")
    assert verdict(db) == "none_found"
    assert verdict(db, now=datetime(2031, 1, 1, tzinfo=UTC)) == "require_approval"
    as_owner(db, end_decision, "shared-2", "Bo", "over")
    assert verdict(db, now=datetime(2031, 1, 1, tzinfo=UTC)) == "none_found"


def test_an_agent_cannot_ask_as_of_another_time(db: Path) -> None:
    with pytest.raises(RolebundleError):
        parsed(CheckRequest, {"intent": POST, "now": "2001-01-01"})


def test_an_action_gets_the_rulings_of_each_origin(db: Path) -> None:
    set_policy(db, {"agents": {"ada": {"scopes": ["*"], "access_level": "internal"}}})
    answer = ask(db, "water the flowers", action="execute", agent="ada")
    assert answer.verdict == "none_found"
    assert answer.policies[0].action == "execute"
    assert ask(db, "water the flowers", agent="ada").policies == []


def test_only_words_are_compared_if_the_model_fails_and_the_answer_says_so(tmp_path: Path) -> None:
    db = build(tmp_path, [document("plan", ["the plan"])], HashingProvider())
    decide_check(db)
    with Engine(Workspace(db, HashingProvider())) as engine:
        assert engine.check(CheckRequest(intent=POST)).degraded is None
    unavailable = Unavailable(EmbedderError("no_model", "the model is gone", ""))
    with Engine(Workspace(db, unavailable)) as engine:
        answer = engine.check(CheckRequest(intent=POST))
    assert (answer.verdict, answer.degraded) == ("require_approval", "the model is gone")


def test_a_bundle_has_the_decisions_about_its_task_outside_of_the_limit(db: Path) -> None:
    def answer(task: str, *options: str) -> Any:
        options = options or ("--format", "json", "--limit", "1")
        return invoke("retrieve", task, "--lexical-only", "--db", db, *options)

    before = answer(POST).json()
    assert "constraints" not in before
    decide_check(db, valid_from="2026-01-01", reason="it was wrong")
    after = answer(POST).json()
    assert [constraint["id"] for constraint in after["constraints"]] == ["shared-1"]
    assert [each["chunk_id"] for each in after["selected"]] == [
        each["chunk_id"] for each in before["selected"]
    ]
    assert "constraints" not in answer("water the flowers").json()
    # Every form shows them.
    line = "shared-1 (require_approval): Do not post automatically (reason: it was wrong)"
    for form in ("text", "prompt"):
        assert line in " ".join(answer(POST, "--format", form).out.split())
    for detail in ("ids", "compact"):
        shorter = answer(POST, "--format", "json", "--detail", detail).json()
        assert shorter["constraints"][0]["id"] == "shared-1"


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = build(tmp_path_factory.mktemp("decided"), [document("plan", ["the plan of may"])])
    decide_check(db, "Patient records stay", about=["patient records"], commands=["rm *patients*"])
    return db


class TestInterfaces:
    def test_the_servers(self, decided: Path) -> None:
        with Engine(decided) as engine:
            call = Operations(engine).call
            also = {"intent": "free some space", "also": ["delete the patient records"]}
            assert call("check", also)["verdict"] == "require_approval"
            assert call("check", {"command": "ls /srv"})["verdict"] == "none_found"
            with pytest.raises(RolebundleError, match="give intent or command"):
                call("check", {"also": ["x"]})

    def hook(self, db: Path, data: object, *flags: str) -> Outcome:
        text = data if isinstance(data, str) else json.dumps(data)
        return invoke("check", "--hook", "--db", db, *flags, stdin=text)

    def test_the_hook_reads_a_tool_call_and_gives_the_reason(self, decided: Path) -> None:
        call = {
            "hook_event_name": "PreToolUse",
            "tool_name": "mcp__db__run",
            "tool_input": {"sql": "DELETE FROM patients", "why": "delete the patient records"},
        }
        outcome = self.hook(decided, call)
        assert (outcome.code, outcome.out) == (2, "")
        assert "Patient records stay" in outcome.err
        harmless = {"tool_name": "Read", "tool_input": {"file_path": "/tmp/patient-records.txt"}}
        assert self.hook(decided, harmless, "--action", "execute").code == 0

    @pytest.mark.parametrize(
        ("command", "code"),
        [("sudo rm -r /srv/patients-2020", 2), ("cat /srv/patients-2020/a.txt", 0)],
    )
    def test_the_hook_matches_a_shell_command(self, decided: Path, command: str, code: int) -> None:
        call = {"tool_name": "Bash", "tool_input": {"command": command, "description": "Tidy"}}
        assert self.hook(decided, call, "--action", "execute").code == code

    @pytest.mark.parametrize("data", ["", "[]", "{}", '{"tool_name": 1', '{"intent": 3}'])
    def test_a_hook_that_cannot_decide_stops_the_tool(self, decided: Path, data: str) -> None:
        missing = self.hook(decided.with_name("none.db"), {"intent": POST})
        for outcome in (missing, self.hook(decided, data)):
            assert outcome.code == 2
            assert outcome.err

    def test_the_command(self, decided: Path) -> None:
        outcome = invoke("check", "--command", "rm patients", "--db", decided)
        assert outcome.code == 1
        assert outcome.out.startswith("require_approval: ")
        assert "rolebundle does not see what is done" in outcome.out
        answer = invoke("check", "water the roses", "--json", "--db", decided)
        assert (answer.code, answer.json()["verdict"]) == (0, "none_found")
        CheckAnswer.model_validate(answer.json())


@pytest.fixture(scope="module")
def two_decisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = build(tmp_path_factory.mktemp("two"), [document("plan", ["the plan"])], HashingProvider())
    decide_check(db)
    decide_check(db, "不要自动发布", about=["schedule AND (post"])
    return db


@few_examples
@given(st.text(max_size=80), st.sampled_from([None, "read", "external_send"]))
def test_any_text_gives_an_answer_or_a_coded_error_and_always_the_same(
    two_decisions: Path, intent: str, action: str | None
) -> None:
    answers = []
    with Engine(Workspace(two_decisions, HashingProvider())) as engine:
        for _ in range(2):
            try:
                fields = {"intent": intent, **({"action": action} if action else {})}
                answers.append(engine.check(parsed(CheckRequest, fields), NOW_CHECK).model_dump())
            except RolebundleError as error:
                answers.append({"error": error.code})
    assert answers[0] == answers[1]
    assert answers[0] != {"error": "internal"}
