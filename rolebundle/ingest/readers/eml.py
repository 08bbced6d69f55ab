"""A file with one mail message."""

from __future__ import annotations

from collections.abc import Iterable

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.mail import read_message, source_text


class EmlReader:
    """Reads ``.eml``."""

    name = "eml"
    suffixes = suffixes_of("eml")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file.

        Raises:
            DocumentError: ``encrypted_mail``, ``mail_too_large`` or ``unreadable_mail``.
        """
        yield read_message(source_text(data), path)


READER = EmlReader()
