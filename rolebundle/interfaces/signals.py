"""The signals that ask a process to end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


def on_end(act: Callable[[], None]) -> list[int]:
    """At SIGTERM or SIGINT, add its number to the list and call ``act``, instead of ending at once.

    ``act`` is called in the main thread, whatever that is doing, so it must not wait for it.
    """
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)
        act()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    return received


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that no worker and no semaphore is left."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
