"""The configuration of agents' hosts: what to add, and where."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any

from rolebundle.errors import UsageError

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """A host of agents.

    Attributes:
        name: for the command line.
        container: the key of the file under which the servers are; ``mcp_servers`` is TOML's.
        file: the file of its configuration, for people.
        has_type: whether an entry says that the server speaks over standard input and output.
        adder: a command of the host that adds the server; empty if it has none.
    """

    name: str
    container: str
    file: str
    has_type: bool = False
    adder: str = ""

    def entry(self, command: Sequence[str]) -> Entry:
        """The entry of a server that is started with a command."""
        kind = {"type": "stdio"} if self.has_type else {}
        return {**kind, "command": command[0], "args": [*command[1:]]}

    def snippet(self, server: str, entry: Entry) -> str:
        """The configuration of one server, as a whole file would have it."""
        if self.container != "mcp_servers":
            text = json.dumps({self.container: {server: entry}}, indent=2, ensure_ascii=False)
            return f"{text}\n"
        lines = [f"[{self.container}.{server}]"]
        # A JSON text of a string or of a list of strings is TOML, too, but for DEL.
        for key, value in entry.items():
            line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
            lines.append(line.replace("\x7f", "\\u007f"))
        return "\n".join(lines) + "\n"

    def command(self, server: str, command: Sequence[str]) -> str:
        """The host's own command that adds the server; empty if it has none."""
        return f"{self.adder} {join([server, '--', *command])}" if self.adder else ""


_CLAUDE = "claude_desktop_config.json (Settings > Developer > Edit Config)"
HOSTS = {
    host.name: host
    for host in (
        Host(
            "claude-code",
            "mcpServers",
            ".mcp.json of the project",
            adder="claude mcp add --scope project",
        ),
        Host("claude-desktop", "mcpServers", _CLAUDE),
        Host("codex", "mcp_servers", "~/.codex/config.toml", adder="codex mcp add"),
        Host("cursor", "mcpServers", "~/.cursor/mcp.json"),
        Host("vscode", "servers", ".vscode/mcp.json of the project", has_type=True),
    )
}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_name(server: str) -> None:
    """Raise a UsageError if no host could take this name."""
    if not _NAME.fullmatch(server):
        raise UsageError(
            "bad_server_name",
            f"{server[:80]!r} cannot be the name of a server",
            "use at most 64 letters, digits, _ and -",
        )


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
