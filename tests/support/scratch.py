"""Where tests write."""

import shutil
from pathlib import Path


def _folder_in_memory() -> Path | None:
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and shutil.disk_usage(folder).free > 2**30 else None


SCRATCH = _folder_in_memory()
"""In memory if there is room, because most tests build corpus files."""
