"""Groups that import a command's module when the command is called, which keeps the start fast."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from rolebundle.errors import UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_HELP_CHARS = 60
_GC_THRESHOLD = 20_000
"""New objects between two searches for garbage; Python's 700 takes a twentieth of a one-shot."""


class LazyGroup(click.Group):
    """A group of commands that are in the modules of their names.

    Args:
        sections: title → command → what it does, in a few words.
        moved: former command → what to type instead.
        settings: those of :class:`click.Group`.
    """

    def __init__(
        self,
        *,
        sections: Mapping[str, Mapping[str, str]],
        moved: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._sections = sections
        self._moved = moved or {}
        self._texts = {name: text for part in sections.values() for name, text in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, those of this module first."""
        return [*self.commands, *(name for name in self._texts if name not in self.commands)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each title."""
        own = {
            name: command.get_short_help_str(_HELP_CHARS)
            for name, command in self.commands.items()
            if name not in self._texts
        }
        width = max(map(len, (*own, *self._texts)))
        for title, commands in self._sections.items():
            with formatter.section(title):
                rows = {**own, **commands}
                formatter.write_dl([(name.ljust(width), text) for name, text in rows.items()])
            own = {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; a usage error that says what may have been meant."""
        if args[0] in self._moved:
            raise UsageError(
                "command_moved",
                f"there is no command {args[0]!r} any more",
                f"use `rolebundle {self._moved[args[0]]}`",
            )
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            # Click only knows the commands that are imported.
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"{error.message}{guess}", ctx) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names with the descriptions of the help, so that no command is imported."""
        from click.shell_completion import CompletionItem

        own = {
            name: command.get_short_help_str(_HELP_CHARS) for name, command in self.commands.items()
        }
        items = [
            CompletionItem(name, help=text)
            for name, text in {**own, **self._texts}.items()
            if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        if cmd_name not in self._texts:
            return super().get_command(ctx, cmd_name)
        # Modules live as long as the process. A search for garbage among them while they load
        # takes a twentieth of a cold start.
        gc.disable()
        command = getattr(import_module(f"rolebundle.interfaces.cli.{cmd_name}"), cmd_name)
        gc.freeze()
        gc.enable()
        gc.set_threshold(_GC_THRESHOLD)
        assert isinstance(command, click.Command)
        return command
