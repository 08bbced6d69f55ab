"""Run the command line, in this process or as a process of its own."""

import ctypes
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from rolebundle.interfaces.cli.main import main
from support.killing import run_child
from support.program_server import MAIN, forked_python


def in_a_child(work: Callable[[], Any]) -> Any:
    """Run ``work`` in a forked child.

    Returns:
        What ``work`` returned, through JSON.

    Raises:
        AssertionError: ``work`` failed. Its error is on standard error.
    """
    ended = run_child(lambda report: report(json.dumps(work())))
    assert ended.code == 0, "the child failed; its error is on standard error"
    return json.loads(ended.reported[-1])


CHECKOUT = Path(__file__).parent.parent.parent
SAMPLE = CHECKOUT / "sample_corpus"
AUDIT = "security/token-lifecycle-audit.md"
"""A document of the sample corpus."""
PROGRAM = (sys.executable, "-c", MAIN)
"""A real process of the command line. Most tests use ``forked_program()``, which costs less."""


def commands_of(context: click.Context) -> Iterator[click.Context]:
    """The commands of a group, each followed by its own commands."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = click.Context(command, info_name=name, parent=context)
        yield inner
        yield from commands_of(inner)


CODED = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10}


def forked_program() -> tuple[str, ...]:
    """The command line in a forked process (see ``program_server``)."""
    return (*forked_python(), MAIN)


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def invoke(
    *arguments: str | Path, encoding: str = "utf-8", embed_url: str = "", stdin: str | None = None
) -> Outcome:
    """Run a command in this process, through ``main`` and its mapping of errors.

    ``encoding`` is that of its terminal, ``embed_url`` the address of the model's server, ``stdin``
    what it reads, if it is given.
    """
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    err = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    code: object = 0
    url = {"ROLEBUNDLE_EMBED_URL": embed_url} if embed_url else {}
    read = sys.stdin if stdin is None else io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.dict(os.environ, url),
        patch("sys.stdin", read),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exited:
            code = exited.code
    assert isinstance(code, int)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return Outcome(code, *texts)


def audit_rows(db: Path, *options: str) -> list[dict[str, Any]]:
    """The rows of a corpus's audit, as its owner sees them."""
    return invoke("policy", "audit", "list", *options, "--json", "--db", db).json()["rows"]


def run(
    *arguments: str | bytes | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
    stdin: bytes = b"",
) -> Outcome:
    """Run a command in a new process, which is a forked one."""
    result = subprocess.run(
        [*forked_program(), *map(os.fsencode, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    return Outcome(result.returncode, result.stdout.decode(), result.stderr.decode())


def is_coded(outcome: Outcome) -> None:
    """Assert that a command gave an answer or a coded error, no traceback, no internal error."""
    assert outcome.code in CODED, (outcome.code, outcome.err)
    assert "Traceback" not in outcome.err
    assert "[internal]" not in outcome.err
    if outcome.code:
        assert "rror" in outcome.err or "efused" in outcome.err, outcome.err


def invoke_in_a_child(*arguments: str | Path, before: Callable[[], None]) -> Outcome:
    """Run ``invoke`` in a forked child, which calls ``before`` first."""

    def work() -> tuple[int, str, str]:
        before()
        outcome = invoke(*arguments)
        return outcome.code, outcome.out, outcome.err

    return Outcome(*in_a_child(work))


def invoke_as_a_common_user(*arguments: str | Path) -> Outcome:
    """Run ``invoke`` in a child to which file permissions apply, also if root runs the tests."""
    return invoke_in_a_child(*arguments, before=_drop_permission_override)


def _drop_permission_override() -> None:
    if os.geteuid() != 0:
        return

    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    if libc.capget(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        sets[0] &= ~(1 << capability)
        sets[1] &= ~(1 << capability)
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")
