"""What `rolebundle corpus formats` lists: what is read, and what is not."""

from __future__ import annotations

from rolebundle.contracts.ingest import Format, FormatList, UnsupportedKind
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.unsupported import KINDS

_LINES = "lines"
# For each reader what it reads, and an example of where a passage is.
_FORMATS = {
    "markdown": ("Markdown with front matter of any tool", _LINES),
    "text": ("plain text, pod, AsciiDoc, and text files without a reader of their own", _LINES),
    "rst": ("reStructuredText", _LINES),
    "org": ("Org: headings, properties, source blocks; without comments", _LINES),
    "man": ("manual pages, .1 to .9 and .n", _LINES),
    "html": ("the main part of a page, as people see it", _LINES),
    "source": ("source code by definitions, and configuration", _LINES),
    "ipynb": ("Jupyter notebooks by cells; without outputs", "cell 5"),
    "json": ("a corpus of ready-made chunks, or any JSON as text", _LINES),
    "jsonl": ("one document per line: _id, title, text, metadata", _LINES),
    "separated": ("several documents in one file; chosen by a manifest", _LINES),
    "pdf": ("the text layer by pages", "p. 3"),
    "docx": ("Word documents", _LINES),
    "pptx": ("PowerPoint: slides with their notes", "slide 4"),
    "xlsx": ("Excel: rows with their header", "sheet Budget, rows 2-40"),
    "opendocument": ("LibreOffice: texts, spreadsheets, presentations", "slide 4"),
    "epub": ("e-books, in reading order", _LINES),
    "eml": ("one mail message, also in a Maildir; attachments are named", _LINES),
    "mbox": ("a mailbox, also without a suffix: one document per message", "message 7"),
    "subtitles": ("speech without timestamps, with speakers", "00:12:05"),
}


def formats() -> FormatList:
    """All formats, and the kinds of files that are skipped by their name."""
    return FormatList(
        formats=[
            Format(name=name, suffixes=list(suffixes_of(name)), content=content, anchor=anchor)
            for name, (content, anchor) in _FORMATS.items()
        ],
        unsupported=[
            UnsupportedKind(kind=kind, suffixes=[f".{suffix}" for suffix in suffixes.split()])
            for kind, suffixes in KINDS.items()
        ],
    )
