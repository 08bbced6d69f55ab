"""`rolebundle connect`: the configuration of an agent's host."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from rolebundle.errors import UsageError, install_hint
from rolebundle.interfaces.cli.options import db_option
from rolebundle.interfaces.hosts import (
    HOSTS,
    HostFile,
    absolute_command,
    check_name,
    records_folder,
)
from rolebundle.policy.access import check_agent
from rolebundle.storage.location import corpus_path


@click.command()
@click.argument("host", metavar="HOST", type=click.Choice(list(HOSTS)))
@db_option
@click.option("--agent", metavar="ID", help="Serve only this agent.")
@click.option(
    "--name",
    metavar="NAME",
    default="rolebundle",
    show_default=True,
    help="The server's name in the host; another one for a second corpus.",
)
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Use this file of the host. Default: the user's file, or else that of the working folder.",
)
@click.option("--write", is_flag=True, help="Add it to the host's file. A backup is kept.")
@click.option("--undo", is_flag=True, help="Take back what --write did. Later changes stay.")
def connect(
    host: str,
    db: str | None,
    agent: str | None,
    name: str,
    file: Path | None,
    write: bool,
    undo: bool,
) -> None:
    """Print the configuration with which HOST starts `rolebundle mcp`.

    HOST: claude-code, claude-desktop, codex, cursor, vscode.

    \b
    rolebundle connect claude-code --db team.db
    rolebundle connect cursor --db team.db --agent reviewer --write
    rolebundle connect cursor --undo
    """
    if write and undo:
        raise click.UsageError("--write and --undo cannot be given together")
    check_name(name)
    if agent is not None:
        check_agent(agent)
    chosen = HOSTS[host]
    path = file or chosen.file()
    host_file = HostFile(chosen, path, records_folder()) if path else None
    if undo:
        target = _named(host_file, chosen.label)
        target.undo(name)
        click.echo(f"{target.path}: the entry {name} is as it was before", err=True)
        return
    corpus = corpus_path(db).absolute()
    agent_options = [] if agent is None else ["--agent", agent]
    command = absolute_command(["mcp", "--db", str(corpus), *agent_options])
    entry = chosen.entry(command)
    click.echo(chosen.snippet(name, entry), nl=False)
    if not corpus.exists():
        click.echo(f"note: {corpus} does not exist yet; `rolebundle ingest` makes it", err=True)
    if find_spec("mcp_types") is None:
        click.echo(f"note: the server needs the extra mcp; {install_hint('mcp')}", err=True)
    if not write:
        click.echo(f"for {path}; --write adds it" if path else f"for {chosen.label}", err=True)
        if added_by := chosen.command(name, command):
            click.echo(f"or: {added_by}", err=True)
        return
    target = _named(host_file, chosen.label)
    is_new_file = not target.path.exists()
    backup = target.write(name, entry)
    if backup is None:
        click.echo(f"{target.path}: has this entry already", err=True)
    else:
        before = "" if is_new_file else f"; the file as it was: {backup}"
        click.echo(f"{target.path}: written{before}", err=True)
        click.echo(f"restart {chosen.label}, or let it read its servers again", err=True)


def _named(host_file: HostFile | None, label: str) -> HostFile:
    if host_file is None:
        raise UsageError(
            "no_host_file",
            f"{label} has no file of this kind on this system that is documented",
            "add the printed configuration by hand, or name the file with --file",
        )
    return host_file
