"""Documents in JSON: a Knowledge Core corpus, or JSON Lines in BEIR's format.

A corpus has ready-made chunks; any other JSON file is text. Each line of JSON Lines is a document
with the keys ``_id`` or ``id``, ``title``, ``text`` and ``metadata``. Only ``_id`` is the id of a
document; ``id`` tells the records of a file apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from rolebundle.contracts.ingest import METADATA_KEYS
from rolebundle.contracts.terms import ContentType
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, ParsedDocument, ready_chunk
from rolebundle.ingest.readers.base import Reader, ReaderOptions, block_of, is_blank, open_text
from rolebundle.storage.documents import StoredChunk
from rolebundle.text import strict_json
from rolebundle.text.decoding import clean, cleaned_note, with_newlines
from rolebundle.text.words import counted, first_of

_KEYS = frozenset(METADATA_KEYS)
_MAX_UNKNOWN_KEYS = 20
_CONTENT_TYPES = get_args(ContentType)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
# After this many bad lines the file is probably no JSON Lines, and further reports do not help.
_MAX_PROBLEMS = 20


def _declared(record: Mapping[str, Any]) -> dict[str, object]:
    """The metadata that a record declares, with cleaned strings."""
    return {key: _cleaned(value) for key, value in record.items() if key in _KEYS}


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean(value)[0]
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key)[0]: _cleaned(item) for key, item in value.items()}
    return value


def _unknown_keys(record: Mapping[str, Any], noted: set[str]) -> tuple[str, ...]:
    """A note on the unknown keys of a record, if any was not noted before in its file."""
    new = sorted(record.keys() - _KEYS - noted)
    if not new or len(noted) >= _MAX_UNKNOWN_KEYS:
        return ()
    noted.update(new)
    names = first_of([repr(clean(key)[0][:80]) for key in new], _MAX_UNKNOWN_KEYS)
    return (f"{counted(len(new), 'unknown metadata key')} ignored in all records: {names}",)


# JSON


def _read_json(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
    """The documents of a corpus; one document for any other file.

    Raises:
        DocumentError: ``bad_json``, with the line; ``undecodable``.
    """
    lines, notes = open_text(data, path)
    text = "\n".join(lines)
    try:
        value = strict_json.parse_located(text)
    except strict_json.NotStrictError as error:
        line = text.count("\n", 0, max(error.at, 0)) + 1
        raise _bad_json(path, line, "it is not strict JSON", str(error)) from error
    documents = value.get("documents") if isinstance(value, strict_json.LocatedObject) else None
    if isinstance(documents, list) and all(
        isinstance(document, strict_json.LocatedObject) and isinstance(document.get("chunks"), list)
        for document in documents
    ):
        yield from _Corpus(text, path, notes).documents(documents)
        return
    filled = [i for i, line in enumerate(lines) if not is_blank(line)]
    blocks = (block_of(lines, "code", filled[0], filled[-1] + 1),) if filled else ()
    yield ParsedDocument(blocks=blocks, lines=lines, notes=notes)


def _bad_json(path: str, line: int, reason: str, detail: str = "") -> DocumentError:
    step = with_detail("repair or exclude the file", detail)
    return DocumentError("bad_json", f"{path}:{line}: {reason}", step)


class _Corpus:
    """Turns a parsed corpus into documents, with the lines of each chunk's content."""

    def __init__(self, text: str, path: str, notes: tuple[str, ...]) -> None:
        self._index = strict_json.LineIndex(text)
        self._path = path
        self._notes = notes

    def documents(self, records: Sequence[strict_json.LocatedObject]) -> Iterator[ParsedDocument]:
        noted: set[str] = set()
        for document in records:
            record = {key: value for key, value in document.items() if key != "chunks"}
            key = self._text(document, "document_id")
            yield ParsedDocument(
                ready=tuple(self._chunk(chunk, document) for chunk in document["chunks"]),
                declared=_declared(record),
                declared_at=self._index.line(document.at),
                key=key,
                line_exact=False,
                notes=self._notes + _unknown_keys(record, noted),
            )

    def _chunk(self, chunk: Any, document: strict_json.LocatedObject) -> StoredChunk:
        if not isinstance(chunk, strict_json.LocatedObject):
            raise self._error(document.at, "a chunk must be an object")
        content = self._text(chunk, "content")
        first, last = chunk.spans["content"]
        content_type = chunk.get("content_type", "paragraph")
        if content_type not in _CONTENT_TYPES:
            allowed = ", ".join(_CONTENT_TYPES)
            raise self._error(chunk.at, f"`content_type` must be one of {allowed}")
        keys = ("tags", "applicable_roles", "excluded_roles")
        return ready_chunk(
            self._text(chunk, "chunk_id"),
            content,
            self._index.line(first),
            self._index.line(last),
            content_type=content_type,
            **{key: self._texts(chunk, key) for key in keys},
        )

    def _text(self, owner: strict_json.LocatedObject, key: str) -> str:
        value = owner.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._error(owner.at, f"`{key}` must be a string")
        return clean(value)[0]

    def _texts(self, owner: strict_json.LocatedObject, key: str) -> tuple[str, ...]:
        value = owner.get(key) or ()
        if value and not (isinstance(value, list) and all(isinstance(i, str) for i in value)):
            raise self._error(owner.at, f"`{key}` must be a list of strings")
        return tuple(clean(item)[0] for item in value)

    def _error(self, at: int, reason: str) -> DocumentError:
        return _bad_json(self._path, self._index.line(at), reason)


# JSON Lines


def _read_jsonl(
    data: bytes, path: str, _options: ReaderOptions
) -> Iterable[ParsedDocument | DocumentError]:
    """One document per line, or the error ``bad_json_line``. The other lines are still read.

    Raises:
        DocumentError: ``undecodable``.
    """
    problems = 0
    first_lines: dict[str, int] = {}
    noted: set[str] = set()
    for number, line in enumerate(open_text(data, path)[0], 1):
        if is_blank(line):
            continue
        try:
            document = _document(line, number, noted)
            first_line = first_lines.setdefault(document.key, number)
            if first_line != number:
                raise ValueError(f"repeats the _id of line {first_line}")
            yield document
        except ValueError as error:
            problems += 1
            if problems <= _MAX_PROBLEMS:
                yield _bad_line(path, f"line {number} {error}", str(error.__cause__ or ""))
    if problems > _MAX_PROBLEMS:
        yield _bad_line(path, f"{problems - _MAX_PROBLEMS} more lines are bad")


def _bad_line(path: str, reason: str, detail: str = "") -> DocumentError:
    step = 'each line is {"_id": "…", "title": "…", "text": "…", "metadata": {…}}'
    return DocumentError("bad_json_line", f"{path}: {reason}", with_detail(step, detail))


def _document(line: str, number: int, noted: set[str]) -> ParsedDocument:
    """The document of a line.

    Raises:
        ValueError: it is no record.
    """
    try:
        record = strict_json.parse_strict(line)
    except strict_json.NotStrictError as error:
        raise ValueError("is not JSON") from error
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 (all are bad lines)
    key = record.get("_id", record.get("id", f"line-{number}"))
    if isinstance(key, bool) or not isinstance(key, str | int) or not str(key).strip():
        raise ValueError("has an _id that is neither a string nor a number")
    key = clean(str(key))[0]
    title, text = ("" if record.get(name) is None else record[name] for name in ("title", "text"))
    for name, value in (("title", title), ("text", text)):
        if not isinstance(value, str):
            raise ValueError(f"has a {name} that is not a string")  # noqa: TRY004 (all are bad lines)
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ValueError("has metadata that is not an object")  # noqa: TRY004 (all are bad lines)
    declared = _declared(metadata)
    if title:
        declared.setdefault("title", clean(title)[0])
    # Exports number their records with `id`, so two files have the same ones.
    if "_id" in record:
        declared["document_id"] = key
    # A record without text is indexed by its title.
    text, replaced = clean(with_newlines(title if is_blank(text) else text))
    paragraphs = (part.strip("\n") for part in _BLANK_LINES.split(text))
    return ParsedDocument(
        blocks=tuple(Block("paragraph", p, number, number) for p in paragraphs if not is_blank(p)),
        declared=declared,
        declared_at=number,
        key=key,
        line_exact=False,
        notes=_unknown_keys(metadata, noted) + cleaned_note(replaced),
    )


READERS = {"json": Reader("json", 2, _read_json), "jsonl": Reader("jsonl", 6, _read_jsonl)}
