"""`rolebundle watch`: keep the corpus in step with everything that was ingested."""

from __future__ import annotations

import signal
import sys
from datetime import datetime
from threading import Event
from typing import Any

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.operation_requests import IngestRequest
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.watch import WatchOptions
from rolebundle.interfaces.cli.closed_pipe import is_read
from rolebundle.interfaces.cli.indexing import background_indexing
from rolebundle.interfaces.cli.options import (
    admin_for,
    db_option,
    request_options,
)
from rolebundle.interfaces.signals import on_end


@click.command()
@db_option
@request_options(IngestRequest, only=["lexical_only"])
@click.option(
    "--poll",
    is_flag=True,
    help="Check all files at intervals. For network drives, which report no changes.",
)
def watch(db: str | None, fields: dict[str, Any], poll: bool) -> None:
    """Update the corpus whenever ingested folders and files change.

    Runs until it is ended (SIGTERM, Ctrl-C). Changes are in the corpus a moment later, and running
    servers answer from them. `rolebundle status` shows what it does.

    If a folder vanishes, its documents stay until it is back. If more than a fifth of a folder's
    documents disappear while the folder is there, it changes nothing and ends with exit code 2:
    run `rolebundle ingest` if that is meant.

    \b
    rolebundle watch
    rolebundle watch --poll --db team.db
    """
    admin = admin_for(db)
    stop = Event()
    # One process: starting others takes longer than most passes.
    options = WatchOptions(IngestOptions(wait=False), poll=poll)

    def report_line(line: str) -> None:
        _print_line(line)
        if not is_read(sys.stderr):
            stop.set()

    indexing = None
    if not fields.get("lexical_only"):
        indexing = background_indexing(admin.workspace.path, report_line)
        indexing.start()
    watcher = admin.watcher(options, report_line, stop, indexing=indexing, **fields)
    signals: list[int] = []

    def end() -> None:
        stop.set()
        if watcher.is_syncing:
            # Ends the pass; what is complete is stored.
            raise KeyboardInterrupt

    on_end(signals, end)
    watcher.run()
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


def _print_line(line: str) -> None:
    time = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    click.echo(writable(f"{time}  {line}"), err=True)
