"""Rows 39 and 40: nothing else gets onto its output, and it ends when it should."""

import json
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.commands import forked_program
from support.served import RUNAWAY, SLOW, Served, alive, codes, request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")


# -- what else is in the process ---------------------------------------------------------------

NOISE = """
import os, subprocess, sys
from rolebundle.interfaces.servers.operations import Operations
_call = Operations.call
def _noisy(self, method, fields, progress=None):
    print("a stray print")
    os.write(1, b"from a library\\n")
    subprocess.run(["sh", "-c", "echo from a child; cat"])
    sys.__stdout__.write("the first stdout\\n")
    sys.__stdout__.flush()
    return _call(self, method, fields, progress)
Operations.call = _noisy
"""


def test_what_prints_lands_on_standard_error(small_db: Path) -> None:
    with Served("--db", small_db, before=NOISE) as server:
        server.request(1, "roles.list")
        server.request(2, "roles.list")
        assert codes([server.next(), server.next()]) == [1, 2]
        remaining, err = server.end_of_input()
        assert remaining == []
        for shown_text in ("a stray print", "from a library", "from a child", "the first stdout"):
            assert err.count(shown_text) == 2


BROKEN = """
from rolebundle.interfaces.servers.operations import Operations
def _broken(self, method, fields, progress=None):
    if method == "get":
        raise SystemExit(3)
    return {"x": float("nan")} if method == "status" else {}["no such key"]
Operations.call = _broken
"""


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_internal_error_has_its_trace_on_standard_error_alone(
    small_db: Path, debug: str
) -> None:
    with Served("--db", small_db, before=BROKEN, ROLEBUNDLE_DEBUG=debug) as server:
        for method in ("roles.list", "status", "get"):
            error = server.ask(method)["error"]
            assert (error["code"], error["data"]["code"]) == (-32603, "internal")
            assert "raceback" not in json.dumps(error)
        _, err = server.end_of_input()
        assert ("Traceback" in err) == bool(debug)


# -- the end -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [(b"", []), (b'{"jsonrpc":"2.0","id":1,"met', [-32700]), (request(7, "roles.list"), [7])],
)
def test_half_a_line_before_the_end(small_db: Path, line: bytes, expected: list[Any]) -> None:
    with Served("--db", small_db) as server:
        alive(server)
        server.input.write(line)
        remaining, err = server.end_of_input()
        assert codes(remaining) == expected
        assert err == ""


def test_shutdown_answers_null_and_ends(small_db: Path) -> None:
    with Served("--db", small_db) as server:
        server.send(request(1, "roles.list"), request(2, "shutdown"), request(3, "roles.list"))
        assert server.next()["id"] == 1
        assert server.next() == {"jsonrpc": "2.0", "id": 2, "result": None}
        assert server.ended()[0] == 0


IMPATIENT = """
from rolebundle.interfaces.servers import worker
worker.PATIENCE_SECONDS = 0.2
worker.STOP_SECONDS = 0.2
"""


@pytest.mark.parametrize("before", [RUNAWAY, SLOW.format(seconds=20)], ids=["query", "deaf"])
def test_the_end_of_input_does_not_wait_for_ever(small_db: Path, before: str) -> None:
    with Served("--db", small_db, before=f"{before}\n{IMPATIENT}") as server:
        alive(server)
        server.request(1, "status")
        server.request(2, "roles.list")
        remaining, err = server.end_of_input(code=1)
        assert [message["id"] for message in remaining] == [1, 2]
        assert [message["error"]["data"]["code"] for message in remaining] == ["interrupted"] * 2
        assert err == ""


@pytest.mark.sample(2)
@pytest.mark.parametrize("before", ["", RUNAWAY, SLOW.format(seconds=20)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(small_db: Path, before: str, number: int) -> None:
    expected = 130 if number == signal.SIGINT else 0
    # A real one, which takes longer to start, for one of the signals.
    real = not before and number == signal.SIGINT
    with Served("--db", small_db, before=before, real=real) as server:
        alive(server)
        if before:
            server.request(1, "status")
            server.request(2, "roles.list")
            assert server.silent(0.1)
        server.process.send_signal(number)
        assert server.ended(within=4)[0] == expected
        assert server.err() == ""
        remaining = server.remaining_answers()
        assert [message["id"] for message in remaining] == ([1, 2] if before else [])
        assert {message["error"]["data"]["code"] for message in remaining} <= {"interrupted"}


@pytest.mark.skipif(not hasattr(select, "poll"), reason="needs pipes to poll")
@pytest.mark.parametrize("busy", [False, True])
def test_a_broken_pipe_ends_it(small_db: Path, busy: bool) -> None:
    process = subprocess.Popen(
        [*forked_program(), "serve", "--db", str(small_db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(request(1, "roles.list") + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    if busy:
        process.stdin.write(request(2, "roles.list") + b"\n")
        process.stdin.flush()
    assert process.wait(2) in (0, 1) if busy else process.wait(2) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    process.stdin.close()
