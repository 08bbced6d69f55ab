"""What the MCP server does as a process: begins, ends, is cut off, and has other corpora."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from rolebundle.interfaces.json_lines import MAX_LINE_BYTES
from support.corpora import build, document
from support.mcp import (
    CALL,
    INITIALIZE,
    INITIALIZED,
    SERVE,
    SLOW,
    command,
    needs_mcp,
    with_session,
)

pytestmark = needs_mcp


@pytest.fixture(scope="module")
def sample_db(sample_without_vectors: Path) -> Path:
    return sample_without_vectors


def test_the_listing_comes_in_pages_and_ends(tmp_path: Path) -> None:
    db = build(tmp_path, [document(f"note {n}", [f"The note {n}."]) for n in range(1_003)])

    async def talk(session: Any) -> Any:
        from mcp_types import PaginatedRequestParams

        names, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            page = await session.list_resources(params=PaginatedRequestParams(cursor=cursor))
            names += [resource.uri for resource in page.resources if "://document/" in resource.uri]
            cursor, pages = page.next_cursor, pages + 1
        return names, pages, await session.read_resource(names[-1])

    uris, pages, last = with_session(talk, db)
    assert (len(set(uris)), len(uris), pages) == (1_000, 1_000, 10)
    assert "The note" in last.contents[0].text


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
from rolebundle.interfaces.cli.main import main; main()
"""


def test_stray_prints_do_not_reach_the_client(sample_db: Path) -> None:
    result = piped(sample_db, CALL, program=STRAY)
    assert {json.loads(line)["jsonrpc"] for line in result.stdout.splitlines()} == {"2.0"}
    assert b"stray bytes" in result.stderr and b"stray child" in result.stderr


HELLO = [INITIALIZE, INITIALIZED]


IMPATIENT = """
from rolebundle.interfaces.servers import worker
worker.PATIENCE_SECONDS = worker.STOP_SECONDS = 0.2
"""
SECONDS_TO_END = 5
"""Far below the 30 seconds that the slow call of these tests takes."""


class Conversation:
    """A server spoken to line by line."""

    def __init__(self, db: Path, *more: str, program: str = SERVE, real: bool = False) -> None:
        self.process = subprocess.Popen(
            command(db, *more, program=program, real=real),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.send(*HELLO)
        self.line()

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ended(self, started: float) -> subprocess.CompletedProcess[bytes]:
        """What it left behind; it has ``SECONDS_TO_END`` from ``started``."""
        output, errors = self.process.communicate(timeout=10)
        assert time.monotonic() - started < SECONDS_TO_END
        assert b"Traceback" not in errors, errors.decode()
        return subprocess.CompletedProcess([], self.process.returncode, output, errors)


def piped(db: Path, call: dict[str, Any], program: str = SERVE, real: bool = False) -> Any:
    talk = Conversation(db, program=program, real=real)
    talk.send(call)
    answered = talk.line()
    result = talk.ended(time.monotonic())
    return subprocess.CompletedProcess(
        [], result.returncode, answered + result.stdout, result.stderr
    )


@pytest.mark.parametrize("real", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(sample_db: Path, number: signal.Signals, real: bool) -> None:
    talk = Conversation(sample_db, real=real)
    started = time.monotonic()
    talk.process.send_signal(number)
    talk.process.wait(SECONDS_TO_END)  # Its input is still open.
    result = talk.ended(started)
    assert result.returncode == (0 if number == signal.SIGTERM else 130)


DEAF = SLOW.replace("stopped.append(1)", "None")


def begin_call(talk: Conversation) -> None:
    talk.send(CALL)
    assert talk.process.stderr is not None
    assert b"begun" in talk.process.stderr.readline()


def test_a_cancelled_call_is_interrupted_and_the_next_is_not(sample_db: Path) -> None:
    talk = Conversation(sample_db, program=SLOW)
    begin_call(talk)
    talk.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}},
        {**CALL, "id": 3, "params": {"name": "status", "arguments": {}}},
    )
    answer = json.loads(talk.line())
    while answer["id"] != 3:
        answer = json.loads(talk.line())
    assert not answer["result"].get("isError"), answer
    assert b"interrupted" in talk.ended(time.monotonic()).stderr


@pytest.mark.parametrize("program", [SLOW, DEAF], ids=["interruptible", "not"])
def test_end_of_input_ends_a_call_that_runs(sample_db: Path, program: str) -> None:
    talk = Conversation(sample_db, program=f"{IMPATIENT}\n{program}")
    begin_call(talk)
    result = talk.ended(time.monotonic())
    assert result.returncode == 1
    answer = json.loads(result.stdout)
    assert answer["id"] == CALL["id"]
    assert answer["result"]["_meta"]["rolebundle/error"]["code"] == "interrupted"


@pytest.mark.parametrize("program", [SLOW, DEAF], ids=["interruptible", "not"])
def test_a_signal_ends_a_call_that_runs(sample_db: Path, program: str) -> None:
    talk = Conversation(sample_db, program=program)
    begin_call(talk)
    talk.send({**CALL, "id": 3})
    talk.process.send_signal(signal.SIGTERM)
    result = talk.ended(time.monotonic())
    assert result.returncode == 1
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == [2, 3]
    for answer in answers:
        assert answer["result"]["_meta"]["rolebundle/error"]["code"] == "interrupted"


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
    talk = Conversation(sample_db)
    assert talk.process.stdin is not None
    needs_no_answer = b'\n{"jsonrpc": "2.0", "id": 5, "result": {}}\n'
    lines = b"".join(line + b"\n" for line, _, _ in REFUSED)
    talk.process.stdin.write(needs_no_answer + lines)
    talk.send(CALL)
    answers = [json.loads(talk.line()) for _ in range(len(REFUSED) + 1)]
    assert [(answer["id"], answer["error"]["data"]["code"]) for answer in answers[:-1]] == [
        (request_id, code) for _, request_id, code in REFUSED
    ]
    assert "[1] " in answers[-1]["result"]["content"][0]["text"]
    assert talk.ended(time.monotonic()).returncode == 0


def test_without_the_extra_it_names_the_command_that_installs_it(tmp_path: Path) -> None:
    hidden = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "del sys.modules['rolebundle.interfaces.servers.mcp']\n" + SERVE
    )
    result = subprocess.run(
        command(tmp_path / "none.db", program=hidden),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 3
    assert "[mcp_missing]" in result.stderr
    assert "in a clone of rolebundle: pip install '.[mcp]'" in result.stderr
