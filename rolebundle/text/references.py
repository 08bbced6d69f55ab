"""References to passages, and texts that are mostly lists of links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import groupby
from typing import NamedTuple

from rolebundle.lazy import lazy_pattern

MAX_SUGGESTIONS = 3
_LINES = lazy_pattern(r"^(?P<path>.+):(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?$", re.DOTALL)
_PASSAGES = lazy_pattern(r"^#(?P<document>.+):(?P<first>\d{1,9}):(?P<count>\d{1,9})$", re.DOTALL)
_MAX_COMPARED = 20_000
"""With more names of files, none is compared letter by letter: that would take seconds."""
_MAX_RANKED = 1_000
_MAX_GLOB_CHARACTERS = 1_000
"""A longer one takes a tenth of a second and a megabyte to compile."""
_MAX_CHARACTERS = 300
_MIN_LIKENESS = 0.6


class Lines(NamedTuple):
    """``path:start-end`` or ``path:line``: lines from 1, inclusive."""

    path: str
    start: int
    end: int


def may_be_stored(reference: str) -> bool:
    """Whether a stored name may be this: SQLite accepts no text with an unpaired surrogate."""
    return not any("\ud800" <= character <= "\udfff" for character in reference)


def parse_lines(reference: str) -> Lines | None:
    """The lines that a reference names; ``None`` if it names none."""
    match = _LINES.match(reference)
    if match is None or _PASSAGES.match(reference):
        return None
    return Lines(match["path"], int(match["start"]), int(match["end"] or match["start"]))


def parse_passages(reference: str) -> tuple[str, int, int] | None:
    """The document, first passage (from 1) and number that ``#document:first:number`` names."""
    match = _PASSAGES.match(reference)
    return (match["document"], int(match["first"]), int(match["count"])) if match else None


def named_document(reference: str) -> str:
    """The document id or path that a reference begins with; the whole reference if it is one."""
    if passages := parse_passages(reference):
        return passages[0]
    lines = parse_lines(reference)
    return lines.path if lines else reference


def is_glob(reference: str) -> bool:
    """Whether a reference has the wildcards of a glob, and is no longer than one may be."""
    return ("*" in reference or "?" in reference) and len(reference) <= _MAX_GLOB_CHARACTERS


def similar_names(name: str, known: Iterable[tuple[str, str]]) -> list[str]:
    """The ids of the documents that a wrong name may mean, the most likely first.

    Those whose path or id is the name in another case or ends with it; without any, those whose
    file has the same or a similar name, suffixes aside.

    Args:
        name: a document id or path that names nothing.
        known: (document id, path) of each document.
    """
    wanted = name.strip().replace("\\", "/").casefold()[-_MAX_CHARACTERS:].removeprefix("./")
    if not wanted.strip("/"):
        return []
    by_file: dict[str, list[tuple[str, str]]] = {}
    found: list[tuple[str, str]] = []
    for document_id, path in sorted(known):
        spellings = (document_id.casefold(), path.casefold())
        if any(f"/{spelling}".endswith(f"/{wanted.lstrip('/')}") for spelling in spellings):
            found.append((document_id, spellings[0]))
        by_file.setdefault(_stem(spellings[1]), []).append((document_id, spellings[0]))
    if not found:
        near = [_stem(wanted)]
        if near[0] not in by_file and len(by_file) <= _MAX_COMPARED:
            near = get_close_matches(near[0], sorted(by_file), MAX_SUGGESTIONS, _MIN_LIKENESS)
        found = [document for file in near for document in by_file.get(file, ())]
    best = sorted(found[:_MAX_RANKED], key=lambda match: -_likeness(wanted, match[1]))
    return list(dict.fromkeys(document_id for document_id, _ in best))


def _stem(path: str) -> str:
    """The name of a file without its suffix."""
    name = path.rstrip("/").rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _likeness(left: str, right: str) -> float:
    return SequenceMatcher(None, left, right[-_MAX_CHARACTERS:], autojunk=False).quick_ratio()


_MIN_ITEMS = 3
_LINK = r"(?:!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])|<?https?://[^\s>]+>?|`[^`]*<[^>]+>`_{1,2})"
_LINK_ITEM = lazy_pattern(rf"\s*(?:[-*+•]|\d+[.)])\s+{_LINK}(?:[\s,;|.·]*{_LINK})*[\s.,;]*")
_ITEM = lazy_pattern(r"\s*(?:[-*+•]|\d+[.)])\s+\S")
_DEFINITION = lazy_pattern(r" {0,3}\[(?!\^)[^\]]+\]:\s*\S+(?:\s+[\"'(].*)?|\.\. _[^:]+:\s+\S+")
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
