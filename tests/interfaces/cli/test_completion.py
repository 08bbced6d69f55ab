"""What a shell completes, and `--version`."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest

from rolebundle.interfaces.cli.main import cli
from rolebundle.interfaces.cli.options import document_names
from rolebundle.policy.overlays import overlay_folders
from rolebundle.storage.opening import latest_version
from rolebundle.storage.sqlite import sqlite_version
from support.commands import invoke, run
from support.source_tree import write_files


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


def test_commands_and_options_are_completed() -> None:
    assert completed("re") == ["retrieve", "remember", "replica"]
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
        write_files(folder / "notes", {name: "A token."})
    assert invoke("ingest", folder / "notes", "--lexical-only", "--db", folder / "c.db").code == 0
    return folder / "c.db"


def test_documents_are_completed_if_a_shell_needs_no_quotes_for_them(corpus: Path) -> None:
    command, *other_names = "get", "ls", "why"
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
    assert invoke("policy", "set", policy, "--db", own).code == 0
    db = ("--db", str(own))
    assert completed("ls", *db, "--agent", "reader", "gui") == ["guides/a.md", "guides/b.md"]
    assert completed("ls", *db, "--agent", "stranger", "gui") == ["file,gui"]


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
