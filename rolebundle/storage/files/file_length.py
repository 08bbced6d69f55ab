"""Whether an SQLite file was cut off: pages that it must have stand neither in it nor in its log.

SQLite notices this only without a log, or when it reads one of these pages. A writer would first
fold the log into the file. The formats: https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import unpack
from typing import BinaryIO

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_ATTEMPTS = 5


def is_cut_off(path: Path) -> bool:
    """Whether pages of the file are missing. False if that cannot be known.

    Raises:
        OSError: it cannot be read.
    """
    return all(_misses_pages(path) for _ in range(_ATTEMPTS))


def _misses_pages(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or header[:16] != _MAGIC:
            return False
        page_size, pages, changed, counted = (
            int.from_bytes(header[start:end], "big")
            for start, end in ((16, 18), (28, 32), (24, 28), (92, 96))
        )
        page_size = 65536 if page_size == 1 else page_size
        # The number of pages counts only if the last writer also wrote it.
        if changed != counted or os.fstat(file.fileno()).st_size >= pages * page_size:
            return False
        if _has_content(Path(f"{path}-journal")):
            return False
        logged = _pages_of_log(Path(f"{path}-wal"), page_size)
        complete_pages = os.fstat(file.fileno()).st_size // page_size
        file.seek(0)
        # If somebody is folding the log into the file, the next attempt sees another state.
        is_same = file.read(_HEADER_BYTES) == header
        return is_same and not logged.issuperset(range(complete_pages + 1, pages + 1))


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _pages_of_log(path: Path, page_size: int) -> set[int]:
    """The numbers of the pages that the log has of committed transactions."""
    try:
        with path.open("rb") as log:
            return _committed_pages(log, page_size)
    except FileNotFoundError:
        return set()


def _committed_pages(log: BinaryIO, page_size: int) -> set[int]:
    header = log.read(_LOG_HEADER_BYTES)
    committed: set[int] = set()
    pending: set[int] = set()
    frame_size = _FRAME_HEADER_BYTES + page_size
    size = os.fstat(log.fileno()).st_size
    for start in range(_LOG_HEADER_BYTES, size - frame_size + 1, frame_size):
        log.seek(start)
        number, total, salt = unpack(">II8s", log.read(16))
        if salt != header[16:24]:
            break  # What follows is of an earlier use of the log.
        pending.add(number)
        if total:  # Only the last frame of a transaction says how many pages the file has.
            committed |= pending
            pending = set()
    return committed
