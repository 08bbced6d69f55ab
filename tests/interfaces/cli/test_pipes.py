"""Closed pipes and descriptors, and terminals without UTF-8, end no command in a traceback."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import PROGRAM, forked_program, invoke

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")


def shell(script: str, real: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    program = shlex.join(PROGRAM if real else forked_program())
    return subprocess.run(
        ["bash", "-c", script.replace("rolebundle ", f"{program} ")],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


def test_a_reader_that_leaves_early_ends_it_quietly(sample_db: Path) -> None:
    retrieve = (
        f"rolebundle retrieve token --lexical-only --format json --limit 1000 --db {sample_db}"
    )
    for reader in ("head -1", "true"):
        result = shell(f"{retrieve} | {reader}; echo ${{PIPESTATUS[0]}} >&2", real=reader == "true")
        assert result.stderr.strip() == "0"


def test_a_reader_that_leaves_early_changes_no_exit_code(sample_db: Path, tmp_path: Path) -> None:
    (tmp_path / "draft.md").write_text('It says: "the token lives for ninety-nine whole days".\n')
    contract = tmp_path / "work.gate.toml"
    contract.write_text('[[criteria]]\nid = "a"\ncheck = "exists"\nfile = "none.md"\n')
    all_ways = ("2>&1 | true", "2>&1 | head -1 >/dev/null", "| true")
    codes = {
        f"verify {tmp_path}/draft.md --db {sample_db}": 1,
        f"gate check {contract} --db {sample_db}": 1,
        f"gate hook exit-code {contract} --db {sample_db}": 1,
        f"get nothing:1-2 --db {sample_db}": 2,
        f"status --json --db {sample_db}": 0,
        "retrieve --no-such-option": 2,
        "--help": 0,
    }
    for number, (command, code) in enumerate(codes.items()):
        # Each way that a reader leaves meets an answer, a failure and an error.
        for reader in all_ways if number in (3, 4) else all_ways[number % 3 :][:1]:
            result = shell(f"rolebundle {command} {reader}; echo ${{PIPESTATUS[0]}} >&2")
            assert result.stderr.splitlines()[-1] == str(code), (command, reader)
            assert "Traceback" not in result.stderr


def test_a_closed_input_is_an_empty_one(sample_db: Path) -> None:
    result = shell(f"rolebundle retrieve --request - --db {sample_db} <&-", real=True)
    assert result.returncode == 2 and "[not_json]" in result.stderr


def test_a_terminal_that_is_no_utf8(sample_db: Path) -> None:
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    result = shell(f"rolebundle retrieve token --lexical-only --db {sample_db}", real=True, **plain)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    get = invoke("get", "security/token-lifecycle-audit.md", "--db", sample_db, encoding="ascii")
    assert get.code == 0, get.err
