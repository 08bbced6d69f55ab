"""References to passages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import groupby
from typing import NamedTuple

from rolebundle.lazy import lazy_pattern
from rolebundle.text.spellings import key_of

MAX_SUGGESTIONS = 3
_LINES = lazy_pattern(r"^(?P<path>.+):(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?$", re.DOTALL)
_PASSAGES = lazy_pattern(r"^#(?P<document>.+):(?P<first>\d{1,9}):(?P<count>\d{1,9})$", re.DOTALL)
PLACE = lazy_pattern(r"^a(\d{1,9})\.(\d{1,4})$")
"""``a3.2``: a place of an answer, as a server names it."""
_MAX_COMPARED = 20_000
"""With more names of files, none is compared letter by letter: that would take seconds."""
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

    Those whose path or id is the name in another case or ends with it; without any, those with a
    similar path, id or file name.

    Args:
        name: a document id or path that names nothing.
        known: (document id, path) of each document.
    """
    wanted = key_of(name.strip().replace("\\", "/"))[-_MAX_CHARACTERS:].removeprefix("./")
    if not wanted.strip("/"):
        return []
    names = {key_of(spelling): pair[0] for pair in sorted(known, reverse=True) for spelling in pair}
    ending = [spelling for spelling in names if f"/{spelling}".endswith(f"/{wanted.lstrip('/')}")]
    if ending:
        near = [names[spelling] for spelling in sorted(ending, key=len)]
    else:
        stems = {_stem(spelling): document_id for spelling, document_id in names.items()}
        files = {stem.rpartition("/")[2]: document_id for stem, document_id in stems.items()}
        stem = _stem(wanted)
        near = _most_alike(stem, stems) + _most_alike(stem.rpartition("/")[2], files)
    return list(dict.fromkeys(near))


def _stem(path: str) -> str:
    """A path without the suffix of its file."""
    stem, _, suffix = path.rpartition(".")
    return path if "/" in suffix or not stem else stem


def _most_alike(wanted: str, names: Mapping[str, str]) -> list[str]:
    spellings = names if len(names) <= _MAX_COMPARED else ()
    return [names[near] for near in get_close_matches(wanted, spellings, cutoff=_MIN_LIKENESS)]


_ASCIIDOC, _ORG = lazy_pattern(r"(={1,6})\s+(\S.*)"), lazy_pattern(r"(\*+)[ \t]+(\S.*)")
HEADING_LINES = {"adoc": _ASCIIDOC, "asciidoc": _ASCIIDOC, "org": _ORG}
"""Lines that are headings, by the suffix: group 1 is as long as the level, 2 the words."""

_MIN_LINKS = 3
_LINK = r"(?:!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])|<?https?://[^\s>]+>?|`[^`]*<[^>]+>`_{1,2})"
_LINK_LINE = lazy_pattern(
    rf"\s*(?:[-*+•]|\d+[.)])\s+{_LINK}(?:[\s,;|.·]*{_LINK})*[\s.,;]*"
    r"| {0,3}\[(?!\^)[^\]]+\]:\s*\S+(?:\s+[\"'(].*)?|\.\. _[^:]+:\s+\S+"
)
"""An item of a list that is only links, or the definition of a link."""


def without_link_lists(content: str) -> tuple[str, int]:
    """A text without three or more lines in a row that are only links.

    Returns:
        The text, and how many lines were left out of it.
    """
    lines = content.split("\n")
    kept: list[str] = []
    for is_link, group in groupby(lines, lambda line: _LINK_LINE.fullmatch(line) is not None):
        run = [*group]
        if not is_link or len(run) < _MIN_LINKS:
            kept += run
    return "\n".join(kept), len(lines) - len(kept)
