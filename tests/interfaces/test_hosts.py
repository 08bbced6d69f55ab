"""`connect`: what it prints, and how it changes a host's file without losing anything."""

import json
import shlex
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.interfaces import hosts
from rolebundle.interfaces.hosts import HOSTS, HostFile
from support.commands import invoke

ENTRY = {"command": "/opt/my venv/bin/rolebundle", "args": ["mcp", "--db", "/home/me/team.db"]}
OTHER_ENTRY = {**ENTRY, "args": ["mcp", "--db", "/home/me/other.db"]}
CLAUDE = """{
  "globalShortcut": "Ctrl+Space",
  "scale": 1.0,
  "big": 12345678901234567890,
  "caf\\u00e9": "caf\u00e9",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"],
      "env": {"TOKEN": "s3cret"}
    }
  }
}
"""
VSCODE = """{
\t"inputs": [
\t\t{"type": "promptString", "id": "key", "password": true}
\t],
\t"servers": {}
}"""
CODEX = """# my settings
model = "o3"   # the large one

[mcp_servers.docs]
command = "docs-server"
started = 2026-01-01T10:00:00Z

[profiles.fast]
model = "mini"
"""
CONFLICTING = (
    """{"mcpServers": {"rolebundle": {"command": "old", "args": [], "env": {"A": "1"}}}}"""
)


def host_file(tmp_path: Path, text: str | bytes | None, host: str = "cursor") -> HostFile:
    path = tmp_path / "file"
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return HostFile(HOSTS[host], path, tmp_path / "records")


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("claude-desktop", CLAUDE),
        ("claude-code", CLAUDE.replace("\n", "\r\n")),
        ("cursor", "{}"),
        ("cursor", '{\n  "mcpServers": {}\n}\n'),
        ("cursor", ""),
        ("cursor", "\n"),
        ("cursor", CONFLICTING),
        ("vscode", VSCODE),
        ("codex", CODEX),
        ("codex", CODEX.replace("\n", "\r\n").rstrip()),
        ("codex", ""),
    ],
)
def test_a_file_gets_the_entry_and_loses_nothing(tmp_path: Path, host: str, text: str) -> None:
    file = host_file(tmp_path, text, host)
    container, is_toml = HOSTS[host].container, HOSTS[host].is_toml
    load = tomllib.loads if is_toml else json.loads
    before = load(text) if text.strip() else {}
    backup = file.write("rolebundle", ENTRY)
    assert backup is not None and backup.read_bytes() == text.encode()
    changed = file.path.read_bytes().decode()
    expected = {
        **before,
        container: {
            **before.get(container, {}),
            "rolebundle": {**before.get(container, {}).get("rolebundle", {}), **ENTRY},
        },
    }
    assert load(changed) == expected
    # Every line that was there is there, but for an entry that was replaced and empty brackets.
    if "rolebundle" not in text:
        lines = [line for line in text.splitlines() if line.strip() and "{}" not in line]
        assert [line for line in changed.splitlines() if line in lines] == lines
    assert ("\r\n" in changed) == ("\r\n" in text)
    assert changed.count("\r\n") in (0, changed.count("\n"))
    assert file.write("rolebundle", ENTRY) is None
    file.undo("rolebundle")
    assert file.path.read_bytes().decode() == text if text else not file.path.exists()
    assert not any((tmp_path / "records").iterdir())


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
servers = st.dictionaries(
    st.sampled_from(["rolebundle", "docs", "x"]) | st.text(max_size=4),
    st.dictionaries(st.sampled_from(["command", "args", "env", "é"]), values, max_size=3),
    max_size=3,
)
files = st.builds(
    lambda other_keys, own, has_own: {**other_keys, **({"mcpServers": own} if has_own else {})},
    st.dictionaries(
        st.text(max_size=5).filter(lambda key: key != "mcpServers"), values, max_size=3
    ),
    servers,
    st.booleans(),
)


@given(files, st.sampled_from([None, 1, 2, "\t"]), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_any_file_is_as_it_was_after_undo(
    tmp_path_factory: pytest.TempPathFactory, content: Any, indent: Any, ascii_only: bool, end: str
) -> None:
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_only)
    data = text.replace("\n", end).encode()
    folder = tmp_path_factory.mktemp("host")
    file = host_file(folder, data)
    assert file.write("rolebundle", ENTRY) is not None
    now = json.loads(file.path.read_bytes())
    assert now["mcpServers"].pop("rolebundle").items() >= ENTRY.items()
    own = content.get("mcpServers", {})
    assert now["mcpServers"] == {key: value for key, value in own.items() if key != "rolebundle"}
    assert {**now, "mcpServers": 0} == {**content, "mcpServers": 0}
    if end == "\n":
        file.write("rolebundle", OTHER_ENTRY)
    file.undo("rolebundle")
    assert file.path.read_bytes() == data


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("cursor", '{\n  // mine\n  "mcpServers": {}\n}'),
        ("vscode", '{"servers": {/* none */}}'),
        ("cursor", '{"mcpServers": {},}'),
        ("cursor", '{"mcpServers": {}, "mcpServers": {}}'),
        ("cursor", "\ufeff{}"),
        ("cursor", b"{\xff}"),
        ("cursor", "{"),
        ("cursor", "[]"),
        ("cursor", "null"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": null}'),
        ("cursor", '{"mcpServers": {"rolebundle": "x"}}'),
        ("cursor", "[" * 100_000),
        ("cursor", " " * (hosts.MAX_BYTES + 1)),
        ("codex", "model = "),
        ("codex", "mcp_servers = 3"),
        ("codex", 'mcp_servers = {docs = {command = "x"}}'),
        ("codex", '[mcp_servers.rolebundle]\ncommand = "x" # mine\n'),
        ("codex", "[[mcp_servers]]\n"),
    ],
)
def test_what_could_be_lost_is_refused_and_not_touched(
    tmp_path: Path, host: str, text: str | bytes
) -> None:
    file = host_file(tmp_path, text, host)
    before = file.path.read_bytes()
    with pytest.raises(ConfigurationError) as refused:
        file.write("rolebundle", ENTRY)
    assert refused.value.code == "host_file_not_plain"
    assert "nothing was written" in refused.value.message
    assert file.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_a_link_stays_and_its_file_keeps_its_permissions(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text(CLAUDE)
    real.chmod(0o640)
    link = tmp_path / "mcp.json"
    link.symlink_to("dotfiles/mcp.json")
    file = HostFile(HOSTS["cursor"], link, tmp_path / "records")
    backup = file.write("rolebundle", ENTRY)
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    assert json.loads(real.read_text())["mcpServers"]["rolebundle"] == ENTRY
    # It may hold secrets of other servers.
    assert backup is not None and stat.S_IMODE(backup.stat().st_mode) == 0o600
    file.undo("rolebundle")
    assert real.read_text() == CLAUDE


def test_undo_keeps_what_others_changed_since(tmp_path: Path) -> None:
    file = host_file(tmp_path, CLAUDE)
    file.write("rolebundle", ENTRY)
    text = file.path.read_text().replace("Ctrl+Space", "Alt+Space")
    text = text.replace('"filesystem"', '"new": {"command": "n"},\n    "filesystem"')
    file.path.write_text(text)
    file.undo("rolebundle")
    expected = json.loads(CLAUDE)
    expected["globalShortcut"] = "Alt+Space"
    expected["mcpServers"]["new"] = {"command": "n"}
    assert json.loads(file.path.read_text()) == expected


@pytest.mark.parametrize("text", [CLAUDE, "{}", CONFLICTING, None])
def test_undo_works_after_the_host_has_rewritten_the_file(tmp_path: Path, text: str | None) -> None:
    file = host_file(tmp_path, text)
    file.write("rolebundle", ENTRY)
    now = json.loads(file.path.read_text())
    now["mcpServers"]["new"] = {"command": "n"}
    file.path.write_text(json.dumps(now, separators=(",", ":"), sort_keys=True))
    file.undo("rolebundle")
    expected = json.loads(text or "{}")
    expected.setdefault("mcpServers", {})["new"] = {"command": "n"}
    assert json.loads(file.path.read_text()) == expected


@pytest.mark.parametrize("text", [CLAUDE, None])
def test_an_entry_that_a_person_edited_is_not_taken_back(tmp_path: Path, text: str | None) -> None:
    file = host_file(tmp_path, text)
    file.write("rolebundle", ENTRY)
    edited = file.path.read_text().replace("team.db", "mine.db")
    file.path.write_text(edited)
    with pytest.raises(UsageError, match=r"\[nothing_to_undo\]"):
        file.undo("rolebundle")
    assert file.path.read_text() == edited


# -- the command ---------------------------------------------------------------------------------


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
    entry = values[HOSTS[host].container]["rolebundle"]
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
    if HOSTS[host].adder:
        line = next(line for line in outcome.err.splitlines() if line.startswith("or: "))
        assert shlex.split(line)[-5:] == entry["args"][-5:]


FILES = {
    "claude-code": ".mcp.json",
    "codex": "codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
}


@pytest.mark.parametrize("host", FILES)
def test_it_writes_and_takes_back(host: str, home: Path) -> None:
    first = invoke("connect", host, "--write")
    assert first.code == 0 and "as it was" not in first.err
    file = home / FILES[host]
    assert "rolebundle" in file.read_text()
    outcome = invoke("connect", host, "--write")
    assert outcome.code == 0 and "has this entry already" in outcome.err
    assert invoke("connect", host, "--undo").code == 0
    assert not file.exists()
    assert invoke("connect", host, "--undo").code == 2


@pytest.mark.parametrize(
    ("platform", "place"),
    [("darwin", "Library/Application Support/Claude"), ("linux", "")],
)
def test_claude_desktop_has_a_file_where_it_is_published(
    platform: str, place: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(hosts.sys, "platform", platform)
        file = HOSTS["claude-desktop"].file()
    assert file == (home / place / "claude_desktop_config.json" if place else None)
    if platform == sys.platform == "linux":
        outcome = invoke("connect", "claude-desktop", "--write")
        assert outcome.code == 2 and "no_host_file" in outcome.err
        assert "mcpServers" in outcome.out
        named = home / "claude.json"
        assert invoke("connect", "claude-desktop", "--write", "--file", named).code == 0
        assert "rolebundle" in named.read_text()


def test_a_file_with_comments_is_only_printed_for(home: Path) -> None:
    file = home / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  // mine\n  "servers": {}\n}\n')
    outcome = invoke("connect", "vscode", "--write")
    assert outcome.code == 3
    assert "without comments" in outcome.err and "by hand" in outcome.err
    assert json.loads(outcome.out)["servers"]["rolebundle"]
    assert "// mine" in file.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("zed",),
        ("cursor", "--name", "a b"),
        ("cursor", "--name", ""),
        ("cursor", "--name", "a]\n[b"),
        ("cursor", "--write", "--undo"),
        ("cursor", "--agent", ""),
    ],
)
def test_options_that_make_no_sense(arguments: tuple[str, ...], home: Path) -> None:
    assert invoke("connect", *arguments).code == 2
    assert [*home.iterdir()] == []
