"""The state of `watch`, in a file beside the corpus, so that no process waits for a lock.

The file has no name of a document, so that a purge need not change it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.upkeep import WatchStatus
from rolebundle.errors import CorpusBusy
from rolebundle.storage.file import heartbeat_path, is_running, partial_file

SECONDS_BETWEEN = 5.0
SILENT_SECONDS = 30.0
"""Without a heartbeat for so long, a watch has ended or hangs."""
_MAX_BYTES = 100_000


def read_heartbeat(corpus: Path) -> WatchStatus | None:
    """What `watch` last said; ``None`` if it never ran, or if the file cannot be read."""
    try:
        with heartbeat_path(corpus).open("rb") as file:
            return WatchStatus.model_validate_json(file.read(_MAX_BYTES))
    except (OSError, ValidationError):
        return None


def is_alive(status: WatchStatus, now: datetime) -> bool:
    """Whether a watch is running, by its last heartbeat."""
    return status.state != "stopped" and seconds_since(status.heartbeat_at, now) < SILENT_SECONDS


def seconds_since(moment: str, now: datetime) -> float:
    """The seconds from a time, ISO 8601, until now; 0 for a time that is empty or in the future."""
    try:
        return max(0.0, (now - datetime.fromisoformat(moment)).total_seconds())
    except ValueError:
        return 0.0


def first_heartbeat(corpus: Path, *, polling: bool) -> Heartbeat:
    """The heartbeat of a watch that begins.

    Args:
        corpus: the corpus file.
        polling: whether the watch looks at all files again and again.

    Raises:
        CorpusBusy: ``watch_running``: another process watches.
    """
    now = datetime.now(UTC)
    known = read_heartbeat(corpus)
    if known is not None and is_alive(known, now) and is_running(known.process):
        raise CorpusBusy(
            "watch_running",
            f"{corpus}: the process {known.process} watches its roots already",
            "end that one first, or let it go on",
        )
    at = iso_utc(now)
    status = WatchStatus(
        state="starting", process=os.getpid(), polling=polling, started_at=at, heartbeat_at=at
    )
    return Heartbeat(corpus, status)


class Heartbeat:
    """Writes the status every few seconds, and at once when the state changes.

    Args:
        corpus: the corpus file.
        status: the first status.
    """

    def __init__(self, corpus: Path, status: WatchStatus) -> None:
        self.status = status
        self._path = heartbeat_path(corpus)
        self._writing = Lock()
        self._ended = Event()
        self._thread = Thread(target=self._beat, name="rolebundle-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self.update()
        self._thread.start()

    def update(self, **changes: Any) -> None:
        """Change the status and write it. A file that cannot be written stops nothing."""
        with self._writing:
            moment = iso_utc(datetime.now(UTC))
            self.status = self.status.model_copy(update={**changes, "heartbeat_at": moment})
            with suppress(OSError), partial_file(self._path) as partial:
                partial.write_text(self.status.model_dump_json() + "\n", encoding="utf-8")
                partial.replace(self._path)

    def end(self, problem: str = "") -> None:
        """Say that the watch has ended."""
        self._ended.set()
        self.update(state="stopped", problem=problem)

    def _beat(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN):
            self.update()
