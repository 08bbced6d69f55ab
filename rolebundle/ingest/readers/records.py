"""Documents in JSON: a Knowledge Core corpus, or JSON Lines in BEIR's format.

A corpus has ready-made chunks; any other JSON file is text. Each line of JSON Lines is a document
with the keys ``_id`` or ``id``, ``title``, ``text`` and ``metadata``. Only ``_id`` is the id of a
document; ``id`` tells the records of a file apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rolebundle.contracts.ingest import METADATA_KEYS
from rolebundle.contracts.terms import ContentType
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import open_text
from rolebundle.ingest.readers.line_blocks import block_of, first_text, is_blank
from rolebundle.storage.documents import StoredChunk
from rolebundle.text import strict_json
from rolebundle.text.decoding import clean, cleaned, cleaned_note, cleaned_values, with_newlines

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
# After this many bad lines the file is probably no JSON Lines, and further reports do not help.
_MAX_PROBLEMS = 20


def _declared(record: Mapping[str, Any]) -> dict[str, object]:
    """The metadata that a record declares, with cleaned strings."""
    return {key: cleaned_values(value) for key, value in record.items() if key in METADATA_KEYS}


# JSON


def _read_json(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
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
        yield from _corpus(documents, text, path, notes)
        return
    first = first_text(lines)
    blocks = (block_of(lines, "code", first, len(lines)),) if first < len(lines) else ()
    yield ParsedDocument(blocks=blocks, lines=lines, notes=notes)


def _bad_json(path: str, line: int, reason: str, detail: str = "") -> DocumentError:
    step = with_detail("repair or exclude the file", detail)
    return DocumentError("bad_json", f"{path}:{line}: {reason}", step)


class _Chunk(BaseModel):
    """A ready-made chunk; other keys are ignored."""

    model_config = ConfigDict(strict=True)

    chunk_id: str = Field(pattern=r"\S")
    content: str = Field(pattern=r"\S")
    content_type: ContentType = "paragraph"
    tags: list[str] | None = None
    applicable_roles: list[str] | None = None
    excluded_roles: list[str] | None = None


def _corpus(
    records: Sequence[strict_json.LocatedObject], text: str, path: str, notes: tuple[str, ...]
) -> Iterator[ParsedDocument]:
    """The documents of a parsed corpus, with the lines of each chunk's content."""
    line_of = strict_json.line_index(text)
    for document in records:
        key = document.get("document_id")
        if not isinstance(key, str) or is_blank(key):
            raise _bad_json(path, line_of(document.at), "`document_id` must be a string")
        yield ParsedDocument(
            ready=tuple(_chunk(chunk, document, line_of, path) for chunk in document["chunks"]),
            declared=_declared(document),
            declared_at=line_of(document.at),
            key=cleaned(key),
            line_exact=False,
            notes=notes,
        )


def _chunk(
    chunk: Any, document: strict_json.LocatedObject, line_of: Callable[[int], int], path: str
) -> StoredChunk:
    if not isinstance(chunk, strict_json.LocatedObject):
        raise _bad_json(path, line_of(document.at), "a chunk must be an object")
    try:
        valid = _Chunk.model_validate(cleaned_values(chunk))
    except ValidationError as error:
        problem = error.errors()[0]
        reason = f"`{problem['loc'][0]}`: {problem['msg']}"
        raise _bad_json(path, line_of(chunk.at), reason) from error
    first, last = map(line_of, chunk.spans["content"])
    lists = ("tags", "applicable_roles", "excluded_roles")
    more: dict[str, Any] = {name: tuple(getattr(valid, name) or ()) for name in lists}
    kind = valid.content_type
    return StoredChunk(valid.chunk_id, (), valid.content, kind, "", first, last, **more)


# JSON Lines


_RECORD_KEYS = frozenset(("_id", "id", "title", "text", "metadata"))


def _read_jsonl(
    data: bytes, path: str, _separator: str
) -> Iterable[ParsedDocument | DocumentError]:
    """One document per line, or the error ``bad_json_line``. The other lines are still read.

    Raises:
        DocumentError: ``undecodable``.
    """
    problems = 0
    first_lines: dict[str, int] = {}
    for number, line in enumerate(open_text(data, path)[0], 1):
        if is_blank(line):
            continue
        try:
            document = _document(line, number)
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


def _document(line: str, number: int) -> ParsedDocument:
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
    key = cleaned(str(key))
    for name in ("title", "text"):
        if not isinstance(record.get(name), str | None):
            raise ValueError(f"has a {name} that is not a string")  # noqa: TRY004 (all are bad lines)
    title, text = record.get("title") or "", record.get("text") or ""
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ValueError("has metadata that is not an object")  # noqa: TRY004 (all are bad lines)
    declared = _declared(metadata)
    if title:
        declared.setdefault("title", cleaned(title))
    # Exports number their records with `id`, so two files have the same ones.
    if "_id" in record:
        declared["document_id"] = key
    others = {name: value for name, value in record.items() if name not in _RECORD_KEYS and value}
    lines = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in others.items()
    )
    # A record without any text is indexed by its title.
    text = "\n\n".join(filter(None, (text, "\n".join(lines)))) or title
    text, replaced = clean(with_newlines(text))
    paragraphs = (part.strip("\n") for part in _BLANK_LINES.split(text))
    return ParsedDocument(
        blocks=tuple(Block("paragraph", p, number, number) for p in paragraphs if not is_blank(p)),
        declared=declared,
        declared_at=number,
        key=key,
        line_exact=False,
        notes=cleaned_note(replaced),
    )


READERS = {"json": (3, _read_json), "jsonl": (7, _read_jsonl)}
