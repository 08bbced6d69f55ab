"""File paths in messages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def conceal_paths(text: str, paths: Iterable[Path]) -> str:
    """Replace each of these paths in a text by its last component.

    An agent may learn what a file is called, but not where it lies on this machine.

    Args:
        text: for example the message of an error.
        paths: replaced as written, as absolute paths, and with symbolic links resolved.
    """
    for path in paths:
        for spelling in {str(path.resolve()), str(path.absolute()), str(path)}:
            if path.name and spelling != path.name:
                text = text.replace(spelling, path.name)
    return text
