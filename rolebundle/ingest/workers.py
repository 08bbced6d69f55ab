"""Processes that read files, each file within a limit of processor time.

A library that parses a file may run without end, take all memory or crash. In a process of its own
it stops only the reading of that file. The process is replaced, and the files that it had
been given are read again one by one, so that the one file that ends it is skipped.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from queue import SimpleQueue
from threading import Lock, Thread
from typing import cast

from rolebundle import system
from rolebundle.contracts.ingest import Skipped
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest import prepare
from rolebundle.ingest.walk import FileEntry
from rolebundle.storage.file import whole_number_in

READ_SECONDS = 60
"""How much processor time a file may take, unless the environment variable sets another one."""
READ_SECONDS_ENVIRONMENT = "ROLEBUNDLE_READ_SECONDS"

_FILES_PER_GROUP = 128
_BYTES_PER_GROUP = 1 << 21
_GROUPS_PER_WORKER = 6  # enough to keep a worker busy while a batch is stored
_MIN_FILES_FOR_WORKERS = 64
_MAX_BYTES_HERE = 1 << 20
_PROGRAM = "import sys; sys.path[:] = {!r}; from rolebundle.ingest.workers import main; main()"
_ENDED = (EOFError, OSError, pickle.UnpicklingError)
"""What reading and writing raise if the process at the other end of the pipes has ended."""


def prepare_parallel(
    files: Sequence[FileEntry], settings: prepare.RunSettings, workers: int
) -> Generator[prepare.Outcome, None, None]:
    """The outcome of each file, in order. Close the iterator to end before all files are read.

    A process takes longer to start than to read a few files. So if there are few, or one process is
    wanted, they are read in this one if all are small files of plain formats.

    Args:
        files: the files.
        settings: settings of the run.
        workers: the number of processes.

    Raises:
        ConfigurationError: ``bad_read_seconds``.
        DocumentError: ``worker_died``: a process cannot be started.
    """
    seconds = read_seconds()
    is_small = len(files) < _MIN_FILES_FOR_WORKERS
    is_small &= sum(file.size for file in files) <= _MAX_BYTES_HERE
    workers = 1 if is_small else workers
    is_plain = all(prepare.is_plain(file) and file.size <= _MAX_BYTES_HERE for file in files)
    is_safe = not any(map(prepare.may_crash, files))
    if workers == 1 and (is_plain or (is_safe and not seconds)):
        yield from (prepare.prepared(file, settings) for file in files)
        return
    groups = _groups(files)
    readers = [_Reader(settings, seconds) for _ in range(workers)]
    idle: SimpleQueue[_Reader] = SimpleQueue()
    for reader in readers:
        idle.put(reader)

    def read(group: list[FileEntry]) -> list[prepare.Outcome]:
        reader = idle.get()
        try:
            return reader.read(group)
        finally:
            idle.put(reader)

    threads = ThreadPoolExecutor(workers, "rolebundle-reader")
    # A window of groups, so that outcomes do not accumulate if the writer is slower.
    first = islice(groups, workers * _GROUPS_PER_WORKER)
    window = deque(threads.submit(read, group) for group in first)

    try:
        while window:
            yield from window.popleft().result()
            window.extend(threads.submit(read, group) for group in islice(groups, 1))
    finally:
        # Also those that read.
        for reader in readers:
            reader.kill()
        threads.shutdown(cancel_futures=True)
        for reader in readers:
            reader.wait()


def read_seconds() -> int:
    """The limit of processor time for a file; 0 for none.

    Raises:
        ConfigurationError: ``bad_read_seconds``.
    """
    name = READ_SECONDS_ENVIRONMENT
    return whole_number_in(name, READ_SECONDS, "seconds", "bad_read_seconds", digits=6)


def _groups(files: Iterable[FileEntry]) -> Iterator[list[FileEntry]]:
    """Groups of limited size in bytes, which also limits the results that wait for the writer."""
    group: list[FileEntry] = []
    size = 0
    for file in files:
        heavy = prepare.is_heavy(file)
        if group and (heavy or len(group) >= _FILES_PER_GROUP or size >= _BYTES_PER_GROUP):
            yield group
            group, size = [], 0
        group.append(file)
        # Nothing is added to a group with a heavy file.
        size += _BYTES_PER_GROUP if heavy else file.size
    if group:
        yield group


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Run the cyclic garbage collector rarely until the end of the block.

    An ingest creates many small values and no cycles. With the default threshold of 700 values the
    collector takes a tenth of the time, and a quarter if no file has changed.
    """
    before = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Reader:
    """A process that reads files. It is started when it is needed, and again if it has ended."""

    def __init__(self, settings: prepare.RunSettings, seconds: float) -> None:
        self._settings = settings
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._is_closed = False
        self._exceeded: list[str] = []

    def read(self, files: Sequence[FileEntry]) -> list[prepare.Outcome]:
        process = self._process or self._start()
        try:
            assert process.stdin is not None
            request = (files, self._settings, self._seconds)
            pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            waiting = self._seconds * WAITING_FACTOR
            with system.watched(process.pid, self._seconds, waiting, MAX_MEMORY) as self._exceeded:
                answer = _answer(process)
        except _ENDED:
            code = self.wait()
            if self._is_closed:
                return []  # Nobody waits for it.
            if len(files) > 1:
                return [outcome for file in files for outcome in self.read([file])]
            return [self._skipped(files[0].path, code)]
        return answer or []

    def kill(self) -> None:
        """End the process at once. Then :meth:`read` ends as well, in whatever thread it runs."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()

    def wait(self) -> int:
        """Wait for the end of the process; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with process:
            pass  # It closes the pipes and waits.
        return process.returncode

    def _start(self) -> subprocess.Popen[bytes]:
        # Unlike `multiprocessing`, it neither imports the main module of the caller nor forks.
        try:
            with self._lock:
                if self._is_closed:
                    raise EOFError
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM.format(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    **system.OWN_GROUP,  # Ctrl-C is for this process, which then ends the others.
                )
            _answer(self._process)
        except _ENDED as error:
            self.wait()
            raise DocumentError(
                "worker_died",
                "a process that reads files could not be started; what was stored before stays",
                with_detail("check memory and the limit of processes, then try again", error),
            ) from error
        return self._process

    def _skipped(self, path: str, code: int) -> Skipped:
        if self._exceeded == ["memory"]:
            problem = f"reading it took more than {MAX_MEMORY >> 30} GB of memory; exclude it"
            return Skipped(path, "too_much_memory", f"{path}: {problem}")
        if self._exceeded or system.is_out_of_time(code):
            problem = (
                f"reading it took more than {self._seconds} s of processor time, or "
                f"{self._seconds * WAITING_FACTOR} s in all; "
                f"split or exclude it, or set {READ_SECONDS_ENVIRONMENT} to more seconds"
            )
            return Skipped(path, "too_slow", f"{path}: {problem}")
        problem = f"the process that read it ended with code {code}; exclude it, and report it "
        return Skipped(path, "reader_crashed", f"{path}: {problem}if the machine has enough memory")


def _answer(process: subprocess.Popen[bytes]) -> Answer:
    assert process.stdout is not None
    return cast(Answer, pickle.load(process.stdout))


# -- worker process --
#
# A process that reads files; :mod:`rolebundle.ingest.workers` starts and asks it.
#
# Requests arrive on standard input, and each answer goes to what was standard output, both pickled.
# The first answer, ``None``, says that the process has started. It ends when its input ends, so
# also after a kill -9 of its parent.


GC_THRESHOLD = 100_000
MAX_MEMORY = 2 << 30
"""Bytes that a process may take to read files. The readers' own limits are reached long before."""
WAITING_FACTOR = 10
"""How much longer than the processor time the whole time may be: the machine may be busy."""


Request = tuple[Sequence[FileEntry], prepare.RunSettings, float]
"""Files to read, and how many seconds of processor time that may take; 0 for any time."""
Answer = list[prepare.Outcome] | None


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a library prints must not get among the answers.
    gc.set_threshold(GC_THRESHOLD)
    system.limit_memory(MAX_MEMORY)
    requests: SimpleQueue[Request] = SimpleQueue()
    Thread(target=_receive, args=(requests,), daemon=True).start()
    answer: Answer = None
    while True:
        try:
            pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
        except OSError:
            os._exit(1)  # The parent has ended.
        files, settings, seconds = requests.get()
        system.limit_time(seconds, seconds * WAITING_FACTOR)
        answer = [prepare.prepared(file, settings) for file in files]
        system.limit_time(0, 0)


def _receive(requests: SimpleQueue[Request]) -> None:
    # In a thread, to see the end of the parent while a file is read. Not with `sys.stdin`, which
    # Python closes at its end, and cannot while this waits.
    source = os.fdopen(os.dup(0), "rb")
    while True:
        try:
            requests.put(pickle.load(source))
        except _ENDED:
            os._exit(1)
