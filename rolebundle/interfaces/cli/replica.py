"""`rolebundle replica publish | pull | keygen | forget`: replicas of what one agent may see."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import click

from rolebundle.admin.records import forget_target, publish_replica, pull_replica
from rolebundle.contracts.base import writable
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.interfaces.cli.options import Call, duration, with_call
from rolebundle.interfaces.cli.output import print_note
from rolebundle.interfaces.parse import names_in
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.signatures import create_key, key_id, load_private_key, load_public_key


@click.group()
def replica() -> None:
    """Publish a replica of the corpus that holds only what one agent may see, and pull it.

    Whoever can read a file can read everything in it. So a replica has the documents, passages,
    indexes and vectors that its agent may see, the agent's own rule, and nothing else. It is
    signed by the publisher, and verified on the machine that pulls it.

    \b
    rolebundle replica keygen team.key
    rolebundle replica publish /mnt/share/reviewer --agent reviewer --key team.key
    rolebundle replica pull /mnt/share/reviewer --key team.pub --db reviewer.db
    """


@replica.command()
@click.argument("target")
@click.option("--agent", default="", metavar="ID", help="Publish what this agent may see.")
@click.option(
    "--level", default="", metavar="LEVEL", help="Publish up to this sensitivity, for everyone."
)
@click.option(
    "--scopes", default="", metavar="A,B", help="With --level: only these scopes. Default: every."
)
@click.option(
    "--key",
    "key_file",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The private key that signs the replica; see `rolebundle replica keygen`.",
)
@click.option(
    "--name", default="", metavar="NAME", help="The publisher's name. Default: that of the key."
)
@click.option(
    "--expires",
    type=duration,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How long `replica pull` accepts the replica; publish again before. After that its "
    "answers have the warning REPLICA_STALE.",
)
@click.option(
    "--grace",
    type=duration,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How long after that a pulled replica still answers.",
)
@with_call("as_json")
def publish(
    call: Call,
    target: str,
    agent: str,
    level: str,
    scopes: str,
    key_file: Path,
    name: str,
    expires: timedelta,
    grace: timedelta,
) -> None:
    """Publish a replica to TARGET, or replace the replica there.

    TARGET is a folder: a network share, a synchronized folder or a disk.

    Without --agent and --level, the audience is that of the last publish to TARGET.

    \b
    rolebundle replica publish /mnt/share/reviewer --agent reviewer --key team.key
    rolebundle replica publish /mnt/share/reviewer --key team.key
    rolebundle replica publish /mnt/share/all --level internal --key team.key
    """
    key = load_private_key(key_file)
    folder = PublishedFolder(target)
    chosen = names_in(scopes)
    if scopes and not chosen:
        raise UsageError("bad_scopes", "--scopes names no scope", "leave it out for every scope")
    options = PublishOptions(name or key_file.stem, expires, grace)
    report = call.owner(
        publish_replica, folder, key, options, agent=agent, scopes=chosen, level=level
    )
    call.print(report)
    if call.as_json:
        return
    if not report.manifest.documents:
        warning = "warning: it has no documents; check the scopes and the level"
        print_note(f"{warning} (`rolebundle status`, `rolebundle policy show`)")
    if report.former_key_id not in ("", report.key_id):
        print_note("warning: it has another key, whose public key its readers need")


@replica.command()
@click.argument("file", type=click.Path(path_type=Path))
def keygen(file: Path) -> None:
    """Create the private key FILE and its public key FILE.pub.

    Keep FILE where only the publisher can read it. Give FILE.pub to everyone who pulls.

    \b
    rolebundle replica keygen team.key
    """
    public = create_key(file)
    click.echo(writable(f"{file}: private key; keep it secret"))
    click.echo(writable(f"{public}: public key {key_id(load_public_key(public))}; for pulling"))


@replica.command()
@click.argument("target")
@click.option("--yes", is_flag=True, help="Also if replicas from there may still answer.")
@with_call()
def forget(call: Call, target: str, yes: bool) -> None:
    """Forget TARGET, to which you do not publish any more.

    The files there are not changed: delete them with the tools of the store. Purges and `status` no
    longer name TARGET, and no purge reaches replicas that were pulled from there.

    \b
    rolebundle replica forget /mnt/share/reviewer
    """
    with suppress(RolebundleError):
        target = PublishedFolder(target).target
    call.owner(forget_target, target, confirmed=yes)
    click.echo(writable(f"{target}: forgotten; the files there were not changed"))


@replica.command()
@click.argument("source")
@click.option(
    "--key",
    "key_file",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The publisher's public key.",
)
@with_call("as_json")
def pull(call: Call, source: str, key_file: Path) -> None:
    """Fetch the replica that was published at SOURCE, and replace the local one.

    SOURCE is the folder that the publisher named as TARGET, or a copy of it. The replica is
    verified first: its signature, its rows, and that it is not older than the local one. If it is
    refused, the local one stays in use. Running servers use the new one from their next request on.

    \b
    rolebundle replica pull /mnt/share/reviewer --key team.pub --db reviewer.db
    """
    folder, key = PublishedFolder(source), load_public_key(key_file)
    call.print(call.owner(pull_replica, folder, key))
