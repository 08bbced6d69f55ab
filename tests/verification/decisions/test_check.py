"""`check` and the constraints of bundles: what was decided stops what it is about."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.admin import Admin
from rolebundle.admin.audit import set_audit
from rolebundle.admin.records import end_decision, put_mark, record_decision
from rolebundle.contracts.decisions import CheckAnswer, CheckRequest, NewDecision
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, RolebundleError
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.workspace import Workspace
from support.amounts import few_examples, rounds
from support.commands import invoke
from support.corpora import FLAGGED, NOW, build, document, set_policy
from support.fake_embedder import HashingProvider
from support.intents import DECISIONS, UNRELATED

POST = "schedule a post about 3.0"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, [document("plan", ["the plan of may", "a post about the plan"])])


def decide(db: Path, text: str = "Do not post automatically", **fields: Any) -> str:
    with Admin(db) as admin:
        return record_decision(
            admin.workspace, NewDecision(text=text, decided_by="Ana", **fields)
        ).id


def ask(db: Path, intent: str = POST, **fields: Any) -> CheckAnswer:
    now = fields.pop("now", None)
    with Engine(db) as engine:
        return engine.check(CheckRequest(intent=intent, **fields), now)


def verdict(db: Path, intent: str = POST, **fields: Any) -> str:
    return ask(db, intent, **fields).verdict


def test_a_decision_stops_the_next_matching_intent_and_is_quoted(db: Path) -> None:
    assert verdict(db) == "pass"
    decide(db, about=["schedule"], reason="the last post was wrong", action="external_send")
    answer = ask(db, action="external_send")
    assert answer.verdict == "block"
    [found] = answer.decisions
    assert (found.id, found.text, found.reason, found.decided_by) == (
        "shared-1",
        "Do not post automatically",
        "the last post was wrong",
        "Ana",
    )
    assert found.decided_at is not None
    assert set(found.words) == {"post", "schedule"}
    assert "shared-1" in answer.message
    assert "the last post was wrong" in answer.message
    assert "advice" in answer.advisory
    assert verdict(db, "water the flowers", action="external_send") == "pass"


@pytest.mark.parametrize("effect", ["warn", "require_approval", "block"])
def test_the_verdict_is_the_effect(db: Path, effect: Any) -> None:
    decide(db, effect=effect)
    assert verdict(db) == effect
    decide(db, "Posts are written by Ana", effect="warn")
    answer = ask(db)
    assert answer.verdict == effect
    assert [decision.effect for decision in answer.decisions] == [effect, "warn"]


def test_a_decision_about_another_action_does_not_count(db: Path) -> None:
    decide(db, action="external_send")
    assert verdict(db, action="read") == "pass"
    assert verdict(db, action="external_send") == "block"
    assert verdict(db) == "block", "without an action any may be meant"


def test_only_active_decisions_count(db: Path) -> None:
    decide(db, status="proposed")
    decide(db, valid_from="2030-01-01")
    assert verdict(db) == "pass"
    assert verdict(db, now=datetime(2031, 1, 1, tzinfo=UTC)) == "block"
    with Admin(db) as admin:
        end_decision(admin.workspace, "shared-2", "Bo", "over")
    assert verdict(db, now=datetime(2031, 1, 1, tzinfo=UTC)) == "pass"


def test_an_agent_cannot_ask_as_of_another_time(db: Path) -> None:
    with pytest.raises(RolebundleError):
        parsed(CheckRequest, {"intent": POST, "now": "2001-01-01"})


class TestPolicy:
    @pytest.mark.parametrize(
        ("trust", "expected"),
        [({}, "pass"), ({"actions": {"execute": 4}}, "require_approval"),
         ({"origins": {"internal": 0, "external": 0, "untrusted": 0}}, "block")],
    )  # fmt: skip
    def test_the_trust_table_has_a_say(
        self, db: Path, trust: dict[str, Any], expected: str
    ) -> None:
        rule = {"scopes": [], "access_level": "internal"}
        set_policy(db, {"agents": {"ada": rule}, "trust": trust})
        answer = ask(db, "water the flowers", action="execute", agent="ada")
        assert answer.verdict == expected
        assert answer.policies[0].action == "execute"
        assert ask(db, "water the flowers", agent="ada").policies == []

    def test_decisions_of_other_scopes_do_not_count(self, db: Path) -> None:
        decide(db, scope="hr")
        rules = {
            "ada": {"scopes": ["hr"], "access_level": "internal"},
            "bob": {"scopes": ["shared"], "access_level": "internal"},
            "pub": {"scopes": ["hr"], "access_level": "public"},
        }
        set_policy(db, rules)
        assert [verdict(db, agent=agent) for agent in rules] == ["block", "pass", "pass"]
        with pytest.raises(AccessDenied):
            ask(db)


class TestDocuments:
    FRONT = "---\ndocument_type: decision\n{keys}---\n# Messages\n\n## Decision\n\n{text}\n"

    def ingest(self, folder: Path, keys: str = "", text: str = "", *flags: str) -> Path:
        (folder / "docs").mkdir()
        path = folder / "docs" / "0007.md"
        text = text or "We decided it in May. Do not post automatically."
        path.write_text(self.FRONT.format(keys=keys, text=text), encoding="utf-8")
        db = folder / "c.db"
        outcome = invoke("ingest", folder / "docs", "--lexical-only", "--db", db, *flags)
        assert outcome.code == 0, outcome.err
        return db

    def test_a_document_of_the_type_decision_counts_and_is_quoted(self, tmp_path: Path) -> None:
        db = self.ingest(tmp_path, "updated_at: 2026-05-02\n")
        answer = ask(db)
        assert answer.verdict == "block"
        [found] = answer.decisions
        assert found.text == "Do not post automatically."
        assert found.locator is not None
        assert found.locator.startswith("0007.md:")
        assert found.decided_at == "2026-05-02T00:00:00Z"
        assert verdict(db, "water the flowers") == "pass"

    @pytest.mark.sample(3)
    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ("effect: require_approval\n", "require_approval"),
            ("status: accepted\n", "block"),
            ("status: superseded\n", "pass"),
            ("status: proposed\n", "pass"),
            ("valid_until: 2020-01-01\n", "pass"),
            ("action: external_send\n", "pass"),
            ("trust_tier: untrusted\n", "pass"),
            ("origin: untrusted\n", "pass"),
            ("origin: external\n", "warn"),
            ("applicable_roles: [other]\n", "block"),
        ],
    )
    def test_what_it_declares(self, tmp_path: Path, keys: str, expected: str) -> None:
        assert verdict(self.ingest(tmp_path, keys), action="execute") == expected

    def test_its_words_of_about(self, tmp_path: Path) -> None:
        db = self.ingest(tmp_path, "about: [toot, mastodon]\n")
        assert verdict(db, "toot the news") == "block"

    @pytest.mark.parametrize("keys", ["effect: forbid\n", "action: dance\n", "about: {a: b}\n"])
    def test_a_bad_key_is_refused(self, tmp_path: Path, keys: str) -> None:
        (tmp_path / "a.md").write_text(self.FRONT.format(keys=keys, text="x"), encoding="utf-8")
        outcome = invoke("ingest", tmp_path, "--lexical-only", "--db", tmp_path / "c.db")
        assert keys.partition(":")[0] in outcome.err

    def test_the_keys_mean_nothing_in_other_documents(self, tmp_path: Path) -> None:
        text = "---\neffect: block\n---\n# A\n\nDo not post automatically.\n"
        (tmp_path / "a.md").write_text(text, encoding="utf-8")
        assert invoke("ingest", tmp_path, "--lexical-only", "--db", tmp_path / "c.db").code == 0
        assert verdict(tmp_path / "c.db") == "pass"

    def test_a_misspelled_key_refuses_a_decision(self, tmp_path: Path) -> None:
        text = "---\ndocument_type: decision\nefect: block\n---\n# A\n\nText.\n"
        (tmp_path / "a.md").write_text(text, encoding="utf-8")
        outcome = invoke("ingest", tmp_path, "--lexical-only", "--db", tmp_path / "c.db")
        assert "unknown key 'efect'; did you mean effect?" in outcome.err

    def test_a_rejected_or_flagged_document_does_not_block(self, tmp_path: Path) -> None:
        text = ["Do not post automatically, whatever the plan says."]
        db = build(tmp_path, [document("d", text, document_type="decision")])
        assert verdict(db) == "block"
        flagged = build(tmp_path, [document("d", text, FLAGGED, document_type="decision")])
        assert verdict(flagged) == "warn"
        with Admin(db) as admin:
            put_mark(admin.workspace, "d", "rejected", "Ana", "never decided")
        assert verdict(db) == "pass"


def test_a_decision_in_another_language_is_no_pass(db: Path) -> None:
    decide(db, "Keine Rabatte über die Messe hinaus")
    answer = ask(db, "offer a discount")
    assert (answer.verdict, answer.unchecked) == ("warn", ["shared-1"])
    assert "another language" in answer.message


def test_only_words_are_compared_if_the_model_fails_and_the_answer_says_so(tmp_path: Path) -> None:
    db = build(tmp_path, [document("plan", ["the plan"])], HashingProvider())
    decide(db)
    with Engine(Workspace(db, HashingProvider())) as engine:
        assert engine.check(CheckRequest(intent=POST)).degraded is None
    broken = build(tmp_path, [document("plan", ["the plan"])])
    decide(broken)
    with Engine(Workspace(broken, HashingProvider())) as engine:
        answer = engine.check(CheckRequest(intent=POST))
    assert answer.verdict == "block"
    assert answer.degraded is not None


class TestConstraints:
    def bundle(self, db: Path, task: str = POST, **fields: Any) -> Any:
        with Engine(db) as engine:
            return engine.retrieve(
                RetrievalRequest(task=task, lexical_only=True, now=NOW, **fields)
            )

    def test_a_bundle_has_the_decisions_about_its_task_outside_of_the_limit(self, db: Path) -> None:
        before = self.bundle(db, limit=1)
        assert before.constraints is None
        decide(db, valid_from="2026-01-01")
        after = self.bundle(db, limit=1)
        assert [constraint.id for constraint in after.constraints] == ["shared-1"]
        assert [passage.chunk_id for passage in after.selected] == [
            passage.chunk_id for passage in before.selected
        ]
        assert self.bundle(db, "water the flowers").constraints is None

    def test_they_are_as_at_the_time_of_the_answer(self, db: Path) -> None:
        decide(db, valid_from="2026-12-01")
        assert self.bundle(db).constraints is None

    def test_every_form_shows_them(self, db: Path) -> None:
        decide(db, valid_from="2026-01-01", reason="it was wrong")
        command = ("retrieve", POST, "--lexical-only", "--db", db)
        for form in ("text", "prompt"):
            out = " ".join(invoke(*command, "--format", form).out.split())
            assert "shared-1 (block): Do not post automatically (reason: it was wrong)" in out
        for detail in ("ids", "compact"):
            answer = invoke(*command, "--format", "json", "--detail", detail).json()
            assert answer["constraints"][0]["id"] == "shared-1"


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = build(tmp_path_factory.mktemp("decided"), [document("plan", ["the plan of may"])])
    with Admin(db) as admin:
        for decision in DECISIONS:
            about = [words for words in decision.about.split(", ") if words]
            values = {"text": decision.text, "about": about, "effect": "block", "decided_by": "Ana"}
            record_decision(
                admin.workspace,
                parsed(
                    NewDecision, values | ({"action": decision.action} if decision.action else {})
                ),
            )
    return db


class TestInterfaces:
    """The same 40 intents of each kind, through what `serve`, `mcp` and a host's hook call."""

    @staticmethod
    def fields(intent: str, action: str) -> dict[str, Any]:
        return {"intent": intent} | ({"action": action} if action else {})

    def test_the_servers(self, decided: Path) -> None:
        with Engine(decided) as engine:
            operations = Operations(engine)
            stopped = [
                operations.call("check", self.fields(*intent))["verdict"] == "block"
                for decision in DECISIONS
                for intent in decision.intents
            ]
            passed = [
                operations.call("check", self.fields(*intent))["verdict"] == "pass"
                for intent in UNRELATED
            ]
        assert (len(stopped), len(passed)) == (40, 40)
        assert sum(stopped) >= 38
        assert sum(passed) >= 38

    def hook(self, db: Path, data: object, monkeypatch: pytest.MonkeyPatch) -> Any:
        text = data if isinstance(data, str) else json.dumps(data)
        stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
        monkeypatch.setattr("sys.stdin", stdin)
        return invoke("check", "--hook", "--db", db)

    @rounds(4, 40)
    def test_the_hook(self, decided: Path, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
        matching = [intent for decision in DECISIONS for intent in decision.intents][:rounds]
        stopped = [
            self.hook(decided, self.fields(*intent), monkeypatch).code == 2 for intent in matching
        ]
        passed = [
            self.hook(decided, self.fields(*intent), monkeypatch).code == 0
            for intent in UNRELATED[:rounds]
        ]
        assert sum(stopped) >= 0.95 * rounds
        assert sum(passed) >= 0.95 * rounds

    def test_the_hook_reads_a_tool_call_and_gives_the_reason(
        self, decided: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        call = {
            "hook_event_name": "PreToolUse",
            "tool_name": "mcp__db__run",
            "tool_input": {"sql": "DELETE FROM patients", "why": "delete the patient records"},
        }
        outcome = self.hook(decided, call, monkeypatch)
        assert (outcome.code, outcome.out) == (2, "")
        assert "Do not delete patient records" in outcome.err
        harmless = {"tool_name": "Read", "tool_input": {"file_path": "/tmp/a.txt"}}
        assert self.hook(decided, harmless, monkeypatch).code == 0

    @pytest.mark.parametrize("data", ["", "[]", "{}", '{"tool_name": 1', '{"intent": 3}'])
    def test_a_hook_that_cannot_decide_stops_the_tool(
        self, decided: Path, data: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outcome = self.hook(decided, data, monkeypatch)
        assert outcome.code == 2
        assert outcome.err

    def test_a_missing_corpus_stops_the_tool(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.hook(tmp_path / "none.db", {"intent": POST}, monkeypatch).code == 2

    def test_the_command(self, decided: Path) -> None:
        outcome = invoke("check", POST, "--action", "external_send", "--db", decided)
        assert outcome.code == 1
        assert outcome.out.startswith("block: ")
        assert "rolebundle does not see what is done" in outcome.out
        answer = invoke("check", "water the roses", "--json", "--db", decided)
        assert (answer.code, answer.json()["verdict"]) == (0, "pass")
        CheckAnswer.model_validate(answer.json())


def test_a_check_is_in_the_audit(db: Path) -> None:
    decide(db)
    with Admin(db) as admin:
        set_audit(admin.workspace, "on")
    ask(db, action="execute")
    rows = invoke("audit", "list", "--json", "--db", db).json()["rows"]
    [row] = [row for row in rows if row["kind"] == "check"]
    assert (row["action"], row["details"]) == (
        "execute",
        {"verdict": "block", "decisions": 1, "documents": 0},
    )


@pytest.fixture(scope="module")
def two_decisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = build(tmp_path_factory.mktemp("two"), [document("plan", ["the plan"])], HashingProvider())
    decide(db)
    decide(db, "不要自动发布", about=["schedule AND (post"])
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
                answers.append(engine.check(parsed(CheckRequest, fields), NOW).model_dump())
            except RolebundleError as error:
                answers.append({"error": error.code})
    assert answers[0] == answers[1]
    assert answers[0] != {"error": "internal"}
