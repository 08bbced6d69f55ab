"""`install` and `uninstall`: the configurations of the hosts of agents."""

import asyncio
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import UsageError
from rolebundle.interfaces import hosts
from rolebundle.interfaces.hosts import HOSTS, Host, addition, backup_path, edited, removal
from support.commands import invoke
from support.mcp import needs_mcp

COMMAND = ["/opt/a b/rolebundle", "mcp", "--db", "/home/é/team.db", "--agent", "x"]
OTHER_COMMAND = ["/opt/a b/rolebundle", "mcp", "--db", "/other.db"]
BOM = b"\xef\xbb\xbf"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "USERPROFILE", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_CONFIG_HOME", "APPDATA", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    return home


def text_of(host: Host, state: str) -> str:
    """A configuration of the host, by what is in it."""
    key = host.container
    texts = {
        ".json": {
            "empty": "",
            "comments": f'// top\n{{\n\t"a": "// no", /* b */\n\t"{key}": {{\n\t\t// mine\n\t}},\n}}\n',
            "others": f'{{"{key}": {{"z": {{"command": "q", "args": []}}, "b": {{}}}}, "a": [1, 2]}}',
            "broken": f'{{"{key}": {{"z": }}\n',
        },
        ".toml": {
            "empty": "",
            "comments": '# top\nmodel = "x" # why\n\n[tui] # t\na = 1\n',
            "others": f'a = 1\n[{key}.z]\ncommand = "q"\n[{key}.z.env]\nB = "c"\n\n[tui]\nx = 1\n',
            "broken": f"[{key}\n",
        },
        ".yaml": {
            "empty": "",
            "comments": "# top\nA: 1 # why\n\n# tail\n",
            "others": f"A: 1\n{key}:\n  # z\n  z:\n    enabled: true # yes\n    args: [q]\nB: |\n  x\n",
            "broken": f"{key}: [\n",
        },
    }
    return texts[Path(host.file).suffix][state]


def parsed(path: Path) -> Any:
    """What the host reads; a parser of its own for comments."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if path.suffix == ".yaml":
        return yaml.safe_load(text) or {}
    text = re.sub(r"^\s*//.*$|/\*.*?\*/", "", text, flags=re.MULTILINE)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text) or "{}")


def entry_for(host: Host, command: list[str] = COMMAND) -> dict[str, Any]:
    return host.entry_of(command[:1], *command[1:])


def install(host: Host, command: list[str] = COMMAND) -> None:
    addition(host, entry_for(host, command)).apply()


STATES = (
    "none", "empty", "comments", "others", "broken", "read-only", "link", "foreign", "windows", "again",
)  # fmt: skip


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", HOSTS)
def test_every_host_in_every_state(
    name: str, state: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HOSTS[name]
    path = real = host.path
    before = None
    if state != "none":
        path.parent.mkdir(parents=True, exist_ok=True)
        if state == "link":
            real = home / "dotfiles"
            path.symlink_to(real)
        kind = {"windows": "comments"}.get(state, state)
        before = text_of(
            host, kind if kind in ("empty", "comments", "broken") else "others"
        ).encode()
        if state == "windows":
            before = BOM + before.replace(b"\n", b"\r\n")
        real.write_bytes(before)
        real.chmod(0o440 if state == "read-only" else 0o640)
    if state == "foreign":
        monkeypatch.setattr(hosts, "is_foreign", lambda user: True)
    if state in ("broken", "read-only", "foreign"):
        for change in (lambda: install(host), lambda: removal(host).apply()):
            with pytest.raises(UsageError, match="left alone") as caught:
                change()
            assert str(path) in caught.value.message
        assert path.read_bytes() == before
        assert [*path.parent.glob(path.name + "*")] == [path]
        return

    was = {} if before is None else parsed(path)
    install(host)
    if state == "again":
        unchanged = addition(host, entry_for(host))
        assert unchanged.before == unchanged.after
        install(host, OTHER_COMMAND)
        install(host)
    values = parsed(path)
    assert values[host.container].pop("rolebundle") == entry_for(host)
    assert values == {**was, host.container: was.get(host.container) or {}}
    assert path.is_symlink() == (state == "link")
    written = real.read_bytes()
    if before is not None:
        assert real.stat().st_mode & 0o777 == 0o640
        assert backup_path(real).read_bytes() == before
        assert written.startswith(BOM) == before.startswith(BOM)
        # The file is the former one with something between.
        rest = iter(written)
        assert all(byte in rest for byte in before)
        assert state != "windows" or b"\n" not in written.replace(b"\r\n", b"")
    removal(host).apply()
    assert (path.read_bytes() if path.exists() else None) == before
    assert not backup_path(real).exists()


@pytest.mark.parametrize(("kind", "word"), [("others", "q"), ("comments", "top")])
@pytest.mark.parametrize("name", HOSTS)
def test_what_the_user_changed_since_is_kept(name: str, kind: str, word: str, home: Path) -> None:
    host = HOSTS[name]
    host.path.parent.mkdir(parents=True, exist_ok=True)
    before = text_of(host, kind)
    host.path.write_text(before, encoding="utf-8")
    was = parsed(host.path)
    install(host)
    changed = host.path.read_text(encoding="utf-8").replace(word, "changed", 1)
    host.path.write_text(changed, encoding="utf-8")
    removal(host).apply()
    after = host.path.read_text(encoding="utf-8")
    assert "rolebundle" not in after
    if kind == "comments":
        assert {**parsed(host.path), host.container: None} == {**was, host.container: None}
        assert after.startswith(before[: before.index("\n")].replace("top", "changed"))
    else:
        assert after == before.replace("q", "changed", 1)
    assert not backup_path(host.path).exists()


def test_a_file_is_written_only_if_it_must_be(home: Path) -> None:
    host = HOSTS["cursor"]
    host.path.parent.mkdir()
    host.path.write_text('{"mcpServers":{}}', encoding="utf-8")
    install(host, OTHER_COMMAND)
    # Another command gives the file that it would have given at first.
    install(host)
    removal(host).apply()
    assert host.path.read_text(encoding="utf-8") == '{"mcpServers":{}}'
    # The host has laid it out anew.
    install(host)
    host.path.write_text(json.dumps(parsed(host.path)), encoding="utf-8")
    change = addition(host, entry_for(host))
    assert change.before == change.after
    # The host writes it while the user is asked.
    change = removal(host)
    host.path.write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="changed meanwhile"):
        change.apply()
    assert host.path.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", "[" * 100_000),
        ("cursor", "\xff\xfe{\0}\0"),
        ("codex", "[[mcp_servers]]\na = 1\n"),
        ("goose", "- a\n"),
        (
            "goose",
            "extensions:\n  rolebundle:\n    enabled: false\n    args:\n    - a\n  # b\n  c: {}\n",
        ),
        ("goose", "a: 1\n---\nb: 1\n"),
        ("goose", "extensions: &x\n  a: 1\nb: *x\n"),
    ],
)
def test_what_cannot_be_changed_safely_is_left_alone(name: str, text: str, home: Path) -> None:
    host = HOSTS[name]
    host.path.parent.mkdir(parents=True)
    host.path.write_text(text, encoding="latin-1" if "\xff" in text else "utf-8")
    before = host.path.read_bytes()
    with pytest.raises(UsageError, match="left alone"):
        install(host)
    assert host.path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("opencode", '{"mcp": {"servers": {}}}', ("mcp", "servers")),
        ("opencode", '{"mcp": {"servers": {"type": "local"}}}', ("mcp",)),
        ("cursor", '{"mcpServers": null}', ("mcpServers",)),
        ("codex", 'mcp_servers = {a = {command = "q"}}\n', ("mcp_servers",)),
        ("codex", '[mcp_servers.rolebundle]\ncommand = "q"\n[mcp_servers.rolebundle.env]\nA = "b"\n', ("mcp_servers",)),
        ("goose", "extensions:\nA: 1\n", ("extensions",)),
        ("goose", "A: 1\nextensions: {a: {}}", ("extensions",)),
        ("goose", "# c\n---\n# d\nA: on\nB: 010\n", ("extensions",)),
        ("goose", "extensions:\n  rolebundle:\n    enabled: false\n    args:\n    - a\n  c: {}\n", ("extensions",)),
    ],
)  # fmt: skip
def test_where_an_entry_is_written(
    name: str, before: str, after: tuple[str, ...], home: Path
) -> None:
    host = HOSTS[name]
    host.path.parent.mkdir(parents=True)
    host.path.write_text(before, encoding="utf-8")
    install(host)
    assert re.findall("#.*", host.path.read_text(encoding="utf-8")) == re.findall("#.*", before)
    values = parsed(host.path)
    for key in after:
        values = values[key]
    assert values["rolebundle"] == entry_for(host)
    removal(host).apply()
    assert host.path.read_text(encoding="utf-8") == before


@st.composite
def laid_out(draw: st.DrawFn, value: Any) -> str:
    """A value as JSON with any layout, comments and last commas."""
    space = st.sampled_from(["", " ", "\n", "\n\t", " // c }\n", "/* , { */"])

    def write(value: Any) -> str:
        if isinstance(value, dict) and value:
            parts = [
                f"{draw(space)}{json.dumps(k)}{draw(space)}:{write(v)}" for k, v in value.items()
            ]
            return "{" + ",".join(parts) + draw(st.sampled_from(["", ","])) + draw(space) + "}"
        return draw(space) + json.dumps(value) + draw(space)

    return write(value) + draw(st.sampled_from(["", "\n"]))


JSON_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=3),
    st.none() | st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=3),
    st.data(),
)
def test_a_json_of_any_layout_gets_and_loses_an_entry(
    values: dict[str, Any], servers: dict[str, Any] | None, data: st.DataObject
) -> None:
    host = HOSTS["zed"]
    if servers is not None:
        values = {**values, host.container: servers}
    text = data.draw(laid_out(values))
    with_entry = edited(text.encode(), host, entry_for(host))
    # `edited` itself compares the values; the text without the entry has all of the former one.
    without = edited(with_entry, host).decode()
    rest = iter(without)
    assert all(character in rest for character in text)


def test_what_is_advised_for_a_broken_file_names_the_folder(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{,", encoding="utf-8")
    (home / "notes").mkdir()
    for words in ([home / "notes"], ["--in", home / "notes"]):
        outcome = invoke("install", *words, "--agent", "cursor", "--yes")
        assert outcome.code == 1
        assert f"`rolebundle install --dry-run --in {home / 'notes'}`" in outcome.err


def test_the_commands(home: Path) -> None:
    for name in (".cursor", ".gemini", ".codex"):
        (home / name).mkdir()
    (home / ".gemini" / "settings.json").write_text("{,", encoding="utf-8")
    install = ("install", "--db", home / "team.db")
    outcome = invoke(*install, stdin="")
    assert (outcome.code, "not_confirmed" in outcome.err) == (2, True)
    assert [path.name for path in home.glob(".*/*")] == ["settings.json"]
    outcome = invoke(*install, stdin="y\n")
    assert outcome.code == 1
    assert "settings.json: left alone" in outcome.err
    entry = parsed(home / ".cursor" / "mcp.json")["mcpServers"]["rolebundle"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-5:] == ["mcp", "--db", str(home / "team.db"), "--agent", "cursor"]
    assert "mcp_servers" in parsed(home / ".codex" / "config.toml")
    outcome = invoke("uninstall", "--agent", "cursor", "--agent", "codex", "--yes")
    assert outcome.code == 0
    assert [path.name for path in home.glob(".*/*")] == ["settings.json"]
    assert invoke("uninstall", "--agent", "cursor").code == 0


@pytest.mark.slow
@needs_mcp
def test_a_client_asks_the_server_that_was_installed(home: Path) -> None:
    folder = home / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Tokens\n\nA token lives 30 days.\n", encoding="utf-8")
    assert invoke("install", folder, "--agent", "cursor", "--yes").code == 0

    async def asked() -> str:
        from mcp import ClientSession, StdioServerParameters, stdio_client

        entry = parsed(home / ".cursor" / "mcp.json")["mcpServers"]["rolebundle"]
        server = StdioServerParameters(**entry, env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            assert "ingest" not in [tool.name for tool in (await session.list_tools()).tools]
            task = {"task": "How long does a token live?"}
            return str((await session.call_tool("retrieve", task)).content[0])

    assert "30 days" in asyncio.run(asked())
    assert sorted(path.name for path in folder.iterdir()) == ["a.md"]


@pytest.mark.parametrize("name", HOSTS)
def test_a_dry_run_prints_a_whole_configuration_and_writes_nothing(name: str, home: Path) -> None:
    outcome = invoke("install", "--agent", name, "--db", "some folder/team.db", "--dry-run")
    assert outcome.code == 0
    host = HOSTS[name]
    file = home.parent / f"out{Path(host.file).suffix}"
    file.write_text(outcome.out, encoding="utf-8")
    entry = parsed(file)[host.container]["rolebundle"]
    words = [
        text for value in entry.values() for text in (value if isinstance(value, list) else [value])
    ]
    arguments = ["mcp", "--db", str(home / "some folder" / "team.db"), "--agent", name]
    assert [word for word in words if word in arguments] == arguments
    assert [*home.iterdir()] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("install", "--db", "team.db", "--agent", "emacs"),
        ("install", "--db", "team.db"),
        ("install", "--agent", "cursor"),
        ("install", "missing", "--agent", "cursor", "--yes"),
        ("install", ".", "--db", "team.db", "--agent", "cursor"),
        ("install", ".", "--agent", "cursor", "--yes"),  # All of the home folder.
        ("uninstall", "--agent", "emacs"),
    ],
)
def test_options_that_make_no_sense(arguments: tuple[str, ...], home: Path) -> None:
    assert invoke(*arguments).code == 2
    assert [*home.iterdir()] == []
