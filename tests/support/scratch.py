"""Where tests write."""

import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
SCRATCH = _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2**30 else None
"""In memory if there is room, because most tests build corpus files."""
