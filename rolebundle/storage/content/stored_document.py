"""A file, its documents and their chunks, as they are stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.terms import ContentType
from rolebundle.storage.content.quarantine import Scanned
from rolebundle.storage.files.sqlite_file import Row

FileIdentity = tuple[str, str, str]
"""(path, content hash, recipe): a file with the same identity need not be read again."""


class StoredChunk(NamedTuple):
    """A chunk as it is stored. A tuple, because hundreds of thousands come out of the workers."""

    chunk_id: str
    headings: tuple[str, ...]
    content: str
    content_type: ContentType
    content_hash: str
    start_line: int
    end_line: int
    page: int = 0
    anchor: str = ""
    tags: tuple[str, ...] = ()
    applicable_roles: tuple[str, ...] = ()
    excluded_roles: tuple[str, ...] = ()
    forms: str = ""
    """Further word forms for the index (``rolebundle/text/forms.py``)."""


class StoredFile(NamedTuple):
    """A file as it was read. ``location`` is absolute, ``path`` relative to the ingested folder.

    ``size`` in bytes and ``modified_ns``, the time of its last change, are 0 if unknown.
    """

    location: str
    path: str
    content_hash: str
    recipe: str
    size: int = 0
    modified_ns: int = 0


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with its chunks, in order, and what the intake scan found in it."""

    metadata: DocumentMetadata
    chunks: tuple[StoredChunk, ...]
    scanned: Scanned | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # It is pickled as bare tuples, which takes half the time between processes.
        return _restored, (
            self.metadata,
            tuple(tuple(chunk) for chunk in self.chunks),
            self.scanned,
        )


def _restored(
    metadata: DocumentMetadata, chunks: Iterable[Row], scanned: Scanned | None
) -> StoredDocument:
    return StoredDocument(metadata, tuple(map(StoredChunk._make, chunks)), scanned)
