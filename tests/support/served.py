"""A real `rolebundle serve` process to talk to, line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from support.program_server import MAIN, forked_python


class Served:
    """A `serve` or `mcp` process, forked if it is not to be ``real``.

    ``before`` is Python code that it runs first, to inject faults.
    """

    def __init__(
        self,
        *options: str | Path,
        protocol: str = "serve",
        before: str = "",
        real: bool = False,
        **env: str,
    ) -> None:
        self._encoding = "ascii" if protocol == "serve" else "utf-8"
        python = (sys.executable, "-c") if real else forked_python()
        command = [*python, f"{before}\n{MAIN}", protocol, *map(str, options)]
        self.start(command, env={**os.environ, **env})

    def start(self, command: Sequence[str], **options: Any) -> None:
        """Start a command that answers lines."""
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options)
        assert self.process.stdin and self.process.stdout
        self.input, self.output = self.process.stdin, self.process.stdout
        self._lines: Queue[bytes] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, words: bytes) -> None:
        """Wait until it has said this on standard error."""
        assert self.process.stderr
        while words not in self.process.stderr.readline():
            assert self.process.poll() is None

    def _read(self) -> None:
        for line in self.output:
            self._lines.put(line)

    def send(self, *lines: bytes) -> None:
        self.input.write(b"".join(line + b"\n" for line in lines))
        self.input.flush()

    def request(self, number: Any, method: str, **params: Any) -> None:
        self.send(request(number, method, **params))

    def notify(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send(json.dumps(message).encode())

    def next(self, timeout: float = 30.0) -> Any:
        line = self._lines.get(timeout=timeout)
        line.decode(self._encoding)
        return json.loads(line)

    def ask(self, method: str, **params: Any) -> Any:
        self.request("asked", method, **params)
        while (message := self.next()).get("id") != "asked":
            pass
        return message

    def silent(self, seconds: float = 0.3) -> bool:
        try:
            self._lines.get(timeout=seconds)
        except Empty:
            return True
        return False

    def ended(self, within: float = 10.0) -> tuple[int, float]:
        """Return the exit code, and the seconds until the process ended."""
        started = time.perf_counter()
        code = self.process.wait(timeout=30)
        took = time.perf_counter() - started
        assert took < within, took
        return code, took

    def end_of_input(self, code: int = 0) -> tuple[list[Any], str]:
        """Close the input, and return the remaining answers and standard error."""
        self.input.close()
        assert self.ended()[0] == code
        return self.remaining_answers(), self.err()

    def remaining_answers(self) -> list[Any]:
        """The remaining answers of a process that has ended."""
        self._reader.join(5)
        answers = []
        while not self._lines.empty():
            answers.append(json.loads(self._lines.get()))
        return answers

    def err(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read().decode()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(5)
        for stream in (self.output, self.process.stderr):
            if stream:
                stream.close()


def request(number: Any, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode()


def codes(messages: Sequence[Any]) -> list[Any]:
    """Return each message's error number, or its id if it is an answer."""
    return [
        message["error"]["code"] if "error" in message else message["id"] for message in messages
    ]


def alive(server: Served) -> None:
    answer = server.ask("retrieve", task="the token", lexical_only=True, detail="ids")
    assert answer["result"]["selected"], answer


SLOW = """
import time
from rolebundle.interfaces.servers.operations import Operations
def _slow(answer):
    def slow(self, method, *arguments):
        if method == "status":
            time.sleep({seconds})
        return answer(self, method, *arguments)
    return slow
Operations.call, Operations.text = _slow(Operations.call), _slow(Operations.text)
"""
"""``before`` for a `status` that takes long and cannot be interrupted."""

RUNAWAY = """
from rolebundle.engine import Engine
def _runaway(self, *_, **__):
    with self.workspace.corpus.interruptible():
        self.workspace.corpus.value("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                          "SELECT max(i) FROM n")
Engine.status = _runaway
"""
"""``before`` for a `status` that runs an endless query."""
