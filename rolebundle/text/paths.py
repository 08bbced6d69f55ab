"""Paths as texts, and the globs that match them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from rolebundle.text.spellings import composed


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


_TOKEN = re.compile(r"(?:(?<=/)|^)(?:\*\*+/)+|\*\*+|\*|\?|[^*?]+")
_NAME = "[^/]*"
_WILDCARDS = {"*": _NAME, "?": "[^/]"}
_FOLDERS = "(?:[^/]+/)*"
_ANYTHING = ".*"


def path_within(location: str, folder: str) -> str:
    """The path of a location within a folder, with slashes on every system."""
    path = location[len(folder.rstrip(os.sep)) + 1 :]
    return path if os.sep == "/" else path.replace(os.sep, "/")


def matches(glob: str, path: str) -> bool:
    """Whether a glob matches a path that is relative to the manifest's folder."""
    return _cached(composed(glob)).match(composed(path)) is not None


def compile_glob(glob: str) -> re.Pattern[str]:
    """A glob as a regular expression that matches whole paths."""
    # Blocks are separated by the stars that match across folders.
    blocks = _split(map(_piece, _TOKEN.findall(glob)), _FOLDERS, _ANYTHING)
    parts = [
        (star, _joined(_split(inside, _NAME), is_end=number == len(blocks)))
        for number, (star, inside) in enumerate(blocks, start=1)
    ]
    return re.compile(_joined(parts, is_end=True) + r"\Z", re.DOTALL)


_cached = lru_cache(maxsize=1024)(compile_glob)


def _piece(token: str) -> str:
    if token.startswith("**"):
        return _FOLDERS if token.endswith("/") else _ANYTHING
    return _WILDCARDS.get(token) or re.escape(token)


def _split(pieces: Iterable[str], *stars: str) -> list[tuple[str, list[str]]]:
    """The pieces at the beginning, and after each of some stars; each time with the star before."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for piece in pieces:
        if piece in stars:
            parts.append((piece, []))
        else:
            parts[-1][1].append(piece)
    return parts


def _joined(parts: Sequence[tuple[str, Iterable[str]]], *, is_end: bool) -> str:
    """The parts as one expression. A star matches as little as possible, except the last one."""
    text = ""
    for number, (star, pieces) in enumerate(parts, start=1):
        after = "".join(pieces)
        is_last = not star or (is_end and number == len(parts))
        text += star + after if is_last else f"(?>{star}?{after})"
    return text
