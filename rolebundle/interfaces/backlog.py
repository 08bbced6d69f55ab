"""The calls that wait and the one that runs, between the reading and the working thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

from rolebundle.errors import RolebundleError

MOST_WAITING = 1_024
MOST_WAITING_BYTES = 1 << 24
_LOOK_SECONDS = 0.2


@dataclass(eq=False)
class Call:
    """One message that wants an answer.

    Attributes:
        size: its length in bytes, as it came.
        id: what the answer is given under.
        refusal: what is wrong with it; then it is not run.
        cancelled: nobody waits for the answer any more.
    """

    size: int = 0
    id: Any = None
    method: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    is_notification: bool = False
    refusal: RolebundleError | None = None
    cancelled: bool = False


class Backlog:
    """Calls in order, within a bound. An interrupt meant for one never ends another.

    Args:
        interrupt: ends what runs.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._changed = Condition()
        self._waiting: deque[Call] = deque()
        self._bytes = 0
        self._closed = False
        self._running: Call | None = None
        self.giving_up = False

    def put(self, call: Call, abandoned: Callable[[], bool]) -> None:
        """Queue a call; where the queue is full, wait for room, or until all is abandoned."""
        with self._changed:
            while self._is_full() and not abandoned():
                self._changed.wait(_LOOK_SECONDS)
            self._waiting.append(call)
            self._bytes += call.size
            self._changed.notify_all()

    def take(self) -> Call | None:
        """The next call, which runs from now on; none when nothing more comes."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            self._running = self._waiting.popleft()
            self._bytes -= self._running.size
            self._changed.notify_all()
            return self._running

    def done(self, call: Call) -> bool:
        """Note that a call has ended; whether somebody waits for its answer."""
        with self._changed:
            self._running = None
            return not call.cancelled

    def cancel(self, call_id: object) -> Call | None:
        """Take back what goes by an id; the call, where it runs already."""
        with self._changed:
            # One that waits leaves at once: it may be large.
            kept = [call for call in self._waiting if not _goes_by(call, call_id)]
            if len(kept) < len(self._waiting):
                self._waiting = deque(kept)
                self._bytes = sum(call.size for call in kept)
                self._changed.notify_all()
            running = self._running
            if running is None or not _goes_by(running, call_id):
                return None
            running.cancelled = True
            return running

    def interrupt(self, call: Call | None = None) -> bool:
        """Interrupt a call, or whichever runs; false where it does not run any more."""
        with self._changed:
            runs = self._running is not None and call in (None, self._running)
            if runs:
                self._interrupt()
            return runs

    def close(self) -> None:
        """Nothing more comes; what waits is still taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def give_up(self, *, answer: bool) -> None:
        """From now on nothing is run. Whether what waits is still answered, is said here."""
        with self._changed:
            self.giving_up = True
            if not answer:
                self._waiting.clear()
                if self._running is not None:
                    self._running.cancelled = True

    def _is_full(self) -> bool:
        return len(self._waiting) >= MOST_WAITING or self._bytes > MOST_WAITING_BYTES


def _goes_by(call: Call, call_id: object) -> bool:
    # A refusal is no request of anybody's, and its null no name.
    return call.refusal is None and type(call.id) is type(call_id) and call.id == call_id
