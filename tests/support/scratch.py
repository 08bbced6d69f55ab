"""Where tests write."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


def write_in_memory() -> None:
    """Put all temporary folders of this process, and of those that it starts, into memory if there is room.

    There, the syncs of SQLite and the copies of a database cost nothing.
    """
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2**30:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def make_pipe(path: Path) -> None:
    """Create a named pipe, or skip the test."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(path)
