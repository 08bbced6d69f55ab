"""What a reader is. A new format joins with one file that registers one of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """What the manifest or the command line tells a reader."""

    separator: str = ""
    """For ``separated``: a line that begins with this text starts a new document."""


class Reader(Protocol):
    """Turns the bytes of one file into documents.

    ``name`` is what a manifest calls the reader, ``suffixes`` the file endings that it takes
    (lower case, with the dot), ``version`` rises when its output changes, so that unchanged files
    are read again.
    """

    name: str
    suffixes: tuple[str, ...]
    version: int

    def read(
        self, data: bytes, path: str, options: ReaderOptions
    ) -> Iterable[ParsedDocument | DocumentError]:
        """Parse ``data``, the content of the file at ``path`` (relative, forward slashes).

        Where one file holds many documents, an error that is *yielded* is about one of them: the
        others go on. An error that is raised ends the file.

        Raises:
            DocumentError: the file cannot be taken; the code says why (``unreadable_pdf``, …).
        """
        ...
