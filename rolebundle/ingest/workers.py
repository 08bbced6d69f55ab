"""Worker threads and processes of an ingest: files are compared in threads and parsed in processes.

A worker process must end with its parent and must not handle Ctrl-C, which reaches every process of
a terminal. Workers wait for tasks on a pipe that their siblings hold open as well, so without
:func:`_end_with_parent` they would wait forever after a kill -9 of the parent.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import active_children, get_context, parent_process, resource_tracker, util
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from threading import Thread, current_thread, main_thread

from rolebundle.errors import DocumentError
from rolebundle.ingest.prepare import (
    FileTask,
    Outcome,
    RunSettings,
    prepare_files,
)

_FILES_PER_TASK = 128
_BYTES_PER_TASK = 1 << 21
_TASKS_PER_WORKER = 6  # enough to keep a worker busy while a batch is stored
_MIN_FILES_FOR_WORKERS = 64
_GC_THRESHOLD = 100_000
_SLOW_BYTES = 1 << 20
_SLOW_SECONDS = 2.0
_ENDING = (signal.SIGINT, signal.SIGTERM)


def _report_nothing(_path: str) -> None:
    pass


def prepare_parallel(
    tasks: Sequence[FileTask],
    settings: RunSettings,
    workers: int,
    on_slow: Callable[[str], None] = _report_nothing,
) -> Iterator[Outcome]:
    """The outcome of each file, in order. A few files are prepared in this process.

    Args:
        tasks: the files.
        settings: settings of the run.
        workers: the number of processes.
        on_slow: called with the path of a file that probably takes long.

    Raises:
        DocumentError: ``worker_died``.
    """
    groups = _groups(tasks)
    if workers <= 1 or len(tasks) < _MIN_FILES_FOR_WORKERS:
        for group in groups:
            if sum(task.file.size for task in group) > _SLOW_BYTES:
                on_slow(_largest(group))
            yield from prepare_files(group, settings)
        return
    # Spawned, because a forked child would inherit SQLite's locks and a tokenizer's threads.
    context = get_context("spawn")
    stopping = context.Event()
    # A worker that is still starting when the ingest is interrupted finds it by its name.
    _unfinished.append(stopping)
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(stopping,)
    ) as pool:
        # A window of tasks, so that results do not accumulate if the writer is slower.
        window: deque[tuple[list[FileTask], Future[list[Outcome]]]] = deque()
        try:
            for group in islice(groups, workers * _TASKS_PER_WORKER):
                window.append((group, _submit(pool, group, settings)))
            while window:
                group, future = window.popleft()
                if wait_for([future], _SLOW_SECONDS).not_done:
                    on_slow(_largest(group))
                yield from future.result()
                if (next_group := next(groups, None)) is not None:
                    window.append((next_group, _submit(pool, next_group, settings)))
        except BrokenProcessPool as error:
            raise DocumentError(
                "worker_died",
                "a worker process ended unexpectedly; files that were stored before stay stored",
                "run the same command with --workers 1 to find the file, and exclude it; "
                'your own script must ingest under `if __name__ == "__main__":`',
            ) from error
        except BaseException:
            # Ctrl-C does not wait for the files of the window. Workers are not killed: one that
            # dies while it sends a result would block this process.
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    _unfinished.remove(stopping)


def kill_workers() -> bool:
    """Kill the workers of runs that were interrupted; whether there were such runs.

    The thread that reads their results may then wait for the rest of one, so this process must end
    with ``os._exit``. Their semaphores are removed here, because ``os._exit`` does not do it, and
    Python would call them leaked.
    """
    if not _unfinished:
        return False
    for worker in active_children():
        worker.kill()
    util._run_finalizers(0)  # type: ignore[attr-defined]
    return True


def _largest(group: Sequence[FileTask]) -> str:
    return max(group, key=lambda task: task.file.size).file.path


def _groups(tasks: Iterable[FileTask]) -> Iterator[list[FileTask]]:
    """Groups of limited size in bytes, which also limits the results that wait for the writer."""
    group: list[FileTask] = []
    size = 0
    for task in tasks:
        group.append(task)
        size += task.file.size
        if len(group) >= _FILES_PER_TASK or size >= _BYTES_PER_TASK:
            yield group
            group, size = [], 0
    if group:
        yield group


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Run the cyclic garbage collector rarely until the end of the block.

    An ingest creates many small values and no cycles. With the default threshold of 700 values the
    collector takes a tenth of the time, and a quarter if no file has changed.
    """
    before = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _submit(
    pool: ProcessPoolExecutor, group: list[FileTask], settings: RunSettings
) -> Future[list[Outcome]]:
    with _signals_deferred():
        return pool.submit(_prepare_in_worker, group, settings)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Deliver SIGINT and SIGTERM after the block, which may start a worker.

    Processes that start in it inherit the mask. The mask alone does not defer: the system gives the
    signal to another thread, and Python calls the handler in the main thread.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The resource tracker is started here, because starting it resets the mask.
    resource_tracker.ensure_running()
    received: list[int] = []
    handlers = {}
    if current_thread() is main_thread():
        for number in _ENDING:
            handlers[number] = signal.signal(number, lambda number, _: received.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in received:
            signal.raise_signal(late)


_unfinished: list[Event] = []
"""For each run that has not ended, the event that stops it."""
_stopping: Event | None = None
"""In a worker process: whether the files that still wait need not be read."""


def _prepare_in_worker(tasks: Sequence[FileTask], settings: RunSettings) -> list[Outcome]:
    is_stopping = _stopping is not None and _stopping.is_set()
    return [] if is_stopping else prepare_files(tasks, settings)


def _start_worker(stopping: Event) -> None:
    """Runs first in each worker process."""
    global _stopping  # noqa: PLW0603
    _stopping = stopping
    gc.set_threshold(_GC_THRESHOLD)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        # The pool ends its workers with it if one of them has died.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
