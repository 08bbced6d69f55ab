"""Paths of files and folders as texts, as the corpus stores them."""

from __future__ import annotations

import os
from pathlib import Path


def is_below(location: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it."""
    return location == folder or location.startswith(folder.rstrip(os.sep) + os.sep)


def moved_path(location: str, old: str, new: str) -> str:
    """A path after ``old`` became ``new``; unchanged if it is not at or below ``old``."""
    if not is_below(location, old):
        return location
    return new.rstrip(os.sep) + location[len(old.rstrip(os.sep)) :]


def real_location(path: Path) -> str:
    """Where a path really is, so that a link above it does not hide it. It itself may be a link."""
    return str(Path(os.path.realpath(path.parent)) / path.name)


def is_there(path: str | Path) -> bool:
    """Whether a root can be read. A symbolic link in its place is not followed."""
    return os.path.lexists(path) and not os.path.islink(path)  # noqa: PTH114 - as lexists
