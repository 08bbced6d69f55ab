"""`rolebundle update`: synchronize the corpus with everything that was ingested."""

from __future__ import annotations

import os
from typing import Any

import click

from rolebundle.contracts.operation_requests import IngestRequest
from rolebundle.errors import UsageError
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.cli.indexing import complete_index
from rolebundle.interfaces.cli.ingest import refuse_problems, run_options
from rolebundle.interfaces.cli.ingest_report import print_report
from rolebundle.interfaces.cli.options import (
    admin_for,
    db_option,
    embed_options,
    json_option,
    request_options,
)
from rolebundle.interfaces.cli.output import progress_bar
from rolebundle.interfaces.signals import ended_by_sigterm
from rolebundle.text.counts import counted


@click.command()
@db_option
@request_options(IngestRequest, only=["lexical_only"])
@run_options
@embed_options
@json_option
def update(
    db: str | None,
    fields: dict[str, Any],
    workers: int | None,
    reread: bool,
    optimize: bool,
    wait: bool,
    verbose: bool,
    embed_url: str,
    allow_host: str,
    as_json: bool,
) -> None:
    """Synchronize the corpus with all folders and files that were ingested.

    Each one is read with the options that it was ingested with; `rolebundle roots list` shows them.
    If a folder is missing, or is empty now, its documents stay, the others are updated, and the
    exit code is 2.

    \b
    rolebundle update
    rolebundle update --db team.db --json
    """
    options = IngestOptions(
        workers=workers or os.cpu_count() or 1, reread=reread, optimize=optimize, wait=wait
    )
    admin = admin_for(db, embed_url=embed_url, allow_host=allow_host)
    with ended_by_sigterm(), progress_bar() as progress:
        report = admin.update(options, progress=progress, on_reading=progress.reading, **fields)
    print_report(report, as_json=as_json, verbose=verbose)
    if not fields.get("lexical_only"):
        complete_index(admin, wait=wait)
    refuse_problems(report)
    missing = [skipped for skipped in report.skipped if skipped.code == "root_missing"]
    if missing:
        raise UsageError(
            "root_missing",
            f"{counted(len(missing), 'root')} missing; what is there was updated",
            "see the messages above",
        )
