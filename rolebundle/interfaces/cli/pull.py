"""`rolebundle pull SOURCE`: fetch a published replica, verify it, and put it in place."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import click

from rolebundle.admin.replicas import pull_replica
from rolebundle.contracts.base import writable
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.replica import PullReport
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.interfaces.cli.duration import Duration
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.output import print_json
from rolebundle.interfaces.layout import harmless
from rolebundle.interfaces.signals import on_end
from rolebundle.policy.overlays import overlay_folders
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.location import overlays_path
from rolebundle.text.counts import counted


@click.command()
@click.argument("source")
@db_option
@click.option(
    "--key",
    "key_file",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The publisher's public key.",
)
@click.option(
    "--every",
    type=Duration(),
    metavar="TIME",
    help="Pull at this interval, such as 5m, until it is ended.",
)
@overlay_dir_option
@json_option
def pull(
    source: str,
    db: str | None,
    key_file: Path,
    every: timedelta | None,
    overlay_dirs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Fetch the replica that was published at SOURCE, and replace the local one.

    SOURCE is what the publisher named as TARGET, or https://HOST/PATH/ of a folder that a static
    web host serves. The replica is verified first: its signature, its rows, and that it is not
    older than the local one. If it is refused, the local one stays in use. Running servers use the
    new one from their next request on.

    An interrupted pull continues where it stopped.

    \b
    rolebundle pull /mnt/share/reviewer --key team.pub --db reviewer.db
    rolebundle pull https://docs.example.org/reviewer/ --key team.pub --db reviewer.db --every 5m
    """
    from rolebundle.replication.signatures import load_public_key
    from rolebundle.replication.transports.registry import open_transport

    if every is not None and as_json:
        raise UsageError("no_json", "--every prints lines, not JSON", "leave out one of the two")
    key = load_public_key(key_file)
    transport = open_transport(source)
    with admin_for(db) as admin:
        folders = overlay_folders(overlay_dirs, admin.workspace.path)

        def pull_once() -> PullReport:
            return pull_replica(admin.workspace, transport, key, folders)

        if every is not None:
            _repeat(pull_once, every.total_seconds())
        elif as_json:
            print_json(pull_once())
        else:
            report = pull_once()
            click.echo(harmless(writable(_line(report))))
            _warn(report)


def _repeat(pull_once: Callable[[], PullReport], seconds: float) -> None:
    """Pull until the process is ended. An error is printed, and the next pull may succeed."""
    stop, signals = Event(), list[int]()
    on_end(signals, stop.set)
    while not stop.is_set():
        try:
            line = _line(pull_once())
        except UsageError:
            raise
        except RolebundleError as error:
            line = f"error: {error.message} [{error.code}]"
        click.echo(harmless(writable(f"{iso_utc(datetime.now(UTC))}  {line}")), err=True)
        stop.wait(seconds)
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


def _line(report: PullReport) -> str:
    manifest = report.manifest
    generation = f"generation {manifest.generation} of {manifest.publisher}"
    if manifest.agent:
        generation += f" for the agent {one_line(manifest.agent)}"
    if report.state == "current":
        return f"{report.location}: is {generation}, which is the published one"
    moved = "" if report.moved_bytes is None else f", {report.moved_bytes:,} bytes moved"
    return (
        f"{report.location}: now {generation}, {counted(manifest.documents, 'document')}, "
        f"published at {manifest.published_at}{moved}"
    )


def _warn(report: PullReport) -> None:
    if report.overlays_changed:
        roles = ", ".join(report.overlays_changed[:5])
        click.echo(writable(f"warning: these roles differ from the publisher's: {roles}"), err=True)
    if report.overlays_missing:
        roles = ", ".join(report.overlays_missing[:5])
        folder = overlays_path(Path(report.location))
        line = (
            f"warning: these roles have no overlay here: {roles}; copy the publisher's to {folder}"
        )
        click.echo(writable(line), err=True)
