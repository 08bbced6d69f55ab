"""JSON Lines in BEIR's format: each line is a document.

Its keys are ``_id`` or ``id``, ``title``, ``text`` and ``metadata``. Only ``_id`` is the id of a
document; ``id`` tells the records of a file apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions, is_blank, open_text
from rolebundle.ingest.readers.records import UnknownKeys, declared_metadata
from rolebundle.text.decoding import clean, cleaned_note, has_bom, looks_binary, split_lines
from rolebundle.text.strict_json import NotStrictError, parse_strict

_OBJECT = re.compile(rb"^[ \t]*\{", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
# After this many bad lines the file is probably no JSON Lines, and further reports do not help.
_MAX_PROBLEMS = 20


class _BadRecordError(ValueError):
    """Why a line is not a record. The reason continues a sentence that begins with the line."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


class JsonlReader:
    """Reads ``.jsonl``. A bad line is reported and the others are still read."""

    name = "jsonl"
    suffixes = suffixes_of("jsonl")
    version = 4

    def read(
        self, data: bytes, path: str, options: ReaderOptions
    ) -> Iterable[ParsedDocument | DocumentError]:
        """One document per line, or the error ``bad_json_line``.

        Raises:
            DocumentError: ``undecodable`` or ``binary``: no line can be a record.
        """
        problems = 0
        first_lines: dict[str, int] = {}
        unknown = UnknownKeys()
        for number, line in enumerate(_lines(data, path), 1):
            if line is not None and is_blank(line):
                continue
            try:
                if line is None:
                    raise _BadRecordError("is not UTF-8")
                document = _document(line, number, unknown)
                first_line = first_lines.setdefault(document.key, number)
                if first_line != number:
                    raise _BadRecordError(f"repeats the _id of line {first_line}")
                yield document
            except _BadRecordError as error:
                problems += 1
                if problems <= _MAX_PROBLEMS:
                    yield _bad_line(path, f"line {number} {error}", error.detail)
        if problems > _MAX_PROBLEMS:
            yield _bad_line(path, f"{problems - _MAX_PROBLEMS} more lines are bad")


def _lines(data: bytes, path: str) -> Sequence[str | None]:
    """The lines; ``None`` for one that is not UTF-8, so that it does not change the others.

    A file without any line in UTF-8, apart from ASCII, is decoded as a whole, like other text.
    """
    if looks_binary(data) and not _OBJECT.search(data):
        raise DocumentError("binary", f"{path}: binary data, not text", "exclude the file")
    try:
        return open_text(data, path).lines if has_bom(data) else split_lines(_utf8(data))
    except UnicodeDecodeError:
        lines = [_decoded_line(line) for line in data.splitlines()]
    is_utf8 = any(line is not None and not line.isascii() for line in lines)
    if not is_utf8:
        try:
            return open_text(data, path).lines
        except DocumentError:
            if not _OBJECT.search(data):
                raise
    return lines


def _utf8(data: bytes) -> str:
    return data.decode("utf-8").replace("\x00", "\ufffd")


def _decoded_line(line: bytes) -> str | None:
    try:
        return _utf8(line)
    except UnicodeDecodeError:
        return None


def _bad_line(path: str, reason: str, detail: str = "") -> DocumentError:
    step = 'each line is {"_id": "…", "title": "…", "text": "…", "metadata": {…}}'
    return DocumentError("bad_json_line", f"{path}: {reason}", with_detail(step, detail))


def _document(line: str, number: int, unknown: UnknownKeys) -> ParsedDocument:
    record = _record(line)
    key = _key(record, number)
    title, text = _text(record, "title"), _text(record, "text")
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _BadRecordError("has metadata that is not an object")
    declared = declared_metadata(metadata)
    if title:
        declared.setdefault("title", title)
    # Exports number their records with `id`, so two files have the same ones.
    if "_id" in record:
        declared["document_id"] = key
    # A record without text is indexed by its title.
    text, replaced = clean(text if not is_blank(text) else title)
    return ParsedDocument(
        blocks=tuple(_paragraphs(text, number)),
        declared=declared,
        declared_at=number,
        key=key,
        line_exact=False,
        notes=unknown.note(metadata) + cleaned_note(replaced),
    )


def _record(line: str) -> dict[str, Any]:
    try:
        record = parse_strict(line)
    except NotStrictError as error:
        raise _BadRecordError("is not JSON", str(error)) from error
    if not isinstance(record, dict):
        raise _BadRecordError("is not a JSON object")
    return record


def _key(record: dict[str, Any], number: int) -> str:
    key = record.get("_id", record.get("id", f"line-{number}"))
    if isinstance(key, bool) or not isinstance(key, str | int) or not str(key).strip():
        raise _BadRecordError("has an _id that is neither a string nor a number")
    return clean(str(key))[0]


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if value is None:
        value = ""
    if not isinstance(value, str):
        raise _BadRecordError(f"has a {key} that is not a string")
    return clean(value)[0] if key == "title" else value


def _paragraphs(text: str, line: int) -> Iterator[Block]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    for paragraph in _BLANK_LINES.split(text) if "\n" in text else (text,):
        visible_text = paragraph.strip("\n")
        if not is_blank(visible_text):
            yield Block("paragraph", visible_text, line, line)


READER = JsonlReader()
