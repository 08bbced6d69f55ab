"""`rolebundle watch`: keep the corpus in step with everything that was ingested."""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime
from threading import Event
from time import monotonic, sleep
from typing import Any

import click

from rolebundle.admin import Admin
from rolebundle.contracts.base import writable
from rolebundle.contracts.operation_requests import IngestRequest
from rolebundle.errors import CorpusBusy
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.report import IngestReport
from rolebundle.ingest.watch import MAX_REMOVED, WatchOptions
from rolebundle.interfaces.cli.closed_pipe import is_read
from rolebundle.interfaces.cli.indexing import background_indexing, complete_index
from rolebundle.interfaces.cli.ingest import refuse_problems
from rolebundle.interfaces.cli.ingest_report import print_report
from rolebundle.interfaces.cli.options import (
    admin_for,
    db_option,
    embed_options,
    request_options,
)
from rolebundle.interfaces.signals import ended_by_sigterm, on_end

_PATIENCE_SECONDS = 600.0


@click.command()
@db_option
@request_options(IngestRequest, only=["lexical_only"])
@click.option("--once", is_flag=True, help="Make one pass, then end. For cron.")
@click.option(
    "--poll",
    is_flag=True,
    help="Check all files at intervals. For network drives, which report no changes.",
)
@click.option("--allow-removal", is_flag=True, help="Continue if many documents disappear at once.")
@embed_options
def watch(
    db: str | None,
    fields: dict[str, Any],
    once: bool,
    poll: bool,
    allow_removal: bool,
    embed_url: str,
    allow_host: str,
) -> None:
    """Update the corpus whenever ingested folders and files change.

    Runs until it is ended (SIGTERM, Ctrl-C). Changes are in the corpus a moment later, and running
    servers answer from them. `rolebundle status` shows what it does.

    If a folder vanishes, its documents stay until it is back. If more than a fifth of a folder's
    documents disappear while the folder is there, it changes nothing and ends with exit code 2:
    run `rolebundle update` if that is meant.

    \b
    rolebundle watch
    rolebundle watch --once --db team.db
    """
    admin = admin_for(db, embed_url=embed_url, allow_host=allow_host)
    if once:
        with ended_by_sigterm():
            report = _pass(admin, allow_removal, **fields)
        print_report(report, as_json=False)
        if not fields.get("lexical_only"):
            complete_index(admin, wait=True)
        refuse_problems(report)
        return
    stop = Event()
    # One process: starting others takes longer than most passes.
    options = WatchOptions(IngestOptions(wait=False), poll=poll, allow_removal=allow_removal)

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


def _pass(admin: Admin, allow_removal: bool, **fields: Any) -> IngestReport:
    """One pass, as soon as no other process writes."""
    max_removed = 1.0 if allow_removal else MAX_REMOVED
    run = IngestOptions(workers=os.cpu_count() or 1, max_removed=max_removed)
    end = monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return admin.update(run, **fields)
        except CorpusBusy:
            if monotonic() > end:
                raise
            sleep(1.0)


def _print_line(line: str) -> None:
    time = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    click.echo(writable(f"{time}  {line}"), err=True)
