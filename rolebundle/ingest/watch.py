"""Keeps the corpus in step with its roots.

A change on disk only says that something changed. Each pass then compares all roots with the
corpus, as `rolebundle ingest` does, and reads what is not known to be the same. So a pass after a
kill, a lost event or a write of another process brings the corpus to the same state.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic

from watchfiles import watch
from watchfiles.main import FileChange

from rolebundle.contracts.ingest import IngestReport
from rolebundle.contracts.upkeep import WatchStatus
from rolebundle.errors import CorpusBusy, CorpusCorrupt, RolebundleError, WrongFile
from rolebundle.ingest.options import IngestOptions
from rolebundle.storage.file import heartbeat_path, try_lock

MAX_REMOVED = 0.2
"""If a larger share of a root's files disappears at once, a watch stops."""
POLL_SECONDS = 2.0
"""The shortest time between two passes of a watch that receives no events."""
_PASS_SECONDS = 300.0
"""A watch that receives events also looks at all files after so long: events may be lost."""
_TICK_MS = 500
_QUIET_MS = 200
"""Changes are gathered until none comes for so long, or for ``_GATHER_MS`` at most."""
_GATHER_MS = 1_500
_LONGEST_WAIT = 30.0
_POLL_SHARE = 10
"""A watch that polls rests ten times as long as a pass takes."""

_STATUS_CHARS = 200
"""The status is as long as this, so that one write replaces the former one."""

PrintLine = Callable[[str], None]
_Place = tuple[str, bool, tuple[int, ...]]
"""Of a path where it really is, whether it is a folder, and which one; of a file its state, too."""


@dataclass(slots=True)
class Watcher:
    """One watch.

    Attributes:
        path: the corpus file.
        print_line: called with each line for a person.
        stop: ends the watch.
        update: makes the corpus the same as the files.
        paths: the locations of its roots.
        generation: its number of writes.
        polls: look at all files again and again, for file systems that tell of no changes.
        settle_seconds: if too much disappears, how long no other change may come before the watch
            stops: a folder may be about to come back.
    """

    path: Path
    print_line: PrintLine
    stop: Event
    update: Callable[[IngestOptions], IngestReport]
    paths: Callable[[], Sequence[str]]
    generation: Callable[[], int]
    polls: bool = False
    settle_seconds: float = 5.0
    is_syncing: bool = False
    _places: dict[str, _Place] = field(default_factory=dict)
    _known_generation: int = -1
    _next_pass: float = 0.0
    _failures: int = 0
    _settling_until: float = 0.0
    _missing: frozenset[str] = frozenset()
    _problem: str | None = None
    _ingest: IngestOptions = field(init=False)
    _events: _Events = field(init=False)

    def __post_init__(self) -> None:
        # A contextual model embeds later.
        self._ingest = IngestOptions(wait=False, verified={}, max_removed=MAX_REMOVED)
        self._events = _Events(self.path, polls=self.polls)

    def run(self) -> None:
        """Watch until ``stop`` is set.

        The file beside the corpus in which it says its last problem is locked meanwhile.

        Raises:
            CorpusBusy: ``watch_running``: another process watches.
            UsageError: ``no_roots``, ``too_many_removed``.
            CorpusCorrupt, WrongFile: the corpus cannot be written any more.
        """
        with try_lock(heartbeat_path(self.path)) as is_only_one:
            if not is_only_one:
                problem = f"{self.path}: another process watches its roots already"
                step = "end that one first, or let it go on"
                raise CorpusBusy("watch_running", problem, step)
            self._write_problem("")
            self._run()

    def _run(self) -> None:
        try:
            self._check_roots()
            while not self.stop.is_set():
                if monotonic() >= self._next_pass:
                    self._pass()
                elif self._events.wait(self.stop):
                    self._note_change()
                self._check_roots()
        except RolebundleError as error:
            self._write_problem(error.code)
            raise
        except KeyboardInterrupt:
            # A signal during a pass. What is complete is stored.
            if not self.stop.is_set():
                raise
        finally:
            self._events.close()

    def _write_problem(self, problem: str) -> None:
        """Write the code of the problem that stops the watch, or an empty text."""
        if problem == self._problem:
            return
        self._problem = problem
        # In place, because the file is locked. One that cannot be written stops nothing.
        text = WatchStatus(running=True, problem=problem).model_dump_json()
        with suppress(OSError), heartbeat_path(self.path).open("r+", encoding="utf-8") as file:
            file.write(text.ljust(_STATUS_CHARS))
            file.truncate()

    def _check_roots(self) -> None:
        """See whether paths came, went or changed, or another process has written."""
        places = {location: _place(location) for location in self.paths()}
        if places != self._places:
            self._places = places
            self._events.watch(real for real, is_folder, _ in places.values() if is_folder)
            self._note_change()
        if self._events.problem:
            self.print_line(f"{self._events.problem}; looking at all files instead")
            self._events.problem = ""
        if self._failures == 0 and self.generation() != self._known_generation:
            self._note_change()

    def _note_change(self) -> None:
        if self._settling_until:
            self._settling_until = monotonic() + self.settle_seconds
        # Not at once after a failure, which may last.
        self._next_pass = min(self._next_pass, monotonic() + (1.0 if self._failures else 0.0))

    def _pass(self) -> None:
        started = monotonic()
        self._known_generation = self.generation()
        self.is_syncing = True
        try:
            report = self.update(self._ingest)
        except RolebundleError as error:
            self._fail(error)
            return
        finally:
            self.is_syncing = False
        self._failures, self._settling_until = 0, 0.0
        seconds = monotonic() - started
        self._print_report(report, seconds)
        # If anything was stored, another pass finds out whether files or corpus changed meanwhile.
        self._next_pass = monotonic()
        if not (any(report.changes) or report.embedded):
            self._known_generation = self.generation()
            polled = max(POLL_SECONDS, _POLL_SHARE * seconds)
            self._next_pass += polled if self._events.polls else _PASS_SECONDS
            self._write_problem("root_missing" if self._missing else "")

    def _fail(self, error: RolebundleError) -> None:
        """Decide how a pass that failed continues.

        Raises:
            RolebundleError: it does not.
        """
        now = monotonic()
        if error.code == "too_many_removed":
            if not self._settling_until:
                self._settling_until = now + self.settle_seconds
            elif now >= self._settling_until:
                raise error
            self._next_pass = self._settling_until
            self._write_problem(error.code)
            return
        if error.code == "no_roots" or isinstance(error, CorpusCorrupt | WrongFile):
            raise error
        self._failures += 1
        self._next_pass = now + min(_LONGEST_WAIT, 0.25 * 2**self._failures)
        if error.code != self._problem:
            self.print_line(f"{error}\n  trying again")
        self._write_problem(error.code)

    def _print_report(self, report: IngestReport, seconds: float) -> None:
        if any(report.changes):
            self.print_line(
                f"{report.added} added, {report.updated} updated, {report.removed} removed in "
                f"{seconds:.1f} s; {report.documents} documents"
            )
        for skipped in report.refused():
            self.print_line(skipped.message)
        missing = frozenset(
            skipped.path for skipped in report.skipped if skipped.code == "root_missing"
        )
        for location in sorted(missing - self._missing):
            self.print_line(f"{location}: is missing or empty; its documents stay")
        for location in sorted(self._missing - missing):
            self.print_line(f"{location}: is back")
        self._missing = missing


def _place(location: str) -> _Place:
    try:
        status = os.stat(location)  # noqa: PTH116 - as fast as possible, twice a second
    except OSError:
        return location, False, ()
    is_folder = stat.S_ISDIR(status.st_mode)
    identity = (status.st_dev, status.st_ino)
    changed = () if is_folder else (status.st_size, status.st_mtime_ns)
    return os.path.realpath(location), is_folder, identity + changed


class _Events:
    """Tells that something below some folders changed.

    Args:
        corpus: the corpus file; changes of it and of what lies beside it are no news.
        polls: never tell, because the watch looks for itself.
    """

    def __init__(self, corpus: Path, *, polls: bool) -> None:
        self.polls = polls
        self.problem = ""
        own = os.path.realpath(corpus)
        self._own = (own, str(heartbeat_path(Path(own))))
        self._changes: Generator[set[FileChange], None, None] | None = None
        self._closing = Event()

    def watch(self, folders: Iterable[str]) -> None:
        """Watch these folders instead of the former ones. From now on, no change is missed."""
        self.close()
        chosen = sorted(set(folders))
        if self.polls or not chosen:
            return
        self._closing = Event()
        try:
            self._changes = watch(
                *chosen,
                watch_filter=None,
                debounce=_GATHER_MS,
                step=_QUIET_MS,
                stop_event=self._closing,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            )
            # The library begins to watch when it is asked first.
            next(self._changes, None)
        except Exception as error:
            self._give_up(error)

    def wait(self, stop: Event) -> bool:
        """Whether something changed, after a moment at most."""
        if self._changes is None:
            stop.wait(_TICK_MS / 1000)
            return False
        try:
            changes = next(self._changes, None)
        except Exception as error:
            self._give_up(error)
            return True
        if changes is None:
            # A folder vanished; the next look at the roots begins again.
            self._changes = None
            return True
        git = f"{os.sep}.git{os.sep}"
        return any(not path.startswith(self._own) and git not in path for _, path in changes)

    def _give_up(self, error: Exception) -> None:
        # Too many folders for the system's limit, or a file system without events.
        self.close()
        self.polls = True
        self.problem = f"the system does not tell of changes ({error})"

    def close(self) -> None:
        """End the watch of all folders."""
        self._closing.set()
        changes, self._changes = self._changes, None
        if changes is not None:
            with suppress(Exception):
                changes.close()
