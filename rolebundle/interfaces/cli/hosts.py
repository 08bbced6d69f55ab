"""`rolebundle install | uninstall`: the hosts of agents on this machine."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from os.path import lexists
from pathlib import Path

import click
from click.exceptions import Exit

from rolebundle.errors import UsageError
from rolebundle.interfaces.cli.options import Call, flag, with_call
from rolebundle.interfaces.cli.output import name_folders, print_note
from rolebundle.interfaces.cli.serving import require_mcp
from rolebundle.interfaces.hosts import HOSTS, NAME, Change, addition, edited, removal

_hosts_option = click.option(
    "--agent",
    "names",
    metavar="HOST",
    multiple=True,
    type=click.Choice(list(HOSTS)),
    help=f"Only this host, also if it is not found. May be repeated. One of: {', '.join(HOSTS)}.",
)
_yes_option = flag("--yes", "Do not ask.")
_dry_run_option = flag("--dry-run", "Change nothing. `install` prints the configurations.")


@click.command()
@click.argument(
    "folders",
    metavar="[FOLDER]...",
    nargs=-1,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@_hosts_option
@_yes_option
@_dry_run_option
@with_call()
def install(
    call: Call, folders: tuple[Path, ...], names: tuple[str, ...], yes: bool, dry_run: bool
) -> None:
    """Connect the hosts of agents on this machine with folders, or with a corpus.

    It finds the hosts, says what it would change in their configurations of this user, asks, reads
    the folders, and adds the MCP server "rolebundle", whose tools only read. The agent of an entry
    is the name of its host, so a policy can say what it may see. Comments and order stay, and the
    former file is kept beside it, as NAME.before-rolebundle. A file that cannot be changed safely
    is left alone; then the exit code is 1.

    With --db the hosts get this corpus in place of folders.

    \b
    rolebundle install ~/notes
    rolebundle install ~/notes --agent cursor --agent zed --yes
    rolebundle install --db team.db --agent vscode --dry-run
    """
    folders = (*folders, *call.in_folders)
    if not folders and call.db is None:
        raise click.UsageError("name a FOLDER, or a corpus with --db")
    call = replace(call, in_folders=tuple(folder.resolve() for folder in folders))
    name_folders(call.in_folders, call.path)
    options = call.place if folders else ["--db", str(call.path.absolute())]
    require_mcp()
    script = shutil.which(NAME, path=str(Path(sys.executable).parent))
    program = [script] if script else [sys.executable, "-m", NAME]
    chosen = names or tuple(name for name, host in HOSTS.items() if host.is_found)
    if not chosen:
        raise UsageError("no_host", "no host was found on this machine", "name one with --agent")
    entries = {
        name: HOSTS[name].entry_of(program, "mcp", *options, "--agent", name) for name in chosen
    }
    if dry_run:
        for name, entry in entries.items():
            click.echo(edited(None, HOSTS[name], entry), nl=False)
    _carry_out(
        chosen,
        lambda name: addition(HOSTS[name], entries[name]),
        lambda: call.engine().close() if folders else None,
        yes=yes,
        dry_run=dry_run,
    )


@click.command()
@_hosts_option
@_yes_option
@_dry_run_option
def uninstall(names: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Take the entries back that `install` wrote into the configurations of hosts.

    A file in which nothing else changed since is as it was before, byte for byte. The corpora stay.

    \b
    rolebundle uninstall --dry-run
    rolebundle uninstall --agent cursor --yes
    """
    chosen = names or tuple(name for name, host in HOSTS.items() if lexists(host.path))
    _carry_out(chosen, lambda name: removal(HOSTS[name]), yes=yes, dry_run=dry_run)


def _carry_out(
    names: Sequence[str],
    plan: Callable[[str], Change],
    first: Callable[[], None] = lambda: None,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Say what is changed for each host, ask, and change it.

    Raises:
        UsageError: ``not_confirmed``; nothing was changed.
        Exit: a file was left alone.
    """
    changes, is_complete = [], True
    for name in names:
        try:
            change = plan(name)
            print_note(f"{name}: {change.path}: {change.what}")
            if change.before != change.after:
                changes.append((name, change))
        except UsageError as error:
            is_complete = False
            print_note(f"{name}: {error.message}; {error.hint}")
    if changes and not dry_run:
        try:
            if not yes and not click.confirm("Change this?", err=True):
                return
        except click.Abort:
            raise UsageError("not_confirmed", "nothing was changed", "add --yes") from None
        first()
        for name, change in changes:
            try:
                change.apply()
            except UsageError as error:
                is_complete = False
                print_note(f"{name}: {error.message}; {error.hint}")
        print_note("done; restart these hosts, or let them read their servers again")
    if not is_complete:
        raise Exit(1)
