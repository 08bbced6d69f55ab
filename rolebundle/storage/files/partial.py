"""Files that get their name when they are complete, and the names of those that never were.

A process writes to ``NAME.<its id>-<random>.partial`` and renames this file at the end. If the
process is killed, the partial file stays until the next run that writes ``NAME`` or opens the
corpus beside it for writing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

COMPANIONS = ("-journal", "-wal", "-shm")
"""What SQLite puts beside a file."""
OWNER_ONLY = 0o600

_SUFFIX = re.compile(
    r"(?:\.schema-\d+\.bak|\.audit)?\.(?:(\d{1,10})-)?[0-9a-f]{32}\.partial(?:-journal|-wal|-shm)?"
)


@contextmanager
def partial_file(target: Path) -> Iterator[Path]:
    """An empty file beside ``target`` that only its owner can read, deleted after the block.

    Partial files of ``target`` that a killed process left are deleted first.

    Raises:
        OSError: it cannot be created.
    """
    remove_stale_partials(target)
    partial = target.with_name(f"{target.name}.{os.getpid()}-{uuid4().hex}.partial")
    try:
        # SQLite gives the file's permissions also to the log beside it.
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
        yield partial
    finally:
        for suffix in ("", *COMPANIONS):
            with suppress(OSError):
                Path(f"{partial}{suffix}").unlink(missing_ok=True)


def remove_stale_partials(target: Path) -> None:
    """Delete the files that :func:`stale_partials` lists."""
    for leftover in stale_partials(target):
        with suppress(OSError):
            leftover.unlink()


def stale_partials(target: Path) -> list[Path]:
    """The partial files whose name begins like ``target`` and whose process has ended."""
    return [file for file, match in files_beside(target, _SUFFIX) if not is_running(match[1])]


def partials(target: Path) -> list[Path]:
    """The partial files whose name begins like ``target``, whoever writes them."""
    return [file for file, _ in files_beside(target, _SUFFIX)]


def files_beside(path: Path, suffix: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    """The files named like ``path`` with a suffix of this form, sorted, each with its match."""
    try:
        beside = path.absolute().parent.iterdir()
        # Sorted last, because the folder may have many other files.
        files = sorted(file for file in beside if file.name.startswith(path.name))
    except OSError:
        return []
    matches = ((file, suffix.fullmatch(file.name, len(path.name))) for file in files)
    return [(file, match) for file, match in matches if match]


def is_running(process: str | int | None) -> bool:
    """Whether a process with this id runs. False on Windows, where that is not known."""
    # On Windows a file that is in use cannot be deleted, and signal 0 ends the process.
    if process is None or sys.platform == "win32":
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def rename_if_free(partial: Path, path: Path) -> bool:
    """Give a complete file its name. False if something already has this name."""
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    except OSError:
        # Some file systems have no hard links. Then another process may still come in between.
        if os.path.lexists(path):
            return False
        partial.replace(path)
    sync_folder(path.parent)
    return True


def sync_file(path: Path) -> None:
    """Wait until the file's content is on the disk.

    Raises:
        OSError: it could not be written.
    """
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    with suppress(OSError):  # Not every system opens a folder.
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
