"""A file with one mail message."""

from __future__ import annotations

from collections.abc import Iterable

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions
from rolebundle.ingest.readers.mail import read_message, source_text


def _read(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``encrypted_mail``, ``mail_too_large`` or ``unreadable_mail``.
    """
    yield read_message(source_text(data), path)


READER = Reader("eml", 1, _read)
