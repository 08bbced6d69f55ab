"""`completion`, `man` and `--version`: what a shell and a manual reader get from the same help."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic

import click
import pytest
from click.shell_completion import get_completion_class

from rolebundle.interfaces.cli.completion import CORRECTIONS, SHELLS
from rolebundle.interfaces.cli.main import cli
from rolebundle.interfaces.cli.man import commands_of
from rolebundle.interfaces.cli.names import document_names
from rolebundle.policy.overlays import overlay_folders
from rolebundle.storage.files.sqlite_file import sqlite_version
from rolebundle.storage.opening import latest_version
from support.commands import forked_program, invoke, run

PATIENCE = 30.0


def completed(*words: str) -> list[str]:
    """What bash is offered for the last of the words."""
    outcome = run(
        env={
            "_ROLEBUNDLE_COMPLETE": "bash_complete",
            "COMP_WORDS": shlex.join(("rolebundle", *words)),
            "COMP_CWORD": str(len(words)),
        }
    )
    assert (outcome.code, outcome.err) == (0, "")
    return [line.removeprefix("plain,") for line in outcome.out.splitlines() if line]


# -- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_is_one_for_its_shell(shell: str) -> None:
    script = invoke("completion", shell)
    assert (script.code, script.err) == (0, "")
    assert f"_ROLEBUNDLE_COMPLETE={shell}_complete" in script.out
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    option = "--no-execute" if shell == "fish" else "-n"
    checked = subprocess.run(
        [program, option], input=script.out, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_commands_and_options_are_completed() -> None:
    assert completed("re") == ["retrieve", "replay", "remember", "restore", "replica"]
    assert completed("retrieve", "--form") == ["--format"]
    assert completed("retrieve", "--format", "p") == ["prompt"]


def test_roles_are_those_of_the_folders_that_the_command_uses(tmp_path: Path) -> None:
    shipped = sorted(file.stem for file in overlay_folders()[-1].glob("*.json"))
    assert set(completed("retrieve", "--role", "")) >= set(shipped)
    for name in ("own-role", "$(touch x)", "a b"):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    options = ("--overlay-dir", str(tmp_path))
    assert completed("retrieve", *options, "--role", "own") == ["own-role"]
    assert set(completed("retrieve", *options, "--role", "")) == {"own-role", *shipped}
    assert completed("retrieve", "--overlay-dir", "/none", "--role", "") == []


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for name in (
        "guides/a.md",
        "guides/b.md",
        "guides/$(touch x).md",
        "guides/a b.md",
        "c.md",
        "with,comma.md",
    ):
        file = folder / "notes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("A token.", encoding="utf-8")
    assert invoke("ingest", folder / "notes", "--lexical-only", "--db", folder / "c.db").code == 0
    return folder / "c.db"


SETTINGS = {
    "bash": (".bashrc", "PS1='READY> '"),
    "zsh": (".zshrc", "PS1='READY> '; autoload -Uz compinit; compinit -u -D"),
    "fish": ("fish/config.fish", "function fish_prompt; echo 'READY> '; end"),
}
"""Shell → its file of settings, and what the file has beside rolebundle's script."""


@contextmanager
def terminal(shell: str, folder: Path) -> Iterator[int]:
    """The terminal of an interactive shell, ready to be typed into."""
    file, settings = SETTINGS[shell]
    (folder / file).parent.mkdir(exist_ok=True)
    script = invoke("completion", shell).out
    (folder / file).write_text(f"{settings}\n{script}", encoding="utf-8")
    arguments = ("--rcfile", str(folder / file)) if shell == "bash" else ()
    process, screen = pty.fork()
    if process == 0:
        os.chdir(folder)
        homes = dict.fromkeys(("HOME", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(folder))
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        os.execvpe(
            shell, [shell, *arguments, "-i"], {**os.environ, **homes, "PATH": path, "TERM": "xterm"}
        )
    try:
        termios.tcsetwinsize(screen, (40, 200))
        until(screen, lambda text: text.count(b"READY> ") > 0)
        yield screen
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(screen)


def until(screen: int, holds: Callable[[bytes], bool]) -> None:
    """Read what a terminal shows until the condition holds for it, which it does soon."""
    screen_text = b""
    end = monotonic() + PATIENCE
    while not holds(screen_text):
        assert monotonic() < end, screen_text.decode(errors="replace")
        if select([screen], [], [], 0.05)[0]:
            screen_text += os.read(screen, 65_536)


@pytest.mark.parametrize(
    "shell", [pytest.param(shell, marks=[pytest.mark.slow] * (shell != "bash")) for shell in SHELLS]
)
def test_a_shell_completes_what_is_typed(shell: str, corpus: Path, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    # It completes, and otherwise only notes its arguments.
    program = tmp_path / "rolebundle"
    program.write_text(
        f'#!/bin/sh\n[ -z "$_ROLEBUNDLE_COMPLETE" ] || exec {shlex.join(forked_program())} "$@"\n'
        f'echo "$*" >> {tmp_path}/calls\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    calls = tmp_path / "calls"
    with terminal(shell, tmp_path) as screen:
        os.write(screen, b"rolebundle retr\t--form\tpr\t--role sec\t\r")
        os.write(screen, b"rolebundle retrieve --role=sec\t\r")
        os.write(screen, f"rolebundle get --db {corpus} with,\t\r".encode())
        until(screen, lambda _: calls.exists() and calls.read_text().count("\n") == 3)
    assert calls.read_text().splitlines() == [
        "retrieve --format prompt --role security-reviewer",
        "retrieve --role=security-reviewer",
        f"get --db {corpus} with,comma.md",
    ]


def test_documents_are_completed_if_a_shell_needs_no_quotes_for_them(corpus: Path) -> None:
    command, *other_names = "get", "ls", "why", "multi-get"
    db = ("--db", str(corpus))
    for name in other_names:
        argument = cli.get_command(click.Context(cli), name).params[0]  # type: ignore[union-attr]
        assert argument._custom_shell_complete is document_names
    assert completed(command, *db, "gui") == ["guides/a.md", "guides/b.md"]
    assert completed(command, *db, "notes/g") == ["notes/guides/a.md", "notes/guides/b.md"]
    assert "c.md" in completed(command, *db, "")
    # Else the shell looks for files.
    for word in ("$(touch x)", "*"):
        assert completed(command, *db, word)[0].startswith("file,")
    assert completed(command, "--db", str(corpus.parent), "x") == ["file,x"]


def test_a_completion_shows_an_agent_nothing_that_it_may_not_see(
    corpus: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copy(corpus, tmp_path / "own.db"))
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[agents.reader]\nscopes = ["shared"]\naccess_level = "internal"\n', encoding="utf-8"
    )
    assert invoke("scopes", "set", policy, "--db", own).code == 0
    db = ("--db", str(own))
    assert completed("ls", *db, "--agent", "reader", "gui") == ["guides/a.md", "guides/b.md"]
    assert completed("ls", *db, "--agent", "stranger", "gui") == ["file,gui"]


# -- the manual page -----------------------------------------------------------------------------


def test_the_manual_has_every_command_and_option() -> None:
    page = invoke("man").out.replace("\\-", "-")
    program = click.Context(cli, info_name="rolebundle", **cli.context_settings)
    for context in (program, *commands_of(program)):
        assert f"\\fB{context.command_path}\\fR" in page
        section = page.partition(f'.SS "{context.command_path}"\n')[2].partition("\n.SS ")[0]
        for option in context.command.params:
            if context.parent and isinstance(option, click.Option) and not option.hidden:
                assert max(option.opts, key=len) in section, (context.command_path, option.name)


def test_no_line_of_the_manual_is_a_request_by_accident() -> None:
    known = {"TH", "SH", "SS", "PP", "TP", "RS", "RE", "nf", "fi"}
    page = invoke("man").out
    assert page.isascii()
    requests = re.findall(r"^[.'](\S*)", page, re.MULTILINE)
    assert set(requests) == known
    escapes = set(re.findall(r"\\(\[u[0-9A-F]{4,5}\]|\(dq|.)", page))
    assert {escape for escape in escapes if not escape.startswith("[u")} <= {*"-ef&", "(dq"}


@pytest.mark.parametrize(
    "command",
    [
        ("groff", "-man", "-Tutf8", "-ww", "-z"),
        ("mandoc", "-T", "lint", "-W", "error"),
        ("man", "--warnings", "-l", "-"),
    ],
    ids=lambda command: command[0],
)
def test_the_manual_is_shown_without_warnings(command: tuple[str, ...]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    page = invoke("man").out
    result = subprocess.run(command, input=page, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


# -- versions ------------------------------------------------------------------------------------


def test_the_version_names_what_a_report_of_a_fault_needs() -> None:
    outcome = invoke("--version")
    assert (outcome.code, outcome.err) == (0, "")
    first, versions, corpus = outcome.out.splitlines()
    assert re.fullmatch(r"rolebundle \d+\.\d+\.\d+\S*", first)
    python = ".".join(map(str, sys.version_info[:3]))
    assert versions.startswith(f"Python {python}, SQLite {sqlite_version()}, apsw ")
    assert re.search(r"sqlite-vec \d", versions)
    assert corpus == f"schema {latest_version()}, default model static:l2_supercat"


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_corrected_is_in_the_script_of_click(shell: str) -> None:
    completer = get_completion_class(shell)
    assert completer is not None
    originals = [original for original, _ in CORRECTIONS[shell]]
    assert [text for text in originals if text not in completer.source_template] == []
