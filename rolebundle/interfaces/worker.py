"""The worker of a server: one thread that runs calls one at a time, in the order they came.

A connection to the corpus takes one call at a time, so `serve` and `mcp` both hand their calls to
one worker. It bounds what waits, cancels a call without touching the next one, loads the model
ahead, and ends within a set time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Condition, Event, Thread
from time import monotonic, sleep
from typing import Any, TypeVar

from rolebundle.errors import RolebundleError
from rolebundle.interfaces.operations import Operations

T = TypeVar("T")

MAX_WAITING = 1_024
MAX_WAITING_BYTES = 1 << 24
_POLL_SECONDS = 0.02
_POLL_SPACE_SECONDS = 0.2


@dataclass(eq=False)
class Job:
    """One call.

    Attributes:
        run: gets the job itself, does the work on the worker's thread, and must not raise.
        deliver: gets what ``run`` returned, on the same thread, unless the job was cancelled.
        key: what :meth:`Worker.cancel` knows the job by.
        size: bytes of the request.
        is_cancelled: whether nobody waits for the result any more.
    """

    run: Callable[[Job], Any]
    deliver: Callable[[Any], None]
    key: object = None
    size: int = 0
    is_cancelled: bool = False


class Worker:
    """Runs jobs on one thread, and closes the engine when the thread ends.

    The states of a worker, in this order:
        open: jobs are queued and run.
        closed: :meth:`close` was called. No job is queued any more; those in the queue still run.
        stopping: :meth:`stop` was called. The running job is interrupted; those in the queue are
            removed, or run and answer only that the server is ending.
        ended: the thread has ended and the engine is closed.

    Args:
        operations: the methods, over an engine that is this worker's alone.
        on_end: called when the thread has ended.
    """

    def __init__(self, operations: Operations, on_end: Callable[[], None] = lambda: None) -> None:
        self.operations = operations
        self._on_end = on_end
        self._changed = Condition()
        self._waiting: deque[Job] = deque()
        self._bytes = 0
        self._running: Job | None = None
        self._finished = 0
        self._is_closed = False
        self._ended = Event()
        self.is_stopping = False
        """Whether :meth:`stop` was called, so that jobs must not start their work."""

    def start(self, *, preload: bool = False) -> None:
        """Start the thread.

        Args:
            preload: load the model before the first job.
        """
        Thread(target=self._work, args=(preload,), name="rolebundle-work", daemon=True).start()

    def wait_for_space(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until the queue takes another job, or until ``is_stopped()`` is true."""
        with self._changed:
            while self._is_full() and not is_stopped():
                self._changed.wait(_POLL_SPACE_SECONDS)

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._changed:
            self._waiting.append(job)
            self._bytes += job.size
            self._changed.notify_all()

    async def call(self, work: Callable[[], T]) -> T:
        """Run ``work`` as a job and await its result. Cancelling the task cancels the job."""
        future: Future[T] = Future()
        # The outcome is set in `deliver`, which is not called for a cancelled job.
        job = Job(lambda _: _outcome(future, work), lambda set_outcome: set_outcome())
        self.submit(job)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.cancel(lambda queued: queued is job)
            raise

    def cancel(self, is_meant: Callable[[Job], bool]) -> None:
        """Remove the jobs for which ``is_meant`` is true; interrupt the running one likewise."""
        with self._changed:
            # Removed at once, because they may be large.
            self._replace_waiting([job for job in self._waiting if not is_meant(job)])
            running = self._running
            if running is None or running.is_cancelled or not is_meant(running):
                return
            running.is_cancelled = True
        Thread(target=self._interrupt_until_done, args=(running,), daemon=True).start()

    def close(self) -> None:
        """End the thread when the queue is empty."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def drain(self, seconds: float, is_stopped: Callable[[], bool]) -> bool:
        """Wait for the thread to end, as long as one job after another is done.

        Args:
            seconds: how long one job may take.
            is_stopped: the wait ends when it returns true.

        Returns:
            Whether the thread has ended.
        """
        finished, since = self._finished, monotonic()
        while not self._ended.wait(_POLL_SECONDS):
            if is_stopped() or monotonic() - since > seconds:
                return False
            if self._finished != finished:
                finished, since = self._finished, monotonic()
        return True

    def stop(self, seconds: float, *, drop: bool = True) -> bool:
        """Interrupt the running job until the thread ends.

        Args:
            seconds: how long to try.
            drop: remove the jobs that wait and cancel the one that runs. Otherwise the jobs that
                wait run with ``is_stopping`` set, so that each is answered.

        Returns:
            Whether the thread has ended.
        """
        with self._changed:
            self.is_stopping = self._is_closed = True
            if drop:
                self._replace_waiting([])
                if self._running is not None:
                    self._running.is_cancelled = True
            self._changed.notify_all()
        end = monotonic() + seconds
        while not self._ended.wait(_POLL_SECONDS) and monotonic() < end:
            self._interrupt(self._running)
        return self._ended.is_set()

    def _work(self, preload: bool) -> None:
        try:
            if preload:
                self.operations.warm_up()
            while (job := self._next_job()) is not None:
                result = job.run(job)
                if self._finish(job):
                    job.deliver(result)
                self._finished += 1
        finally:
            with suppress(RolebundleError):
                self.operations.engine.close()
            self._ended.set()
            self._on_end()

    def _next_job(self) -> Job | None:
        """Wait for a job and start it. Return ``None`` if the worker is closed and has none."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            self._running = self._waiting.popleft()
            self._bytes -= self._running.size
            self._changed.notify_all()
            return self._running

    def _finish(self, job: Job) -> bool:
        """End the running job. Return whether its result must be delivered."""
        with self._changed:
            self._running = None
            return not job.is_cancelled

    def _interrupt_until_done(self, job: Job) -> None:
        # An interrupt that comes before the search has begun has no effect, so it is repeated.
        while self._interrupt(job):
            sleep(_POLL_SECONDS)

    def _interrupt(self, job: Job | None) -> bool:
        # Under the lock, so that it never hits the next job.
        with self._changed:
            is_running = job is not None and job is self._running
            if is_running:
                self.operations.interrupt()
            return is_running

    def _replace_waiting(self, jobs: list[Job]) -> None:
        self._waiting = deque(jobs)
        self._bytes = sum(job.size for job in jobs)
        self._changed.notify_all()

    def _is_full(self) -> bool:
        return len(self._waiting) >= MAX_WAITING or self._bytes > MAX_WAITING_BYTES


def _outcome(future: Future[T], work: Callable[[], T]) -> Callable[[], None]:
    """Do the work, and return what sets its outcome in the future."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        return partial(future.set_result, work())
    except (Exception, SystemExit) as error:
        return partial(future.set_exception, error)
