"""A command imports only what it needs, and can be interrupted while it does so."""

import json
import subprocess
import sys
from pathlib import Path

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


def test_an_answer_imports_little_that_is_heavy(sample_db: Path) -> None:
    heavy = (
        *("numpy", "wordllama", "yaml", "lxml", "rich", "docutils"),
        *("sqlite_vec", "asyncio"),
        # Only a corpus with decisions needs it.
        "rolebundle.verification",
    )
    role = "mossline-security-reviewer"
    commands = (
        ("get", AUDIT + ":1-20"),
        ("status",),
        ("retrieve", "token", "--lexical-only", "--role", role),
        ("retrieve", "token", "--lexical-only", "--role", role, "--format", "json"),
    )
    code = (
        f"{MAIN}\nfor command in {commands!r}:\n    quiet(*command, '--db', sys.argv[1])\n"
        f"    print(*[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    result = run(code, sample_db)
    # Searches, and the counts of the roles' words, need postings in numpy.
    assert result.stderr == "\n\nnumpy\nnumpy\n"


def test_the_help_imports_no_command() -> None:
    code = (
        f"{MAIN}\nquiet('--help')\n"
        "print(*[name for name in ('pydantic', 'rolebundle.contracts') if name in sys.modules],"
        " file=sys.stderr)"
    )
    result = run(code)
    assert result.stderr == "\n"
    lines = result.stdout.splitlines()
    assert all(len(line) < 80 for line in lines if not line.startswith("  rolebundle"))


def test_a_sidecar_imports_no_page(sample_db: Path) -> None:
    parameters = {"task": "token", "role": "mossline-security-reviewer", "lexical_only": True}
    request = {"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": parameters}
    code = (
        f"{MAIN}\nquiet('serve', '--db', sys.argv[1])\n"
        "pages = ('jinja2', 'rolebundle.interfaces.pages')\n"
        "assert not [name for name in sys.modules if name.startswith(pages)]"
    )
    result = run(code, sample_db, stdin=json.dumps(request) + "\n")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["result"]["selected"]
