"""Fills the rerank cache in the background of a process that continues: a watch, or a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread
from typing import TYPE_CHECKING

from rolebundle.errors import RolebundleError

if TYPE_CHECKING:
    from rolebundle.retrieval.rerank.fill_cache import Pause, WarmReport

INCOMPLETE = "warning: the rerank cache is not complete: {}"


class Warming:
    """A thread that fills the rerank cache on request, and pauses while other work is done.

    Args:
        warm: fills the cache; it is called on the thread, and calls its argument before each text.
        report_problem: called with a warning, unless it is the same as the last one.
        is_served: whether the model is in a server. The process does not wait for it when it ends.

    Attributes:
        is_running: whether the thread is at work, or pauses.
    """

    def __init__(
        self,
        warm: Callable[[Pause], WarmReport],
        report_problem: Callable[[str], None],
        *,
        is_served: bool = False,
    ) -> None:
        self._warm, self._report_problem, self._is_served = warm, report_problem, is_served
        self._changed = Condition()
        self._active_blocks = 0
        self._is_due = self._is_stopped = self.is_running = False
        self._last_problem = ""

    def start(self) -> None:
        """Fill the cache in the background; once more afterwards if it is being filled."""
        with self._changed:
            self._is_due = True
            if not self.is_running and not self._is_stopped:
                self.is_running = True
                Thread(target=self._work, name="warming", daemon=self._is_served).start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Embed no further text until the block ends. Blocks may overlap."""
        with self._changed:
            self._active_blocks += 1
        try:
            yield
        finally:
            with self._changed:
                self._active_blocks -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Embed no further text. What was embedded is stored."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _work(self) -> None:
        # With the system's usual priority: a thread with a lower one would keep Python's lock while
        # it waits for other processes, and requests would wait for that lock.
        while self._begins_run():
            self._fill()

    def _begins_run(self) -> bool:
        with self._changed:
            self.is_running, self._is_due = self._is_due and not self._is_stopped, False
            return self.is_running

    def _fill(self) -> None:
        try:
            problem = self._warm(self._pause).problem
        except _StoppedError:
            return
        except RolebundleError as error:
            problem = str(error)
        if problem and problem != self._last_problem:
            self._report_problem(INCOMPLETE.format(problem))
        self._last_problem = problem

    def _pause(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or not self._active_blocks)
            if self._is_stopped:
                raise _StoppedError


class _StoppedError(Exception):
    """The process is ending."""
