"""Where approvals come from, and what a program of the host can and cannot approve."""

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rolebundle.errors import UsageError
from rolebundle.policy.approvals import ask_program, parse_approvals

SHELL = "/bin/sh"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


def decision(script: str, seconds: float = 10.0) -> tuple[str, str]:
    return ask_program((SHELL, "-c", script), {"version": 1}, seconds)


def test_the_values_of_the_option() -> None:
    assert parse_approvals("none") == []
    assert parse_approvals("request") is None
    assert parse_approvals("command:ask --name 'a b; c'") == ["ask", "--name", "a b; c"]


@pytest.mark.parametrize("text", ["", "all", "command:", "command: ", "command:'x", "ask"])
def test_any_other_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--approvals"):
        parse_approvals(text)


def test_exit_code_0_approves_with_the_name_that_was_printed() -> None:
    assert decision("echo '  Ana Silva '; echo more") == ("Ana Silva", "")
    assert decision("printf '\\033[31mAna'") == ("[31mAna", "")
    assert decision("exit 0") == ("sh", "")


@pytest.mark.parametrize("script", ["echo Ana; exit 1", "echo Ana; kill -9 $$"])
def test_every_other_end_approves_nothing(script: str) -> None:
    assert decision(script) == ("", "sh did not approve it")


def test_a_program_that_cannot_be_started_approves_nothing(tmp_path: Path) -> None:
    approved_by, refusal = ask_program((str(tmp_path / "none"),), {})
    assert (approved_by, "cannot be started" in refusal) == ("", True)


def test_a_program_that_hangs_approves_nothing() -> None:
    approved_by, refusal = decision("echo Ana; sleep 300", 0.05)
    assert (approved_by, "did not decide within 0.05 s" in refusal) == ("", True)


def test_a_program_that_hangs_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    opened: list[int] = []

    def out_of_time(process: Any, *_: object) -> None:
        opened.append(os.open(fifo, os.O_RDONLY))
        assert os.read(opened[0], 99) == b"started\n"
        raise subprocess.TimeoutExpired(process.args, 10)

    monkeypatch.setattr(subprocess.Popen, "communicate", out_of_time)
    approved_by, refusal = decision(f"exec 3> '{fifo}'; sleep 300 & echo started >&3; wait")
    assert (approved_by, "did not decide" in refusal) == ("", True)
    # The FIFO ends when the last process that has it open for writing has ended.
    ready, _, _ = select.select(opened, [], [], 60)
    assert ready
    assert os.read(opened[0], 99) == b""
    os.close(opened[0])


def test_a_program_that_reads_nothing_does_not_block() -> None:
    question = {"passages": ["x" * 1000] * 1000}
    assert ask_program((SHELL, "-c", "exec 0<&-; exit 1"), question)[0] == ""
