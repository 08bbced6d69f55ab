"""What the MCP server does as a process: begins, ends, is cut off, and has other corpora."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from rolebundle.interfaces.json_lines import MAX_LINE_BYTES
from support.mcp import (
    CALL,
    SLOW,
    needs_mcp,
)
from support.served import Served

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "0"},
    },
}


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


pytestmark = needs_mcp


@pytest.fixture(scope="module")
def sample_db(sample_without_vectors: Path) -> Path:
    return sample_without_vectors


STRAY = """
import os, subprocess, sys
from rolebundle.engine import Engine
ask = Engine.retrieve
def noisy(self, *arguments, **named):
    print("stray")
    os.write(1, b"stray bytes\\n")
    subprocess.run([sys.executable, "-c", "print('stray child')"])
    return ask(self, *arguments, **named)
Engine.retrieve = noisy
"""
IMPATIENT = """
from rolebundle.interfaces.servers import worker
worker.PATIENCE_SECONDS = worker.STOP_SECONDS = 0.2
"""
DEAF = SLOW.replace("stopped.append(1)", "None")


def sent(server: Served, *messages: dict[str, Any]) -> None:
    server.send(*(json.dumps(message).encode() for message in messages))


def greeted(db: Path, before: str = "", real: bool = False) -> Served:
    """A server that has said who it is."""
    server = Served("--db", db, protocol="mcp", before=before, real=real)
    sent(server, INITIALIZE, INITIALIZED)
    assert server.next()["id"] == INITIALIZE["id"]
    return server


def begun(db: Path, before: str) -> Served:
    """A server whose call has begun."""
    server = greeted(db, before)
    sent(server, CALL)
    server.wait_for(b"begun")
    return server


def assert_interrupted(answers: list[Any], ids: list[int]) -> None:
    assert sorted(answer["id"] for answer in answers) == ids
    for answer in answers:
        assert answer["result"]["_meta"]["rolebundle/error"]["code"] == "interrupted"


def test_stray_prints_do_not_reach_the_client(sample_db: Path) -> None:
    with greeted(sample_db, STRAY) as server:
        sent(server, CALL)
        assert server.next()["jsonrpc"] == "2.0"
        rest, errors = server.end_of_input()
    assert rest == []
    assert "stray bytes" in errors and "stray child" in errors


@pytest.mark.parametrize("real", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(sample_db: Path, number: signal.Signals, real: bool) -> None:
    with greeted(sample_db, real=real) as server:
        server.process.send_signal(number)
        # Its input is still open.
        assert server.ended(within=5)[0] == (0 if number == signal.SIGTERM else 130)
        assert "Traceback" not in server.err()


def test_a_cancelled_call_is_interrupted_and_the_next_is_not(sample_db: Path) -> None:
    with begun(sample_db, SLOW) as server:
        server.notify("notifications/cancelled", requestId=CALL["id"])
        sent(server, {**CALL, "id": 3, "params": {"name": "status", "arguments": {}}})
        while (answer := server.next())["id"] != 3:
            pass
        assert not answer["result"].get("isError"), answer
        assert "interrupted" in server.end_of_input()[1]


@pytest.mark.parametrize("before", [SLOW, DEAF], ids=["interruptible", "not"])
def test_end_of_input_ends_a_call_that_runs(sample_db: Path, before: str) -> None:
    with begun(sample_db, f"{IMPATIENT}\n{before}") as server:
        assert_interrupted(server.end_of_input(code=1)[0], [CALL["id"]])


@pytest.mark.parametrize("before", [SLOW, DEAF], ids=["interruptible", "not"])
def test_a_signal_ends_a_call_that_runs(sample_db: Path, before: str) -> None:
    with begun(sample_db, before) as server:
        sent(server, {**CALL, "id": 3}, {"jsonrpc": "2.0", "id": 4, "method": "ping"})
        assert server.next()["id"] == 4  # Then it has read the call before, too.
        server.process.send_signal(signal.SIGTERM)
        assert server.ended(within=5)[0] == 0
        assert_interrupted(server.remaining_answers(), [CALL["id"], 3])


REFUSED = [
    (b"not json", None, "not_json"),
    (b"\xff\xfe", None, "not_json"),
    (b"[]", None, "batch_refused"),
    (b'{"jsonrpc": "2.0"}', None, "bad_envelope"),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', 1.5, "bad_envelope"),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, "bad_envelope"),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', 7, "bad_envelope"),
    (json.dumps({**CALL, "id": 8, "params": {"name": "\ud800"}}).encode(), 8, "request_not_text"),
    (b"x" * (MAX_LINE_BYTES + 1), None, "request_too_large"),
]


def test_lines_that_are_no_requests_are_refused_and_do_not_end_it(sample_db: Path) -> None:
    with greeted(sample_db) as server:
        server.send(b'\n{"jsonrpc": "2.0", "id": 5, "result": {}}')  # They need no answer.
        server.send(*(line for line, _, _ in REFUSED))
        sent(server, CALL)
        for _, request_id, code in REFUSED:
            answer = server.next()
            assert (answer["id"], answer["error"]["data"]["code"]) == (request_id, code)
        assert "[1] " in server.next()["result"]["content"][0]["text"]
        assert server.end_of_input()[0] == []


def test_without_the_extra_it_names_the_command_that_installs_it(tmp_path: Path) -> None:
    hidden = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "sys.modules.pop('rolebundle.interfaces.servers.mcp', None)"
    )
    with Served("--db", tmp_path / "none.db", protocol="mcp", before=hidden) as server:
        assert server.ended()[0] == 3
        errors = server.err()
    assert "[mcp_missing]" in errors
    assert "in a clone of rolebundle: pip install '.[mcp]'" in errors


def test_an_error_of_a_system_call_is_written(small_db: Path) -> None:
    broken = "import asyncio\ndef run(_): raise OSError(5, 'no sockets')\nasyncio.run = run"
    with Served("--db", small_db, protocol="mcp", before=broken) as server:
        assert server.ended()[0] == 6
        assert "no sockets [io_error]" in server.err()
