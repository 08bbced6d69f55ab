"""What a shell completes, and `--version`."""

import re
import shlex
import sys

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
