"""The gate: contracts, criteria, hooks and scenarios."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import unicodedata
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.admin.records import approve_contract, revoke_contract, start_gate
from rolebundle.contracts.gate import GateReport
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied, ConfigurationError, StorageError, UsageError
from rolebundle.interfaces.servers.operations import METHODS, TOOLS
from rolebundle.verification.gate import BLOCKS, answer_stop, load_contract
from rolebundle.verification.gate_files import NotReadable, content_of, read_regular
from rolebundle.workspace import Workspace
from support.amounts import lengths, linear_time
from support.commands import Outcome, audit_rows, invoke
from support.corpora import as_owner, build, set_policy
from support.corpora import document as plain_document
from support.gate_scenarios import (
    CHANGED_REPORT,
    CONTRACT,
    FALSE_COMPLETIONS,
    HONEST_COMPLETIONS,
    REPORT,
    Scenario,
    changed,
    criteria,
    exists,
)
from support.source_tree import write_files

# -- The contract, the baseline, the criteria and the facts of a gate ------------------------------

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
    as_owner(db, start_gate, contract, restart=restart)


def start_approved(db: Path, contract: Path, *more: str) -> None:
    """Start a gate that asks for a changed report and more, and approve its commands."""
    start(db, contract, criteria(changed("report.md"), *more))
    as_owner(db, approve_contract, contract, inline_code=True)


def write_report(contract: Path, text: str = REPORT) -> None:
    write_files(contract.parent, {"report.md": text})


def codes(report: GateReport) -> list[str]:
    return [finding.code for finding in report.findings]


def command(*words: str, more: str = "") -> str:
    return f'check = "command"\ncommand = {json.dumps(words)}\n{more}'


# -- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[criteria", "is not TOML"),
        ("porpose = ''\n" + CHANGED_REPORT, "porpose: unknown key; did you mean purpose?"),
        ("criteria = []", "criteria: must have 1 or more items"),
        (criteria('check = "exists"\nfiel = "a"'), "criterion c1: fiel: unknown key"),
        (criteria('check = "exists"'), "criterion c1: check exists needs the key file"),
        (criteria(f"{exists('a')}\nbytes = 3"), "criterion c1: check exists has no key bytes"),
        (criteria(exists("../a")), "criterion c1: file: must be a path below"),
        (criteria(exists("a"), exists("b")).replace("c2", "c1"), "two criteria have the id c1"),
        (criteria(command("true")), "no criterion names a file"),
        (criteria('check = "matches"\nfile = "a"\npattern = "x*"'), "pattern: matches the empty"),
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
    [({}, "does not exist"), ({"s.json": '{"type": "objekt"}'}, "'objekt' is not valid")],
)
def test_a_gate_does_not_start_with_a_schema_that_is_none(
    db: Path, contract: Path, files: dict[str, str], expected: str
) -> None:
    write_files(contract.parent, files)
    text = criteria('check = "schema"\nfile = "a.json"\nschema_file = "s.json"')
    with pytest.raises(ConfigurationError, match="bad_contract") as error:
        start(db, contract, text)
    assert expected in error.value.message


def test_a_schema_reaches_nothing_outside_and_takes_linear_time(
    db: Path, contract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *words, **_: requests.append(words))
    write_files(contract.parent, {
        "remote.json": '{"$ref": "http://127.0.0.1:9/schema.json"}',
        "slow.json": '{"type": "string", "pattern": "^(a+)+$"}',
        "ahead.json": '{"pattern": "(?=a)"}',
        "keys.json": '{"type": "string", "patternProperties": {"(a+)+$": {}}}',
    })  # fmt: skip
    schemas = [f'check = "schema"\nfile = "a.json"\nschema_file = "{name}.json"'
               for name in ("remote", "slow", "ahead", "keys")]  # fmt: skip
    start(db, contract, criteria(*schemas))
    write_files(contract.parent, {"a.json": json.dumps("a" * 5000 + "!")})
    report = check(db, contract)
    assert [r.result for r in report.criteria] == ["unknown", "not_met", "unknown", "unknown"]
    assert not requests


def test_a_schema_that_a_glob_names_is_still_no_work(db: Path, contract: Path) -> None:
    write_files(contract.parent, {"s.json": "{}"})
    schema = 'check = "schema"\nfile = "f.json"\nschema_file = "s.json"'
    start(db, contract, criteria(changed("*.json"), schema))
    write_files(contract.parent, {"s.json": "[]", "f.json": '{"x": 1}'})
    assert "edited_input" in codes(check(db, contract))


# -- the baseline ---------------------------------------------------------------------------------


def test_a_second_start_needs_restart_and_is_in_the_audit(db: Path, contract: Path) -> None:
    start(db, contract)
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0
    with pytest.raises(UsageError, match="gate_started"):
        start(db, contract)
    write_report(contract)
    start(db, contract, restart=True)
    report = check(db, contract)
    assert (report.restarts, report.verdict) == (1, "failed")
    rows = [row for row in audit_rows(db) if row["kind"] == "gate"]
    assert [row["details"]["step"] for row in rows] == ["restart", "check"]
    assert "work" not in json.dumps(rows)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gate_baseline SET baseline = replace(baseline, '\"files\":[', '\"files\":[ ')",
        "DELETE FROM gate_baseline",
    ],
)
def test_an_edited_baseline_is_no_success(db: Path, contract: Path, statement: str) -> None:
    write_report(contract, "# Draft\n\nThe draft of the report.\n")
    start(db, contract)
    write_report(contract)
    assert check(db, contract).verdict == "success"
    with apsw.Connection(str(db)) as database:
        database.execute(statement)
    report = check(db, contract)
    assert report.verdict == "unknown"
    assert codes(report)[0] == "edited_baseline"


def test_approved_contracts_are_listed(db: Path, contract: Path) -> None:
    start_approved(db, contract)
    listed = invoke("gate", "approve", "--json", "--db", db).json()
    assert [file["location"] for file in listed["contracts"]] == [str(contract)]
    assert invoke("gate", "approve", "--db", db).out.startswith(f"location {contract}, ")
    assert invoke("gate", "approve", "--undo", "--db", db).code == 2


def test_the_gate_and_the_corpus_are_no_work(contract: Path) -> None:
    folder = contract.parent
    db = folder / "notes"
    write_report(contract)
    start(db, contract, criteria(exists("report.md"), exists("**")))
    as_owner(db, approve_contract, contract, inline_code=True)
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0
    write_files(folder, {"notes.published/0123456789abcdef/manifest.json": "{}"})
    assert codes(check(db, contract)) == ["no_work"]
    write_files(folder, {"notes.md": "A file whose name begins like the corpus's is work."})
    assert check(db, contract).verdict == "success"


def test_a_contract_cannot_name_itself_as_work(db: Path, contract: Path) -> None:
    start(db, contract, criteria(exists("work.gate.toml"), exists("c.db"), exists("*.md")))
    write_report(contract)
    report = check(db, contract)
    assert report.criteria[0].result == "not_met"
    assert "belongs to the gate" in report.criteria[0].reason


def test_a_contract_that_names_too_many_files_does_not_start(
    db: Path, contract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolebundle.verification.gate_files.MAX_MATCHES", 2)
    write_files(contract.parent, {f"{n}.md": "text" for n in range(3)})
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
    write_files(contract.parent, {"check.sh": "exit 1\n"})
    start_approved(db, contract, command("sh", "./check.sh"))
    write_report(contract)
    report = check(db, contract)
    assert (report.verdict, codes(report)) == ("failed", [])
    write_files(contract.parent, {"check.sh": "exit 0\n"})
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
    write_report(contract)
    report = check(db, contract)
    assert (report.verdict, report.criteria[1].result) == ("unknown", "unknown")
    assert not (folder / "ran").exists()

    as_owner(db, approve_contract, contract, inline_code=True)
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
    assert as_owner(db, revoke_contract, contract) == str(contract)
    with pytest.raises(UsageError, match="not_approved"):
        as_owner(db, revoke_contract, contract)
    assert check(db, contract).verdict == "unknown"


@pytest.mark.sample(3)
@on_posix
@pytest.mark.parametrize(
    ("words", "more", "result", "expected"),
    [
        (["true"], "", "met", "exit code 0"),
        (["false"], "", "not_met", "exit code 1"),
        (["sleep", "30"], "seconds = 0.05", "unknown", "did not end within 0.05 s"),
        (["no-such-program"], "", "unknown", "cannot be started"),
        (["test", "$(touch pwned)", "=", "x"], "", "not_met", "exit code 1"),
        (["cat"], "seconds = 5.0", "met", "exit code 0"),
    ],
)
def test_a_command_s_exit_code_decides(
    db: Path, contract: Path, words: list[str], more: str, result: str, expected: str
) -> None:
    start_approved(db, contract, command(*words, more=more))
    write_report(contract)
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
        (["python3"], True), (["python", "-B", "-X", "dev", "-c", "import os.path"], True),
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
    start_approved(db, contract, command("touch", "ran"))
    assert invoke("gate", "facts", contract, "--db", db).code == 0
    assert not (contract.parent / "ran").exists()
    assert not [name for name in (*METHODS, *(tool.name for tool in TOOLS)) if "gate" in name]


# -- the corpus -----------------------------------------------------------------------------------


def test_a_draft_must_pass_verify(tmp_path: Path, contract: Path) -> None:
    # Of the documents, ``ada`` and ``bob`` see all, and all but one.
    secret = plain_document("secret", ["the token plan"], scope="hr")
    note = plain_document("note", ["the token plan of the note"], scope="engineering")
    policed = build(tmp_path, [secret, note], name="policed.db")
    ada = {"scopes": [], "access_level": "internal"}
    set_policy(policed, {"ada": ada, "bob": {**ada, "scopes": ["engineering"]}})
    verify = 'check = "verify"\nfile = "report.md"'
    start(policed, contract, criteria(changed("report.md"), verify))

    def verdict_of(text: str, agent: str) -> str:
        write_report(contract, text)
        return check(policed, contract, agent).verdict

    quote = 'The owner says: "the token plan of the note" (note.md:1-1).\n'
    assert verdict_of(quote, "ada") == "success"
    assert verdict_of(quote.replace("plan of", "plan without"), "ada") == "failed"
    assert verdict_of("# Nothing\n\n- here\n- there\n", "ada") != "success"
    hidden = 'It is said: "the token plan" (secret.md:1-1).\n'
    assert verdict_of(hidden, "bob") == "failed"
    with pytest.raises(AccessDenied):
        verdict_of(quote, "eve")
    unnamed_report = check(policed, contract)
    assert unnamed_report.verdict == "unknown"
    assert "name an agent" in unnamed_report.criteria[1].reason


# -- What `gate hook` answers to the host of an agent: only exit code 2 blocks, and never without end


@pytest.fixture
def begun(db: Path, contract: Path) -> Path:
    """A contract whose gate was started, and whose work is not done."""
    start(db, contract)
    return contract


def hook(*arguments: str | Path, stdin: str = "", form: str = "claude-code") -> Outcome:
    return invoke("gate", "hook", form, *arguments, stdin=stdin)


def event(name: str, **fields: Any) -> str:
    common = {"session_id": "abc", "cwd": "/nowhere", "hook_event_name": name}
    return json.dumps(common | fields)


def stop(*, active: bool = False) -> str:
    return event("Stop", stop_hook_active=active)


def test_a_stop_is_blocked_with_the_reason_on_standard_error(db: Path, begun: Path) -> None:
    outcome = hook(begun, "--db", db, stdin=stop())
    assert (outcome.code, outcome.out) == (2, "")
    assert "report.md: does not exist" in outcome.err
    write_report(begun)
    stopped = hook(begun, "--db", db, stdin=stop())
    assert (stopped.code, stopped.out, stopped.err) == (0, "", "")


def test_stop_hook_active_allows_the_stop_and_claims_nothing(db: Path, begun: Path) -> None:
    outcome = hook(begun, "--db", db, stdin=stop(active=True))
    assert outcome.code == 0
    assert "NO success" in json.loads(outcome.out)["systemMessage"]
    insisting = hook(begun, "--retries", "3", "--db", db, stdin=stop(active=True))
    assert insisting.code == 2


@pytest.mark.parametrize("active", [False, True])
def test_a_hook_allows_the_stop_after_its_retries_and_a_prompt_begins_again(
    db: Path, begun: Path, active: bool
) -> None:
    def ask() -> Outcome:
        return hook(begun, "--retries", "2", "--db", db, stdin=stop(active=active))

    assert [ask().code for _ in range(4)] == [2, 2, 0, 0]
    assert "blocked 2 times" in json.loads(ask().out)["systemMessage"]
    prompt = hook(begun, "--db", db, stdin=event("UserPromptSubmit", prompt="x"))
    assert prompt.code == 0
    assert prompt.out.startswith("work.gate.toml: failed; 0 of 1 criteria are met\n")
    assert [ask().code for _ in range(3)] == [2, 2, 0]
    start(db, begun, restart=True)
    assert ask().code == 2


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit"])
def test_facts_are_context(db: Path, begun: Path, name: str) -> None:
    outcome = hook(begun, "--db", db, stdin=event(name))
    assert outcome.code == 0
    assert "report.md: does not exist" in outcome.out


def test_a_broken_setup_never_blocks_and_never_claims_success(
    db: Path, begun: Path, tmp_path: Path
) -> None:
    files = {"broken.toml": "criteria = 3", "other.toml": CHANGED_REPORT}
    folder = write_files(begun.parent, files)
    policed = tmp_path / "policed.db"
    start(policed, begun)
    set_policy(policed, {})
    uses: list[tuple[str, tuple[str | Path, ...]]] = [
        ("claude-code", ("none.toml", "--db", db)),
        ("another-form", (begun, "--db", db)),
        ("exit-code", (begun, "--no-such-option", "--db", db)),
        ("exit-code", (folder / "broken.toml", "--db", db)),
        ("exit-code", (folder / "other.toml", "--db", db)),
        ("exit-code", (begun, "--agent", "nobody", "--db", policed)),
        # An edited baseline cannot keep an agent in a loop.
        ("exit-code", (begun, "--db", db)),
    ]
    with apsw.Connection(str(db)) as database:
        database.execute("UPDATE gate_baseline SET baseline = '{}'")
    for form, arguments in uses:
        outcome = hook(*arguments, stdin=stop(), form=form)
        assert outcome.code == 1, (arguments, outcome)
        assert "NO success" in outcome.err
        assert "Traceback" not in outcome.err


_reports = st.builds(
    GateReport,
    verdict=st.sampled_from(["success", "failed", "unknown"]),
    message=st.text(max_size=20),
    contract=st.just("c.toml"),
    started_at=st.sampled_from([None, "2026-11-22T12:00:00Z"]),
    blocks=st.integers(0, 5),
    met=st.just(0),
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


def test_what_cannot_be_counted_does_not_block(db: Path, begun: Path) -> None:
    full = StorageError("storage_full", "the disk is full", "free some space")
    with patch("rolebundle.interfaces.cli.checks.count_blocks", side_effect=full):
        assert hook(begun, "--db", db, form="exit-code").code == 1


# -- What is substance, what is empty, and what is no result ---------------------------------------

NAMES = ("a.md", "a.rst", "a.txt", "a.js", "a.py", "a.yaml", "a.html", "Makefile", "a.xyz")
_texts = st.text(st.sampled_from("abß é#*-<>|`:[]0 \n\t"), max_size=60)


def substance(name: str, text: str | bytes) -> str:
    return content_of(name, text.encode() if isinstance(text, str) else text).substance


@given(st.sampled_from(NAMES), _texts, st.integers(0, 60))
@example("a.js", "#é", 0)
@example("a.md", "0\n-", 0)
def test_what_nobody_sees_is_no_substance(name: str, text: str, at: int) -> None:
    before = substance(name, text)
    assert substance(name, text.replace("\n", "\r\n")) == before
    # A line of marks may underline a heading, which an empty line between them makes a paragraph.
    is_underlined = name in ("a.md", "a.rst") and re.search(r"(?m)\n[^\w\n]+$", text)
    gap = "\n\n" if is_underlined else "\n"
    assert substance(name, text.replace(gap, f"{gap}\n") + "\n") == before
    assert substance(name, text[:at] + "\u200b" + text[at:]) == before
    assert substance(name, unicodedata.normalize("NFD", text)) == before
    assert substance(name, b"\xef\xbb\xbf" + text.encode()) == before


@given(st.sampled_from([*NAMES, "a.json", "a.csv", "a.zip", "a.png"]), st.binary(max_size=300))
def test_every_content_is_judged(name: str, data: bytes) -> None:
    content = content_of(name, data)
    assert content.substance or not content.body
    assert len(content.wrong_kind) < 200


def _archive(members: dict[str, str]) -> bytes:
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return data.getvalue()


def test_an_archive_is_its_members() -> None:
    one = _archive({"a.txt": "a", "b.txt": "b"})
    assert substance("a.zip", one) == substance("a.zip", _archive({"b.txt": "b", "a.txt": "a"}))
    assert substance("a.zip", one) != substance("a.zip", _archive({"a.txt": "a"}))
    assert not substance("a.zip", _archive({"a.txt": "", "folder/": ""}))
    assert content_of("a.zip", one[:40]).wrong_kind


RESULTS = [
    "42", "Yes.", "Failed tests: 0. Passed: 14.", "Error rate: 0.2% (was 1.4%).",
    "Error handling was moved to the edge.", "Not found in 2019; first seen in 2020.",
    "Todo app: a list of items", "See [Add a user](users.md), and press <Enter>.",
    "**ERROR 12: no date.** Write the date.\n\n**fatal: locked.** Wait.\n\nThen go on.\n",
]  # fmt: skip


@pytest.mark.parametrize("text", RESULTS)
def test_what_is_a_result(text: str) -> None:
    content = content_of("a.md", text.encode())
    assert (content.error, list(content.placeholders)) == ("", [])
    assert content.substance


@lengths
@pytest.mark.parametrize(
    "unit", ["error ", "error: ", "[", "<!--", "{", "a: ", "sorry ", "<h1", "# ", "|"]
)
@pytest.mark.parametrize("name", ["a.txt", "a.py", "a.csv", "a.json"])
def test_a_text_takes_linear_time(name: str, unit: str, length: int) -> None:
    data = (unit * (length // len(unit)) + "x").encode()
    with linear_time(length):
        content_of(name, data)


# -- False completions are never a success, and honest ones are ------------------------------------


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path_factory.mktemp("gate") / "corpus.db")
    yield workspace
    workspace.close()


def attempt(workspace: Workspace, folder: Path, scenario: Scenario) -> GateReport:
    contract = folder / CONTRACT
    contract.write_text(scenario.contract, encoding="utf-8")
    write_files(folder, scenario.before)
    if scenario.started:
        start_gate(workspace, contract)
    scenario.perform(folder)
    if scenario.edited is not None:
        contract.write_text(scenario.edited, encoding="utf-8")
    return Engine(workspace).gate_check(contract)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scenario", FALSE_COMPLETIONS, ids=lambda scenario: scenario.name)
def test_a_false_completion_is_no_success(
    scenario: Scenario, workspace: Workspace, tmp_path: Path
) -> None:
    report = attempt(workspace, tmp_path, scenario)
    assert report.verdict != "success", report.model_dump_json(indent=1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scenario", HONEST_COMPLETIONS, ids=lambda scenario: scenario.name)
def test_an_honest_completion_is_a_success(
    scenario: Scenario, workspace: Workspace, tmp_path: Path
) -> None:
    report = attempt(workspace, tmp_path, scenario)
    assert report.verdict == "success", report.message
