"""The commands, in the order and with the sections of `rolebundle --help`.

The help prints these texts, so that no command is imported for it. A command is imported when it is
called.
"""

from __future__ import annotations

import gc
from difflib import get_close_matches
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from rolebundle.errors import UsageError

COMMANDS = {
    "Start here": {
        "init": ("overlay", "Propose what the documents of a folder are, and a first role"),
        "ingest": ("ingest", "Read files and folders, or what was read before, into the corpus"),
        "retrieve": ("retrieve", "Find what a role may use for a task"),
        "get": ("lookups", "Show passages, documents, or parts of them"),
        "why": ("explain", "Explain why a passage was selected, or why not"),
        "overlay": ("overlay", "List, check, try and write the overlays of roles"),
        "connect": ("serving", "Print or write the configuration of a host"),
        "status": ("status", "What the corpus holds, and the state of its indexes"),
    },
    "Documents": {
        "ls": ("lookups", "List documents"),
        "grep": ("lookups", "Find lines by an exact text or a regular expression"),
        "watch": ("ingest", "Update the corpus whenever files change"),
        "corpus": ("corpus", "Care for the file: check, back up, purge, embed, ..."),
    },
    "Answers": {
        "compare": ("explain", "Compare what several roles get for a task"),
        "replay": ("explain", "Repeat a saved answer, and report what has changed"),
        "inspect": ("explain", "Show answers, roles and the corpus in a browser"),
        "verify": ("checks", "Check the quotes, citations and figures of a draft"),
        "eval": ("eval", "Measure retrieval on a golden set or a test collection"),
    },
    "What people and agents add": {
        "decisions": ("memory", "Add, list, show and end decisions"),
        "mark": ("memory", "Mark passages as rejected, disputed or verified"),
        "remember": ("memory", "File facts with their sources"),
        "check": ("checks", "Compare an intent with the decisions"),
        "gate": ("checks", "Check with a contract that work is done"),
    },
    "Agents": {
        "policy": ("policy", "Which agent may see what, and who asked what"),
        "mcp": ("serving", "Serve MCP on standard input and output"),
        "serve": ("serving", "Serve JSON-RPC on standard input and output"),
        "replica": ("replica", "Publish and pull replicas of what one agent may see"),
    },
}
"""Section → command → the module that has it, and what it does in a few words."""

MOVED = {
    "audit": "policy audit",
    "backup": "corpus backup",
    "bridges": "policy bridges",
    "decide": "decisions add",
    "demo": "overlay demo",
    "doctor": "corpus doctor",
    "embed": "corpus embed",
    "formats": "corpus formats",
    "multi-get": "get",
    "publish": "replica publish",
    "pull": "replica pull",
    "purge": "corpus purge",
    "quarantine": "corpus quarantine",
    "restore": "corpus restore",
    "roots": "corpus roots",
    "scopes": "policy",
    "trust": "gate approve",
    "update": "ingest",
}
"""Former commands → what to type instead."""

_ROWS = {name: row for section in COMMANDS.values() for name, row in section.items()}
_GC_THRESHOLD = 20_000
"""New objects between two searches for garbage; Python's 700 takes a twentieth of a one-shot."""


class Commands(click.Group):
    """The group of ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return [*_ROWS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each title."""
        width = max(map(len, _ROWS))
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([
                    (name.ljust(width), text) for name, (_, text) in commands.items()
                ])  # fmt: skip

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; a usage error that says what may have been meant."""
        if args[0] in MOVED:
            raise UsageError(
                "command_moved",
                f"there is no command {args[0]!r} any more",
                f"use `rolebundle {MOVED[args[0]]}`",
            )
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # Click only knows the commands that are imported.
            near = get_close_matches(args[0], _ROWS, n=1)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"{error.message}{guess}", ctx) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names with the descriptions of the help, so that no command is imported."""
        items = [
            CompletionItem(name, help=text)
            for name, (_, text) in _ROWS.items()
            if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        if cmd_name not in _ROWS:
            return None
        # Modules live as long as the process. A search for garbage among them while they load
        # takes a twentieth of a cold start.
        gc.disable()
        module = import_module(f"rolebundle.interfaces.cli.{_ROWS[cmd_name][0]}")
        gc.freeze()
        gc.enable()
        gc.set_threshold(_GC_THRESHOLD)
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command
