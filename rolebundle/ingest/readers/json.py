"""JSON: a Knowledge Core corpus with its ready-made chunks; any other file as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from rolebundle.contracts.terms import ContentType
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, ParsedDocument, ReadyChunk
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import (
    ReaderOptions,
    TextFile,
    block_of,
    is_blank,
    open_text,
)
from rolebundle.ingest.readers.records import UnknownKeys, declared_metadata
from rolebundle.text.decoding import clean
from rolebundle.text.strict_json import (
    LineIndex,
    LocatedObject,
    NotStrictError,
    parse_located,
    parse_strict,
)

_STEP = "repair or exclude the file"
_CONTENT_TYPES = get_args(ContentType)


class JsonReader:
    """Reads ``.json``."""

    name = "json"
    suffixes = suffixes_of("json")
    version = 2

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """The documents of a corpus; one document for any other file.

        Raises:
            DocumentError: ``bad_json``, with the line; ``undecodable``.
        """
        file = open_text(data, path)
        text = "\n".join(file.lines)
        value = _parse(text, path)
        if _is_corpus(value):
            yield from _Corpus(text, path, file.notes).documents(value["documents"])
        else:
            yield ParsedDocument(blocks=tuple(_as_text(file)), lines=file.lines, notes=file.notes)


def _parse(text: str, path: str) -> Any:
    try:
        may_be_corpus = '"documents"' in text and '"chunks"' in text
        return parse_located(text) if may_be_corpus else parse_strict(text)
    except NotStrictError as error:
        at = error.at if error.at >= 0 else _find_error(text)
        line = text.count("\n", 0, max(at, 0)) + 1
        raise _bad_json(
            path, line, "it is not strict JSON", with_detail(_STEP, str(error))
        ) from error


def _bad_json(path: str, line: int, reason: str, step: str = _STEP) -> DocumentError:
    return DocumentError("bad_json", f"{path}:{line}: {reason}", step)


def _find_error(text: str) -> int:
    """The offset where the text stops being strict JSON, by the slower parser."""
    try:
        parse_located(text)
    except NotStrictError as error:
        return error.at
    return 0


def _is_corpus(value: Any) -> bool:
    """Whether ``value`` has a list of documents with chunks; its version does not matter."""
    documents = value.get("documents") if isinstance(value, LocatedObject) else None
    return isinstance(documents, list) and all(
        isinstance(document, LocatedObject) and isinstance(document.get("chunks"), list)
        for document in documents
    )


def _as_text(file: TextFile) -> Iterator[Block]:
    visible_lines = [i for i, line in enumerate(file.lines) if not is_blank(line)]
    if visible_lines:
        yield block_of(file.lines, "code", visible_lines[0], visible_lines[-1] + 1)


class _Corpus:
    """Turns a parsed corpus into documents, with the lines of each chunk's content."""

    def __init__(self, text: str, path: str, notes: tuple[str, ...]) -> None:
        self._index = LineIndex(text)
        self._path = path
        self._notes = notes
        self._unknown = UnknownKeys()

    def documents(self, records: list[LocatedObject]) -> Iterator[ParsedDocument]:
        for document in records:
            record = {key: value for key, value in document.items() if key != "chunks"}
            key = self._text(document, "document_id")
            yield ParsedDocument(
                ready=tuple(self._chunk(chunk, document) for chunk in document["chunks"]),
                declared=declared_metadata(record),
                declared_at=self._index.line(document.at),
                key=key,
                line_exact=False,
                notes=self._notes + self._unknown.note(record),
            )

    def _chunk(self, chunk: Any, document: LocatedObject) -> ReadyChunk:
        if not isinstance(chunk, LocatedObject):
            raise self._error(document.at, "a chunk must be an object")
        content = self._text(chunk, "content")
        first, last = chunk.spans["content"]
        content_type = chunk.get("content_type", "paragraph")
        if content_type not in _CONTENT_TYPES:
            allowed = ", ".join(_CONTENT_TYPES)
            raise self._error(chunk.at, f"`content_type` must be one of {allowed}")
        return ReadyChunk(
            chunk_id=self._text(chunk, "chunk_id"),
            content=content,
            start_line=self._index.line(first),
            end_line=self._index.line(last),
            content_type=content_type,
            tags=self._texts(chunk, "tags"),
            applicable_roles=self._texts(chunk, "applicable_roles"),
            excluded_roles=self._texts(chunk, "excluded_roles"),
        )

    def _text(self, owner: LocatedObject, key: str) -> str:
        value = owner.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._error(owner.at, f"`{key}` must be a string")
        return clean(value)[0]

    def _texts(self, owner: LocatedObject, key: str) -> tuple[str, ...]:
        value = owner.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(owner.at, f"`{key}` must be a list of strings")
        return tuple(clean(item)[0] for item in value)

    def _error(self, at: int, reason: str) -> DocumentError:
        return _bad_json(self._path, self._index.line(at), reason)


READER = JsonReader()
