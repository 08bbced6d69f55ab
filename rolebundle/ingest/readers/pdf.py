"""PDF: the text layer, page by page.

Lines are those of the extracted text, numbered across the whole document. A block never spans two
pages and has the number of its page.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pypdf
import pypdf.errors

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, block_of, damaged, runs
from rolebundle.ingest.readers.pdf_hidden import PageText, hidden_groups, page_text
from rolebundle.ingest.readers.pdf_title import declared_title, shown_title
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.counts import counted
from rolebundle.text.decoding import clean, cleaned_note, split_lines

# A small file can declare a huge page tree or expand to a huge stream.
_MAX_PAGES = 5_000
_MAX_CHARS = 50_000_000
# A book of a thousand pages has a few million; each takes some 50 microseconds.
_MAX_OPERATORS = 20_000_000

# pypdf logs a warning for each odd object of a broken file. The ingest report is sufficient.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class PdfReader:
    """Reads ``.pdf``."""

    name = "pdf"
    suffixes = suffixes_of("pdf")
    version = 4

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file.

        Raises:
            DocumentError: ``encrypted_pdf``, ``no_text_layer``, ``pdf_too_large`` or
                ``unreadable_pdf``.
        """
        inferred, pages, hidden = _extract(data, path)
        text, replaced = clean("\n".join("\n".join(split_lines(page)) for page in pages))
        if not text or text.isspace():
            raise DocumentError(
                "no_text_layer",
                f"{path}: no text in its {counted(len(pages), 'page')}",
                "run it through OCR (ocrmypdf), or exclude it",
            )
        lines = split_lines(text)
        yield ParsedDocument(
            blocks=tuple(_blocks(lines, pages)),
            inferred=inferred,
            lines=lines,
            notes=cleaned_note(replaced),
            hidden=hidden,
        )


def _extract(data: bytes, path: str) -> tuple[dict[str, object], list[str], tuple[HiddenPart, ...]]:
    """Title and date, the visible text of each page, and the hidden texts."""
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _opens_without_password(reader):
            raise DocumentError(
                "encrypted_pdf",
                f"{path}: the PDF is encrypted and requires a password",
                "save a copy without a password, or exclude it",
            )
        if len(reader.pages) > _MAX_PAGES:
            raise _too_large(path, f"more than {_MAX_PAGES} pages")
        pages = list(_page_texts(reader, path))
        hidden = [
            HiddenPart(kind, " ".join(text.split()), is_kept=is_kept)
            for page in pages
            for parts, is_kept in ((page.removed, False), (page.labelled, True))
            for kind, text in parts
        ]
        visible = [page.visible for page in pages]
        return _metadata(reader, visible), visible, tuple(hidden)
    except DocumentError:
        raise
    except Exception as error:
        # On broken files pypdf raises nearly any exception, such as KeyError or RecursionError.
        raise damaged("unreadable_pdf", path, error) from error


def _opens_without_password(reader: pypdf.PdfReader) -> bool:
    try:
        return bool(reader.decrypt(""))
    except (pypdf.errors.PyPdfError, NotImplementedError, ValueError):
        return False


def _page_texts(reader: pypdf.PdfReader, path: str) -> Iterator[PageText]:
    characters = operators = 0
    groups = hidden_groups(reader)
    for page in reader.pages:
        text = page_text(page, groups)
        characters += len(text.visible)
        if characters > _MAX_CHARS:
            raise _too_large(path, f"more than {_MAX_CHARS:,} characters of text")
        operators += text.operators
        if operators > _MAX_OPERATORS:
            raise _too_large(path, f"more than {_MAX_OPERATORS:,} instructions draw its pages")
        yield text


def _too_large(path: str, reason: str) -> DocumentError:
    return DocumentError("pdf_too_large", f"{path}: {reason}", "split it, or exclude it")


def _metadata(reader: pypdf.PdfReader, visible: list[str]) -> dict[str, object]:
    """The title, and the date of the last change. What is broken is left out."""
    information: Any = None
    metadata: dict[str, object] = {}
    with suppress(Exception):  # bad metadata must not prevent reading the text
        information = reader.metadata
    title = date = None
    with suppress(Exception):
        title = declared_title(information.title)
    with suppress(Exception):
        title = title or shown_title(reader.pages[0], visible[0])
    with suppress(Exception):
        date = information.modification_date
    with suppress(Exception):
        date = date or information.creation_date
    if title:
        metadata["title"] = title
    if date:
        metadata["updated_at"] = date.isoformat()
    return metadata


def _blocks(lines: list[str], pages: list[str]) -> Iterator[Block]:
    start = 0
    for number, page in enumerate(pages, 1):
        # In the joined text a page without text is one empty line.
        end = min(start + max(1, len(split_lines(page))), len(lines))
        for first, last in runs(lines, start, end):
            yield block_of(lines, "paragraph", first, last)._replace(page=number)
        start = end


READER = PdfReader()
