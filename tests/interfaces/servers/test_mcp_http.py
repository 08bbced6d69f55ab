"""MCP over HTTP as a process: what it refuses, which clients it serves, how it ends."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import invoke
from support.mcp import (
    CALL,
    SLOW,
    TASK,
    HttpServer,
    error_of,
    http_server,
    run_session,
    server_of,
    stdio_session,
    text_of,
)

httpx2 = pytest.importorskip("httpx2", reason="needs the extra: pip install 'rolebundle[mcp]'")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")

ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def server(
    sample_without_vectors: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpServer]:
    token_file = tmp_path_factory.mktemp("http") / "token"
    with http_server(sample_without_vectors, token_file=token_file) as server:
        yield server


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("", {"Authorization": None}, 401, "token_required"),
        ("", {"Authorization": "Bearer " + "x" * 43}, 401, "token_required"),
        ("/other", {"Authorization": None}, 401, "token_required"),
        ("", {"Host": "example.com"}, 421, "wrong_host"),
        ("", {"Origin": "https://example.com"}, 403, "foreign_origin"),
        ("", {"Origin": "http://localhost:6274"}, 403, "foreign_origin"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS", "DELETE"])
def test_foreign_requests_are_refused(
    server: HttpServer,
    method: str,
    path: str,
    headers: dict[str, str | None],
    status: int,
    code: str,
) -> None:
    merged = {**ACCEPT, **server.headers, **headers}
    answer = httpx2.request(
        method,
        server.url + path,
        headers={name: value for name, value in merged.items() if value is not None},
        json=CALL if method == "POST" else None,
        verify=False,
    )
    assert answer.status_code == status
    assert answer.json()["error"]["data"]["code"] == code
    assert "selected" not in answer.text
    assert server.headers["Authorization"].split()[1] not in answer.text


def test_a_body_over_the_limit_is_refused(server: HttpServer) -> None:
    answer = httpx2.post(server.url, headers={**ACCEPT, **server.headers}, content=b"x" * (2 << 20))
    assert answer.status_code == 413


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_the_current_protocol_and_the_one_before_over_both_transports(
    server: HttpServer, mode: str, sample_without_vectors: Path
) -> None:
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async def talk(transport: Any) -> Any:
        async with Client(transport, mode=mode) as client:
            result = await client.call_tool("retrieve", CALL["params"]["arguments"])
            return client.protocol_version, result

    async def over_http() -> Any:
        async with server.client as http:
            return await talk(streamable_http_client(server.url, http_client=http))

    async def over_stdio() -> Any:
        from mcp.client.stdio import stdio_client

        return await talk(stdio_client(server_of(sample_without_vectors)))

    for way in (over_http, over_stdio):
        version, result = asyncio.run(way())
        assert version == ("2025-11-25" if mode == "legacy" else mode)
        assert "[1] " in text_of(result)


def test_the_tools_that_write(sample_db: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "note.md").write_text("# Note\n\nThe zebra is striped.\n")

    async def talk(session: Any) -> Any:
        tools = {tool.name: tool.annotations for tool in (await session.list_tools()).tools}
        assert all(not tools[name].read_only_hint for name in ("mark", "remember", "ingest"))
        assert tools["ingest"].destructive_hint and not tools["mark"].destructive_hint
        ingest_result = await session.call_tool(
            "ingest", {"paths": [str(folder)], "lexical_only": True}
        )
        assert not ingest_result.is_error, text_of(ingest_result)
        found = await session.call_tool("retrieve", {"task": "zebra", "lexical_only": True})
        (place,) = re.findall(r"^\[1\] (\S+)", text_of(found), re.MULTILINE)
        mark = {"id": place, "state": "disputed", "reason": "Is it?"}
        fact = {"fact": "Zebras are striped.", "source": place}
        return (
            await session.call_tool("mark", mark),
            await session.call_tool("remember", fact),
            await session.call_tool("ingest", {"paths": ["notes"]}),
        )

    with http_server(sample_db, "--allow-write", token_file=tmp_path / "token") as server:
        mark, fact, relative = run_session(server.session(), talk)
    assert json.loads(text_of(mark))["state"] == "disputed"
    assert json.loads(text_of(fact))["state"] == "stored"
    assert error_of(relative)["code"] == "bad_request"


def test_an_agent_cannot_ingest(sample_db: Path) -> None:
    async def talk(session: Any) -> Any:
        return [tool.name for tool in (await session.list_tools()).tools]

    opened = stdio_session(server_of(sample_db, "--allow-write", "--agent", "ada"))
    names = run_session(opened, talk)
    assert "mark" in names and "ingest" not in names


def test_a_call_that_runs_when_a_signal_comes_is_refused_with_a_code(
    sample_without_vectors: Path, tmp_path: Path
) -> None:
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async def talk(server: HttpServer) -> Any:
        async with Client(streamable_http_client(server.url, http_client=server.client)) as client:
            call = asyncio.create_task(client.call_tool("retrieve", {"task": TASK}))
            assert server.process.stderr is not None
            assert "begun" in await asyncio.to_thread(server.process.stderr.readline)
            server.process.send_signal(signal.SIGTERM)
            return await call

    token = tmp_path / "token"
    with http_server(sample_without_vectors, token_file=token, before=SLOW) as server:
        error = error_of(asyncio.run(asyncio.wait_for(talk(server), 10)))
        assert (error["code"], error["retryable"]) == ("interrupted", True)
        assert server.process.wait(10) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("--port", "7000"), 2, "need --http"),
        (("--token-file", "x"), 2, "need --http"),
        (("--http", "--port", "70000"), 2, "--port"),
        (("--http", "--port", "0", "--token-file", "{}"), 3, "token_file_bad"),
    ],
)
def test_options_that_cannot_be_used(
    sample_without_vectors: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    expected: str,
) -> None:
    options = [argument.format(tmp_path) for argument in arguments]
    outcome = invoke("mcp", *options, "--db", sample_without_vectors)
    assert (outcome.code, expected in outcome.err) == (code, True), outcome.err
