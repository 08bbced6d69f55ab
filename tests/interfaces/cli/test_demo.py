"""The demo answers without a corpus of the user, and ends with commands that work."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from rolebundle.interfaces.cli.overlay import ROLES
from support.commands import invoke


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    first, second = (invoke("overlay", "demo") for _ in range(2))
    for outcome in (first, second):
        assert outcome.code == 0
        for role in ROLES:
            assert f"\n{role}\n" in outcome.out
    assert first.out == second.out
    assert "0 files added" in second.err
    assert len(list(tmp_path.rglob("demo-*.db"))) == 1
    # Every passage has a sentence, under its place and title.
    passages = re.findall(r"^  \d  0\.\d\d [█░]{10}.*\n(?: {5}\S+:\d+-\d+.*\n)?( {5}\S.*\n)( {5}\S.*\n)", first.out, re.MULTILINE)  # fmt: skip
    assert len(passages) == 3 * len(ROLES)

    # What it ends with works as it stands, and continues from what was shown.
    commands = [shlex.split(line) for line in second.err.partition("next:\n")[2].splitlines()]
    assert [words[3] for words in commands] == ["retrieve", "why", "get"]
    assert all(words[:3] == [sys.executable, "-m", "rolebundle"] for words in commands)
    retrieved, why, get = (invoke(*words[3:]) for words in commands)
    assert [outcome.code for outcome in (retrieved, why, get)] == [0, 0, 0], (retrieved, why, get)
    locator = commands[2][4]
    assert locator in retrieved.out
    assert locator in first.out
    assert locator in get.out
    assert locator in why.out
