"""`rolebundle serve | mcp`: servers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click
from click.exceptions import Exit

from rolebundle.errors import ConfigurationError, install_hint
from rolebundle.interfaces.cli.ingest import background_indexing
from rolebundle.interfaces.cli.options import (
    PATH,
    Call,
    agent_option,
    approvals_option,
    flag,
    with_call,
)
from rolebundle.interfaces.cli.output import name_folders
from rolebundle.interfaces.servers.loopback import default_token_file, listen
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.interfaces.servers.serve import serve as serve_lines
from rolebundle.interfaces.servers.stdio import take_over

_agent_option = agent_option("Serve only this agent.")


@click.command()
@flag("--allow-write", "Also allow `ingest`, `mark` and `remember`.")
@_agent_option
@approvals_option("none")
@with_call("overlay_dirs")
def serve(call: Call, allow_write: bool, agent: str | None, approvals: str) -> None:
    """Answer JSON-RPC 2.0 requests on standard input and output, one request a line.

    Methods: initialize, retrieve, get, multi_get, ls, grep, why, compare, verify, roles.list,
    status, check, shutdown; with --allow-write also mark, remember and, without --agent, ingest.
    Requests may be pipelined. $/cancelRequest cancels one. The server ends when its input ends and
    everything is answered.

    \b
    echo '{"jsonrpc":"2.0","id":1,"method":"retrieve","params":{"task":"Plan release 3.0"}}' \\
      | rolebundle serve
    """
    raise Exit(serve_lines(_operations(call, agent, approvals, allow_write), take_over()))


def _operations(call: Call, agent: str | None, approvals: str, allow_write: bool) -> Operations:
    """The operations of a server; what is not embedded yet is embedded beside it."""
    # A client's commands begin in another folder.
    name_folders([folder.resolve() for folder in call.in_folders], call.path)
    indexing = background_indexing(call.path)
    engine = call.engine(agent=agent, approvals=approvals, judging=True, serving=indexing)
    indexing.start()
    return Operations(engine, allow_write=allow_write, indexing=indexing)


DEFAULT_PORT = 7_311


def require_mcp() -> None:
    """Raise a ConfigurationError if the MCP SDK is missing, or is older than version 2."""
    if find_spec("mcp_types") is None:  # Which that version has first.
        raise ConfigurationError(
            "mcp_missing", "the MCP server needs the MCP SDK, version 2", install_hint("mcp")
        )


@click.command()
@flag("--allow-write", "Also offer the tools mark, remember and ingest.")
@_agent_option
@approvals_option("none")
@flag("--http", "Serve several clients over HTTP, on this machine only.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help=f"The port of --http; 0: any free one.  Default: {DEFAULT_PORT}.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=PATH,
    help="The file of the bearer token for --http, created if it is missing. Default: one for each "
    "corpus and agent, in your user data folder.",
)
@with_call("overlay_dirs")
def mcp(
    call: Call,
    allow_write: bool,
    agent: str | None,
    approvals: str,
    http: bool,
    port: int | None,
    token_file: Path | None,
) -> None:
    """Serve MCP on standard input and output. An agent's host starts this command.

    Tools: retrieve, get, ls, grep, why, compare, verify, check, list_roles, status; with
    --allow-write also mark, remember and, without --agent, ingest. It ends when its input ends.

    With --http it serves until a signal ends it. It listens on 127.0.0.1 only, and each request
    needs the token.

    `rolebundle install FOLDER` makes the hosts on this machine start it.

    \b
    {"mcpServers": {"rolebundle": {"command": "rolebundle", "args": ["mcp"]}}}
    """
    if not http and (port is not None or token_file is not None):
        raise click.UsageError("--port and --token-file need --http")
    operations = _operations(call, agent, approvals, allow_write)
    require_mcp()
    from rolebundle.interfaces.servers.mcp import serve, serve_http

    if not http:
        serve(operations)
        return
    token_file = token_file or default_token_file(call.path, agent)
    with listen(DEFAULT_PORT if port is None else port) as listener:
        serve_http(operations, listener, token_file)
