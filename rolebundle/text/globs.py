"""A manifest's globs: ``*`` and ``?`` stay inside a folder's or file's name, ``**`` spans folders.

The first place where what follows a star can stand is as good as any later one, because the next
star takes up the rest. So every star but the last commits to it (an atomic group), and no glob
however written can make matching run away.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"(?:(?<=/)|^)(?:\*\*+/)+|\*\*+|\*|\?|[^*?]+")
_NAME = "[^/]*"
_FOLDERS = "(?:[^/]+/)*"
_ANYTHING = ".*"


def matches(glob: str, path: str) -> bool:
    """Whether a glob matches a path relative to the manifest's folder."""
    return _kept(glob).match(path) is not None


def compiled(glob: str) -> re.Pattern[str]:
    """A glob as a regular expression for whole paths."""
    pieces = [_piece(token) for token in _TOKEN.findall(glob)]
    # Blocks between the stars that cross folders; a block's own stars do not.
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for piece in pieces:
        if piece in (_FOLDERS, _ANYTHING):
            blocks.append((piece, []))
        else:
            blocks[-1][1].append(piece)
    last = len(blocks) - 1
    parts = []
    for number, (star, inside) in enumerate(blocks):
        lazy = f"{star}?" if star and number < last else star
        body = lazy + _block(inside, final=number == last)
        parts.append(body if number == last else f"(?>{body})")
    return re.compile("".join(parts) + r"\Z", re.DOTALL)


_kept = lru_cache(maxsize=1024)(compiled)


def _piece(token: str) -> str:
    if token == "*":
        return _NAME
    if token == "?":
        return "[^/]"
    if token.startswith("**"):
        return _FOLDERS if token.endswith("/") else _ANYTHING
    return re.escape(token)


def _block(pieces: list[str], *, final: bool) -> str:
    groups: list[list[str]] = [[]]
    for piece in pieces:
        if piece == _NAME:
            groups.append([])
        else:
            groups[-1].append(piece)
    first, *starred = ("".join(group) for group in groups)
    text = first
    for number, group in enumerate(starred, start=1):
        if final and number == len(starred):
            text += f"{_NAME}{group}"
        else:
            text += f"(?>{_NAME}?{group})"
    return text
