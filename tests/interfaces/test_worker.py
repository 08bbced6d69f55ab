"""The worker of the servers: order, cancelling, bounds, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from rolebundle.interfaces.worker import MAX_WAITING, MAX_WAITING_BYTES, Job, Worker

SECONDS = 5


class FakeOperations:
    """Notes what the worker calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.interrupted = Event()
        self.engine = SimpleNamespace(close=lambda: self.calls.append("close"))

    def interrupt(self) -> None:
        self.interrupted.set()

    def warm_up(self) -> None:
        self.calls.append("warm up")


class Started:
    """A worker, its operations, and what it delivered."""

    def __init__(self) -> None:
        self.operations = FakeOperations()
        self.worker = Worker(self.operations)  # type: ignore[arg-type]
        self.delivered: list[Any] = []

    def quick(self, key: object, size: int = 0) -> Job:
        return Job(lambda _: key, self.delivered.append, key, size)

    def blocking(self, key: object) -> tuple[Job, Event]:
        """A job that runs until it is interrupted, and the event of its start."""
        begun = Event()

        def run(_: Job) -> object:
            begun.set()
            self.operations.interrupted.wait(SECONDS)
            return key

        return Job(run, self.delivered.append, key), begun

    def submit(self, *jobs: Job) -> None:
        for job in jobs:
            self.worker.submit(job)

    def finish(self) -> None:
        self.worker.close()
        assert self.worker.drain(SECONDS, lambda: False)


@pytest.fixture
def started() -> Iterator[Started]:
    one = Started()
    yield one
    one.worker.stop(SECONDS)


def test_jobs_run_in_order_and_the_engine_is_closed_at_the_end(started: Started) -> None:
    started.submit(*(started.quick(number) for number in range(5)))
    started.worker.start(preload=True)
    started.finish()
    assert started.delivered == [0, 1, 2, 3, 4]
    assert started.operations.calls == ["warm up", "close"]


def test_a_cancelled_job_that_waits_is_not_run(started: Started) -> None:
    started.submit(*(started.quick(key) for key in (1, "1", 2, 1)))
    started.worker.cancel(lambda job: job.key == 1)
    started.worker.start()
    started.finish()
    assert started.delivered == ["1", 2]


def test_a_cancelled_job_that_runs_is_interrupted_and_the_next_one_is_not(
    started: Started,
) -> None:
    job, begun = started.blocking("first")
    started.submit(job, started.quick("second"))
    started.worker.start()
    assert begun.wait(SECONDS)
    started.worker.cancel(lambda job: job.key == "second")
    assert not started.operations.interrupted.is_set()
    started.submit(started.quick("third"))
    started.worker.cancel(lambda job: job.key == "first")
    started.finish()
    assert started.delivered == ["third"]
    started.operations.interrupted.clear()
    started.worker.cancel(lambda job: job.key == "first")
    assert not started.operations.interrupted.is_set()


@pytest.mark.parametrize(
    ("count", "size"), [(MAX_WAITING, 0), (2, MAX_WAITING_BYTES)], ids=["calls", "bytes"]
)
def test_a_full_queue_waits_for_space_or_for_the_end(
    started: Started, count: int, size: int
) -> None:
    started.submit(*(started.quick(number, size) for number in range(count)))
    is_over = Event()
    waiting = Thread(target=started.worker.wait_for_space, args=(is_over.is_set,))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    is_over.set()
    waiting.join(SECONDS)
    assert not waiting.is_alive()
    waiting = Thread(target=started.worker.wait_for_space, args=(lambda: False,))
    waiting.start()
    started.worker.start()
    waiting.join(SECONDS)
    assert not waiting.is_alive()


def test_stop_drops_what_waits_and_interrupts_what_runs(started: Started) -> None:
    job, begun = started.blocking("first")
    started.submit(job, started.quick("second"))
    started.worker.start()
    assert begun.wait(SECONDS)
    assert started.worker.stop(SECONDS)
    assert started.delivered == []


def test_stop_without_drop_answers_what_waits(started: Started) -> None:
    job, begun = started.blocking("first")
    started.submit(job, Job(lambda _: started.worker.is_stopping, started.delivered.append))
    started.worker.start()
    assert begun.wait(SECONDS)
    assert not started.worker.drain(0.05, lambda: False)
    assert started.worker.stop(SECONDS, drop=False)
    assert started.delivered == ["first", True]
