"""`connect` prints the configuration of a host."""

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from rolebundle.interfaces.cli.serving import HOSTS
from support.commands import invoke


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "USERPROFILE", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    monkeypatch.chdir(home)
    return home


@pytest.mark.parametrize("host", HOSTS)
def test_it_prints_a_whole_configuration_and_writes_nothing(host: str, home: Path) -> None:
    outcome = invoke("connect", host, "--db", "some folder/team.db", "--agent", "a'da")
    assert outcome.code == 0
    values = tomllib.loads(outcome.out) if host == "codex" else json.loads(outcome.out)
    container, _, adder = HOSTS[host]
    entry = values[container]["rolebundle"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-5:] == [
        "mcp",
        "--db",
        str(home / "some folder" / "team.db"),
        "--agent",
        "a'da",
    ]
    assert (entry.get("type") == "stdio") == (host == "vscode")
    assert "does not exist yet" in outcome.err
    assert [*home.iterdir()] == []
    if adder:
        line = next(line for line in outcome.err.splitlines() if line.startswith("or: "))
        assert shlex.split(line)[-5:] == entry["args"][-5:]


@pytest.mark.parametrize("arguments", [("zed",), ("cursor", "--agent", "")])
def test_options_that_make_no_sense(arguments: tuple[str, ...], home: Path) -> None:
    assert invoke("connect", *arguments).code == 2
    assert [*home.iterdir()] == []
