"""A forked child that can be killed at any moment, and that reports its progress."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

Report = Callable[[str], object]


@dataclass(frozen=True)
class ChildResult:
    """The lines that the child reported before its end, and how it ended."""

    reported: list[str]
    killed: bool
    code: int
    seconds: float


def run_child(work: Callable[[Report], None], kill_after: float | None = None) -> ChildResult:
    """Fork, let the child do ``work``, and kill -9 it after so many seconds.

    Reports go through a pipe, so a line that arrived was written before the kill. A child that
    fails on its own ends with code 1 and its error on standard error.
    """
    reading, writing = os.pipe()
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            work(lambda line: os.write(writing, f"{line}\n".encode()))
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    reported = b""
    while part := os.read(reading, 65536):
        reported += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return ChildResult(
        # The last part is empty, or a line that the kill cut off.
        reported.decode().split("\n")[:-1],
        os.WIFSIGNALED(status),
        os.waitstatus_to_exitcode(status),
        time.perf_counter() - started,
    )
