"""The documentation's commands are run: every `rolebundle …` line of a console or sh block.

Each document is one session in a folder with the sample corpus. A line is left alone when it makes
an environment, or has a placeholder (`PATH`, `<file>`, `…`), or names a file that is not there.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import CHECKOUT, PROGRAM

BLOCK = re.compile(r"^( *)```(?:console|sh|shell|bash)\s*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
ELSEWHERE = re.compile(r"\b(pip|venv|git|apt|apt-get|docker|curl|pytest|pipx|uvx?)\b|\.venv")
PLACEHOLDER = re.compile(
    r"…|\.\.\.|<[a-z][^>]*>|(?<![\w$\"'./-])(?:[A-Z]{3,}|[A-Z]+_[A-Z_]+)(?![\w./-])"
)
# They serve until their input ends.
SERVERS = re.compile(r"^rolebundle (serve|mcp)\b")

DOCUMENTS = sorted(
    path
    for path in (CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *CHECKOUT.glob("docs/*.md"))
    if path.is_file()
)


def commands_of(text: str) -> list[str]:
    """The commands of a document that can be run here, in order."""
    found = []
    for indent, body in BLOCK.findall(text):
        lines = [line.removeprefix(indent) for line in body.split("\n")]
        prompted = any(line.startswith("$ ") for line in lines)
        joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
        for line in joined.split("\n"):
            if prompted and not line.startswith("$ "):
                continue
            command = line.removeprefix("$ ").strip()
            plain = re.sub(r"\s+#.*$", "", command)
            named = re.sub(r"\"[^\"]*\"|'[^']*'", '""', plain)
            if not re.search(r"(^|[|&;]\s*)(\w+=\S+ +)*rolebundle ", plain):
                continue
            if ELSEWHERE.search(plain) or PLACEHOLDER.search(named) or SERVERS.match(plain):
                continue
            found.append(plain)
    return found


def test_commands_are_found_where_they_stand() -> None:
    text = (
        "```sh\npip install rolebundle && rolebundle demo\nrolebundle ingest PATH\n"
        "rolebundle status --db x.db  # a note\nrolebundle ingest docs/ \\\n  --json\n```\n"
        "```console\n$ rolebundle demo\noutput of rolebundle status\n```\n"
        '```python\nrolebundle no\n```\n```sh\nrolebundle retrieve "Plan THE release" | head -1\n```\n'
    )
    assert commands_of(text) == [
        "rolebundle status --db x.db",
        "rolebundle ingest docs/ --json",
        "rolebundle demo",
        'rolebundle retrieve "Plan THE release" | head -1',
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="the documents speak to a POSIX shell")
@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if commands_of(path.read_text(encoding="utf-8"))],
    ids=lambda path: path.name,
)
def test_what_the_documents_say_can_be_done(document: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name in ("sample_corpus", "overlays", "docs"):
        shutil.copytree(CHECKOUT / name, here / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "rolebundle"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    # A document may take a corpus for granted that its reader has made already.
    environment["ROLEBUNDLE_DB"] = str(here / "corpus.db")
    assert shell("rolebundle ingest sample_corpus --lexical-only", here, environment)[0] == 0
    for command in commands_of(document.read_text(encoding="utf-8")):
        missing = [
            word for word in re.findall(r"(?<=ingest )[^-|&\s]\S*", command)
            if not (here / word).exists()
        ]  # fmt: skip
        if missing:
            continue
        code, err = shell(command, here, environment)
        assert code == 0, f"{document.name}: {command}\n{err}"
        assert "Traceback" not in err


def shell(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr
