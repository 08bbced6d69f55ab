"""A command imports only what it needs, and can be interrupted while it does so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import AUDIT


def run(code: str, *arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python code in a real process."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


MAIN = """
import sys
from rolebundle.interfaces.cli.main import main
def quiet(*command):
    try:
        main([*command])
    except SystemExit as left:
        assert not left.code
"""


def test_an_interrupt_while_the_program_is_imported() -> None:
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click':\n            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from rolebundle.__main__ import main; main()"
    )
    result = run(code)
    assert (result.returncode, result.stderr) == (130, "interrupted; completed work is kept\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without Unix, a Python imports more itself")
def test_commands_import_little_that_is_heavy(sample_db: Path) -> None:
    """One process runs one command after the other: what it imports stays imported."""
    at_help = ("pydantic", "rolebundle.contracts")
    heavy = (
        *("numpy", "wordllama", "yaml", "lxml", "docutils"),
        *("sqlite_vec", "asyncio"),
        # Only a corpus with decisions needs it.
        *("rolebundle.verify", "rolebundle.gate", "rolebundle.memory"),
    )
    pages = ("jinja2", "rolebundle.interfaces.pages")
    role = "mossline-security-reviewer"
    of_role = ("--role", role, "--db", str(sample_db))
    commands = (
        (at_help, "--help"),
        (heavy, "get", AUDIT + ":1-20", "--db", str(sample_db)),
        (heavy, "status", "--db", str(sample_db)),
        (heavy, "retrieve", "token", "--lexical-only", *of_role),
        (heavy, "retrieve", "token", "--lexical-only", "--format", "json", *of_role),
        (pages, "serve", "--db", str(sample_db)),
    )
    code = (
        f"{MAIN}\nfor names, *command in {commands!r}:\n    print('\\f')\n    quiet(*command)\n"
        "    print(*[name for name in names if name in sys.modules], file=sys.stderr)"
    )
    parameters = {"task": "token", "role": role, "lexical_only": True}
    request = {"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": parameters}
    result = run(code, stdin=json.dumps(request) + "\n")
    # Searches, and the counts of the roles' words, need postings in numpy.
    assert result.stderr == "\n\n\nnumpy\nnumpy\n\n"
    _, help_text, *_, served = result.stdout.split("\f")
    assert json.loads(served)["result"]["selected"]
    lines = help_text.splitlines()
    assert all(len(line) < 80 for line in lines if not line.startswith("  rolebundle"))
