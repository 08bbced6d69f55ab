"""`rolebundle man`: the manual page, made from the help of all commands."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from inspect import cleandoc

import click

_RAW = "\b"
"""Click's mark of a paragraph that is not wrapped."""


@click.command()
@click.pass_context
def man(context: click.Context) -> None:
    """Print the manual page of rolebundle and of all its commands.

    \b
    rolebundle man | man -l -
    rolebundle man > ~/.local/share/man/man1/rolebundle.1
    """
    click.echo("\n".join(manual_page(context.find_root())))


def manual_page(program: click.Context) -> Iterator[str]:
    """The lines of the page (man(7))."""
    name = str(program.info_name)
    summary = program.command.get_short_help_str(limit=200).rstrip(".")
    source = _text(f"{name} {version('rolebundle')}")
    yield f'.TH {_text(name.upper())} 1 "" "{source}" "User Commands"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(summary)}"
    yield ".SH SYNOPSIS"
    yield from _usage(program)
    yield ".SH DESCRIPTION"
    yield from _help(program)
    yield ".SH OPTIONS"
    yield from _options(program)
    yield ".SH COMMANDS"
    for command in commands_of(program):
        yield f'.SS "{_text(command.command_path)}"'
        yield from _usage(command)
        yield from _help(command)
        yield from _options(command)


def commands_of(context: click.Context) -> Iterator[click.Context]:
    """The commands of a group, each followed by its own commands, without hidden ones."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            inner = click.Context(command, info_name=name, parent=context)
            yield inner
            yield from commands_of(inner)


def _usage(context: click.Context) -> Iterator[str]:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    yield f"\\fB{_text(context.command_path)}\\fR {_text(pieces)}"


def _help(context: click.Context) -> Iterator[str]:
    for paragraph in cleandoc(context.command.help or "").split("\n\n"):
        lines = [_text(line) for line in paragraph.split("\n") if line != _RAW]
        yield ".PP"
        if paragraph.startswith(_RAW):
            yield from (".RS 4", ".nf", *lines, ".fi", ".RE")
        else:
            yield from lines


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        names, description = parameter.get_help_record(context) or ("", "")
        if description:
            yield from (".TP", f"\\fB{_text(names)}\\fR", _text(description))


def _text(text: str) -> str:
    """A line in which nothing is a request or an escape."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    plain = "".join(
        character if character.isascii() else f"\\[u{ord(character):04X}]" for character in escaped
    )
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
