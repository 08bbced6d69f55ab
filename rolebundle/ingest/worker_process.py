"""A process that reads files; :mod:`rolebundle.ingest.workers` starts and asks it.

Requests arrive on standard input, and each answer goes to what was standard output, both pickled.
The first answer, ``None``, says that the process has started. It ends when its input ends, so also
after a kill -9 of its parent.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.errors import RolebundleError
from rolebundle.ingest.prepare import FileTask, Outcome, RunSettings, prepare_files

if TYPE_CHECKING:
    from collections.abc import Sequence

GC_THRESHOLD = 100_000
MAX_MEMORY = 2 << 30
"""Bytes that a process may take to read files. The readers' own limits are reached long before."""
WAITING_FACTOR = 10
"""How much longer than the processor time the whole time may be: the machine may be busy."""
OUT_OF_TIME = (signal.SIGPROF, signal.SIGALRM) if hasattr(signal, "setitimer") else ()
"""The signals that end a process whose time is over."""


class Request(NamedTuple):
    """Files to read, and how many seconds of processor time that may take; 0 for any time."""

    tasks: Sequence[FileTask]
    settings: RunSettings
    seconds: float


Answer = list[Outcome] | RolebundleError | None


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a library prints must not get among the answers.
    gc.set_threshold(GC_THRESHOLD)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # On Windows, Ctrl-C reaches all processes.
    _limit_memory()
    for number in OUT_OF_TIME:
        signal.signal(number, signal.SIG_DFL)  # The parent may ignore it.
    requests: SimpleQueue[Request] = SimpleQueue()
    Thread(target=_receive, args=(requests,), daemon=True).start()
    answer: Answer = None
    while True:
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
        request = requests.get()
        _limit_time(request.seconds)
        try:
            answer = prepare_files(request.tasks, request.settings)
        except RolebundleError as error:
            answer = error
        _limit_time(0)


def _limit_memory() -> None:
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MAX_MEMORY if hard == resource.RLIM_INFINITY else min(hard, MAX_MEMORY)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _limit_time(seconds: float) -> None:
    """Let the system end this process after this time; 0 for no limit.

    Python has no part in it, so it also ends a call of a library that never returns. Windows has no
    such limit.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * WAITING_FACTOR)


def _receive(requests: SimpleQueue[Request]) -> None:
    # In a thread, to see the end of the parent while a file is read.
    while True:
        try:
            requests.put(pickle.load(sys.stdin.buffer))
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(1)


if __name__ == "__main__":
    main()
