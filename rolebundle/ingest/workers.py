"""What the processes of an ingest do besides their work.

A worker ends with the process that started it.

Ctrl-C reaches every process of a terminal, and a worker would answer it with a traceback. A worker
waits for work on a pipe that its siblings hold open, too: after a kill -9 of the parent it would
wait forever.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process, resource_tracker
from multiprocessing.connection import wait
from threading import Thread

_VALUES_BETWEEN_COLLECTIONS = 100_000


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block; processes started in it never get it.

    They inherit the mask, so that they are deaf from their first moment on.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started here, because starting it lifts every mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow_the_parent() -> None:
    """Leave interrupts to the parent, and end when it ends. Runs first in each worker."""
    gc.set_threshold(_VALUES_BETWEEN_COLLECTIONS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for cycles seldom until the end of the block.

    An ingest makes many small values and no cycles: looking for cycles after every 700 of them
    takes a tenth of its time, and a quarter where nothing has changed.
    """
    before = gc.get_threshold()
    gc.set_threshold(_VALUES_BETWEEN_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
