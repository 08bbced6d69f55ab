"""Completes the contextual index in the background of a process that goes on: watch, or server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

from rolebundle.admin.indexes import complete
from rolebundle.embedding.onnx import cores
from rolebundle.errors import RolebundleError
from rolebundle.workspace import Workspace

_POLL_SECONDS = 30.0
"""How often it looks whether another process has ingested."""


class Indexing:
    """A thread that embeds what waits for the corpus's contextual model, on all cores but one.

    Of several processes one does it; see :func:`rolebundle.admin.indexes.complete`. What
    was embedded is stored, however it ends.

    Args:
        path: the corpus file, which may be missing.
        report_problem: called with a warning, unless it is the same as the last one.
    """

    def __init__(self, path: Path, report_problem: Callable[[str], None]) -> None:
        self._path, self._report_problem = path, report_problem
        self._is_due, self._is_stopped = Event(), False
        self._thread: Thread | None = None
        self._last_problem = ""

    def start(self) -> None:
        """Begin, or look again now whether something waits."""
        self._is_due.set()
        if self._thread is None:
            # It does not keep the process from ending.
            self._thread = Thread(target=self._work, name="indexing", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Embed nothing more. It ends after the batches that have begun."""
        self._is_stopped = True
        self._is_due.set()

    def _work(self) -> None:
        while not self._is_stopped:
            self._is_due.clear()
            problem = ""
            try:
                if self._path.exists():
                    with closing(Workspace(self._path)) as workspace:
                        parallel = max(1, cores() - 1)
                        report = complete(workspace, progress=self._check, parallel=parallel)
                    problem = report.problem if report else ""
            except _StoppedError:
                return
            except (RolebundleError, OSError) as error:
                problem = str(error)
            if problem and problem != self._last_problem:
                self._report_problem(f"warning: the contextual index is not complete: {problem}")
            self._last_problem = problem
            self._is_due.wait(_POLL_SECONDS)

    def _check(self, _step: str, _done: int, _total: int) -> None:
        if self._is_stopped:
            raise _StoppedError


class _StoppedError(Exception):
    """The process is ending."""
