"""Many files at once: compared in threads, parsed in processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice, repeat
from multiprocessing import get_context

from rolebundle.errors import DocumentError
from rolebundle.ingest.prepare import Outcome, Settings, Task, all_unchanged, prepare_all
from rolebundle.ingest.workers import follow_the_parent, interrupts_held

_FILES_A_TASK = 128
_BYTES_A_TASK = 1 << 21
_TASKS_A_WORKER = 6  # enough to go on with while a batch is stored
_FILES_A_CHECK = 256
_WORTH_WORKERS = 64


def unchanged_ones(tasks: Sequence[Task], settings: Settings, workers: int) -> list[bool]:
    """For each file whether it is as the corpus knows it.

    In threads, because reading and hashing let the others run, and processes take longer to start
    than most unchanged folders take to check.
    """
    if not any(task.known for task in tasks):
        return [False] * len(tasks)
    groups = [tasks[i : i + _FILES_A_CHECK] for i in range(0, len(tasks), _FILES_A_CHECK)]
    with ThreadPoolExecutor(workers) as pool:
        checked = pool.map(all_unchanged, groups, repeat(settings))
        return [same for group in checked for same in group]


def prepared_ones(tasks: Sequence[Task], settings: Settings, workers: int) -> Iterator[Outcome]:
    """What comes of each file, in order; in so many processes where there are enough files.

    Raises:
        DocumentError: ``worker_died``.
    """
    groups = _groups(tasks)
    if workers <= 1 or len(tasks) < _WORTH_WORKERS:
        for group in groups:
            yield from prepare_all(group, settings)
        return
    # Spawned, because a forked child would inherit SQLite's locks and a tokenizer's threads.
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=follow_the_parent
    ) as pool:
        # A window, so that results do not pile up in memory before a slower writer.
        window: deque[Future[list[Outcome]]] = deque()
        with interrupts_held():
            for group in islice(groups, workers * _TASKS_A_WORKER):
                window.append(pool.submit(prepare_all, group, settings))
        try:
            while window:
                yield from window.popleft().result()
                for group in islice(groups, 1):
                    window.append(pool.submit(prepare_all, group, settings))
        except BrokenProcessPool as error:
            raise DocumentError(
                "worker_died",
                "a process that parses files ended unexpectedly; what was stored before is kept",
                "run the same command with --workers 1 to see which file it is, and leave it out; "
                'a script of your own ingests under `if __name__ == "__main__":`',
            ) from error


def _groups(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """What a worker takes at once: bounded in bytes, so that what waits for the writer is, too."""
    group: list[Task] = []
    size = 0
    for task in tasks:
        group.append(task)
        size += task.file.size
        if len(group) >= _FILES_A_TASK or size >= _BYTES_A_TASK:
            yield group
            group, size = [], 0
    if group:
        yield group
