"""The contract, the baseline, the criteria and the facts of a gate."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import approve_contract, revoke_contract, start_gate
from rolebundle.contracts.gate import GateReport
from rolebundle.contracts.schema import SCHEMAS
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, ConfigurationError, UsageError
from rolebundle.interfaces.servers.operations import METHODS, TOOLS
from rolebundle.verification.gate import load_contract
from rolebundle.verification.gate_files import NotReadable, read_regular
from support.commands import invoke
from support.corpora import build, set_policy
from support.corpora import document as plain_document
from support.gate_scenarios import (
    CHANGED_REPORT,
    REPORT,
    SCHEMA,
    at_least,
    changed,
    criteria,
    exists,
    should,
    write,
)

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="runs POSIX programs")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "corpus.db"


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    path = folder / "work.gate.toml"
    path.write_text(CHANGED_REPORT, encoding="utf-8")
    return path


def check(db: Path, contract: Path, agent: str | None = None, **options: Any) -> GateReport:
    with Engine(db) as engine:
        return engine.gate_check(contract, agent, **options)


def start(db: Path, contract: Path, text: str | None = None, *, restart: bool = False) -> None:
    if text is not None:
        contract.write_text(text, encoding="utf-8")
    with Admin(db) as admin:
        start_gate(admin.workspace, contract, restart=restart)


def approve(db: Path, contract: Path) -> None:
    with Admin(db) as admin:
        approve_contract(admin.workspace, contract, inline_code=True)


def codes(report: GateReport) -> list[str]:
    return [finding.code for finding in report.findings]


def command(*words: str, more: str = "") -> str:
    return f'check = "command"\ncommand = {json.dumps(words)}\n{more}'


# -- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[criteria", "is not TOML"),
        ("purpose = 1\n" + CHANGED_REPORT, "purpose: must be a text"),
        ("porpose = ''\n" + CHANGED_REPORT, "porpose: unknown key; did you mean purpose?"),
        ("criteria = []", "criteria: must have 1 or more items"),
        (criteria('check = "exist"\nfile = "a"'), "criterion c1: check: must be one of"),
        (criteria('check = "exists"\nfiel = "a"'), "criterion c1: fiel: unknown key"),
        (criteria('check = "exists"'), "criterion c1: check exists needs the key file"),
        (criteria(f"{exists('a')}\nbytes = 3"), "criterion c1: check exists has no key bytes"),
        (criteria(exists("../a")), "criterion c1: file: must be a path below"),
        (criteria(exists("/etc/passwd")), "criterion c1: file: must be a path below"),
        (criteria(exists("a"), watch='["../**"]'), "watch[0]: must be a path below"),
        (criteria(exists("a")).replace("c1", "a b"), "id: must match"),
        (criteria(exists("a"), exists("b")).replace("c2", "c1"), "two criteria have the id c1"),
        (criteria(should(exists("a"))), "at least one criterion must have the level must"),
        (criteria(command("true")), "no criterion names a file"),
        (
            criteria('check = "matches"\nfile = "a"\npattern = "("'),
            "criterion c1: pattern: missing",
        ),
        (criteria('check = "matches"\nfile = "a"\npattern = "x*"'), "pattern: matches the empty"),
        (
            criteria('check = "sha256"\nfile = "a"\nsha256 = "AB"'),
            "criterion c1: sha256: must match",
        ),
        (criteria(exists("a"), command()), "criterion c2: command: must have 1 or more items"),
    ],
)
def test_a_wrong_contract_is_refused_with_its_key_and_the_reason(
    contract: Path, text: str, expected: str
) -> None:
    contract.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as error:
        load_contract(contract)
    assert error.value.code == "bad_contract"
    assert f"{contract}: " in error.value.message
    assert expected in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "does not exist"),
        ({"s.json": "{"}, "is no JSON Schema"),
        ({"s.json": "3"}, "is no JSON Schema"),
        ({"s.json": '{"type": "objekt"}'}, "'objekt' is not valid"),
    ],
)
def test_a_gate_does_not_start_with_a_schema_that_is_none(
    db: Path, contract: Path, files: dict[str, str], expected: str
) -> None:
    write(contract.parent, files)
    text = criteria('check = "schema"\nfile = "a.json"\nschema_file = "s.json"')
    with pytest.raises(ConfigurationError, match="bad_contract") as error:
        start(db, contract, text)
    assert expected in error.value.message


def test_a_schema_reaches_nothing_outside_and_takes_linear_time(
    db: Path, contract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *words, **_: requests.append(words))
    write(contract.parent, {
        "remote.json": '{"$ref": "http://127.0.0.1:9/schema.json"}',
        "slow.json": '{"type": "string", "pattern": "^(a+)+$"}',
        "ahead.json": '{"pattern": "(?=a)"}',
        "keys.json": '{"type": "string", "patternProperties": {"(a+)+$": {}}}',
    })  # fmt: skip
    schemas = [f'check = "schema"\nfile = "a.json"\nschema_file = "{name}.json"'
               for name in ("remote", "slow", "ahead", "keys")]  # fmt: skip
    start(db, contract, criteria(*schemas))
    write(contract.parent, {"a.json": json.dumps("a" * 5000 + "!")})
    report = check(db, contract)
    assert [r.result for r in report.criteria] == ["unknown", "not_met", "unknown", "unknown"]
    assert not requests


def test_a_missing_contract(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no_contract"):
        load_contract(tmp_path / "none.toml")


# -- the baseline ---------------------------------------------------------------------------------


def test_a_second_start_needs_restart_and_is_in_the_audit(db: Path, contract: Path) -> None:
    start(db, contract)
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0
    with pytest.raises(UsageError, match="gate_started"):
        start(db, contract)
    write(contract.parent, {"report.md": REPORT})
    start(db, contract, restart=True)
    report = check(db, contract)
    assert (report.restarts, report.verdict) == (1, "failed")
    rows = invoke("policy", "audit", "list", "--json", "--db", db).json()["rows"]
    rows = [row for row in rows if row["kind"] == "gate"]
    assert [row["details"]["step"] for row in rows] == ["restart", "check"]
    assert "work" not in json.dumps(rows)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gate_baseline SET baseline = replace(baseline, '\"files\":[', '\"files\":[ ')",
        "UPDATE gate_baseline SET started_at = '2020-01-01T00:00:00Z'",
        "UPDATE gate_baseline SET contract_hash = 'x'",
        "DELETE FROM gate_baseline",
    ],
)
def test_an_edited_baseline_is_no_success(db: Path, contract: Path, statement: str) -> None:
    write(contract.parent, {"report.md": "# Draft\n\nThe draft of the report.\n"})
    start(db, contract)
    write(contract.parent, {"report.md": REPORT})
    assert check(db, contract).verdict == "success"
    with apsw.Connection(str(db)) as database:
        database.execute(statement)
    report = check(db, contract)
    assert report.verdict == "unknown"
    assert codes(report)[0] == "edited_baseline"


def test_approved_contracts_are_listed(contract: Path) -> None:
    db = contract.parent / "notes"
    start(db, contract, criteria(exists("report.md")))
    approve(db, contract)
    listed = invoke("gate", "approve", "--json", "--db", db).json()
    assert [file["location"] for file in listed["contracts"]] == [str(contract)]
    assert invoke("gate", "approve", "--db", db).out.startswith(f"{contract}  ")
    assert invoke("gate", "approve", "--undo", "--db", db).code == 2


def test_the_gate_and_the_corpus_are_no_work(contract: Path) -> None:
    folder = contract.parent
    db = folder / "notes"
    text = criteria(exists("report.md"), watch='["**"]')
    write(folder, {"report.md": REPORT})
    start(db, contract, text)
    approve(db, contract)
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0
    write(folder, {"notes.published/0123456789abcdef/manifest.json": "{}"})
    assert codes(check(db, contract)) == ["no_work"]
    write(folder, {"notes.md": "A file whose name begins like the corpus's is work."})
    assert check(db, contract).verdict == "success"


def test_a_contract_cannot_name_itself_as_work(db: Path, contract: Path) -> None:
    start(db, contract, criteria(exists("work.gate.toml"), exists("c.db"), watch='["*.md"]'))
    write(contract.parent, {"report.md": REPORT})
    report = check(db, contract)
    assert report.criteria[0].result == "not_met"
    assert "belongs to the gate" in report.criteria[0].reason


@pytest.mark.parametrize(
    ("content", "is_met"),
    [
        (b"x" * 99, False),
        (b"x" * 100, True),
        (b"x" * 48 + b" " * 900, False),
        (b"x\n" * 50, False),
        (b"x" + b"\x00" * 900, False),
    ],
)
def test_white_space_and_repetition_are_no_size(
    db: Path, contract: Path, content: bytes, is_met: bool
) -> None:
    start(db, contract, criteria(at_least("a.bin", 100)))
    write(contract.parent, {"a.bin": content})
    assert (check(db, contract).criteria[0].result == "met") == is_met


def test_a_contract_that_names_too_many_files_does_not_start(
    db: Path, contract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolebundle.verification.gate_files.MAX_MATCHES", 2)
    write(contract.parent, {f"{n}.md": "text" for n in range(3)})
    with pytest.raises(ConfigurationError, match="too many files"):
        start(db, contract, criteria(exists("*.md")))


@on_posix
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "large").write_bytes(b"12345")
    for name, expected in [
        ("pipe", "special file"), ("link", "symbolic link"), (".", "folder"),
        ("none", "does not exist"), ("large", "over 4 bytes"), ("a\x00b", "name"),
    ]:  # fmt: skip
        with pytest.raises(NotReadable, match=expected):
            read_regular(tmp_path / name, 4)


# -- edited inputs --------------------------------------------------------------------------------


@on_posix
def test_a_script_that_judges_must_not_change(db: Path, contract: Path) -> None:
    write(contract.parent, {"check.sh": "exit 1\n"})
    start(db, contract, criteria(changed("report.md"), command("sh", "./check.sh")))
    approve(db, contract)
    write(contract.parent, {"report.md": REPORT})
    report = check(db, contract)
    assert (report.verdict, codes(report)) == ("failed", [])
    write(contract.parent, {"check.sh": "exit 0\n"})
    report = check(db, contract)
    assert (report.verdict, codes(report)) == ("unknown", ["edited_input"])


# -- commands -------------------------------------------------------------------------------------


@on_posix
def test_a_command_is_run_only_if_the_contract_is_approved_as_it_is(
    db: Path, contract: Path
) -> None:
    folder = contract.parent
    text = criteria(changed("report.md"), command("touch", "ran"))
    start(db, contract, text)
    write(folder, {"report.md": REPORT})
    report = check(db, contract)
    assert (report.verdict, report.criteria[1].result) == ("unknown", "unknown")
    assert not (folder / "ran").exists()

    approve(db, contract)
    assert check(db, contract, no_command="not here").verdict == "unknown"
    assert not (folder / "ran").exists()
    assert check(db, contract).verdict == "success"
    assert (folder / "ran").exists()

    (folder / "ran").unlink()
    contract.write_text(text + "\n# changed\n", encoding="utf-8")
    report = check(db, contract)
    assert codes(report) == ["edited_contract"]
    assert not (folder / "ran").exists()

    contract.write_text(text, encoding="utf-8")
    with Admin(db) as admin:
        assert revoke_contract(admin.workspace, contract) == str(contract)
        with pytest.raises(UsageError, match="not_approved"):
            revoke_contract(admin.workspace, contract)
    assert check(db, contract).verdict == "unknown"


@pytest.mark.sample(3)
@on_posix
@pytest.mark.parametrize(
    ("words", "more", "result", "expected"),
    [
        (["true"], "", "met", "exit code 0"),
        (["false"], "", "not_met", "exit code 1, needed is 0"),
        (["sh", "-c", "exit 7"], "exit_code = 7", "met", "exit code 7"),
        (["sh", "-c", "kill -9 $$"], "", "not_met", "exit code -9"),
        (["sleep", "30"], "seconds = 0.05", "unknown", "did not end within 0.05 s"),
        (["no-such-program"], "", "unknown", "cannot be started"),
        (["test", "-f", "work.gate.toml"], "", "met", "exit code 0"),
        (["test", "$(touch pwned)", "=", "x"], "", "not_met", "exit code 1"),
        (["cat"], "seconds = 5.0", "met", "exit code 0"),
    ],
)
def test_a_command_s_exit_code_decides(
    db: Path, contract: Path, words: list[str], more: str, result: str, expected: str
) -> None:
    start(db, contract, criteria(changed("report.md"), command(*words, more=more)))
    approve(db, contract)
    write(contract.parent, {"report.md": REPORT})
    report = check(db, contract)
    assert report.criteria[1].result == result, report.criteria[1]
    assert expected in report.criteria[1].reason
    assert report.verdict == {"met": "success", "not_met": "failed", "unknown": "unknown"}[result]
    assert not (contract.parent / "pwned").exists()


@pytest.mark.parametrize(
    ("words", "is_refused"),
    [
        (["sh", "-c", "exit 0"], True), (["/bin/bash", "-lc", "x"], True), (["env", "A=1", "sh"], True),
        (["timeout", "5", "python3", "-c", "x"], True), (["python", "-Bc", "x"], True),
        (["cmd.exe", "/c", "x"], True), (["perl", "-e", "x"], True), (["node", "--eval", "x"], True),
        (["busybox", "sh", "-c", "x"], True), (["python3"], True), (["python", "-B", "-X", "dev", "-c", "import os.path"], True), (["pwsh", "-Command", "x"], True),
        (["sh", "./check.sh"], False), (["python", "-m", "pytest", "-c", "x"], False),
        (["pytest", "-q"], False), (["git", "grep", "-e", "sh"], False), (["make", "test"], False),
        (["node", "check.js"], False), (["grep", "-c", "python", "a.md"], False),
    ],
)  # fmt: skip
def test_a_shell_needs_its_own_approval(
    db: Path, contract: Path, words: list[str], is_refused: bool
) -> None:
    start(db, contract, criteria(changed("report.md"), command(*words)))
    outcome = invoke("gate", "approve", contract, "--db", db)
    assert outcome.code == (2 if is_refused else 0)
    assert ("[inline_code]" in outcome.err) == is_refused
    allowed = invoke("gate", "approve", contract, "--inline-code", "--db", db)
    assert allowed.code == 0
    assert f"- {shlex.join(words)}" in allowed.out


def test_facts_and_no_server_run_commands(db: Path, contract: Path) -> None:
    start(db, contract, criteria(changed("report.md"), command("touch", "ran")))
    approve(db, contract)
    assert invoke("gate", "facts", contract, "--db", db).code == 0
    assert not (contract.parent / "ran").exists()
    assert not [name for name in (*METHODS, *(tool.name for tool in TOOLS)) if "gate" in name]


# -- results --------------------------------------------------------------------------------------


def test_a_should_criterion_does_not_decide(db: Path, contract: Path) -> None:
    start(db, contract, criteria(changed("report.md"), should(command("true"))))
    write(contract.parent, {"report.md": REPORT})
    report = check(db, contract)
    assert (report.verdict, report.criteria[1].result) == ("success", "unknown")


def test_facts_are_short_and_to_the_point(db: Path, contract: Path) -> None:
    write(contract.parent, {"report.md": ""})
    start(db, contract, criteria(changed("report.md"), exists("b.md"), should(exists("c.md"))))
    write(contract.parent, {"b.md": REPORT})
    assert invoke("gate", "facts", contract, "--db", db).out == (
        "work.gate.toml: failed; 1 of 2 must criteria are met\n"
        "c1: not met: report.md: not changed since the start\n"
        "c3: should be met: c.md: does not exist\n"
    )


def test_the_json_report_fits_its_contract(db: Path, contract: Path) -> None:
    started = invoke("gate", "start", contract, "--json", "--db", db)
    assert SCHEMAS["gate-start"].model_validate_json(started.out)
    checked = invoke("gate", "check", contract, "--json", "--db", db)
    assert SCHEMAS["gate-report"].model_validate_json(checked.out)


# -- the corpus -----------------------------------------------------------------------------------


POSTURE = 'check = "posture"\ntask = "the token plan"\ntrust = "{}"'


@pytest.fixture
def policed(tmp_path: Path) -> Path:
    """A corpus whose authoritative document only ``ada`` may see."""
    secret = plain_document("secret", ["the token plan"], scope="hr", trust_tier="authoritative")
    note = plain_document("note", ["the token plan of the note"], scope="engineering")
    path = build(tmp_path, [secret, note], name="policed.db")
    policy = {
        "ada": {"scopes": [], "access_level": "internal"},
        "bob": {"scopes": ["engineering"], "access_level": "internal"},
    }
    set_policy(path, policy)
    return path


def test_the_corpus_is_asked_in_the_name_of_the_agent(policed: Path, contract: Path) -> None:
    start(policed, contract, criteria(changed("report.md"), POSTURE.format("strong")))
    write(contract.parent, {"report.md": REPORT})
    assert check(policed, contract, "ada").verdict == "success"
    assert check(policed, contract, "bob").verdict == "failed"
    with pytest.raises(AccessDenied):
        check(policed, contract, "eve")
    unnamed_report = check(policed, contract)
    assert unnamed_report.verdict == "unknown"
    assert "name an agent" in unnamed_report.criteria[1].reason


def test_a_draft_must_pass_verify(policed: Path, contract: Path) -> None:
    verify = 'check = "verify"\nfile = "report.md"'
    start(policed, contract, criteria(changed("report.md"), verify))

    def verdict_of(text: str, agent: str) -> str:
        write(contract.parent, {"report.md": text})
        return check(policed, contract, agent).verdict

    quote = 'The owner says: "the token plan of the note" (note.md:1-1).\n'
    assert verdict_of(quote, "ada") == "success"
    assert verdict_of(quote.replace("plan of", "plan without"), "ada") == "failed"
    assert verdict_of("# Nothing\n\n- here\n- there\n", "ada") != "success"
    hidden = 'It is said: "the token plan is secret" (secret.md:1-1).\n'
    assert verdict_of(hidden, "bob") == "failed"


def test_a_schema_that_a_glob_names_is_still_no_work(db: Path, contract: Path) -> None:
    write(contract.parent, {"s.json": SCHEMA})
    schema = 'check = "schema"\nfile = "f.json"\nschema_file = "s.json"'
    start(db, contract, criteria(changed("*.json"), schema))
    write(contract.parent, {"s.json": "{}", "f.json": '{"x": 1}'})
    assert "edited_input" in codes(check(db, contract))
