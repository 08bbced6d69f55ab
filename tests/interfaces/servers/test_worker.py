"""The worker of the servers: order, cancelling, bounds, and its end."""

from collections.abc import Iterator
from threading import Event, Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from rolebundle.interfaces.servers import worker
from rolebundle.interfaces.servers.worker import MAX_WAITING, Job, Worker

SECONDS = 5


class FakeOperations:
    """Notes what the worker calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.interrupted = Event()
        self.engine = SimpleNamespace(
            close=lambda: self.calls.append("close"), interrupt=self.interrupted.set
        )

    def warm_up(self) -> None:
        self.calls.append("warm up")


class Started:
    """A worker, its operations, and what it delivered."""

    def __init__(self) -> None:
        self.operations = FakeOperations()
        self.worker = Worker(self.operations)  # type: ignore[arg-type]
        self.delivered: list[Any] = []

    def quick(self, key: object) -> Job:
        return Job(lambda _: key, self.delivered.append, lambda: f"refused {key}", key)

    def submit(self, *jobs: Job) -> None:
        for job in jobs:
            self.worker.submit(job)

    def finish(self) -> None:
        self.worker.finish(lambda: False)
        assert self.worker.has_ended


@pytest.fixture
def started() -> Iterator[Started]:
    worker_at_work = Started()
    yield worker_at_work
    worker_at_work.worker.stop()


def test_a_full_queue_waits_for_space_or_for_the_end(started: Started) -> None:
    started.submit(*(started.quick(number) for number in range(MAX_WAITING)))
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


def test_stop_interrupts_what_runs_and_refuses_what_waits(started: Started) -> None:
    begun = Event()

    def run(_: Job) -> object:
        begun.set()
        started.operations.interrupted.wait(SECONDS)
        return "first"

    running = Job(run, started.delivered.append, lambda: "refused first", "first")
    started.submit(running, started.quick("second"))
    started.worker.start()
    assert begun.wait(SECONDS)
    started.worker.stop()
    started.submit(started.quick("third"))
    assert started.delivered == ["first", "refused second", "refused third"]
    assert started.worker.has_ended


def test_a_job_that_makes_progress_is_not_late(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "PATIENCE_SECONDS", 0.2)

    def run(_: Job) -> str:
        for _ in range(8):
            sleep(0.05)
            started.worker.note_progress()
        return "done"

    started.submit(Job(run, started.delivered.append, lambda: "refused"))
    started.worker.start()
    started.finish()
    assert started.delivered == ["done"]
