"""Help and exit codes: each command has its help, and each mistake its code and a hint."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import rolebundle
from rolebundle.interfaces.cli.main import cli
from rolebundle.storage.file import BUSY_TIMEOUT_ENVIRONMENT
from rolebundle.storage.writing import open_writer
from support.commands import commands_of, invoke, is_coded, run
from support.corpora import build, document
from support.fake_embedder import HashingProvider

# -- help ----------------------------------------------------------------------------------------


def test_each_command_has_help_with_an_example() -> None:
    program = click.Context(cli, info_name="rolebundle", **cli.context_settings)
    commands = [context.command_path.split()[1:] for context in commands_of(program)]
    assert ["retrieve"] in commands and ["corpus", "embed", "drop"] in commands
    for command in commands:
        outcome = invoke(*command, "--help")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"Usage: rolebundle {' '.join(command)}")
        # A host starts `mcp`.
        if command != ["mcp"]:
            assert f" rolebundle {' '.join(command)}" in outcome.out.partition("\n")[2]
        above = invoke(*command[:-1], "-h") if command[1:] else invoke("--help-all")
        assert f" {command[-1]} " in " ".join(above.out.split())
    assert invoke("-h").out.partition("Start here:")[2].count("\n  ") == 8


def test_the_commands_that_messages_and_docstrings_name_exist() -> None:
    program = click.Context(cli, info_name="rolebundle")
    commands = {
        context.command_path.removeprefix("rolebundle ") for context in commands_of(program)
    }
    groups = {command.rpartition(" ")[0] for command in commands}
    named = {
        tuple(words.split())
        for file in Path(rolebundle.__file__).parent.rglob("*.py")
        for words in re.findall(r"`rolebundle ([a-z]+(?: [a-z]+)*)", file.read_text("utf-8"))
    }
    assert ("corpus", "doctor") in named
    for words in named:
        command = words[0]
        for word in words[1:]:
            if command in groups:
                command = f"{command} {word}"
        assert command in commands, words


def test_the_command_line_stays_small() -> None:
    program = click.Context(cli, info_name="rolebundle")
    options = {
        max(parameter.opts, key=len)
        for context in (program, *commands_of(program))
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
    }
    assert len(cli.list_commands(program)) <= 26
    assert len(options) <= 86, sorted(options)


def test_python_m_is_the_command() -> None:
    command = [sys.executable, "-m", "rolebundle", "nonsense"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("Usage: rolebundle")


# -- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("retrieve",),
        ("retrieve", "x", "--format", "yaml"),
        ("retrieve", "x", "--limit", "0"),
        ("get", "security/token-lifecycle-audit.md:9-2"),
        ("ingest", "--untrusted"),
        ("ingest", ""),
        ("overlay", "nonsense"),
    ],
)
def test_usage_errors(sample_db: Path, arguments: tuple[str, ...]) -> None:
    more = () if arguments[0] in ("nonsense", "overlay") else ("--db", str(sample_db))
    before = sample_db.read_bytes()
    outcome = invoke(*arguments, *more)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    is_coded(outcome)
    assert sample_db.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("retreive", "x"), "Did you mean 'retrieve'?"),
        (("doctor",), "Did you mean 'corpus doctor'?"),
        (("search", "x"), "Did you mean 'retrieve'?"),
        (("ask", "x"), "Did you mean 'retrieve'?"),
        (("retrieve", "page", "size"), "put a text of several words in quotes"),
        (("mark", "x", "--by", "Ana"), "Missing argument"),
        (("remember", "x", "--by", "Ana"), "Missing option '--source'"),
    ],
)
def test_a_usual_mistake_has_a_hint(arguments: tuple[str, ...], hint: str) -> None:
    outcome = invoke(*arguments)
    assert outcome.code == 2
    assert hint in outcome.err


def test_no_corpus(tmp_path: Path) -> None:
    for command in (("retrieve", "x"), ("get", "x"), ("status",)):
        outcome = invoke(*command, "--db", tmp_path / "none.db")
        assert (outcome.code, outcome.out) == (2, "")
        assert "rolebundle ingest" in outcome.err
        assert invoke(*command, "--db", tmp_path).code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_command_for_each_exit_code(sample_db: Path, tmp_path: Path) -> None:
    """0, 2, 3, 5, 6, 7, 8, 9 and 10, as a shell sees them."""
    broken, foreign, notes = tmp_path / "b.db", tmp_path / "f.db", tmp_path / "notes"
    broken.write_bytes(sample_db.read_bytes()[:5000])
    data = bytearray(sample_db.read_bytes())
    data[68:72] = b"GPKG"  # the application id
    foreign.write_bytes(data)
    unembedded = build(tmp_path, [document("d", ["text"])], HashingProvider())
    notes.mkdir()
    (notes / "a.md").write_text("---\ntrust_teir: x\n---\n", encoding="utf-8")
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    quick = ("--lexical-only",)
    expected = {
        0: ("retrieve", "token", *quick, "--db", sample_db),
        2: ("retrieve", "", "--db", sample_db),
        3: ("retrieve", "token", *quick, "--role", "nobody", "--db", sample_db),
        6: ("ingest", notes, *quick, "--db", file / "c.db"),
        7: ("retrieve", "token", *quick, "--db", broken),
        8: ("retrieve", "token", *quick, "--db", foreign),
        9: ("corpus", "embed", "--db", unembedded),
        10: ("ingest", notes, *quick, "--db", tmp_path / "n.db"),
    }
    for code, arguments in expected.items():
        outcome = run(*arguments)
        assert outcome.code == code, outcome
        is_coded(outcome)
        assert bool(outcome.err) == bool(code)
    with open_writer(sample_db) as corpus, corpus.writing():
        busy = run("ingest", notes, *quick, "--db", sample_db, env={BUSY_TIMEOUT_ENVIRONMENT: "50"})
    assert busy.code in (5, 10), busy
    (notes / "b.md").write_text("fine\n", encoding="utf-8")
    with open_writer(sample_db) as corpus, corpus.writing():
        busy = run("ingest", notes, *quick, "--db", sample_db, env={BUSY_TIMEOUT_ENVIRONMENT: "50"})
    assert busy.code == 5
    assert busy.out == ""


def test_an_option_before_the_command_is_told_where_it_belongs() -> None:
    outcome = invoke("--db", "team.db", "retrieve", "token")
    assert outcome.code == 2
    assert "next: give options after the command" in outcome.err
