"""`rolebundle serve`: JSON-RPC over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.interfaces.cli.indexing import background_indexing
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    approvals_option,
    engine_options,
)
from rolebundle.interfaces.servers.stdio import take_over
from rolebundle.workspace import Models


@click.command()
@engine_options
@click.option("--allow-write", is_flag=True, help="Also allow `ingest`, `mark` and `remember`.")
@click.option("--agent", metavar="ID", help="Serve only this agent.")
@approvals_option("none")
@click.option(
    "--socket",
    metavar="[PATH]",
    is_flag=False,
    flag_value="",
    help="Serve several hosts at a Unix domain socket, until a signal. Default: a path for each "
    "corpus, which `serve` and `mcp` find.",
)
@click.pass_context
def serve(
    ctx: click.Context,
    options: EngineOptions,
    allow_write: bool,
    agent: str | None,
    approvals: str,
    socket: str | None,
) -> None:
    """Answer JSON-RPC 2.0 requests on standard input and output, one request a line.

    Methods: initialize, retrieve, get, multi_get, ls, why, compare, replay, verify, roles.list,
    roles.show, status, check, shutdown; with --allow-write also mark, remember and, without
    --agent, ingest.
    Requests may be pipelined. $/cancelRequest cancels one. The server ends when its input ends and
    everything is answered.

    With --socket one process serves several hosts, so that the model is loaded once: `rolebundle
    serve` and `rolebundle mcp` attach to it if they have the same settings. With --agent it serves
    only clients with that agent.

    \b
    echo '{"jsonrpc":"2.0","id":1,"method":"retrieve","params":{"task":"Plan release 3.0"}}' \\
      | rolebundle serve
    """
    from rolebundle.interfaces.servers.attach import Hello, attach, sockets
    from rolebundle.interfaces.servers.operations import Operations

    models: Models = {}
    first = options.engine(agent=agent, approvals=approvals, judging=True, models=models)
    indexing = background_indexing(first.workspace.path)
    own = Operations(first, allow_write=allow_write, indexing=indexing)
    settings = options.models()
    if socket is None:
        attach(own, "serve", settings)
        indexing.start()
        from rolebundle.interfaces.servers.serve import serve as run

        ctx.exit(run(own, take_over()))
    from rolebundle.interfaces.servers.local_socket import socket_paths
    from rolebundle.interfaces.servers.shared_server import Sharing, serve_shared

    def operations_for(hello: Hello) -> Operations:
        client = options.engine(
            agent=hello.agent, approvals=hello.approvals, judging=True, models=models
        )
        client.overlay_folders = tuple(map(Path, hello.overlay_folders))
        return Operations(client, allow_write=hello.allow_write, indexing=indexing)

    indexing.start()
    corpus = own.engine.workspace.path
    path = Path(socket) if socket else [*sockets(corpus), *socket_paths(corpus)][0]
    serve_shared(Sharing(own, settings, operations_for), path)
