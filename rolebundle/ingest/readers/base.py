"""The protocol of a reader, and what readers of plain text share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.text.decoding import decode, split_lines

MAX_TITLE_CHARS = 500
"""Longer headings keep their markup: the patterns that remove it do not run in linear time."""


Read = Callable[[bytes, str, str], Iterable[ParsedDocument | DocumentError]]
"""Reads the bytes of a file at a path; the last argument is the separator of ``separated``."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns the bytes of one file into documents.

    Attributes:
        name: the name that a manifest uses for the reader.
        version: must be raised if the output changes, so that unchanged files are read again.
        read: parses the content of the file at a path (relative, forward slashes). If a file holds
            several documents, a *yielded* error concerns one of them and the others are still read.
            A *raised* ``DocumentError`` concerns the whole file; its code is the reason
            (``unreadable_pdf``, …).
    """

    name: str
    version: int
    read: Read


def open_text(data: bytes, path: str) -> tuple[list[str], tuple[str, ...]]:
    """The lines of the file at ``path``, and notes on what was changed to decode them.

    Raises:
        DocumentError: ``undecodable``.
    """
    text, notes = decode(data, path)
    return split_lines(text), notes


def damaged(
    code: str,
    path: str,
    error: object,
    step: str = "open it in its program and save it again, or exclude it",
) -> DocumentError:
    """The error for a file that its parser refuses. What the parser says is at its end.

    Raises:
        MemoryError: the parser had not enough memory, which says nothing about the file.
    """
    if isinstance(error, MemoryError):
        raise error
    problem = "it is empty, damaged, or another kind of file than its name says"
    return DocumentError(code, f"{path}: {problem}", with_detail(step, error))


def is_blank(line: str) -> bool:
    """Whether ``line`` is empty or white space only."""
    return not line or line.isspace()


def unique_key(name: str, used: set[str]) -> str:
    """The name, with a number if another document of the file has it. It is added to ``used``."""
    key, number = name, 1
    while key in used:
        number += 1
        key = f"{name}-{number}"
    used.add(key)
    return key


def block_of(
    lines: Sequence[str],
    kind: BlockKind,
    start: int,
    end: int,
    *,
    level: int = 0,
    heading: str = "",
) -> Block:
    """The block of ``lines[start:end]``, without blank lines at its end."""
    while end > start + 1 and is_blank(lines[end - 1]):
        end -= 1
    return Block(kind, "\n".join(lines[start:end]), start + 1, end, level, heading)


def runs(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The index ranges of consecutive lines that are not blank."""
    for is_empty, group in groupby(range(start, end), lambda i: is_blank(lines[i])):
        if not is_empty:
            indexes = list(group)
            yield indexes[0], indexes[-1] + 1


# -- titles --
#
# Titles that programs store in documents, and which of them a person would recognize.


_MAX_CHARS = 300
_SUFFIXES = (
    "do[ct][xm]?|od[tps]|rtf|pdf|tex|dvi|p[po][ts]x?|xls[xm]?|html?|md|txt|indd|pages|key|tmp"
)
# The name of a program, of its template, of a file, or of what it calls new documents.
_OF_PROGRAM = re.compile(
    r"(?:microsoft )?(?:word|powerpoint|excel|office)(?: document)? [-–—] .*"
    r"|(?:untitled|unbenannt|sans titre|unknown|unspecified|anonymous|none|titl?el?|layout)\W*\d*"
    r"|(?:new |neues )?(?:microsoft )?(?:word |office |excel |powerpoint |google )*"
    r"(?:document|dokument|presentation|präsentation|présentation|book|workbook|mappe|sheet"
    r"|spreadsheet|slide|folie|template)(?: powerpoint| title| name)?\W*\d*\W*"
    r"|powerpoint-präsentation"
    rf"|.*\.(?:{_SUFFIXES})"
    r"|\S+://.*",
    re.IGNORECASE | re.DOTALL,
)
_LETTER = re.compile(r"[^\W\d_]")


def is_own_title(title: str) -> bool:
    """Whether a title that a program stored is one that a person would recognize.

    Titles of programs and templates, such as "PowerPoint Presentation", and names of files are not.
    """
    bare = title.strip("()[]<>\"' ")
    return (
        len(title) <= _MAX_CHARS
        and len(_LETTER.findall(bare)) >= 2
        and not _OF_PROGRAM.fullmatch(bare)
    )
