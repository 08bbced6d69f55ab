"""Blocking calls for a server that does not block: one thread, one call at a time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import TypeVar

from rolebundle.errors import RolebundleError
from rolebundle.interfaces.operations import Operations

T = TypeVar("T")


class Worker:
    """The one thread that makes every call: no two may use one connection at the same time."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rolebundle")
        self._lock = Lock()
        self._current: object = None
        self._idle = Event()
        self._idle.set()

    async def run(self, work: Callable[[], T]) -> T:
        """Do it on the thread, after what waits there; cancelled, it is interrupted or dropped."""
        ticket = object()
        future = self._thread.submit(self._do, ticket, work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.cancel()
            self._interrupt(ticket)
            raise

    def warm_up(self) -> None:
        """What the first call would wait for. What is not at hand now may be, by then."""
        engine = self.operations.engine
        try:
            engine.provider(engine.corpus).embed_queries(["warm up"])
        except RolebundleError as error:
            print(f"not loaded ahead: {error}", file=sys.stderr)

    def stop(self, seconds: float) -> bool:
        """End what runs, drop what waits, close the corpus; false where a call does not end."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self.operations.interrupt()
        ended = self._idle.wait(seconds)
        if ended:
            self.operations.engine.close()
        return ended

    def _do(self, ticket: object, work: Callable[[], T]) -> T:
        with self._lock:
            self._current = ticket
            self._idle.clear()
        try:
            return work()
        finally:
            with self._lock:
                self._current = None
                self._idle.set()

    def _interrupt(self, ticket: object) -> None:
        # Under the lock, so that it is not the next call that is interrupted.
        with self._lock:
            if self._current is ticket:
                self.operations.interrupt()
