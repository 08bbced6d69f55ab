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
            assert f"{role} · " in outcome.out
    times = re.compile(r"\d+ ms")
    assert times.sub("", first.out) == times.sub("", second.out)
    assert "0 files added" in second.err
    assert len(list(tmp_path.rglob("demo-*.db"))) == 1
    passages = re.findall(r"^  \d  \S", first.out, re.MULTILINE)
    assert len(passages) == 3 * len(ROLES)

    # What it ends with works as it stands, and continues from what was shown.
    commands = [shlex.split(line) for line in second.err.partition("next:\n")[2].splitlines()]
    assert [words[:4] for words in commands] == [
        [sys.executable, "-m", "rolebundle", name] for name in ("retrieve", "why")
    ]
    retrieved, why = (invoke(*words[3:]) for words in commands)
    assert (retrieved.code, why.code) == (0, 0), (retrieved, why)
    locator = why.out.splitlines()[1].split()[0]
    assert locator in first.out and locator in retrieved.out
