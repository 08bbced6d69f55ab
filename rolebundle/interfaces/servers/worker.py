"""The worker of a server: one thread that runs calls one at a time, in the order they came.

A connection to the corpus takes one call at a time, so `serve` and `mcp` both hand their calls to
one worker. It bounds what waits, cancels a call without touching the next one, and loads the model
ahead. At the end it finishes every call, or answers it with `interrupted`, within a set time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from signal import SIGINT
from threading import Condition, Event, Thread
from time import monotonic, sleep
from typing import Any, TypeVar

from rolebundle.errors import Interrupted, RolebundleError
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.interfaces.servers.stdio import Channel, LineReader, LineWriter, OutputClosed

T = TypeVar("T")

MAX_WAITING = 64
"""How many jobs wait; each may have as many bytes as the longest line."""
PATIENCE_SECONDS = 60.0
"""After the end of the input, a call may go on for this long without progress."""
STOP_SECONDS = 0.5
"""How long a call is interrupted until it is answered without its result."""
WRITE_SECONDS = 1.0
"""How long the last answers may take to be written. A client may read none."""
IDLE_SECONDS = 5.0
"""How long to wait for a protocol that has requests left but hands none to the worker."""
_POLL_SECONDS = 0.02
_POLL_SPACE_SECONDS = 0.2


def server_is_ending() -> Interrupted:
    """The error of a call that the end of the server does not let finish."""
    return Interrupted("interrupted", "the server is ending", "start it again and repeat the call")


@dataclass(eq=False)
class Job:
    """One call. It is settled once: its result is delivered, or nobody waits for one any more.

    Attributes:
        run: gets the job itself, does the work on the worker's thread, and must not raise.
        deliver: gets what ``run`` or ``refuse`` returned, on any thread.
        refuse: the result that says only that the server is ending.
        cancelled: the result of one that was cancelled; ``None`` if nobody waits for one then.
        key: what :meth:`Worker.cancel` knows the job by.
        is_cancelled: whether it was cancelled, so that it must not go on.
        is_settled: whether its result was delivered or will not be.
    """

    run: Callable[[Job], Any]
    deliver: Callable[[Any], None]
    refuse: Callable[[], Any] = lambda: None
    cancelled: Callable[[], Any] | None = None
    key: object = None
    is_cancelled: bool = False
    is_settled: bool = False


class Worker:
    """Runs jobs on one thread, and closes the engine when the thread ends.

    The states of a worker, in this order:
        open: jobs are queued and run.
        stopping: :meth:`stop` was called. The running job is interrupted, and all others are
            refused, also later ones.
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
        self._running: Job | None = None
        self._is_idle = True
        self._since = monotonic()
        self._is_closed = False
        self._ended = Event()
        self.is_stopping = False
        """Whether :meth:`stop` was called, so that jobs must not start their work."""
        self.unfinished = 0
        """How many jobs the end of the server did not let finish."""

    def start(self, *, preload: bool = False) -> None:
        """Start the thread.

        Args:
            preload: load the model before the first job.
        """
        Thread(target=self._work, args=(preload,), name="rolebundle-work", daemon=True).start()

    def wait_for_space(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until the queue takes another job, or until ``is_stopped()`` is true."""
        with self._changed:
            while len(self._waiting) >= MAX_WAITING and not is_stopped():
                self._changed.wait(_POLL_SPACE_SECONDS)

    def submit(self, job: Job) -> None:
        """Queue a job. A worker that is stopping refuses it."""
        with self._changed:
            if not self.is_stopping:
                self._waiting.append(job)
                self._changed.notify_all()
                return
        self._refuse(job)

    async def call(self, work: Callable[[], T]) -> T:
        """Run ``work`` as a job and await its result. Cancelling the task cancels the job.

        Raises:
            Interrupted: the server is ending.
        """
        future: Future[T] = Future()
        # The outcome is set in `deliver`, which is not called for a cancelled job.
        job = Job(
            lambda _: self._outcome(future, work),
            lambda set_outcome: set_outcome(),
            lambda: partial(future.set_exception, server_is_ending()),
        )
        self.submit(job)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.cancel(lambda queued: queued is job)
            raise

    def note_progress(self) -> None:
        """Note that the running job makes progress, so that it may take longer."""
        self._since = monotonic()

    def note_error(self, error: BaseException) -> None:
        """Note what a job failed with, to tell whether the end of the server interrupted it."""
        if self.is_stopping and isinstance(error, Interrupted):
            self.unfinished += 1

    def cancel(self, is_meant: Callable[[Job], bool]) -> None:
        """Cancel the jobs for which ``is_meant`` is true, and interrupt the running one likewise.

        Each has its result for this case in its turn, if it has one.
        """
        with self._changed:
            for job in filter(is_meant, self._waiting):
                # It may be large.
                job.is_cancelled, job.run = True, lambda _: None
            kept = (job for job in self._waiting if job.cancelled or not job.is_cancelled)
            self._replace_waiting([*kept])
            running = self._running
            if running is None or running.is_settled or not is_meant(running):
                return
            running.is_cancelled, running.is_settled = True, running.cancelled is None
        Thread(target=self._interrupt_until_done, args=(running,), daemon=True).start()

    def finish(
        self, is_stopped: Callable[[], bool], is_done: Callable[[], bool] | None = None
    ) -> None:
        """Finish all jobs. If one takes too long, or ``is_stopped()``, refuse what is left.

        Args:
            is_stopped: whether the server must end now.
            is_done: whether no job is left and none will be submitted. Default: no job is left.
        """
        if is_done is None:
            is_done = self._ended.is_set
            self._close()
        self._since = monotonic()  # It may have been idle for long.
        while not is_done():
            patience = IDLE_SECONDS if self._is_idle else PATIENCE_SECONDS
            if is_stopped() or monotonic() - self._since > patience:
                self.stop()
                return
            # Set when the thread has ended, so that the usual end takes no time.
            self._ended.wait(_POLL_SECONDS)

    def stop(self) -> None:
        """End the thread: interrupt the running job, and refuse it and all others."""
        self.is_stopping = True
        self._close()
        end = monotonic() + STOP_SECONDS
        while not self._ended.wait(_POLL_SECONDS) and monotonic() < end:
            self._interrupt(self._running)
        if not self.has_ended:
            # In a thread, because nobody may read the refusals.
            refuser = Thread(target=self._refuse_all, daemon=True)
            refuser.start()
            refuser.join(WRITE_SECONDS)

    @property
    def has_ended(self) -> bool:
        """Whether the thread has ended. After :meth:`stop` it has, unless its job is deaf."""
        return self._ended.is_set()

    def end_code(self, signals: Sequence[int]) -> int:
        """The exit code of a server that ends after these signals.

        It is 1 if no signal ended it, and a call was not finished but has the code ``interrupted``.
        """
        if SIGINT in signals:
            return 130
        return 0 if signals or not self.unfinished else 1

    def _work(self, preload: bool) -> None:
        try:
            if preload:
                self._is_idle, self._since = False, monotonic()
                self.operations.warm_up()
            while (job := self._next_job()) is not None:
                if self.is_stopping:
                    self._refuse(job)
                    continue
                result = job.run(job)
                with self._changed:
                    self._running, self._since = None, monotonic()
                if self._settle(job):
                    job.deliver(job.cancelled() if job.is_cancelled and job.cancelled else result)
        finally:
            with suppress(RolebundleError):
                self.operations.engine.close()
            self._on_end()
            self._ended.set()

    def _next_job(self) -> Job | None:
        """Wait for a job and start it. Return ``None`` if the worker is closed and has none."""
        with self._changed:
            self._running = None
            self._is_idle, self._since = True, monotonic()
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            self._running = self._waiting.popleft()
            self._is_idle, self._since = False, monotonic()
            self._changed.notify_all()
            return self._running

    def _outcome(self, future: Future[T], work: Callable[[], T]) -> Callable[[], None]:
        """Do the work, and return what sets its outcome in the future."""
        if not future.set_running_or_notify_cancel():
            return lambda: None
        try:
            return partial(future.set_result, work())
        except (Exception, SystemExit) as error:
            self.note_error(error)
            return partial(future.set_exception, error)

    def _close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _settle(self, job: Job) -> bool:
        """Return whether the job's result is to be delivered, which is true once."""
        with self._changed:
            is_due = not job.is_settled
            job.is_settled = True
            return is_due

    def _refuse(self, job: Job) -> None:
        if self._settle(job):
            self.unfinished += 1
            job.deliver(job.refuse())

    def _refuse_all(self) -> None:
        with self._changed:
            jobs = [*filter(None, [self._running]), *self._waiting]
            self._replace_waiting([])
        for job in jobs:
            self._refuse(job)

    def _interrupt_until_done(self, job: Job) -> None:
        # An interrupt that comes before the search has begun has no effect, so it is repeated.
        while self._interrupt(job):
            sleep(_POLL_SECONDS)

    def _interrupt(self, job: Job | None) -> bool:
        # Under the lock, so that it never hits the next job.
        with self._changed:
            is_running = job is not None and job is self._running
            if is_running:
                self.operations.engine.interrupt()
            return is_running

    def _replace_waiting(self, jobs: list[Job]) -> None:
        self._waiting = deque(jobs)
        self._changed.notify_all()


class ClientSession:
    """Serves one client.

    Args:
        operations: the methods, over an engine that is this session's alone.
        channel: where requests come from and answers go.
    """

    def __init__(self, operations: Operations, channel: Channel) -> None:
        self._reader = LineReader(channel, MAX_LINE_BYTES)
        self.worker = Worker(operations, self._reader.stop)
        self._writer = LineWriter(channel)
        self._is_cut_off = False
        """Whether nobody reads the answers any more."""
        self.is_stopped = False
        """Whether :meth:`stop` was called."""

    def stop(self) -> None:
        """Make ``run`` return soon. For any thread."""
        self.is_stopped = True
        self._reader.stop()

    def _write_line(self, line: bytes) -> bool:
        """Write a line without its end. Return false if the client has closed the output."""
        try:
            self._writer.write(line)
        except OutputClosed:
            self._is_cut_off = True
            self._reader.stop()
            return False
        return True
