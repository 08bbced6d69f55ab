"""What is read: the protocol of a reader, the formats with one row for each, and what is not read.

A module of this folder defines ``READERS``, one or several by their names. The table is separate
from the readers, so that a lookup imports only the reader that is needed, with its parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from html import unescape
from importlib import import_module
from posixpath import basename
from typing import cast

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.resources import data_file, inverted
from rolebundle.text.decoding import decode, looks_binary, split_lines

_TABLES = data_file(__file__, "formats.toml")
MAX_TITLE_CHARS = 500
"""Longer headings keep their markup: the patterns that remove it do not run in linear time."""


Read = Callable[[bytes, str, str], Iterable[ParsedDocument | DocumentError]]
"""Parses the content of a file at a path (relative, forward slashes) into documents.

The last argument is the separator of ``separated``. If a file holds several documents, a *yielded*
error concerns one of them and the others are still read. A *raised* ``DocumentError`` concerns the
whole file; its code is the reason (``unreadable_pdf``, …).
"""
Reader = tuple[int, Read]
"""The version of a reader, and what it reads with. The version must be raised if the output
changes, so that unchanged files are read again."""


def open_text(data: bytes, path: str) -> tuple[list[str], tuple[str, ...]]:
    """The lines of the file at ``path``, and notes on what was changed to decode them.

    Letters and signs are in place of their escapes; there are as many lines as before.

    Raises:
        DocumentError: ``undecodable``.
    """
    text, notes = decode(data, path)
    pattern = _ESCAPES_OF.get(f".{_suffix_of(path)}") if "\\u" in text or "&" in text else None
    return split_lines(pattern.sub(_character, text) if pattern else text), notes


_CHARACTER = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
_ENTITY = r"&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
# What stands for a character in a format, and what is left as it is.
_ESCAPES = {
    ".json .properties .toml .yaml .yml": re.compile(rf"\\\\|(?P<character>{_CHARACTER})"),
    ".xml .md .markdown .mdx": re.compile(
        r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1|^(?: {4}|\t)[^\n]*|(`+)[^`\n]+\2|<!\[CDATA\[.*?\]\]>"
        rf"|(?P<character>{_ENTITY})",
        re.DOTALL | re.MULTILINE,
    ),
}
_ESCAPES_OF = {suffix: p for suffixes, p in _ESCAPES.items() for suffix in suffixes.split()}


def _character(match: re.Match[str]) -> str:
    escape = match["character"] or ""
    shown = json.loads(f'"{escape}"') if escape.startswith("\\") else unescape(escape)
    is_shown = not shown.isascii() and (shown.isprintable() or shown == "\xa0")
    return shown if is_shown else match[0]


@contextmanager
def parser_errors(code: str, path: str) -> Iterator[None]:
    """A block that reads a file with a parser, which raises nearly any error on a broken one.

    Raises:
        DocumentError: the parser refuses the file. What the parser says is at its end.
        MemoryError: the parser had not enough memory, which says nothing about the file.
    """
    try:
        yield
    except (DocumentError, MemoryError):
        raise
    except Exception as error:
        problem = "it is empty, damaged, or another kind of file than its name says"
        step = with_detail("open it in its program and save it again, or exclude it", error)
        raise DocumentError(code, f"{path}: {problem}", step) from error


def encrypted(name: str, path: str) -> DocumentError:
    """The error of a reader for a document that requires a password or a licence."""
    problem = f"{path}: it is encrypted and requires a password"
    step = "save a copy without a password, or exclude it"
    return DocumentError(f"encrypted_{name}", problem, step)


def unique_key(name: str, used: set[str]) -> str:
    """The name, with a number if another document of the file has it. It is added to ``used``."""
    key, number = name, 1
    while key in used:
        number += 1
        key = f"{name}-{number}"
    used.add(key)
    return key


# -- titles --
#
# Titles that programs store in documents, and which of them a person would recognize.


_MAX_CHARS = 300
# The name of a program, of its template, of a file, or of what it calls new documents.
_OF_PROGRAM = re.compile("|".join(_TABLES["titles"]), re.IGNORECASE | re.DOTALL)
_LETTER = re.compile(r"[^\W\d_]")


def own_title(title: str) -> str:
    """A title that a program stored, if it is one that a person would recognize; else empty.

    Titles of programs and templates, such as "PowerPoint Presentation", and names of files are not.
    """
    bare = title.strip("()[]<>\"' ")
    has_words = len(title) <= _MAX_CHARS and len(_LETTER.findall(bare)) >= 2
    return title if has_words and not _OF_PROGRAM.fullmatch(bare) else ""


# -- formats --


FORMATS: Mapping[str, str] = _TABLES["formats"]
"""Each reader with the suffixes of its files."""
HEAVY_FORMATS = frozenset("archive docx epub msg opendocument pdf pptx rtf xlsx".split())
"""Formats whose files are no text, or not text alone. A small one may take long, because it can
expand."""
KINDS: Mapping[str, str] = _TABLES["kinds"]
"""The kinds of files that are not read, with their suffixes."""


NAMES = tuple(sorted(FORMATS))
"""The names of the readers that a manifest may use."""
_BY_SUFFIX, _BY_FILE_NAME = inverted(FORMATS), inverted(_TABLES["names"])
_KIND_BY_SUFFIX = inverted(KINDS)
# Manual pages (`ls.1`) and logs (`app.log.1`)
_NUMBERED = re.compile(r"[1-9]").fullmatch
# Headers that no other text begins with, in any order.
_MAIL = re.compile(
    rb"(?=[!-9;-~]{1,80}:|From [^\n]{1,300}\d\d:\d\d)"
    rb"(?=(?:[^\n]+\n){0,200}?From:)(?=(?:[^\n]+\n){0,200}?(?:Message-I[dD]|MIME-Version|Received):)"
)


def may_be_mail(path: str) -> bool:
    """Whether a file has no suffix that says what it is.

    Thunderbird's mailboxes are such files (``Inbox``), and the messages of a Maildir
    (``1700000000.M1P2.host:2,S``).
    """
    name = basename(path)
    return ("." not in name or ":2," in name) and reader_name_for(path) is None


def reader_name_for(path: str) -> str | None:
    """The name of the reader for ``path``; None if its suffix is unknown."""
    # Suffixes as in pathlib, but without pathlib, which is slow: this runs for every file.
    file_name = basename(path).lower()
    stem, dot, last = file_name.lstrip(".").rpartition(".")
    if not dot or not last:
        return _BY_FILE_NAME.get(file_name)
    _, inner, above = stem.rpartition(".")
    double = f".{above}.{last}" if inner else ""
    known = _BY_SUFFIX.get(double) or _BY_SUFFIX.get(f".{last}")
    return known or ("text" if _NUMBERED(last) else None)


def reader_name_of(path: str, data: bytes) -> str:
    """The name of the reader of a file, by its suffix and content."""
    if may_be_mail(path) and _MAIL.match(data):
        return "mbox" if data.startswith(b"From ") else "eml"
    return reader_name_for(path) or "text"


@cache
def reader_named(name: str) -> Reader:
    """The reader with one of ``NAMES``."""
    module = _TABLES["modules"].get(name, name)
    return cast(Reader, import_module(f"{__name__}.{module}").READERS[name])


def read_file(
    data: bytes, path: str, name: str = "", separator: str = ""
) -> Iterable[ParsedDocument | DocumentError]:
    """The documents of a file.

    Args:
        data: its content.
        path: its path, or the names of the file and of what is attached to it.
        name: the name of its reader; empty if its suffix and content tell it.
        separator: the separator of ``separated``.

    Raises:
        DocumentError: ``unsupported`` or ``binary``: it is no text for people; or of the reader.
    """
    name = name or reader_name_of(path, data)
    if name not in HEAVY_FORMATS and (looks_binary(data) or _suffix_of(path) in _MARKUP_ONLY):
        if kind := kind_of(path, data):
            raise DocumentError("unsupported", f"{path}: {kind}")
        raise DocumentError("binary", f"{path}: binary data, not text", "exclude the file")
    return reader_named(name)[1](data, path, separator)


# -- what is not read --
#
# The names of kinds of files that are not read, so that a report says more than "binary".


# These are text, but not for people.
_MARKUP_ONLY = frozenset("svg fodt fods fodp fodg ps eps ai".split())
_MAGIC = {
    kind: tuple(mark.encode("latin-1") for mark in marks)
    for kind, marks in _TABLES["magic"].items()
}
"""How files of a kind begin."""


def kind_of(path: str, data: bytes = b"") -> str:
    """What kind of file this is, such as ``png: image``; empty if it is not known.

    Args:
        path: the file. Its suffix counts first.
        data: its beginning; empty if it was not read.
    """
    suffix = _suffix_of(path)
    if kind := _KIND_BY_SUFFIX.get(suffix):
        return f"{suffix}: {kind}"
    return next((kind for kind, marks in _MAGIC.items() if data.startswith(marks)), "")


def _suffix_of(path: str) -> str:
    name = basename(path)
    return name.rpartition(".")[2].lower() if "." in name else ""
