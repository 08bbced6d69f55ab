"""PDF: the text layer, page by page.

Lines are those of the extracted text, numbered across the whole document. A block never spans two
pages and has the number of its page.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import hypot
from typing import Any

import pypdf
import pypdf.errors

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions, block_of, damaged, runs
from rolebundle.ingest.readers.pdf_hidden import PageText, hidden_layers, page_text
from rolebundle.ingest.readers.titles import is_own_title
from rolebundle.text.counts import counted
from rolebundle.text.decoding import clean, cleaned_note, split_lines

_MAX_TITLE_CHARS = 200
_MIN_TITLE_LETTERS = 4
_MAX_LINE_HEIGHT = 1.45
"""Of the lines of one title, in font sizes."""

# pypdf logs a warning for each odd object of a broken file. The ingest report is sufficient.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def _read(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``encrypted_pdf``, ``no_text_layer`` or ``unreadable_pdf``.
    """
    inferred, pages = _extract(data, path)
    texts = [split_lines(page.visible) for page in pages]
    text, replaced = clean("\n".join("\n".join(lines) for lines in texts))
    if not text or text.isspace():
        raise DocumentError(
            "no_text_layer",
            f"{path}: no text in its {counted(len(pages), 'page')}",
            "run it through OCR (ocrmypdf), or exclude it",
        )
    lines = split_lines(text)
    yield ParsedDocument(
        blocks=tuple(_blocks(lines, texts)),
        inferred=inferred,
        lines=lines,
        notes=cleaned_note(replaced),
        hidden=tuple(part for page in pages for part in page.hidden),
    )


def _extract(data: bytes, path: str) -> tuple[dict[str, object], list[PageText]]:
    """Title and date, and the text of each page."""
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _opens_without_password(reader):
            raise DocumentError(
                "encrypted_pdf",
                f"{path}: the PDF is encrypted and requires a password",
                "save a copy without a password, or exclude it",
            )
        layers = hidden_layers(reader)
        pages = [page_text(page, layers) for page in reader.pages]
        return _metadata(reader, pages), pages
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


def _metadata(reader: pypdf.PdfReader, pages: list[PageText]) -> dict[str, object]:
    """The title, and the date of the last change. What is broken is left out."""
    information: Any = None
    title, date = "", None
    with suppress(Exception):  # bad metadata must not prevent reading the text
        information = reader.metadata
    with suppress(Exception):
        title = declared_title(information.title)
    with suppress(Exception):
        title = title or _shown_title(reader.pages[0], pages[0].visible)
    with suppress(Exception):
        date = information.modification_date
    with suppress(Exception):
        date = date or information.creation_date
    metadata = {"title": title, "updated_at": date.isoformat() if date else ""}
    return {key: value for key, value in metadata.items() if value}


def declared_title(value: object) -> str:
    """The title in the metadata, on one line; empty if no person wrote it."""
    title = " ".join(clean(value)[0].split()) if isinstance(value, str) else ""
    return title if is_own_title(title) and _is_sensible(title) else ""


def _shown_title(page: pypdf.PageObject, visible: str) -> str:
    """The largest text of the first page that may be a title, else its first line.

    ``visible`` is the text of the page without hidden parts.
    """
    texts: list[tuple[float, list[str]]] = []
    above = 0.0  # the height of the line above

    def add(text: str, cm: Any, tm: Any, _font: Any, font_size: float) -> None:
        nonlocal above
        if not text.strip():
            return
        scale = hypot(float(cm[1]), float(cm[3]))
        size = round(abs(font_size * hypot(float(tm[1]), float(tm[3])) * scale), 1)
        height = float(tm[5]) * scale + float(cm[5])
        is_next_line = abs(above - height) <= _MAX_LINE_HEIGHT * size
        if not (texts and texts[-1][0] == size and is_next_line):
            texts.append((size, []))
        texts[-1][1].append(text)
        above = height

    page.extract_text(visitor_text=add)
    letters = "".join(visible.split())
    # Text of the smallest size is no title. The first of several texts of one size is.
    smallest = min((size for size, _ in texts), default=0.0)
    for size, pieces in sorted(texts, key=lambda text: -text[0]):
        title = " ".join("".join(pieces).split())
        is_shown = size > smallest and "".join(title.split()) in letters
        if is_shown and _is_sensible(title) and len(title) <= _MAX_TITLE_CHARS:
            return clean(title)[0]
    line = next(filter(_is_sensible, visible.split("\n")), "")
    return clean(" ".join(line.split())[:_MAX_TITLE_CHARS])[0]


def _is_sensible(text: str) -> bool:
    return sum(map(str.isalpha, text)) >= _MIN_TITLE_LETTERS


def _blocks(lines: list[str], pages: list[list[str]]) -> Iterator[Block]:
    start = 0
    for number, page in enumerate(pages, 1):
        # In the joined text a page without text is one empty line.
        end = min(start + max(1, len(page)), len(lines))
        for first, last in runs(lines, start, end):
            yield block_of(lines, "paragraph", first, last)._replace(page=number)
        start = end


READER = Reader("pdf", 4, _read)
