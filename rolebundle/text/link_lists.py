"""Lists of link targets, which say nothing to a reader: leave them out of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

_MIN_ITEMS = 3
_LINK = r"(?:!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])|<?https?://[^\s>]+>?|`[^`]*<[^>]+>`_{1,2})"
_LINK_ITEM = re.compile(rf"\s*(?:[-*+•]|\d+[.)])\s+{_LINK}(?:[\s,;|.·]*{_LINK})*[\s.,;]*")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+\S")
_DEFINITION = re.compile(r" {0,3}\[(?!\^)[^\]]+\]:\s*\S+(?:\s+[\"'(].*)?|\.\. _[^:]+:\s+\S+")
_SHARE = 0.9


def without_link_lists(content: str) -> tuple[str, int]:
    """A text without lists in which nearly every item is only a link, and definitions of links.

    Returns:
        The text, and how many lines were left out of it. Lines of fenced code stay.
    """
    lines = content.split("\n")
    kept: list[str] = []
    fence = ""
    for kind, group in groupby(lines, _kind):
        run = [*group]
        if kind == "fence":
            for line in run:
                mark = line.lstrip()[:3]
                fence = mark if not fence else "" if mark == fence else fence
        if fence or not (kind == "definition" or (kind == "item" and _is_link_list(run))):
            kept += run
    left_out = len(lines) - len(kept)
    return ("\n".join(kept) if left_out else content), left_out


def _kind(line: str) -> str:
    if line.lstrip().startswith(("```", "~~~")):
        return "fence"
    if _DEFINITION.fullmatch(line):
        return "definition"
    return "item" if _ITEM.match(line) else "text"


def _is_link_list(items: Sequence[str]) -> bool:
    links = sum(_LINK_ITEM.fullmatch(item) is not None for item in items)
    return len(items) >= _MIN_ITEMS and links >= _SHARE * len(items)
