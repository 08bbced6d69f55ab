"""The configuration of agents' hosts: what to add, where, and how to add it without a loss.

A change replaces or adds a piece of the file's text and leaves every other character alone. The
result is parsed: it must be what was there, with the entry. If it is not, for example because the
file has comments that plain JSON does not allow, nothing is written.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shlex import join
from typing import Any

from platformdirs import user_data_path

from rolebundle.errors import ConfigurationError, StorageError, UsageError
from rolebundle.storage.file import partial_file, sync_file, sync_folder
from rolebundle.text.strict_json import LocatedObject, NotStrictError, parse_located

Entry = dict[str, Any]

MAX_BYTES = 8 << 20
"""A larger file is no configuration that a person keeps."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host of agents.

    Attributes:
        name: for the command line.
        label: its own name.
        container: the key of the file under which the servers are.
        in_project: the file within a project; empty if it has none.
        has_type: whether an entry says that the server speaks over standard input and output.
        adder: a command of the host that adds the server; empty if it has none.
    """

    name: str
    label: str
    container: str
    in_project: str
    has_type: bool = False
    adder: str = ""

    @property
    def is_toml(self) -> bool:
        """Whether the file is TOML; else JSON."""
        return self.container == "mcp_servers"

    def file(self) -> Path | None:
        """The user's file, or else the working folder's; ``None`` if the host has none here."""
        if self.name in _PROJECT_ONLY:
            return Path.cwd() / self.in_project if self.in_project else None
        return _user_file(self.name)

    def entry(self, command: Sequence[str]) -> Entry:
        """The entry of a server that is started with a command."""
        kind = {"type": "stdio"} if self.has_type else {}
        return {**kind, "command": command[0], "args": [*command[1:]]}

    def snippet(self, server: str, entry: Entry) -> str:
        """The configuration of one server, as a whole file would have it."""
        if self.is_toml:
            return _table(self.container, server, entry)
        return json.dumps({self.container: {server: entry}}, indent=2, ensure_ascii=False) + "\n"

    def command(self, server: str, command: Sequence[str]) -> str:
        """The host's own command that adds the server; empty if it has none."""
        return f"{self.adder} {join([server, '--', *command])}" if self.adder else ""


HOSTS = {
    host.name: host
    for host in (
        Host(
            "claude-code",
            "Claude Code",
            "mcpServers",
            ".mcp.json",
            adder="claude mcp add --scope project",
        ),
        Host("claude-desktop", "Claude Desktop", "mcpServers", ""),
        Host("codex", "Codex", "mcp_servers", ".codex/config.toml", adder="codex mcp add"),
        Host("cursor", "Cursor", "mcpServers", ".cursor/mcp.json"),
        Host("vscode", "Visual Studio Code", "servers", ".vscode/mcp.json", has_type=True),
    )
}
_PROJECT_ONLY = frozenset({"claude-code", "vscode"})
"""Claude Code rewrites the file of the user while it runs, and Visual Studio Code has one for each
profile. So only the project's file is written."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _user_file(name: str) -> Path | None:
    home = Path.home()
    if name == "cursor":
        return home / ".cursor" / "mcp.json"
    if name == "codex":
        return Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    # Claude Desktop. There is no published application for other systems.
    file = Path("Claude") / "claude_desktop_config.json"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / file
    return None


def check_name(server: str) -> None:
    """Raise a UsageError if no host could take this name."""
    if not _NAME.fullmatch(server):
        raise UsageError(
            "bad_server_name",
            f"{server[:80]!r} cannot be the name of a server",
            "use at most 64 letters, digits, _ and -",
        )


class HostFile:
    """The configuration file of a host, and what is kept of a change in it.

    Args:
        host: the host.
        path: the file. Links are followed, so that they stay.
        records: the folder with what was written, and with backups.
    """

    def __init__(self, host: Host, path: Path, records: Path) -> None:
        self._host = host
        self.path = Path(os.path.realpath(path))
        self._records = records

    def write(self, server: str, entry: Entry) -> Path | None:
        """Add the entry of a server, or put it in the place of the one before.

        Returns:
            The backup of the file; ``None`` if the entry was there already.

        Raises:
            ConfigurationError: ``host_file_not_plain``: the file is not what the host documents,
                or has what would be lost.
            StorageError: it cannot be read or written.
        """
        text = self._read()
        # As long as nobody else has changed the file, the backup is of before the first change.
        is_ours = text.encode() == self._kept(self._written(server))
        original = self._original(server) if is_ours else text
        entry = {**self._entries(original).get(server, {}), **entry}
        if self._entries(text).get(server) == entry:
            return None
        changed = self._with_entry(original, server, entry)
        expected = dict(self._parsed(original))
        expected[self._host.container] = {**self._entries(original), server: entry}
        if self._parsed(changed) != expected:
            raise self._refused("would lose something")
        self._save(self._backup(server), original.encode())
        self._replace(text, changed)
        self._save(self._written(server), changed.encode())
        return self._backup(server)

    def undo(self, server: str) -> None:
        """Put the file back as it was before the change. A file that was made is deleted.

        What others changed since stays.

        Raises:
            UsageError: ``nothing_to_undo``: there is no change, or the entry is another one today.
            ConfigurationError, StorageError: as for :meth:`write`.
        """
        written = self._kept(self._written(server))
        if written is None:
            raise UsageError(
                "nothing_to_undo",
                f"{self.path}: rolebundle has not changed it",
                "give the same host, --file and --name as with --write",
            )
        text = self._read()
        undone = self._original(server)
        if text.encode() != written:
            undone = self._without(text, server, written.decode())
        if undone:
            self._replace(text, undone)
        else:
            with self._guarded(self.path):
                self.path.unlink()
        for file in (self._written(server), self._backup(server)):
            with suppress(OSError):
                file.unlink()

    # -- text ----------------------------------------------------------------------------------

    def _parsed(self, text: str) -> dict[str, Any]:
        if not text.strip():
            return {}
        try:
            values = tomllib.loads(text) if self._host.is_toml else parse_located(text)
        except (NotStrictError, tomllib.TOMLDecodeError, RecursionError) as error:
            kind = "TOML" if self._host.is_toml else "JSON without comments"
            raise self._refused(f"is not plain {kind} ({error})") from None
        if not isinstance(values, dict):
            raise self._refused("is not an object")
        return values

    def _entries(self, text: str) -> dict[str, Any]:
        entries = self._parsed(text).get(self._host.container, {})
        if not isinstance(entries, dict) or not all(
            isinstance(entry, dict) for entry in entries.values()
        ):
            raise self._refused(f"{self._host.container} is not an object of servers")
        return entries

    def _with_entry(self, text: str, server: str, entry: Entry) -> str:
        """The text with the entry."""
        if self._host.is_toml:
            if server in self._entries(text):
                raise self._refused(f"has another entry {server!r}, and would lose its comments")
            gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
            return text + _with_line_ends_of(
                text, gap + _table(self._host.container, server, entry)
            )
        if not text.strip():
            return self._host.snippet(server, entry)
        root, unit = self._parsed(text), _indent(text)
        assert isinstance(root, LocatedObject)
        servers = root.get(self._host.container)
        if not isinstance(servers, LocatedObject):
            member = _member(self._host.container, {server: entry}, unit, 1)
            return _inserted(text, root, member, unit, 0)
        if server not in servers:
            return _inserted(text, servers, _member(server, entry, unit, 2), unit, 1)
        start, last = servers.spans[server]
        return text[:start] + _with_line_ends_of(text, _dumped(entry, unit, 2)) + text[last + 1 :]

    def _without(self, text: str, server: str, written: str) -> str:
        """A text that others changed since, with the entry that was there before, or none."""
        ours = self._entries(written)[server]
        before = self._entries(self._original(server)).get(server)
        values, servers = self._parsed(text), {**self._entries(text)}
        if servers.pop(server, None) != ours:
            raise UsageError(
                "nothing_to_undo",
                f"{self.path}: its entry {server!r} is not the one that rolebundle wrote",
                f"edit it by hand; the file as it was is {self._backup(server)}",
            )
        if self._host.is_toml:
            table = _with_line_ends_of(text, _table(self._host.container, server, ours))
            undone = text.replace(table, "", 1)
            if server in self._entries(undone):
                raise self._refused(f"the entry {server!r} was edited since")
            return undone
        if before is not None:
            servers[server] = before
        values = {**values, self._host.container: servers}
        return json.dumps(values, indent=_indent(text), ensure_ascii=text.isascii()) + "\n"

    def _refused(self, problem: str) -> ConfigurationError:
        return ConfigurationError(
            "host_file_not_plain",
            f"{self.path}: {problem}; nothing was written",
            "edit the file by hand; `rolebundle connect` prints what it needs",
        )

    # -- files ---------------------------------------------------------------------------------

    def _read(self) -> str:
        with self._guarded(self.path):
            if not self.path.exists():
                return ""
            if not self.path.is_file():
                raise self._refused("is not a plain file")
            with self.path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise self._refused("is not UTF-8") from None
        if len(data) > MAX_BYTES:
            raise self._refused(f"has more than {MAX_BYTES:,} bytes")
        return text

    def _replace(self, read: str, changed: str) -> None:
        """Write the whole file again, if it is still as it was read."""
        with self._guarded(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with partial_file(self.path) as partial:
                partial.write_bytes(changed.encode("utf-8"))
                _copy_permissions(self.path, partial)
                sync_file(partial)
                if self._read() != read:
                    raise StorageError(
                        "host_file_changed",
                        f"{self.path}: another program has just changed it",
                        "close the host, and run the same command again",
                    )
                partial.replace(self.path)
            sync_folder(self.path.parent)

    @contextmanager
    def _guarded(self, path: Path) -> Iterator[None]:
        """Raise a StorageError if the system cannot read or write the file in the block."""
        try:
            yield
        except OSError as error:
            raise StorageError(
                "host_file_failed",
                f"{path}: cannot be read or written ({error.strerror}); nothing was changed",
                "check its permissions, or add the printed configuration by hand",
            ) from None

    def _written(self, server: str) -> Path:
        """What rolebundle has written."""
        digest = sha256(f"{self.path}\0{server}".encode("utf-8", "surrogateescape")).hexdigest()
        return self._records / f"{self._host.name}-{digest[:16]}.written"

    def _backup(self, server: str) -> Path:
        return self._written(server).with_suffix(".backup")

    def _original(self, server: str) -> str:
        return (self._kept(self._backup(server)) or b"").decode()

    def _kept(self, file: Path) -> bytes | None:
        with suppress(OSError):
            return file.read_bytes()
        return None

    def _save(self, file: Path, data: bytes) -> None:
        """Keep something of a host's file, which may hold secrets of other servers."""
        with self._guarded(file):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with partial_file(file) as partial:
                partial.write_bytes(data)
                sync_file(partial)
                partial.replace(file)


def _copy_permissions(path: Path, partial: Path) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        partial.chmod(0o666 & ~mask)
        return
    partial.chmod(status.st_mode & 0o7777)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):
            os.chown(partial, status.st_uid, status.st_gid)


# -- text like that of the file -------------------------------------------------------------------


def _with_line_ends_of(text: str, added: str) -> str:
    """A piece of text with the line ends of the file."""
    plain = added.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if "\r\n" in text else plain


def _indent(text: str) -> str:
    found = re.search(r'\n([ \t]+)"', text)
    return found[1] if found else "  "


def _dumped(value: Any, unit: str, depth: int) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", "\n" + unit * depth)


def _member(key: str, value: Any, unit: str, depth: int) -> str:
    return f"{json.dumps(key)}: {_dumped(value, unit, depth)}"


def _inserted(text: str, members: LocatedObject, member: str, unit: str, depth: int) -> str:
    """The text with a member at the beginning of an object at a depth."""
    start = members.at + 1
    added = f"\n{unit * (depth + 1)}{member}"
    if members:
        return text[:start] + _with_line_ends_of(text, added) + "," + text[start:]
    # What is between the brackets is white space.
    added = _with_line_ends_of(text, f"{added}\n{unit * depth}")
    return text[:start] + added + text[text.index("}", start) :]


def _table(container: str, server: str, entry: Entry) -> str:
    lines = [f"[{container}.{server}]"]
    # A JSON text of a string or of a list of strings is TOML, too, but for DEL.
    for key, value in entry.items():
        lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f"))
    return "\n".join(lines) + "\n"


def absolute_command(arguments: Sequence[str]) -> list[str]:
    """The command that starts rolebundle with these arguments from any folder.

    Raises:
        UsageError: an argument is no text, so that no configuration can hold it.
    """
    script = Path(sys.executable).with_name("rolebundle")
    start = [str(script)] if script.is_file() else [sys.executable, "-m", "rolebundle"]
    command = [*start, *arguments]
    for part in command:
        if any("\ud800" <= character <= "\udfff" for character in part):
            raise UsageError(
                "not_text",
                f"{part!r} is not Unicode text, so no configuration can hold it",
                "choose another name",
            )
    return command


def records_folder() -> Path:
    """Where the records and backups of `connect` are kept."""
    return user_data_path("rolebundle", appauthor=False) / "hosts"
