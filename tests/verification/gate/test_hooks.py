"""What `gate hook` answers to the host of an agent: only exit code 2 blocks, and never without end."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.admin import Admin
from rolebundle.admin.records import set_policy, start_gate
from rolebundle.contracts.gate import GateReport
from rolebundle.errors import StorageError
from rolebundle.verification.gate import BLOCKS, answer_stop
from support.commands import Outcome, invoke
from support.gate_scenarios import CHANGED_REPORT, REPORT, write


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "corpus.db"


@pytest.fixture
def contract(tmp_path: Path, db: Path) -> Path:
    """A contract whose gate was started, and whose work is not done."""
    folder = tmp_path / "work"
    folder.mkdir()
    path = folder / "work.gate.toml"
    path.write_text(CHANGED_REPORT, encoding="utf-8")
    with Admin(db) as admin:
        start_gate(admin.workspace, path)
    return path


def hook(form: str, *arguments: str | Path, stdin: bytes = b"") -> Outcome:
    standard_input = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with patch("sys.stdin", standard_input):
        return invoke("gate", "hook", form, *arguments)


def event(name: str, **fields: Any) -> bytes:
    common = {
        "session_id": "abc",
        "transcript_path": "/nowhere/abc.jsonl",
        "cwd": "/nowhere",
        "permission_mode": "default",
        "hook_event_name": name,
    }
    return json.dumps(common | fields).encode()


def stop(*, active: bool = False, **fields: Any) -> bytes:
    return event("Stop", stop_hook_active=active, **fields)


def test_a_stop_is_blocked_with_the_reason_on_standard_error(db: Path, contract: Path) -> None:
    outcome = hook("claude-code", contract, "--db", db, stdin=stop())
    assert (outcome.code, outcome.out) == (2, "")
    assert "report.md: does not exist" in outcome.err
    write(contract.parent, {"report.md": REPORT})
    stopped = hook("claude-code", contract, "--db", db, stdin=stop())
    assert (stopped.code, stopped.out, stopped.err) == (0, "", "")


def test_stop_hook_active_allows_the_stop_and_claims_nothing(db: Path, contract: Path) -> None:
    outcome = hook("claude-code", contract, "--db", db, stdin=stop(active=True))
    assert outcome.code == 0
    assert "NO success" in json.loads(outcome.out)["systemMessage"]
    insisting = hook("claude-code", contract, "--retries", "3", "--db", db, stdin=stop(active=True))
    assert insisting.code == 2


@pytest.mark.parametrize("active", [False, True])
def test_a_hook_allows_the_stop_after_its_retries_and_a_prompt_begins_again(
    db: Path, contract: Path, active: bool
) -> None:
    def ask() -> Outcome:
        options = ("--retries", "2", "--db", db)
        return hook("claude-code", contract, *options, stdin=stop(active=active))

    assert [ask().code for _ in range(4)] == [2, 2, 0, 0]
    assert "blocked 2 times" in json.loads(ask().out)["systemMessage"]
    prompt = hook("claude-code", contract, "--db", db, stdin=event("UserPromptSubmit", prompt="x"))
    assert prompt.code == 0
    assert prompt.out.startswith("work.gate.toml: failed; 0 of 1 must criteria are met\n")
    assert [ask().code for _ in range(3)] == [2, 2, 0]
    with Admin(db) as admin:
        start_gate(admin.workspace, contract, restart=True)
    assert ask().code == 2


def test_the_exit_code_form_allows_the_stop_without_claiming_success(
    db: Path, contract: Path
) -> None:
    outcome = hook("exit-code", contract, "--retries", "0", "--db", db)
    assert outcome.code == 1
    assert "NO success" in outcome.err


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit"])
def test_facts_are_context(db: Path, contract: Path, name: str) -> None:
    outcome = hook("claude-code", contract, "--db", db, stdin=event(name))
    assert outcome.code == 0
    assert "report.md: does not exist" in outcome.out


@pytest.mark.parametrize("name", ["PreToolUse", "Notification", "", None, 3])
def test_other_events_are_left_alone(db: Path, contract: Path, name: Any) -> None:
    outcome = hook("claude-code", contract, "--db", db, stdin=event(name))
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ("claude-code", "none.toml"),
        ("claude-code",),
        ("another-form", "CONTRACT"),
        ("exit-code", "CONTRACT", "--no-such-option"),
        ("exit-code", "CONTRACT", "--retries", "many"),
        ("exit-code", "BROKEN"),
        ("exit-code", "CONTRACT", "--db", "FOLDER"),
        ("exit-code", "OTHER"),
        ("exit-code", "CONTRACT", "--agent", "nobody", "--db", "POLICED"),
    ],
)
def test_a_broken_setup_never_blocks_and_never_claims_success(
    db: Path, contract: Path, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    broken = contract.with_name("broken.toml")
    broken.write_text("criteria = 3", encoding="utf-8")
    other_contract = contract.with_name("other.toml")
    other_contract.write_text(CHANGED_REPORT, encoding="utf-8")
    policed = tmp_path / "policed.db"
    with Admin(policed) as admin:
        start_gate(admin.workspace, contract)
        set_policy(admin.workspace, "{}", "json")
    places = {
        "CONTRACT": contract, "BROKEN": broken, "FOLDER": tmp_path, "OTHER": other_contract,
        "POLICED": policed,
    }  # fmt: skip
    words = [str(places.get(word, word)) for word in arguments]
    outcome = hook(*words, *(() if "--db" in words else ("--db", db)), stdin=stop())
    assert outcome.code == 1, outcome
    assert "NO success" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("data", [b"", b"nothing", b"[]", b'{"a": 1, "a": 2}', b"\xff"])
def test_an_event_that_is_none_never_blocks(db: Path, contract: Path, data: bytes) -> None:
    outcome = hook("claude-code", contract, "--db", db, stdin=data)
    assert outcome.code == 1
    assert "NO success" in outcome.err


def test_an_edited_baseline_cannot_keep_an_agent_in_a_loop(db: Path, contract: Path) -> None:
    with apsw.Connection(str(db)) as database:
        database.execute("UPDATE gate_baseline SET baseline = '{}'")
    outcome = hook("exit-code", contract, "--db", db)
    assert outcome.code == 1
    assert "NO success" in outcome.err


_reports = st.builds(
    GateReport,
    verdict=st.sampled_from(["success", "failed", "unknown"]),
    message=st.text(max_size=20),
    contract=st.just("c.toml"),
    started_at=st.sampled_from([None, "2026-11-22T12:00:00Z"]),
    blocks=st.integers(0, 5),
    must=st.just(1),
    must_met=st.just(0),
    criteria=st.just([]),
)


@given(
    report=_reports,
    form=st.sampled_from(["claude-code", "exit-code"]),
    is_retry=st.booleans(),
    retries=st.integers(0, 4),
    insist=st.booleans(),
)
def test_every_answer_ends_within_the_retries(
    report: GateReport, form: Any, is_retry: bool, retries: int, insist: bool
) -> None:
    blocked = 0
    while True:
        answer = answer_stop(report, form, is_retry=is_retry, retries=retries, insist=insist)
        if answer.exit_code != BLOCKS:
            break
        blocked += 1
        assert answer.error
        assert answer.blocks == report.blocks + 1
        report = report.model_copy(update={"blocks": answer.blocks})
        assert blocked <= retries
    if report.verdict == "success":
        assert (answer.exit_code, blocked, answer.output, answer.error) == (0, 0, "", "")
    else:
        assert "NO success" in answer.output + answer.error
        assert (answer.exit_code == 0) == (form == "claude-code")


def test_what_cannot_be_counted_does_not_block(db: Path, contract: Path) -> None:
    full = StorageError("storage_full", "the disk is full", "free some space")
    with patch("rolebundle.interfaces.cli.checks.count_blocks", side_effect=full):
        assert hook("exit-code", contract, "--db", db).code == 1
