"""File paths in messages and in references."""

from __future__ import annotations

import os
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


def locations(path: str, folder: str | None) -> list[str]:
    """The absolute paths that a path may mean, as the corpus stores them.

    Args:
        path: an absolute or relative path.
        folder: where a relative path begins, and whose file system may be asked where a symbolic
            link leads. ``None``: a relative path means none, and the file system is not asked.
    """
    if "\0" in path:
        return []
    # Not `pathlib`: it raises errors for users without a home, and for paths that are too long.
    if folder is None:
        return [os.path.normpath(path)] if os.path.isabs(path) else []  # noqa: PTH117
    location = os.path.normpath(os.path.join(folder, os.path.expanduser(path)))  # noqa: PTH111, PTH118
    return list(dict.fromkeys((location, os.path.realpath(location))))
