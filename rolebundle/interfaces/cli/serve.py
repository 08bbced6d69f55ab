"""`rolebundle serve`: JSON-RPC over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.interfaces.cli.options import (
    approvals_option,
    db_option,
    embed_options,
    engine_for,
    judge_options,
    overlay_dir_option,
)
from rolebundle.interfaces.stdio import take_over


@click.command()
@db_option
@overlay_dir_option
@embed_options
@click.option("--allow-write", is_flag=True, help="Also allow `ingest`, `mark` and `remember`.")
@click.option("--agent", metavar="ID", help="Serve only this agent.")
@approvals_option("none")
@judge_options
@click.option("--preload", is_flag=True, help="Load the model before the first request.")
@click.pass_context
def serve(
    ctx: click.Context,
    db: str | None,
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
    allow_write: bool,
    agent: str | None,
    approvals: str,
    judge: str,
    judge_url: str,
    preload: bool,
) -> None:
    """Answer JSON-RPC 2.0 requests on standard input and output, one request a line.

    Methods: initialize, retrieve, get, why, verify, roles.list, roles.show, status, check, mark,
    ingest, shutdown.
    Requests may be pipelined. $/cancelRequest cancels one. The server ends when its input ends and
    everything is answered.

    \b
    echo '{"jsonrpc":"2.0","id":1,"method":"retrieve","params":{"task":"Plan release 3.0"}}' \\
      | rolebundle serve
    """
    channel = take_over()
    from rolebundle.interfaces.operations import Operations
    from rolebundle.interfaces.serve import serve as run

    engine = engine_for(
        db,
        overlay_dirs,
        embed_url=embed_url,
        allow_host=allow_host,
        agent=agent,
        approvals=approvals,
        judge=judge,
        judge_url=judge_url,
    )
    ctx.exit(run(Operations(engine, allow_write=allow_write), channel, preload=preload))
