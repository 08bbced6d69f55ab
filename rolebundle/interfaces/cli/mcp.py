"""`rolebundle mcp`: the MCP server over standard input and output, or over HTTP."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.errors import ConfigurationError, install_hint
from rolebundle.interfaces.cli.indexing import background_indexing
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    approvals_option,
    engine_options,
)
from rolebundle.interfaces.servers.operations import Operations

DEFAULT_PORT = 7_311


@click.command()
@engine_options
@click.option("--allow-write", is_flag=True, help="Also offer the tools mark, remember and ingest.")
@click.option("--agent", metavar="ID", help="Serve only this agent.")
@approvals_option("none")
@click.option("--http", is_flag=True, help="Serve several clients over HTTP, on this machine only.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help=f"The port of --http; 0: any free one.  Default: {DEFAULT_PORT}.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The file of the bearer token for --http, created if it is missing. Default: one for each "
    "corpus and agent, in your user data folder.",
)
def mcp(
    options: EngineOptions,
    allow_write: bool,
    agent: str | None,
    approvals: str,
    http: bool,
    port: int | None,
    token_file: Path | None,
) -> None:
    """Serve MCP on standard input and output. An agent's host starts this command.

    Tools: retrieve, get, multi_get, ls, why, compare, replay, verify, check, list_roles, status;
    with --allow-write also mark, remember and, without --agent, ingest. It ends when its input
    ends.

    With --http it serves until a signal ends it. It listens on 127.0.0.1 only, and each request
    needs the token.

    `rolebundle connect HOST` prints the configuration of a host.

    \b
    {"mcpServers": {"rolebundle": {"command": "rolebundle", "args": ["mcp"]}}}
    """
    if not http and (port is not None or token_file is not None):
        raise click.UsageError("--port and --token-file need --http")
    engine = options.engine(agent=agent, approvals=approvals, judging=True)
    indexing = background_indexing(engine.workspace.path)
    operations = Operations(engine, allow_write=allow_write, indexing=indexing)
    if not http:
        from rolebundle.interfaces.servers.attach import attach

        attach(operations, "mcp", options.models())
    indexing.start()
    try:
        from rolebundle.interfaces.servers.mcp import serve, serve_http
    except ImportError as error:
        # The SDK has mcp_types from version 2 on.
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise ConfigurationError(
            "mcp_missing",
            "the MCP server needs the MCP SDK, version 2",
            install_hint("mcp"),
        ) from None
    if not http:
        serve(operations)
        return
    from rolebundle.interfaces.servers.loopback import default_token_file, listen

    token_file = token_file or default_token_file(engine.workspace.path, agent)
    with listen(DEFAULT_PORT if port is None else port) as listener:
        serve_http(operations, listener, token_file)
