"""What is read: the protocol of a reader, the formats with one row for each, and what is not read.

A module of this folder defines ``READERS``, one or several by their names. The table is separate
from the readers, so that a lookup imports only the reader that is needed, with its parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import groupby
from posixpath import basename
from typing import cast

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.text.decoding import decode, split_lines

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

    Raises:
        DocumentError: ``undecodable``.
    """
    text, notes = decode(data, path)
    return split_lines(text), notes


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


def is_blank(line: str) -> bool:
    """Whether ``line`` is empty or white space only."""
    return not line or line.isspace()


def first_text(lines: Sequence[str]) -> int:
    """The index of the first line that is not blank; that after the last one if all are."""
    return next((i for i, line in enumerate(lines) if not is_blank(line)), len(lines))


def title_in(blocks: Iterable[Block]) -> str:
    """The first heading of level 1; empty if there is none."""
    return next((block.heading for block in blocks if block.level == 1), "")


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


# -- formats --


_SOURCE = (
    ".bash .bat .c .cc .cfg .clj .cmake .cpp .cs .css .cxx .dart .dot .el .ex .exs .f90 .fish"
    " .go .gradle .groovy .h .hcl .hh .hpp .hs .ini .java .jl .js .jsx .kt .kts .less .lua .m"
    " .mjs .mk .ml .mm .nix .php .pl .pm .properties .proto .ps1 .py .pyi .r .rb .rs .sass"
    " .scala .scss .sh .sql .svelte .swift .tcl .tex .tf .toml .ts .tsx .vim .vue .xml .yaml"
    " .yml .zig .zsh"
)
_TEXT = ".txt .text .log .adoc .asciidoc .org .pod .srt .vtt"
# ``separated`` has no suffix: a manifest or a flag selects it.
FORMATS = {
    "markdown": ".md .markdown .mdx .md.txt",
    "text": _TEXT,
    "rst": ".rst .rest .rst.txt",
    "html": ".html .htm .xhtml",
    "source": _SOURCE,
    "ipynb": ".ipynb",
    "json": ".json",
    "jsonl": ".jsonl .ndjson",
    "separated": "",
    "pdf": ".pdf",
    "docx": ".docx .docm .dotx .dotm",
    "pptx": ".pptx .pptm .potx .potm .ppsx .ppsm",
    "xlsx": ".xlsx .xlsm .xltx .xltm",
    "opendocument": ".odt .ott .ods .ots .odp .otp",
    "epub": ".epub",
    "eml": ".eml",
    "mbox": ".mbox .mbx",
}
"""Each reader with the suffixes of its files."""
# Other readers have a module of their name.
_MODULES = {
    "docx": "ooxml",
    "pptx": "ooxml",
    "eml": "mail",
    "mbox": "mail",
    "epub": "html",
    "ipynb": "markdown",
    "separated": "markdown",
    "json": "records",
    "jsonl": "records",
    "rst": "lines",
    "source": "lines",
    "text": "lines",
}
NAMES = tuple(sorted(FORMATS))
"""The names of the readers that a manifest may use."""
_BY_SUFFIX = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes.split()}
# Manual pages (`ls.1`) and logs (`app.log.1`)
_NUMBERED = re.compile(r"[1-9]").fullmatch
# Headers that no other text begins with, in any order.
_MAIL = re.compile(
    rb"(?=[!-9;-~]{1,80}:|From [^\n]{1,300}\d\d:\d\d)"
    rb"(?=(?:[^\n]+\n){0,200}?From:)(?=(?:[^\n]+\n){0,200}?(?:Message-I[dD]|MIME-Version|Received):)"
)
_BY_FILE_NAME = {
    **dict.fromkeys(
        "readme license licence copying copyright notice changelog changes news authors"
        " contributors maintainers credits todo install faq history codeowners".split(),
        "text",
    ),
    **dict.fromkeys("makefile dockerfile rakefile gemfile justfile kconfig".split(), "source"),
}


def mail_reader_name(path: str, data: bytes) -> str:
    """The name of the reader of a mailbox or message whose file has no suffix; empty if it is none.

    Thunderbird's mailboxes are such files (``Inbox``), and the messages of a Maildir
    (``1700000000.M1P2.host:2,S``).
    """
    name = basename(path)
    if ("." in name and ":2," not in name) or not _MAIL.match(data):
        return ""
    return "mbox" if data.startswith(b"From ") else "eml"


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


@cache
def reader_named(name: str) -> Reader:
    """The reader with one of ``NAMES``."""
    return cast(Reader, import_module(f"{__name__}.{_MODULES.get(name, name)}").READERS[name])


# -- what is not read --
#
# The names of kinds of files that are not read, so that a report says more than "binary".


_ARCHIVE = "archive; unpack it"
# A file with one of these suffixes is read if it is text, except those in _MARKUP_ONLY.
KINDS = {
    "image": (
        "png jpg jpeg jpe gif bmp tif tiff webp heic heif avif ico icns psd svg svgz raw cr2 nef"
        " xcf xpm pbm pgm ppm drawio"
    ),
    "audio": "mp3 wav flac ogg oga m4a aac wma opus mid midi aiff amr",
    "video": "mp4 mkv mov avi webm wmv m4v mpg mpeg flv 3gp ogv",
    _ARCHIVE: (
        "zip tar gz tgz bz2 tbz xz txz zst 7z rar jar war whl deb rpm iso dmg cab lz4 lzma cpio"
    ),
    "program": "exe dll so dylib o a lib class pyc pyd wasm msi apk app bin com elf ko",
    "font": "ttf otf woff woff2 eot pfb",
    "database": "db sqlite sqlite3 mdb accdb parquet arrow feather dbf realm",
    "data of a program": (
        "npy npz pkl pickle pt pth onnx safetensors gguf h5 hdf5 mat rds dat pack idx"
    ),
    "old Word format; save it as docx": "doc dot",
    "old Excel format; save it as xlsx": "xls xlt xlsb",
    "old PowerPoint format; save it as pptx": "ppt pps pot",
    "Rich Text; save it as docx": "rtf",
    "flat OpenDocument; save it as odt, ods or odp": "fodt fods fodp fodg",
    "Apple iWork document; export it as docx, xlsx or pptx": "pages numbers key",
    "WordPerfect document; save it as docx": "wpd wps",
    "drawing; export it as pdf": "odg vsd vsdx vsdm vdx pub cdr dwg dxf",
    "PostScript; convert it to pdf": "ps eps ai",
    "Outlook message; save it as eml": "msg",
    "Outlook mailbox; export it as mbox": "pst ost",
    "Kindle book; convert it to epub": "mobi azw azw3",
    "page images; convert it to pdf with text": "djvu xps oxps cbz cbr",
    "compiled help": "chm hlp",
    "OneNote section; export it as docx": "one onetoc2",
}
_KIND_BY_SUFFIX = {suffix: kind for kind, suffixes in KINDS.items() for suffix in suffixes.split()}
# These are text, but not for people.
_MARKUP_ONLY = frozenset("svg rtf fodt fods fodp fodg ps eps ai".split())
_MAGIC = {
    "image": (b"\x89PNG", b"\xff\xd8\xff", b"GIF8"),
    _ARCHIVE: (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"!<arch>"),
    "program": (b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe"),
    "database": (b"SQLite format 3\0",),
    "PDF document; name it .pdf": (b"%PDF",),
    "old Office format; save it as docx, xlsx or pptx": (b"\xd0\xcf\x11\xe0",),
}


def kind_of(path: str, data: bytes = b"") -> str:
    """What kind of file this is, such as ``png: image``; empty if it is not known.

    Args:
        path: the file. Its suffix counts first.
        data: its beginning; empty if it was not read.
    """
    suffix = _suffix_of(path)
    kind = _KIND_BY_SUFFIX.get(suffix)
    if kind is None:
        return next((kind for kind, marks in _MAGIC.items() if data.startswith(marks)), "")
    return f"{suffix}: {kind}"


def is_markup_only(path: str) -> bool:
    """Whether a file of text, such as a drawing, is not written for people."""
    return _suffix_of(path) in _MARKUP_ONLY


def _suffix_of(path: str) -> str:
    name = basename(path)
    return name.rpartition(".")[2].lower() if "." in name else ""
