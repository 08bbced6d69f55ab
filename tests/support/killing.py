"""A forked child that can be killed at any moment, and that says what it has done so far."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """What the child said in time, and how it ended."""

    said: list[str]
    killed: bool
    code: int
    seconds: float


def run_child(work: Callable[[Say], None], kill_after: float | None = None) -> Ended:
    """Fork, let the child do ``work``, and kill -9 it after so many seconds.

    What the child says travels through a pipe, so that a line that arrived was said before the
    kill. A child that fails on its own ends with code 1 and its error on standard error.
    """
    reading, writing = os.pipe()
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            work(lambda line: _write(writing, line))
            code = 0
        except BaseException as error:
            sys.stderr.write(f"child: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    said = b""
    while part := os.read(reading, 65536):
        said += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return Ended(
        # A line that was cut off by the kill was not said.
        said.decode().split("\n")[:-1],
        os.WIFSIGNALED(status),
        os.waitstatus_to_exitcode(status),
        time.perf_counter() - started,
    )


def _write(descriptor: int, line: str) -> None:
    os.write(descriptor, f"{line}\n".encode())
