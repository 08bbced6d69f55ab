"""How far the reading of files is."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from time import monotonic
from typing import NamedTuple

from rolebundle.ingest.prepare import FileTask, Outcome, Prepared

_SECONDS_BETWEEN_REPORTS = 0.2


class Reading(NamedTuple):
    """How far the reading of files is. ``slow`` is the path of a file that takes long, or empty."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int
    chunks: int
    slow: str = ""


OnReading = Callable[[Reading], None]
"""Called a few times per second while files are read."""


def no_reading(_reading: Reading) -> None:
    """Report nothing."""


class ReadingMeter:
    """Reports how far the reading of files is."""

    def __init__(
        self, tasks: Sequence[FileTask], unchanged: Container[str], on_reading: OnReading
    ) -> None:
        self.on_reading = on_reading
        sizes = [(task.file.size, task.file.location in unchanged) for task in tasks]
        self.now = Reading(
            sum(is_done for _, is_done in sizes),
            len(tasks),
            sum(size for size, is_done in sizes if is_done),
            sum(size for size, _ in sizes),
            0,
        )

    def slow(self, path: str) -> None:
        """Report a file that takes long."""
        self.on_reading(self.now._replace(slow=path))

    def measured(
        self, outcomes: Iterable[tuple[FileTask, Outcome]]
    ) -> Iterator[tuple[FileTask, Outcome]]:
        """Yield the outcomes, and report how many there were."""
        reported_at = monotonic()
        for task, outcome in outcomes:
            now = self.now
            chunks = now.chunks
            if isinstance(outcome, Prepared):
                chunks += sum(len(document.chunks) for document in outcome.documents)
            self.now = now._replace(
                files=now.files + 1, bytes=now.bytes + task.file.size, chunks=chunks
            )
            if monotonic() - reported_at > _SECONDS_BETWEEN_REPORTS:
                reported_at = monotonic()
                self.on_reading(self.now)
            yield task, outcome
