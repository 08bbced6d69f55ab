"""Talk MCP with real server processes, through the official SDK's client."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rolebundle.resources import demo_overlays
from support.program_server import MAIN, forked_python

# Only tests that run import the SDK, which takes a second: every worker collects all tests.
needs_mcp = pytest.mark.skipif(
    find_spec("mcp_types") is None, reason="needs the extra: pip install 'rolebundle[mcp]'"
)
TASK = "How long does a refresh token live, and when is it rotated?"
OVERLAYS = demo_overlays()
SECONDS = 30
CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "retrieve", "arguments": {"task": TASK, "lexical_only": True}},
}
SLOW = """
import sys, time
from rolebundle.engine import Engine
from rolebundle.errors import Interrupted
stopped = []
def slow(self, *arguments, **named):
    print("begun", file=sys.stderr, flush=True)
    for _ in range(600):
        time.sleep(0.05)
        if stopped:
            stopped.clear()
            print("interrupted", file=sys.stderr, flush=True)
            raise Interrupted("interrupted", "the search was ended")
Engine.retrieve = slow
Engine.interrupt = lambda self: stopped.append(1)
"""
"""Code before the start of a server whose searches take half a minute, unless they are interrupted."""


def command(db: Path, *more: str, before: str = "") -> list[str]:
    """The command of a forked server, which runs the code ``before`` first."""
    options = ["mcp", "--db", str(db), "--overlay-dir", str(OVERLAYS), *more]
    return [*forked_python(), f"{before}\n{MAIN}", *options]


def server_of(db: Path, *more: str) -> Any:
    if os.name == "posix" and not hasattr(os, "fork"):
        pytest.skip("asyncio starts no programs without Unix")
    from mcp import StdioServerParameters

    first, *arguments = command(db, *more)
    return StdioServerParameters(command=first, args=arguments, env=dict(os.environ))


@contextmanager
def http_server(db: Path, *more: str, token_file: Path, before: str = "") -> Iterator[HttpServer]:
    """A server over HTTP, at any free port."""
    options = ("--http", "--port", "0", "--token-file", str(token_file), *more)
    process = subprocess.Popen(
        command(db, *options, before=before),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, process.stderr:
        try:
            line = process.stderr.readline()
            match = re.fullmatch(r"serving MCP at (\S+); its bearer token is in (.+)\n", line)
            assert match, line + process.stderr.read()
            yield HttpServer(process, match[1], Path(match[2]))
        finally:
            process.terminate()
            process.wait(SECONDS)


class HttpServer:
    """A server over HTTP: its process, its address, and its token."""

    def __init__(self, process: subprocess.Popen[str], url: str, token_file: Path) -> None:
        self.process, self.url, self.token_file = process, url, token_file
        self.headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"}

    @property
    def client(self) -> Any:
        import httpx2

        # To load the certificates, which http:// does not use, takes longer than most calls.
        return httpx2.AsyncClient(headers=self.headers, verify=False)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        """A session with it."""
        from mcp import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        async with (
            self.client as client,
            streamable_http_client(self.url, http_client=client) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            yield session


@asynccontextmanager
async def stdio_session(server: Any) -> AsyncIterator[Any]:
    """A session with a new server."""
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


def run_session(opened: Any, talk: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return what ``talk`` returns with the session of a context manager."""
    from mcp.shared.exceptions import MCPError

    async def run() -> Any:
        async with opened as session:
            try:
                return await talk(session)
            except MCPError as error:
                # Raised outside, where no task group wraps it.
                return error

    outcome = asyncio.run(asyncio.wait_for(run(), SECONDS))
    if isinstance(outcome, MCPError):
        raise outcome
    return outcome


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


def error_of(result: Any) -> dict[str, Any]:
    assert result.is_error
    assert result.structured_content is None
    error: dict[str, Any] = result.meta["rolebundle/error"]
    assert set(error) == {"code", "message", "hint", "retryable"}
    assert error["code"] in text_of(result) and error["message"] in text_of(result)
    assert error["hint"] in text_of(result) and "retryable: " in text_of(result)
    return error
