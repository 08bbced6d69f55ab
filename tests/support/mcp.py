"""Talk MCP with real server processes, through the official SDK's client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from rolebundle.resources import demo_overlays
from support.program_server import forked_python

TASK = "How long does a refresh token live, and when is it rotated?"
OVERLAYS = demo_overlays()
SECONDS = 30
SERVE = "from rolebundle.interfaces.cli.main import main; main()"
Session = ClientSession


def command(db: Path, *more: str, program: str = SERVE, real: bool = False) -> list[str]:
    """The command of a server, forked if it is not to be ``real``."""
    python = (sys.executable, "-c") if real else forked_python()
    options = ["mcp", "--db", str(db), "--overlay-dir", str(OVERLAYS), *more]
    return [*python, program, *options]


def server_of(db: Path, *more: str, program: str = SERVE) -> StdioServerParameters:
    first, *rest = command(db, *more, program=program)
    return StdioServerParameters(command=first, args=rest, env=dict(os.environ))


def with_session(
    talk: Callable[[Session], Awaitable[Any]], db: Path, *more: str, program: str = SERVE
) -> Any:
    """Return what ``talk`` returns with a session of a new server."""
    server = server_of(db, *more, program=program)

    async def run() -> Any:
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            try:
                return await talk(session)
            except MCPError as error:
                # Raised outside, where no task group wraps it.
                return error

    outcome = asyncio.run(asyncio.wait_for(run(), SECONDS))
    if isinstance(outcome, MCPError):
        raise outcome
    return outcome


class SharedServer:
    """One server and one session with it, for many tests, on an event loop in a thread.

    It starts where a test first speaks, and not in a fixture of a module: by then the environment,
    which the server inherits, is that of tests.
    """

    def __init__(self, db: Path) -> None:
        self._db = db
        self._ready: Future[Session] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._enough: asyncio.Event | None = None
        self._thread: Thread | None = None

    def speak(self, talk: Callable[[Session], Coroutine[Any, Any, Any]]) -> Any:
        """Return what ``talk`` returns, and raise what it raises."""
        if self._thread is None:
            server = server_of(self._db)
            self._thread = Thread(target=lambda: asyncio.run(self._serve(server)), daemon=True)
            self._thread.start()
        session = self._ready.result(SECONDS)
        assert self._loop is not None
        answer = asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(talk(session), SECONDS), self._loop
        )
        return answer.result(2 * SECONDS)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return a tool's answer."""
        return self.speak(lambda session: session.call_tool(name, arguments))

    def close(self) -> None:
        """End the session and the server."""
        if self._thread is None:
            return
        if self._thread.is_alive() and self._loop and self._enough:
            self._loop.call_soon_threadsafe(self._enough.set)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the server did not end"

    async def _serve(self, server: StdioServerParameters) -> None:
        # The SDK's cancel scopes have to be left by the task that entered them: this one does
        # both, and the tests' own tasks only speak.
        self._loop, self._enough = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with stdio_client(server) as streams, ClientSession(*streams) as session:
                await asyncio.wait_for(session.initialize(), SECONDS)
                self._ready.set_result(session)
                await self._enough.wait()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)


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
