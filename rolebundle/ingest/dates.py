"""The dates of files that declare none: that in the name, else when it was committed or changed.

A date in the name of a file ("2026-03-01 planning.md") is the date of what the file is about. In a
git checkout the last commit that touched a file tells when it changed: the time of the file itself
is then when it was checked out. Elsewhere it is the time of the file.

The checkout may be anybody's, so git runs without what its configuration could make it run: hooks,
monitors, filters, external differences, signature programs, fetches of missing objects.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Timer
from time import monotonic

from rolebundle.contracts.documents import iso_utc
from rolebundle.ingest.walk import FileEntry

# 2026-03-01, 2026_03_01, 20260301; at the beginning or after a separator.
_DATE = re.compile(
    r"(?:^|[^\d])((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)"
)
_MAX_SECONDS = 10.0
_BLOCK_BYTES = 1 << 16
# Archives and reproducible builds write 1970-01-01 or 1980-01-01 as the time of a file.
_FIRST_DAY = datetime(1980, 1, 3, tzinfo=UTC).timestamp()
_OPTIONS = (
    "--no-pager --no-optional-locks --no-replace-objects --literal-pathspecs "
    "-c core.fsmonitor=false -c core.hooksPath=/dev/null -c log.showSignature=false "
    "-c log.showRoot=true -c log.follow=false -c safe.bareRepository=explicit "
    "-c protocol.allow=never"
).split()
_LOG = (
    "log -z --format=%x01%ct --name-only --relative --no-renames --no-show-signature --no-ext-diff "
    "--no-textconv --no-color --no-notes --no-decorate --no-mailmap -- ."
).split()
_TREE = "ls-tree -r -z --name-only HEAD .".split()
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def last_commits(locations: Iterable[str], seconds: float = _MAX_SECONDS) -> dict[str, int | None]:
    """The time of the last commit of each file, in seconds since 1970.

    One `git log` for each checkout that has some of the files, and none without git.

    Args:
        locations: absolute paths of files.
        seconds: how long all of it may take.

    Returns:
        The times by location; ``None`` for a committed file whose commit was not found in time.
        Files that were never committed are missing.
    """
    program = shutil.which("git")
    if program is None or not Path(program).is_absolute():
        return {}
    deadline = monotonic() + seconds
    times: dict[str, int | None] = {}
    for files in _by_checkout(locations):
        # Paths in the output are relative to this folder.
        folder = os.path.commonpath([_folder_of(location) for location in files])
        committed = _output(program, folder, _TREE, deadline)
        wanted = {_location(folder, name) for name in committed if name}.intersection(files)
        if wanted:
            times |= _log_times(program, folder, wanted, deadline)
    return times


def inferred_at(file: FileEntry, commits: Mapping[str, int | None]) -> str | None:
    """The date of a file that declares none, ISO 8601 in UTC; ``None`` if it is not known.

    Args:
        file: the file.
        commits: what :func:`last_commits` found.
    """
    if named := date_in_name(file.path):
        return iso_utc(datetime(named.year, named.month, named.day, tzinfo=UTC))
    seconds = commits.get(file.location, file.modified_ns // 1_000_000_000)
    if seconds is None or seconds < _FIRST_DAY:
        return None
    try:
        return iso_utc(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def date_in_name(path: str) -> date | None:
    """The date in the name of a file; ``None`` without one, or with several different ones."""
    name = path.rpartition("/")[2]
    dates = set()
    for year, _, month, day in _DATE.findall(name):
        try:
            dates.add(date(int(year), int(month), int(day)))
        except ValueError:
            continue
    return dates.pop() if len(dates) == 1 else None


def _by_checkout(locations: Iterable[str]) -> Iterable[list[str]]:
    """The files that lie in some checkout: at or below a folder with a ``.git``; by checkout."""
    checkouts: dict[str, str] = {}
    files: dict[str, list[str]] = defaultdict(list)
    for location in locations:
        folder = _folder_of(location)
        if folder not in checkouts:
            above = map(str, (Path(folder), *Path(folder).parents))
            tops = (path for path in above if os.path.lexists(f"{path}{os.sep}.git"))
            checkouts[folder] = next(tops, "")
        if checkouts[folder]:
            files[checkouts[folder]].append(location)
    return files.values()


def _folder_of(location: str) -> str:
    return location.rpartition(os.sep)[0] or os.sep


def _location(folder: str, name: bytes) -> str:
    """The absolute path of a file, by its path in git's output."""
    return f"{folder.rstrip(os.sep)}{os.sep}{os.fsdecode(name).replace('/', os.sep)}"


def _log_times(
    program: str, folder: str, wanted: set[str], deadline: float
) -> dict[str, int | None]:
    times: dict[str, int | None] = {}
    missing = set(wanted)
    time = 0
    for name in _output(program, folder, _LOG, deadline):
        if name is None:
            return {**dict.fromkeys(missing), **times}
        if name.startswith(b"\x01"):
            time = int(name[1:]) if name[1:].isdigit() else 0
            continue
        # The first path of a commit is on a line of its own.
        location = _location(folder, name.removeprefix(b"\n"))
        if location in missing:
            missing.remove(location)
            times[location] = time
            if not missing:
                break
    return times


def _output(
    program: str, folder: str, arguments: list[str], deadline: float
) -> Iterator[bytes | None]:
    """The parts of git's output, which NUL separates; a last ``None`` if it did not end well."""
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    try:
        process = subprocess.Popen(
            [program, *_OPTIONS, "-C", folder, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, **_ENVIRONMENT},
        )
    except OSError:
        yield None
        return
    timer = Timer(max(0.0, deadline - monotonic()), process.kill)
    timer.daemon = True
    timer.start()
    try:
        assert process.stdout is not None
        unfinished = b""
        while block := os.read(process.stdout.fileno(), _BLOCK_BYTES):
            *names, unfinished = (unfinished + block).split(b"\0")
            yield from filter(None, names)
        if process.wait() != 0:
            yield None
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
