"""PDF: the text layer, page after page.

The lines are those of the extracted text, numbered through the whole document; a block stands
on one page and carries its number.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pypdf
import pypdf.errors

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.text_file import block_of, runs
from rolebundle.text.text_decoding import clean, cleaned_note, split_lines

# A page tree or a stream can promise far more than the file holds.
_MOST_PAGES = 5_000
_MOST_CHARACTERS = 50_000_000

# It warns about each odd object of a broken file; our report says what matters.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class PdfReader:
    """Reads ``.pdf``."""

    name = "pdf"
    suffixes = suffixes_of("pdf")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document a file.

        Raises:
            DocumentError: ``encrypted_pdf``, ``no_text_layer``, ``pdf_too_large`` or
                ``unreadable_pdf``.
        """
        title, pages = _extract(data, path)
        text, replaced = clean("\n".join("\n".join(split_lines(page)) for page in pages))
        if not text or text.isspace():
            raise DocumentError(
                "no_text_layer",
                f"{path}: none of its {len(pages)} pages has text",
                "run it through OCR (ocrmypdf), or exclude it",
            )
        lines = split_lines(text)
        yield ParsedDocument(
            blocks=tuple(_blocks(lines, pages)),
            found={"title": title} if title else {},
            lines=lines,
            notes=cleaned_note(replaced),
        )


def pdf_lines(data: bytes, path: str = "") -> list[str]:
    """The lines that the locators of a PDF count.

    Raises:
        DocumentError: as ``PdfReader.read`` does.
    """
    return [
        line for document in READER.read(data, path, ReaderOptions()) for line in document.lines
    ]


def _extract(data: bytes, path: str) -> tuple[str, list[str]]:
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _opens_without_password(reader):
            raise DocumentError(
                "encrypted_pdf",
                f"{path}: encrypted, and needs a password",
                "save a copy without a password, or exclude it",
            )
        if len(reader.pages) > _MOST_PAGES:
            raise _too_large(path, f"more than {_MOST_PAGES} pages")
        return _title(reader), list(_page_texts(reader, path))
    except DocumentError:
        raise
    except Exception as error:
        # A broken file makes pypdf raise nearly anything, KeyError and RecursionError included.
        reason = f"{type(error).__name__}: {error}"
        raise DocumentError(
            "unreadable_pdf", f"{path}: pypdf refuses it: {reason}", "repair or exclude the file"
        ) from error


def _opens_without_password(reader: pypdf.PdfReader) -> bool:
    try:
        return bool(reader.decrypt(""))
    except (pypdf.errors.PyPdfError, NotImplementedError, ValueError):
        return False


def _page_texts(reader: pypdf.PdfReader, path: str) -> Iterator[str]:
    characters = 0
    for page in reader.pages:
        text = page.extract_text()
        characters += len(text)
        if characters > _MOST_CHARACTERS:
            raise _too_large(path, f"more than {_MOST_CHARACTERS:,} characters of text")
        yield text


def _too_large(path: str, reason: str) -> DocumentError:
    return DocumentError("pdf_too_large", f"{path}: {reason}", "split it, or exclude it")


def _title(reader: pypdf.PdfReader) -> str:
    try:
        information: Any = reader.metadata
        title = information.title if information else None
    except Exception:  # the title is no reason to lose the text
        return ""
    return " ".join(clean(title)[0].split()) if isinstance(title, str) else ""


def _blocks(lines: list[str], pages: list[str]) -> Iterator[Block]:
    start = 0
    for number, page in enumerate(pages, 1):
        # A page without text is one empty line of the joined text, as a page of one line is.
        end = min(start + max(1, len(split_lines(page))), len(lines))
        for first, last in runs(lines, start, end):
            yield block_of(lines, "paragraph", first, last)._replace(page=number)
        start = end


READER = PdfReader()
