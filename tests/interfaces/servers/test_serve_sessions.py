"""Piped sessions with a slow embedding model: no accepted request stays without an answer."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.amounts import rounds
from support.commands import PROGRAM, forked_program, invoke, run
from support.embedding_server import ROUTES, EmbeddingServer, Handler, embedding_server
from support.served import request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")

AT_ONCE = 8
KILLED = (-signal.SIGTERM, 256 - signal.SIGTERM)
"""The exit codes of a process, and of a forked one, without a handler for SIGTERM."""


class Slow(NamedTuple):
    """A corpus whose model is slow, and how slow it is in seconds."""

    db: Path
    seconds: float


class Ended(NamedTuple):
    """A session that has ended."""

    code: int
    answers: list[Any]
    errors: str
    took: float

    def outcomes(self) -> list[str]:
        """For each answer, its code, or `answer`."""
        return [
            answer["error"]["data"]["code"] if "error" in answer else "answer"
            for answer in self.answers
        ]


@pytest.fixture(scope="module")
def slow_server() -> Iterator[EmbeddingServer]:
    with embedding_server() as server:
        yield server


@pytest.fixture
def slow(slow_server: EmbeddingServer, rounds: int, tmp_path: Path) -> Slow:
    """The model takes 3 seconds in the full count."""
    slow_server.faults.clear()
    run("--version")  # The first forked program waits for its server.
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "token.md").write_text("# Tokens\n\nThe token refresh flow.\n")
    db = tmp_path / "slow.db"
    assert invoke("ingest", tmp_path / "docs", "--lexical-only", "--db", db).code == 0
    assert (
        invoke(
            *("corpus", "embed", "--model", "ollama:nomic-embed-text", "--db", db),
            embed_url=slow_server.url,
        ).code
        == 0
    )
    seconds = 3.0 if rounds > AT_ONCE else 1.3

    def answer_late(handler: Handler) -> None:
        slow_server.stopping.wait(seconds)
        ROUTES[handler.path](handler)

    slow_server.faults["/api/embed"] = answer_late
    return Slow(db, seconds)


def session(db: Path, number: int, requests: int, until_signal: float | None = None) -> Ended:
    """Pipe requests in, and end the input or send a signal. Every tenth is a real process."""
    command = PROGRAM if number % 10 == 9 else forked_program()
    process = subprocess.Popen(
        [*command, "serve", "--db", str(db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    lines = [request(n, "retrieve", task="token", detail="ids") for n in range(requests)]
    process.stdin.write(b"".join(line + b"\n" for line in lines))
    process.stdin.flush()
    started = time.monotonic()
    if until_signal is not None:
        time.sleep(until_signal)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    out, err = process.communicate(timeout=300)
    answers = [json.loads(line) for line in out.splitlines()]
    return Ended(process.returncode, answers, err.decode(), time.monotonic() - started)


@rounds(2, 200)
def test_every_piped_request_is_answered(slow: Slow, rounds: int) -> None:
    chance = random.Random(rounds)
    counts = [chance.choice((1, 1, 2)) for _ in range(rounds)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda n: session(slow.db, n, counts[n]), range(rounds)))
    for ended_session, count in zip(ended, counts, strict=True):
        assert ended_session.errors == ""
        assert [answer["id"] for answer in ended_session.answers] == list(range(count))
        assert ended_session.outcomes() == ["answer"] * count
        assert ended_session.took > slow.seconds * count
        assert ended_session.code == 0


@rounds(4, 200)
def test_every_request_is_answered_or_interrupted_at_a_signal(slow: Slow, rounds: int) -> None:
    chance = random.Random(rounds)
    # Some signals come before the server listens for them, and some after the first answer.
    moments = [chance.uniform(0.0, slow.seconds * 1.5) for _ in range(rounds)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda n: session(slow.db, n, 2, moments[n]), range(rounds)))
    for ended_session in ended:
        assert ended_session.took < 5
        assert ended_session.errors == ""
        if ended_session.code in KILLED:
            # It was not a server yet, so it accepted nothing.
            assert ended_session.answers == []
            continue
        assert [answer["id"] for answer in ended_session.answers] == [0, 1]
        assert set(ended_session.outcomes()) <= {"answer", "interrupted"}
        assert ended_session.code == ("interrupted" in ended_session.outcomes())
