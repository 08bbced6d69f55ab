"""`rolebundle mcp`: the MCP server over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.errors import ConfigurationError
from rolebundle.interfaces.cli.options import (
    approvals_option,
    db_option,
    embed_options,
    engine_for,
    judge_options,
    overlay_dir_option,
)
from rolebundle.interfaces.operations import Operations

_INSTALL = "pip install 'rolebundle[mcp]'"


@click.command()
@db_option
@overlay_dir_option
@embed_options
@click.option("--allow-write", is_flag=True, help="Also offer the tools mark and remember.")
@click.option("--agent", metavar="ID", help="Serve only this agent.")
@approvals_option("none")
@judge_options
@click.option("--preload", is_flag=True, help="Load the model before the first call.")
def mcp(
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
    """Serve MCP on standard input and output. An agent's host starts this command.

    Tools: retrieve, get, why, verify, check, list_roles, status; with --allow-write also mark. It
    ends when its input ends.

    \b
    {"mcpServers": {"rolebundle": {"command": "rolebundle", "args": ["mcp"]}}}
    """
    try:
        from rolebundle.interfaces.mcp import serve
    except ImportError as error:
        # The SDK has mcp_types from version 2 on.
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise ConfigurationError(
            "mcp_missing",
            "the MCP server needs the MCP SDK, version 2",
            _INSTALL,
        ) from None
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
    serve(Operations(engine, allow_write=allow_write), preload=preload)
