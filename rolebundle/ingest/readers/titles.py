"""Titles that programs store in documents, and which of them a person would recognize."""

from __future__ import annotations

import re

_MAX_CHARS = 300
_SUFFIXES = (
    "docx? docm dotx? odt rtf pdf tex dvi e?ps pptx? potx? ppsx? xlsx? xlsm od[ps] indd qxd pages"
    " key html? md txt cdr ai fm wpd pub vsdx? tmp"
).replace(" ", "|")
# The name of a program, of its template, of a file, or of what it calls new documents.
_OF_PROGRAM = re.compile(
    r"(?:microsoft )?(?:word|powerpoint|excel|office)(?: document)? [-–—] .*"
    r"|(?:untitled|unbenannt|sans titre|sin título|senza titolo|unknown(?: title)?|unspecified"
    r"|anonymous|none|no title|title|titel|layout)\W*\d*"
    r"|(?:new |neues )?(?:microsoft )?(?:word |office |excel |powerpoint |google )*"
    r"(?:document|dokument|documento|presentation|präsentation|présentation|presentación"
    r"|book|workbook|mappe|arbeitsmappe|classeur|libro|sheet|spreadsheet|slide|folie|template)"
    r"(?: powerpoint| de powerpoint| title| name)?\W*\d*\W*"
    r"|powerpoint-präsentation|diapositiva \d+"
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
