"""Which reader reads which file: one row for each format.

A module of this folder defines ``READERS``, one or several. The table is separate from the readers,
so that a lookup imports only the reader that is needed, with its parser.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import cast

from rolebundle.contracts.ingest import Format
from rolebundle.errors import ConfigurationError
from rolebundle.ingest.readers.base import Reader


def _format(name: str, suffixes: str, content: str, anchor: str = "lines") -> Format:
    return Format(name=name, suffixes=suffixes.split(), content=content, anchor=anchor)


_SOURCE = (
    ".bash .bat .c .cc .cfg .clj .cmake .cpp .cs .css .cxx .dart .dot .el .ex .exs .f90 .fish"
    " .go .gradle .groovy .h .hcl .hh .hpp .hs .ini .java .jl .js .jsx .kt .kts .less .lua .m"
    " .mjs .mk .ml .mm .nix .php .pl .pm .properties .proto .ps1 .py .pyi .r .rb .rs .sass"
    " .scala .scss .sh .sql .svelte .swift .tcl .tex .tf .toml .ts .tsx .vim .vue .xml .yaml"
    " .yml .zig .zsh"
)
_TEXT = ".txt .text .log .adoc .asciidoc .org .pod .srt .vtt"
# ``separated`` has no suffix: a manifest or a flag selects it.
FORMATS = (
    _format("markdown", ".md .markdown .mdx .md.txt", "Markdown with front matter of any tool"),
    _format(
        "text", _TEXT, "plain text, AsciiDoc, Org, and text files without a reader of their own"
    ),
    _format("rst", ".rst .rest .rst.txt", "reStructuredText"),
    _format("html", ".html .htm .xhtml", "the main part of a page, as people see it"),
    _format("source", _SOURCE, "source code by definitions, and configuration"),
    _format("ipynb", ".ipynb", "Jupyter notebooks by cells; without outputs", "cell 5"),
    _format("json", ".json", "a corpus of ready-made chunks, or any JSON as text"),
    _format("jsonl", ".jsonl .ndjson", "one document per line: _id, title, text, metadata"),
    _format("separated", "", "several documents in one file; chosen by a manifest"),
    _format("pdf", ".pdf", "the text layer by pages", "p. 3"),
    _format("docx", ".docx .docm .dotx .dotm", "Word documents"),
    _format(
        "pptx",
        ".pptx .pptm .potx .potm .ppsx .ppsm",
        "PowerPoint: slides with their notes",
        "slide 4",
    ),
    _format(
        "xlsx",
        ".xlsx .xlsm .xltx .xltm",
        "Excel: rows with their header",
        "sheet Budget, rows 2-40",
    ),
    _format(
        "opendocument",
        ".odt .ott .ods .ots .odp .otp",
        "LibreOffice: texts, spreadsheets, presentations",
        "slide 4",
    ),
    _format("epub", ".epub", "e-books, in reading order"),
    _format("eml", ".eml", "one mail message, also in a Maildir; attachments are named"),
    _format(
        "mbox",
        ".mbox .mbx",
        "a mailbox, also without a suffix: one document per message",
        "message 7",
    ),
)
"""The formats that are read: for each reader its suffixes, what it reads, and a passage's place."""
# Other readers have a module of their name.
_MODULES = {
    **dict.fromkeys(("eml", "mbox"), "mail"),
    **dict.fromkeys(("ipynb", "separated"), "markdown"),
    **dict.fromkeys(("json", "jsonl"), "records"),
    **dict.fromkeys(("rst", "text"), "lines"),
}
_NAMES = tuple(sorted(form.name for form in FORMATS))
_BY_SUFFIX = {suffix: form.name for form in FORMATS for suffix in form.suffixes}
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


def reader_names() -> tuple[str, ...]:
    """The names that a manifest may use, sorted."""
    return _NAMES


def reader_for(path: str, name: str | None = None) -> Reader | None:
    """The reader called ``name``, or the one for ``path``; None if its suffix is unknown.

    Raises:
        ConfigurationError: no reader is called ``name``.
    """
    if name is None:
        name = reader_name_for(path)
        return None if name is None else _load(name)
    if name not in _NAMES:
        allowed = ", ".join(_NAMES)
        raise ConfigurationError(
            "unknown_reader", f"no reader is called {name!r}", f"use one of: {allowed}"
        )
    return _load(name)


def mail_reader_for(path: str, data: bytes) -> Reader | None:
    """The reader of a mailbox or message whose file has no suffix; ``None`` if it is none.

    Thunderbird's mailboxes are such files (``Inbox``), and the messages of a Maildir
    (``1700000000.M1P2.host:2,S``).
    """
    name = path.rpartition("/")[2]
    if ("." in name and ":2," not in name) or not _MAIL.match(data):
        return None
    return _load("mbox" if data.startswith(b"From ") else "eml")


def reader_name_for(path: str) -> str | None:
    """The name of the reader for ``path``; None if its suffix is unknown."""
    # Suffixes as in pathlib, but without pathlib, which is slow: this runs for every file.
    file_name = path.rpartition("/")[2].lower()
    stem, dot, last = file_name.lstrip(".").rpartition(".")
    if not dot or not last:
        return _BY_FILE_NAME.get(file_name)
    _, inner, above = stem.rpartition(".")
    double = f".{above}.{last}" if inner else ""
    known = _BY_SUFFIX.get(double) or _BY_SUFFIX.get(f".{last}")
    return known or ("text" if _NUMBERED(last) else None)


@cache
def _load(name: str) -> Reader:
    module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
    return cast(Reader, module.READERS[name])
