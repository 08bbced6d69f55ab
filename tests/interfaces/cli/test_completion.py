"""What a shell completes, and `--version`."""

import re
import shlex
import sys
from pathlib import Path

from rolebundle.policy.overlays import overlay_folders
from rolebundle.storage.opening import latest_version
from rolebundle.storage.sqlite import sqlite_version
from support.commands import invoke, run


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
