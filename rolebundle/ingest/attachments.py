"""Attachments: files within a document, which become documents of their own.

They belong to the file that holds them, so they are updated, removed and purged with it. They have
its scope, sensitivity and trust, and the date and people of the message. Nothing in them governs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from posixpath import basename
from time import process_time

from rolebundle.contracts.documents import ATTACHED
from rolebundle.errors import DocumentError
from rolebundle.ingest.declarations import limiting_key
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import read_file, unique_key

_MAX_LEVELS = 3
# Of one file, all levels together. A file may take twice the time.
_MAX_ATTACHMENTS = 2_000
_MAX_CHARS = 20_000_000
_MAX_SECONDS = 30
_NOT_READ = ("unsupported", "binary")
"""Codes of attachments such as images, which the message names."""


def with_attachments(
    path: str, documents: Iterable[ParsedDocument | DocumentError]
) -> Iterator[ParsedDocument | DocumentError]:
    """The documents of a file, each before what is attached to it."""
    attachments = _Attachments()
    for document in documents:
        if isinstance(document, DocumentError):
            yield document
            continue
        attachments.keys.add(document.key)
        attachments.notes = []
        # Read first: what cannot be read is a note of the message.
        found = list(attachments.read(document, basename(path), 1))
        yield replace(document, attached=(), notes=(*document.notes, *attachments.notes))
        yield from found


class _Attachments:
    """What was read so far of the attachments of a file."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.notes: list[str] = []
        self._number = self._chars = 0
        self._end = process_time() + _MAX_SECONDS

    def read(self, parent: ParsedDocument, path: str, level: int) -> Iterator[ParsedDocument]:
        """The documents of what is attached to a document, with the name of the whole."""
        for name, data in parent.attached:
            self._number += 1
            try:
                is_over = self._number > _MAX_ATTACHMENTS or self._chars > _MAX_CHARS
                if level > _MAX_LEVELS or is_over or process_time() > self._end:
                    raise DocumentError("attachments_too_large", "more than is read of one file")
                for document in read_file(data, f"{path}{ATTACHED}{name}"):
                    if isinstance(document, DocumentError):
                        self.notes.append(f"left out: a part of {name} ({document.code})")
                    else:
                        yield from self._documents(document, parent, path, name, level)
            except DocumentError as error:
                if error.code not in _NOT_READ:
                    self.notes.append(f"left out: attachment {name} ({error.code})")
            except MemoryError:
                raise
            except Exception as error:
                # A defect of a reader must not affect the message.
                self.notes.append(f"left out: attachment {name} ({type(error).__name__})")

    def _documents(
        self, document: ParsedDocument, parent: ParsedDocument, path: str, name: str, level: int
    ) -> Iterator[ParsedDocument]:
        key = f"{parent.key}{ATTACHED}{name}" + (f"#{document.key}" if document.key else "")
        own = {key: value for key, value in document.inferred.items() if value and key != "uri"}
        of_message = {
            key: value
            for key, value in parent.inferred.items()
            if key in ("origin", "updated_at") or (value and limiting_key(key))
        }
        people = {k: v for k, v in parent.inferred.items() if k in ("from", "to", "cc")}
        names = [str(one["title"]) for one in (own, parent.inferred) if one.get("title")]
        ready = (c._replace(chunk_id="", applicable_roles=()) for c in document.ready)
        document = replace(
            document,
            key=unique_key(key, self.keys),
            declared={},
            inferred={**people, **own, **of_message, "title": name, "retrieval_hints": names},
            ready=tuple(ready),
            notes=tuple(f"{name}: {note}" for note in document.notes),
        )
        self._chars += sum(len(b.text) for b in document.blocks)
        self._chars += sum(len(c.content) for c in document.ready)
        nested = list(self.read(document, f"{path}{ATTACHED}{name}", level + 1))
        yield replace(document, attached=())
        yield from nested
