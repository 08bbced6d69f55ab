"""What agents and their hosts are given to run: the skill, and the hooks in docs/agents.md."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from rolebundle.contracts.terms import WarningCode
from support.commands import CHECKOUT, Outcome, forked_program, invoke
from support.source_tree import write_files

SKILL = CHECKOUT / "docs" / "skill" / "SKILL.md"
TOKENS = """# Tokens

How tokens live and die.

A refresh token lives 30 days.
It is rotated on every use.

An access token lives 10 minutes.
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_files(tmp_path_factory.mktemp("team"), {"docs/security/tokens.md": TOKENS})
    db = folder / "team.db"
    assert invoke("ingest", folder / "docs", "--lexical-only", "--db", db).code == 0
    about = ("--about", "publish, curl", "--effect", "require_approval")
    decision = ("Do not post automatically", "--by", "Ana", *about)
    assert invoke("decisions", "add", *decision, "--db", db).code == 0
    return db


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run(command: str, db: Path, standard_input: str = "") -> subprocess.CompletedProcess[str]:
    # The program of the tests stands for the one on the path.
    program = f'rolebundle() {{ {shlex.join(forked_program())} "$@"; }}'
    return subprocess.run(
        ["sh", "-c", f"{program}\n{command}"],
        input=standard_input,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "ROLEBUNDLE_DB": str(db)},
    )


def test_the_skill_says_what_it_is_for() -> None:
    _, head, text = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    matter = yaml.safe_load(head)
    assert set(matter) == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", matter["name"])
    assert "Use it before" in matter["description"] and len(matter["description"]) <= 1_024
    assert len(text.splitlines()) < 200


def test_the_skill_names_warnings_that_exist() -> None:
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", SKILL.read_text(encoding="utf-8")))
    assert named and named <= set(get_args(WarningCode))


COMMANDS = [
    line for block in blocks(SKILL.read_text(encoding="utf-8"), "sh") for line in block.splitlines()
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_skill_works(command: str, db: Path) -> None:
    result = run(command, db)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.strip()
    if "retrieve" in command or ("get" in command and "--outline" not in command):
        assert "30 days" in result.stdout


HOOKS = [
    (event, hook["command"])
    for block in blocks((CHECKOUT / "docs" / "agents.md").read_text(encoding="utf-8"), "json")
    for event, entries in (json.loads(block).get("hooks", {}) if '"hooks"' in block else {}).items()
    for entry in entries
    for hook in entry["hooks"]
]


assert HOOKS


@pytest.mark.parametrize(("event", "command"), HOOKS)
@pytest.mark.parametrize(
    ("tool", "tool_input", "code"),
    [
        ("Bash", {"command": "curl -X POST https://example.com/publish"}, 2),
        ("Bash", {"command": "ls -l"}, 0),
        ("WebFetch", {"url": "https://example.com/publish", "prompt": "post it"}, 2),
        ("mcp__files__read", {"path": "notes/tokens.md"}, 0),
    ],
)
def test_every_hook_of_the_documents_works(
    event: str, command: str, tool: str, tool_input: dict[str, Any], code: int, db: Path
) -> None:
    named = {"hook_event_name": event, "tool_name": tool, "tool_input": tool_input}
    event_data = {"session_id": "abc", "cwd": "/nowhere", **named}
    result = run(command.replace("/home/me/team.db", str(db)), db, json.dumps(event_data))
    assert result.returncode == code, result.stdout + result.stderr
    # The host shows this to the model.
    assert ("Do not post automatically" in result.stderr) == (code == 2)


# -- The examples run as their first lines say; `test_docs` runs the same program as a process -----


AGENT = CHECKOUT / "examples" / "citing_agent.py"


@pytest.fixture
def answer(
    sample_without_vectors: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str, str], Outcome]:
    """Runs the example in this process."""

    def run(task: str, role: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", [str(AGENT), str(sample_without_vectors), task, role])
        message = ""
        try:
            runpy.run_path(str(AGENT), run_name="__main__")
        except SystemExit as end:
            message = str(end.code)
        out, err = capsys.readouterr()
        return Outcome(int(bool(message)), out, err + message)

    return run


def test_the_citing_agent_cites_and_asks_why(answer: Callable[[str, str], Outcome]) -> None:
    outcome = answer("Can a stolen tablet replay a token?", "mossline-security-reviewer")
    assert (outcome.code, outcome.err) == (0, "")
    assert "— security/threat-model-offline-sync.md:28-38" in outcome.out
    assert "Rejected: " in outcome.out


def test_it_says_when_nothing_has_the_words(answer: Callable[[str, str], Outcome]) -> None:
    outcome = answer("zxqv wvut", "mossline-security-reviewer")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("I found nothing to answer with (")


def test_an_unknown_role_gets_nothing(answer: Callable[[str, str], Outcome]) -> None:
    outcome = answer("Can a stolen tablet replay a token?", "no-such-role")
    assert outcome.code == 1
    assert outcome.out == ""
    assert "next:" in outcome.err
    assert "Traceback" not in outcome.err
