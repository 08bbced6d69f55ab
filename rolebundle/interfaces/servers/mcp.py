"""The MCP server over standard input and output, or HTTP: the same methods as tools for models.

Protocol and transports come from the official SDK, which only this file imports. Arguments are
checked by :mod:`parse`, not by the SDK, so that a wrong argument gives the same coded error as in
every other interface.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from threading import Thread, Timer
from time import sleep
from types import FrameType
from typing import Any, TextIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as OfferedTool

from rolebundle.errors import RolebundleError, UsageError
from rolebundle.interfaces import json_lines
from rolebundle.interfaces.model_text import error_text
from rolebundle.interfaces.servers.arguments import as_meant
from rolebundle.interfaces.servers.loopback import ADDRESS, guarded, read_token
from rolebundle.interfaces.servers.operations import INSTRUCTIONS, TOOLS, Operations, internal_error
from rolebundle.interfaces.servers.stdio import Channel, take_over
from rolebundle.interfaces.servers.worker import ClientSession, Worker
from rolebundle.interfaces.signals import on_end

HTTP_PATH = "/mcp"
MAX_SESSIONS = 1_000
"""Clients of the handshake's protocol revisions at once, over HTTP. Later ones have no sessions."""
MAX_CONNECTIONS = 256
_ERROR_META = "rolebundle/error"
_SECONDS_TO_END = 1.0
_POLL_SECONDS = 0.02


def serve(operations: Operations) -> None:
    """Serve MCP until the input ends, nobody reads the output, or a signal asks to end.

    Args:
        operations: the methods, over an engine that is this server's alone.
    """

    def exit_now() -> None:
        # The interpreter's own exit waits for threads, and one of them may wait for a model's
        # server or for a client that does not read. Nothing is lost: only answers are written.
        os._exit(session.worker.end_code(signals))

    session = Session(operations, take_over(), give_up=exit_now)
    signals = on_end(session.stop)
    session.run()
    if signals or session.worker.unfinished or not session.worker.has_ended:
        exit_now()


class Session(ClientSession):
    """Serves one client over a channel. The SDK reads and writes it like two text files.

    Args:
        operations: the methods, over an engine that is this session's alone.
        channel: where requests come from and answers go.
        give_up: called from another thread if the last answers cannot be written.
    """

    def __init__(
        self, operations: Operations, channel: Channel, *, give_up: Callable[[], None]
    ) -> None:
        super().__init__(operations, channel)
        self._lines = iter(self._reader)
        self._last = Timer(_SECONDS_TO_END, give_up)
        self._last.daemon = True
        self._unanswered: list[object] = []

    def run(self) -> None:
        """Serve until the input ends, nobody reads the output, or :meth:`stop`."""
        self.worker.start()
        asyncio.run(self._serve())
        self.worker.stop()
        self._last.cancel()

    async def _serve(self) -> None:
        server = server_for(self.worker)
        # The SDK uses no other methods of its streams than this class has.
        file = anyio.wrap_file(cast("TextIO", self))
        async with stdio_server(file, file) as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    def readline(self) -> str:
        """The next line that the SDK answers, with its line end, or "" at the end."""
        for line in self._lines:
            if not line.strip():
                continue
            refusal = _refusal(line)
            if refusal is None:
                self._note_request(json.loads(line))
                return line.decode() + "\n"
            self._write_line(refusal)
        self._finish()
        return ""

    def write(self, line: str) -> None:
        """Write one line, given with its line end."""
        self._write_line(line.removesuffix("\n").encode())
        message = json.loads(line)
        if "method" not in message:
            self._note_answer(message.get("id"))

    def flush(self) -> None:
        """Do nothing: lines are not buffered."""

    def _note_request(self, message: dict[str, Any]) -> None:
        """Note a message that needs an answer. A request that was cancelled needs none."""
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            self._note_answer(params.get("requestId"))
        elif "method" in message and "id" in message:
            self._unanswered.append(message["id"])

    def _note_answer(self, request_id: object) -> None:
        with suppress(ValueError):
            self._unanswered.remove(request_id)

    def _finish(self) -> None:
        """Answer what is left. The SDK drops the requests that are not answered at the end."""
        self.worker.finish(
            lambda: self.is_stopped or self._is_cut_off, lambda: not self._unanswered
        )
        self._last.start()
        while self._unanswered and not (self._is_cut_off or self._last.finished.is_set()):
            sleep(_POLL_SECONDS)


def serve_http(operations: Operations, listener: socket.socket, token_file: Path) -> None:
    """Serve MCP over HTTP to several clients at once, until a signal asks to end.

    Its address and the path of the token's file are written to standard error.

    Args:
        operations: the methods, over an engine that is this server's alone.
        listener: listens on an address of this machine.
        token_file: the token that every request must have; created if it is missing.

    Raises:
        ConfigurationError: the token cannot be used.
    """
    import uvicorn

    port, token = listener.getsockname()[1], read_token(token_file)
    worker = Worker(operations)
    # uvicorn raises again, at its end, the signals that ended it.
    signals = on_end(lambda: None)
    app = server_for(worker).streamable_http_app(
        streamable_http_path=HTTP_PATH,
        max_request_body_size=json_lines.MAX_LINE_BYTES,
        max_sessions=MAX_SESSIONS,
    )
    settings = uvicorn.Config(
        guarded(app, port, token),
        log_config=None,
        access_log=False,
        log_level="warning",
        ws="none",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    worker.start(preload=True)
    sys.stderr.write(
        f"serving MCP at http://{ADDRESS}:{port}{HTTP_PATH}; its bearer token is in {token_file}\n"
    )

    class HttpServer(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            super().handle_exit(sig, frame)
            # Calls that run are refused with a code while their connections are still open.
            Thread(target=worker.stop, daemon=True).start()

    HttpServer(settings).run(sockets=[listener])
    worker.stop()
    if signals or not worker.has_ended:
        # The interpreter's own exit waits for threads.
        os._exit(worker.end_code(signals))


def _refusal(line: bytes) -> bytes | None:
    """The answer to a line that the SDK would drop without one. None if the SDK reads it."""
    request_id = None
    try:
        message = json_lines.json_value(line)
        request_id = json_lines.id_of(message)
        if isinstance(message, dict) and not message.keys().isdisjoint({"result", "error"}):
            return None  # an answer, which needs none
        envelope = json_lines.checked_envelope(message)
        if "id" not in envelope:
            return None
        if not isinstance(request_id, str | int):
            raise json_lines.bad_envelope("id: must be a text or an integer")
        if not isinstance(envelope.get("params", {}), dict):
            raise json_lines.bad_envelope("params: must be an object")
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        error = UsageError(
            "request_not_text",
            "the request holds unpaired surrogates, which are not Unicode text",
            "send all texts as UTF-8",
        )
        return json_lines.error_line(request_id, error)
    except UsageError as error:
        return json_lines.error_line(request_id, error)
    return None


def server_for(worker: Worker) -> Server[dict[str, Any]]:
    """The protocol's server, with our tools."""
    operations = worker.operations
    methods = operations.offered_methods
    tools = {tool.name: tool for tool in TOOLS if tool.method in methods}
    offered = offered_tools(methods, takes_approvals=operations.takes_approvals)
    schemas = {tool.name: tool.input_schema for tool in offered}

    async def list_tools(_context: Any, _page: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(
                INVALID_PARAMS,
                f"there is no tool {params.name[:80]!r}; there are {', '.join(tools)}",
            )
        fields = as_meant(tool.contract, params.arguments or {})
        try:
            # Cancelling the task interrupts the call.
            text = await worker.call(lambda: operations.text(tool.method, fields))
        except RolebundleError as error:
            return _error_result(error)
        except Exception as error:
            return _error_result(internal_error(error))
        # Only as text: beside structured content, hosts may not show it.
        return CallToolResult(content=[TextContent(text=text)])

    return Server(
        "rolebundle",
        title="rolebundle",
        version=version("rolebundle"),
        instructions=INSTRUCTIONS,
        get_tool_input_schema=schemas.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def offered_tools(methods: Collection[str], *, takes_approvals: bool) -> list[OfferedTool]:
    """The tools as a client gets them.

    Args:
        methods: those that the server offers.
        takes_approvals: whether a request may name the person who approved its action.
    """
    # A model cannot make up an approval in a field that it does not know.
    withheld = () if takes_approvals else ("approval",)
    return [
        OfferedTool(
            name=tool.name,
            description=tool.text,
            input_schema=tool.input_schema(withheld),
            # The schemas of the answers are three times as large as all of this, and hosts pass on
            # what they get. They are published in docs/schema.
            annotations=ToolAnnotations(
                read_only_hint=not tool.writes,
                # Tools that only read need no more hints.
                destructive_hint=tool.deletes if tool.writes else None,
                idempotent_hint=True if tool.writes else None,
                open_world_hint=False if tool.writes else None,
            ),
        )
        for tool in TOOLS
        if tool.method in methods
    ]


def _error_result(error: RolebundleError) -> CallToolResult:
    # Not as structured content: some clients check it against the schema of a successful answer
    # even if it is an error, and then show neither (modelcontextprotocol/typescript-sdk#1943).
    fields = json_lines.error_fields(error)
    return CallToolResult(
        content=[TextContent(text=error_text(fields))], is_error=True, _meta={_ERROR_META: fields}
    )
