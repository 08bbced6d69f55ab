"""Files, from their bytes to what is stored. Runs in worker processes: no corpus, plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, sha256
from itertools import islice
from typing import NamedTuple

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.errors import DocumentError
from rolebundle.ingest.chunking import CHUNKER_VERSION, ChunkSettings, chunk_document
from rolebundle.ingest.door import MARKUP_READERS, Arrival, Examined, examine
from rolebundle.ingest.metadata import resolve
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import looks_binary, reader_for
from rolebundle.ingest.readers.base import Reader, ReaderOptions
from rolebundle.ingest.walk import FoundFile, Skipped, read_bytes
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage.chunk_rows import StoredChunk
from rolebundle.storage.store import FileIdentity, StoredDocument, StoredFile
from rolebundle.text.forms import FORMS_VERSION, document_language, index_text
from rolebundle.text.text_decoding import decode_noting

# So many chunks tell the language of a document, if any do.
_TELLING = 3
_BINARY_FORMATS = frozenset({"pdf"})

# Codes of files that could not be looked at; the corpus keeps what it had of them.
TRANSIENT = frozenset({"unreadable", "unreadable_folder"})


class Task(NamedTuple):
    """A found file and what the corpus knew of it, or ``None``."""

    file: FoundFile
    known: FileIdentity | None


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a whole run."""

    chunks: ChunkSettings
    size_cap: int
    default_source: str
    scan: ScanSettings | None = None
    """What the scan at the door looks for; ``None`` for no scan."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A file whose bytes and recipe are what the corpus holds."""

    location: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file ready to be stored; ``notes`` say what its reader left out."""

    file: StoredFile
    documents: tuple[StoredDocument, ...]
    notes: tuple[Skipped, ...]


Outcome = Unchanged | Prepared | Skipped


def prepare_all(tasks: Sequence[Task], settings: Settings) -> list[Outcome]:
    """Read, parse, scan and chunk several files, in order.

    Step by step and not file by file, as far as memory allows: a step's code and tables stay in the
    processor's cache from one file to the next, which saves a sixth of the time.
    A file that cannot be taken comes back as ``Skipped``.
    """
    files = [_read(task, settings) for task in tasks]
    arrivals = [one for file in files if isinstance(file, _Read) for one in file.arrivals]
    documents = iter(_documents(arrivals, settings))
    return [
        Prepared(file.file, tuple(islice(documents, len(file.arrivals))), file.notes)
        if isinstance(file, _Read)
        else file
        for file in files
    ]


def all_unchanged(tasks: Sequence[Task], settings: Settings) -> list[bool]:
    """For each file whether the corpus holds its bytes by its recipe; nothing is parsed."""
    return [_is_unchanged(task, settings) for task in tasks]


def _is_unchanged(task: Task, settings: Settings) -> bool:
    file = task.file
    if task.known is None:
        return False
    path, content_hash, recipe = task.known
    if path != file.path or recipe != _recipe(file, _reader(file), settings):
        return False
    try:
        return content_hash == _hash(read_bytes(file.location, path, settings.size_cap))
    except DocumentError:
        return False


@dataclass(frozen=True, slots=True)
class _Read:
    """A file after the first step."""

    file: StoredFile
    arrivals: tuple[Arrival, ...]
    notes: tuple[Skipped, ...]


def _read(task: Task, settings: Settings) -> _Read | Unchanged | Skipped:
    file = task.file
    try:
        data = read_bytes(file.location, file.path, settings.size_cap)
        reader = _reader(file)
        identity = (file.path, _hash(data), _recipe(file, reader, settings))
        if identity == task.known:
            return Unchanged(file.location)
        if reader.name not in _BINARY_FORMATS and looks_binary(data):
            raise DocumentError("binary", f"{file.path}: not text", "leave it out")
        source = _markup(data, file.path) if reader.name in MARKUP_READERS else None
        arrivals: list[Arrival] = []
        notes: list[Skipped] = []
        refused = False
        for parsed in reader.read(data, file.path, ReaderOptions(file.defaults.separator)):
            if isinstance(parsed, DocumentError):
                # One record of many that cannot be taken; the others go on.
                notes.append(Skipped(file.path, parsed.code, parsed.message))
                continue
            try:
                metadata = _metadata(file, parsed, settings)
            except DocumentError as error:
                if not parsed.key:
                    raise
                notes.append(Skipped(file.path, error.code, error.message))
                refused = True
                continue
            arrivals.append(Arrival(parsed, metadata, source))
            notes += [Skipped(file.path, "note", note) for note in parsed.notes]
        if refused:
            # Without a recipe it is read again by the next run, which says it again.
            identity = (*identity[:2], "")
        return _Read(StoredFile(file.location, *identity), tuple(arrivals), tuple(notes))
    except DocumentError as error:
        return Skipped(file.path, error.code, error.message)


def _markup(data: bytes, path: str) -> bytes | None:
    """The source of a page for the scan, which reads UTF-8."""
    if b"\x00" not in data:
        return data or None
    # UTF-16, in which no tag would be found. What the scan reads must be what the reader reads.
    return decode_noting(data, path)[0].encode("utf-8", "replace")


def _hash(data: bytes) -> str:
    # In hardware on most machines, and then twice as fast as blake2b.
    return sha256(data, usedforsecurity=False).hexdigest()


def _reader(file: FoundFile) -> Reader:
    # An unknown name was refused with the manifest or the flag that brought it.
    reader = reader_for(file.path, file.defaults.reader or None) or reader_for(file.path, "text")
    assert reader is not None
    return reader


def _recipe(file: FoundFile, reader: Reader, settings: Settings) -> str:
    """Everything but the path and the bytes that decides what is stored."""
    return _rules(reader.name, reader.version, settings, file.defaults.declared, file.ignore_keys)


@lru_cache(maxsize=1024)
def _rules(
    reader: str, version: int, settings: Settings, declared: str, ignore_keys: frozenset[str]
) -> str:
    # The same for most files of a folder.
    chunks = settings.chunks
    numbers = (version, chunks.size, chunks.overlap, chunks.maximum, repr(settings.scan))
    parts = (
        reader,
        CHUNKER_VERSION,
        FORMS_VERSION,
        declared,
        settings.default_source,
        sorted(ignore_keys),
    )
    return blake2b(repr((*parts, *numbers)).encode(), digest_size=8).hexdigest()


def _metadata(file: FoundFile, parsed: ParsedDocument, settings: Settings) -> DocumentMetadata:
    return resolve(
        file.path,
        file.defaults.values,
        parsed.declared,
        parsed.found,
        default_source=settings.default_source,
        key=parsed.key,
        declared_at=parsed.declared_at,
        ignore_keys=file.ignore_keys,
    )


def _documents(arrivals: Sequence[Arrival], settings: Settings) -> list[StoredDocument]:
    """The steps after reading: scan ─▶ chunk ─▶ forms."""
    if settings.scan is None:
        examined = [Examined(parsed, metadata, None) for parsed, metadata, _ in arrivals]
    else:
        examined = examine(arrivals, settings.scan)
    chunked = [
        (metadata, chunk_document(metadata.document_id, parsed, settings.chunks), scanned)
        for parsed, metadata, scanned in examined
    ]
    return [
        StoredDocument(metadata, _with_forms(chunks, metadata), scanned)
        for metadata, chunks, scanned in chunked
    ]


def _with_forms(
    chunks: tuple[StoredChunk, ...], metadata: DocumentMetadata
) -> tuple[StoredChunk, ...]:
    """The chunks with what the index gets of them beside their words."""
    beginning = (chunk.content for chunk in chunks[:_TELLING])
    language = document_language(beginning, metadata.language or "")
    of_document = (metadata.title, *metadata.tags, *metadata.retrieval_hints)
    found = [
        index_text((chunk.content, *chunk.headings, *chunk.tags, *of_document), language)
        for chunk in chunks
    ]
    if not any(found):
        return chunks
    return tuple(chunk._replace(forms=forms) for chunk, forms in zip(chunks, found, strict=True))
