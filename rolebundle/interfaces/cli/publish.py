"""`rolebundle publish TARGET | keygen | forget`: replicas with only what one agent may see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import click

from rolebundle.admin.replicas import forget_target, publish_replica
from rolebundle.contracts.base import writable
from rolebundle.contracts.replica import PublishReport
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.interfaces.cli.duration import Duration
from rolebundle.interfaces.cli.options import (
    admin_for,
    db_option,
    group_with_default,
    json_option,
    overlay_dir_option,
)
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.interfaces.cli.store_history import print_erased, print_not_erased
from rolebundle.interfaces.layout import harmless
from rolebundle.policy.overlays import overlay_folders
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.text.counts import counted


@click.group(
    cls=group_with_default("to"),
    options_metavar="",
    subcommand_metavar="TARGET [OPTIONS]... | keygen FILE | forget TARGET",
)
def publish() -> None:
    """Publish a replica of the corpus that holds only what one agent may see.

    Whoever can read a file can read everything in it. So a replica has the documents, passages,
    indexes and vectors that its agent may see, the agent's own rule, and nothing else. It is
    signed; `rolebundle pull` verifies it on the other machine.

    TARGET is a folder (a network share, a synchronized folder), ssh://[USER@]HOST/PATH/replica.db
    (sqlite3_rsync), or litestream+file:///PATH, litestream+s3://BUCKET/PATH, litestream+sftp://…,
    litestream+webdav://… (Litestream). A static web host can serve a folder.

    \b
    rolebundle publish keygen team.key
    rolebundle publish /mnt/share/reviewer --agent reviewer --key team.key
    rolebundle publish to --help                all options
    """


@publish.command()
@click.argument("target")
@db_option
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
    help="The private key that signs the replica; see `rolebundle publish keygen`.",
)
@click.option(
    "--name", default="", metavar="NAME", help="The publisher's name. Default: that of the key."
)
@click.option(
    "--expires",
    type=Duration(),
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How long `pull` accepts the replica; publish again before. After that its "
    "answers have the warning REPLICA_STALE.",
)
@click.option(
    "--grace",
    type=Duration(),
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How long after that a pulled replica still answers.",
)
@overlay_dir_option
@json_option
def to(
    target: str,
    db: str | None,
    agent: str,
    level: str,
    scopes: str,
    key_file: Path,
    name: str,
    expires: timedelta,
    grace: timedelta,
    overlay_dirs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Publish a replica to TARGET, or update the replica there.

    Without --agent and --level, the audience is that of the last publish to TARGET.

    Only the difference to the last replica is applied and moved. The replica is built anew if it
    holds something that was purged or that its agent may no longer see.

    \b
    rolebundle publish /mnt/share/reviewer --agent reviewer --key team.key
    rolebundle publish /mnt/share/reviewer --key team.key
    rolebundle publish ssh://build/srv/replica.db --level internal --key team.key
    """
    from rolebundle.replication.publish import PublishOptions
    from rolebundle.replication.signatures import load_private_key
    from rolebundle.replication.transports.registry import open_transport

    key = load_private_key(key_file)
    transport = open_transport(target)
    chosen = [scope for scope in (part.strip() for part in scopes.split(",")) if scope]
    if scopes and not chosen:
        raise UsageError("bad_scopes", "--scopes names no scope", "leave it out for every scope")
    with admin_for(db) as admin:
        options = PublishOptions(
            name or key_file.stem,
            expires,
            grace,
            overlay_folders(overlay_dirs, admin.workspace.path),
        )
        report = publish_replica(
            admin.workspace, transport, key, options, agent=agent, scopes=chosen, level=level
        )
    print_answer(report, map(harmless, _lines(report)), as_json=as_json)
    if as_json:
        return
    if not report.manifest.documents:
        warning = "warning: it has no documents; check the scopes and the level"
        click.echo(f"{warning} (`rolebundle status`, `rolebundle policy show`)", err=True)
    if report.history is not None:
        print_erased([report.history])
        print_not_erased([report.history])


def _lines(report: PublishReport) -> Iterator[str]:
    manifest = report.manifest
    reader = (
        f"for the agent {one_line(manifest.agent)}" if manifest.agent else "for everyone who has it"
    )
    yield (
        f"{report.target}: generation {manifest.generation} {reader}, "
        f"{counted(manifest.documents, 'document')}, {counted(manifest.chunks, 'passage')}"
    )
    file_size = (
        f"{report.moved_bytes:,} bytes moved, the file has {report.file_bytes:,}"
        if report.moved_bytes is not None
        else f"the file has {report.file_bytes:,} bytes"
    )
    yield (f"{report.added} added, {report.updated} updated, {report.removed} removed; {file_size}")
    if report.rebuilt:
        yield f"the file was built anew: {report.rebuilt}"
    yield (
        f"accepted until {manifest.expires_at}, answers until {manifest.refuses_at}; "
        f"signed by the key {report.key_id} of {manifest.publisher}"
    )


@publish.command()
@click.argument("file", type=click.Path(path_type=Path))
def keygen(file: Path) -> None:
    """Create the private key FILE and its public key FILE.pub.

    Keep FILE where only the publisher can read it. Give FILE.pub to everyone who pulls.

    \b
    rolebundle publish keygen team.key
    """
    from rolebundle.replication.signatures import create_key, key_id, load_public_key

    public = create_key(file)
    click.echo(writable(f"{file}: private key; keep it secret"))
    click.echo(
        writable(f"{public}: public key {key_id(load_public_key(public))}; for `pull --key`")
    )


@publish.command()
@click.argument("target")
@db_option
@click.option("--yes", is_flag=True, help="Also if replicas from there may still answer.")
def forget(target: str, db: str | None, yes: bool) -> None:
    """Forget TARGET, to which you do not publish any more.

    The files there are not changed: delete them with the tools of the store. Purges and `status` no
    longer name TARGET, and no purge reaches replicas that were pulled from there.

    \b
    rolebundle publish forget /mnt/share/reviewer
    """
    from rolebundle.replication.transports.registry import open_transport

    with suppress(RolebundleError):
        target = open_transport(target).target
    with admin_for(db) as admin:
        forget_target(admin.workspace, target, confirmed=yes)
    click.echo(writable(f"{target}: forgotten; the files there were not changed"))
