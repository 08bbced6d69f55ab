"""Files, from their bytes to the values that are stored.

Runs in worker processes: no access to the corpus, and only plain values in and out.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from time import time_ns
from typing import NamedTuple

from rolebundle.contracts.documents import (
    METADATA_VERSION,
    DocumentMetadata,
    attribute_texts,
    iso_utc,
    message_of,
)
from rolebundle.contracts.ingest import Skipped
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest import readers
from rolebundle.ingest.attachments import with_attachments
from rolebundle.ingest.authority import AUTHORITY_VERSION
from rolebundle.ingest.chunking import CHUNKER_VERSION, ChunkSettings, chunk_document
from rolebundle.ingest.clauses import with_clauses
from rolebundle.ingest.declarations import MAX_BYTES, with_unread
from rolebundle.ingest.intake_scan import IntakeDocument, scan_document, with_flags
from rolebundle.ingest.metadata import resolve
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.turns import with_turns
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, read_bytes, skipped_for
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.finding import SecretsPolicy
from rolebundle.scan.instructions import patterns_digest
from rolebundle.storage.documents import FileIdentity, StoredChunk, StoredDocument, StoredFile
from rolebundle.text.forms import FORMS_VERSION, document_language, index_text
from rolebundle.text.tasks import OPEN_TASK, tasks_in
from rolebundle.text.words import counted, first_of

# The language of a document is detected in this many chunks.
_LANGUAGE_CHUNKS = 3
_MAX_NAMED_CLAIMS = 5
_DATA = re.compile(r";base64,[A-Za-z0-9+/=_-]{400}")
_MAX_PEOPLE = 5
_MARKUP_FORMATS = frozenset("html ipynb".split())
# What is attached to them is read by any reader.
_MAIL_FORMATS = frozenset("eml emlx enex mbox msg".split())
# Codes with which a file that is no text may be skipped before it is recognized.
_MAYBE_UNSUPPORTED = frozenset({"too_large", "undecodable"})

# Codes of files whose reading was ended. A process reads them once, unless they change.
ENDED_CODES = frozenset({"too_slow", "too_much_memory", "reader_crashed"})
# Codes of files and folders that could not be read. Their documents stay in the corpus.
TRANSIENT_CODES = frozenset({"unreadable", "unreadable_folder", *ENDED_CODES})
_TICK_NS = 2_000_000_000
"""The clocks of file systems tick every two seconds at the slowest."""
# Archives and reproducible builds write 1970-01-01 or 1980-01-01 as the time of a file.
_FIRST_DAY = datetime(1980, 1, 3, tzinfo=UTC).timestamp()


class RunSettings(NamedTuple):
    """Settings that are the same for all files of a root."""

    chunks: ChunkSettings = ChunkSettings()
    size_cap: int = DEFAULT_SIZE_CAP
    secrets: SecretsPolicy = "mask"
    """What the intake scan does with secrets."""


class Prepared(NamedTuple):
    """A file ready to be stored.

    ``notes`` are remarks on the file (code ``note``) and the errors of records that are not stored.
    """

    file: StoredFile
    documents: tuple[StoredDocument, ...]
    notes: tuple[Skipped, ...]


Outcome = Prepared | Skipped


def is_heavy(file: FileEntry) -> bool:
    """Whether a small file may take long, because it can expand to a large one."""
    return _reader_name(file) in readers.HEAVY_FORMATS


def is_plain(file: FileEntry) -> bool:
    """Whether a file is read line by line, in a time that its size limits."""
    others = readers.HEAVY_FORMATS | _MARKUP_FORMATS
    return _reader_name(file) not in others and not _has_attachments(file)


def may_crash(file: FileEntry) -> bool:
    """Whether a broken file may end the process that reads it."""
    return _reader_name(file) == "pdf" or _has_attachments(file)


def _has_attachments(file: FileEntry) -> bool:
    """Whether files of any format may be in a file."""
    return _reader_name(file) in _MAIL_FORMATS or readers.may_be_mail(file.path)


Verified = dict[str, tuple[object, str | Skipped]]
"""What runs of this process found out about files; it holds while size and time are the same.

By location the state of the file, and its hash or why it was skipped. A later run does not read a
file again that had the hash of the corpus, or that was skipped.
"""


def remember(
    verified: Verified, file: FileEntry, settings: RunSettings, outcome: str | Skipped
) -> None:
    """Remember the hash of a file, or why it was skipped."""
    # Only if a change from now on certainly gives it another time.
    if file.modified_ns < time_ns() - _TICK_NS:
        verified[file.location] = _state(file, settings), outcome


def _state(file: FileEntry, settings: RunSettings) -> object:
    return file.size, file.modified_ns, settings.size_cap, _recipe(file, settings)


def unread_outcome(
    file: FileEntry, known: FileIdentity | None, settings: RunSettings, verified: Verified
) -> Skipped | bool:
    """Why a file is skipped again; or whether the corpus has its bytes and recipe.

    Nothing is parsed, and no file is read that did not change since it was verified.

    Args:
        file: the file.
        known: what the corpus has of it.
        settings: settings of the run.
        verified: what earlier runs found out.
    """
    found = verified.get(file.location)
    outcome = found[1] if found and found[0] == _state(file, settings) else None
    if isinstance(outcome, Skipped):
        return outcome
    if known is None:
        return False
    path, file_hash, recipe = known
    if path != _stored_path(file, settings) or recipe != _recipe(file, settings):
        return False
    if outcome != file_hash:
        try:
            outcome = hash_of_file(read_bytes(file.location, file.path, settings.size_cap))
        except DocumentError:
            return False
        remember(verified, file, settings, outcome)
    return outcome == file_hash


def prepared(file: FileEntry, settings: RunSettings) -> Outcome:
    """Read, parse, scan and chunk a file. A file with an error becomes ``Skipped``.

    An error in one of several documents becomes a note, and the others are stored. If there are no
    others, the file is skipped. The reader's errors depend on the bytes only, so such a file is not
    read again until it changes. Metadata may also come from a manifest, so a file with bad metadata
    is read again in each run.
    """
    try:
        data = read_bytes(file.location, file.path, settings.size_cap)
        name = file.defaults.reader or readers.reader_name_of(file.path, data)
        parsed = readers.read_file(data, file.path, name, file.defaults.separator)
        documents, notes, has_bad_metadata = _documents(file, parsed, name, data[:MAX_BYTES])
        if notes and not documents and not has_bad_metadata:
            return notes[0]  # None of its records can be read.
        # Without a recipe no later run takes the file for unchanged.
        recipe = "" if has_bad_metadata else _recipe(file, settings)
        path, file_hash = _stored_path(file, settings), hash_of_file(data)
        stored = StoredFile(file.location, path, file_hash, recipe, file.size, file.modified_ns)
        own = tuple(stored_document(document, settings) for document in documents)
        if file.size and own and not any(document.chunks for document in own):
            # The user should know why the file is in no answer.
            notes.append(Skipped(file.path, "note", "it has no text"))
        return Prepared(stored, own, tuple(notes))
    except DocumentError as error:
        if error.code in _MAYBE_UNSUPPORTED and (kind := readers.kind_of(file.path)):
            return Skipped(file.path, "unsupported", f"{file.path}: {kind}")
        return skipped_for(file.path, error)
    except Exception as error:
        return _failed(file, error)


def _documents(
    file: FileEntry,
    parsed_documents: Iterable[ParsedDocument | DocumentError],
    reader: str,
    beginning: bytes,
) -> tuple[list[IntakeDocument], list[Skipped], bool]:
    """The documents of a file, the notes on it, and whether one of them has bad metadata.

    Raises:
        DocumentError: the file's only document has bad metadata.
    """
    documents: list[IntakeDocument] = []
    notes: list[Skipped] = []
    refused: list[str] = []
    has_bad_metadata = False
    for one in with_attachments(file.path, parsed_documents):
        if isinstance(one, DocumentError):
            notes.append(skipped_for(file.path, one))
            continue
        parsed = with_clauses(with_turns(_with_note_on_data(one)))
        try:
            metadata = resolve(file.path, file.defaults, parsed, inferred_at(file))
        except DocumentError as error:
            if not parsed.key:
                raise
            notes.append(skipped_for(file.path, error))
            has_bad_metadata = True
            continue
        refused += metadata.refused_claims
        document, ignored = _allowed(file, parsed), file.defaults.ignore_keys
        document = with_unread(document, metadata, reader, beginning, *ignored)
        documents.append((document, metadata))
        notes += [Skipped(file.path, "note", note) for note in document.notes]
    if refused:  # Declarations that the owner does not allow.
        named = first_of([*dict.fromkeys(refused)], _MAX_NAMED_CLAIMS)
        message = f"{file.path}: it may not declare {named}: flags or a manifest say otherwise"
        notes.insert(0, Skipped(file.path, "claim_refused", message))
    return documents, notes, has_bad_metadata


def _with_note_on_data(parsed: ParsedDocument) -> ParsedDocument:
    """The document with a note on the content of files, such as images, written in its text."""
    found = sum(len(_DATA.findall(b.text)) for b in parsed.blocks if ";base64," in b.text)
    note = f"left out: {counted(found, 'file')} written in the text"
    return replace(parsed, notes=(*parsed.notes, note)) if found else parsed


def inferred_at(file: FileEntry) -> str | None:
    """When a file was last changed, ISO 8601 in UTC; ``None`` if it is not known."""
    seconds = file.modified_ns // 1_000_000_000
    if seconds < _FIRST_DAY:
        return None
    try:
        return iso_utc(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _failed(file: FileEntry, error: Exception) -> Skipped:
    """A file in which a defect of this program shows. The other files are not affected."""
    if isinstance(error, MemoryError):
        problem = "reading it takes too much memory; split it, or exclude it"
        return Skipped(file.path, "too_much_memory", f"{file.path}: {problem}")
    if os.environ.get("ROLEBUNDLE_DEBUG"):
        traceback.print_exception(error)
    step = with_detail("please report it; ROLEBUNDLE_DEBUG=1 shows where it happened", error)
    problem = f"{file.path}: rolebundle failed on it, which is a defect; {step}"
    return Skipped(file.path, "reader_failed", problem)


def _stored_path(file: FileEntry, settings: RunSettings) -> str:
    """The path that the corpus has, which citations show."""
    return without_secrets(file.path) if settings.secrets == "mask" else file.path


def hash_of_file(data: bytes) -> str:
    """The stored hash of a file's bytes."""
    # Most processors have instructions for SHA-256, which make it twice as fast as blake2b.
    return sha256(data, usedforsecurity=False).hexdigest()


def _reader_name(file: FileEntry) -> str:
    return file.defaults.reader or readers.reader_name_for(file.path) or "text"


def _recipe(file: FileEntry, settings: RunSettings) -> str:
    """A hash of everything that determines the stored documents, except path and bytes."""
    name = _reader_name(file)
    names = readers.NAMES if _has_attachments(file) else (name,)
    # Hashes are stored: if a part of them changes, all files are read again.
    parts = (
        *(name, *(readers.reader_named(one)[0] for one in names)),
        *(CHUNKER_VERSION, FORMS_VERSION, AUTHORITY_VERSION, METADATA_VERSION, patterns_digest()),
        *(file.defaults.fingerprint, settings.chunks, settings.secrets),
    )
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _allowed(file: FileEntry, parsed: ParsedDocument) -> ParsedDocument:
    """The document without what its ready-made chunks may not declare.

    Their ids could be another document's. Roles that it is for would raise its rank.
    """
    authority = file.defaults.authority
    may_not_govern = authority.may_not_govern
    if not parsed.ready or not (may_not_govern or "applicable_roles" in authority.bound):
        return parsed
    allowed = () if may_not_govern else authority.values["applicable_roles"]
    ready = tuple(
        chunk._replace(
            chunk_id="" if may_not_govern else chunk.chunk_id,
            applicable_roles=tuple(role for role in chunk.applicable_roles if role in allowed),
        )
        for chunk in parsed.ready
    )
    return replace(parsed, ready=ready)


def stored_document(document: IntakeDocument, settings: RunSettings) -> StoredDocument:
    """The steps after reading: scan ─▶ chunk ─▶ word forms."""
    parsed, metadata, record = scan_document(document, settings.secrets)
    chunks = with_flags(_chunks(parsed, metadata, settings.chunks), parsed)
    return StoredDocument(metadata, _with_forms(chunks, metadata), record)


def _chunks(
    parsed: ParsedDocument, metadata: DocumentMetadata, settings: ChunkSettings
) -> tuple[StoredChunk, ...]:
    """The chunks of a document; those of a mail are under its sender, receivers and date."""
    chunks = chunk_document(metadata.document_id, parsed, settings)
    people = dict(metadata.attributes) if metadata.document_type == "mail" else {}
    if not people.get("from"):
        return chunks
    # The names of people, or the addresses of those without one.
    shown = (people.get(key, ())[:_MAX_PEOPLE] for key in ("from", "to"))
    names = [", ".join(person.partition(" <")[0] for person in some) for some in shown]
    parts = (f"from {names[0]}", f"to {names[1]}" * bool(names[1]))
    when = (metadata.updated_at or "")[:10]
    head = ", ".join(filter(None, (" ".join(filter(None, parts)), when)))
    return tuple(
        chunk if message_of(chunk.anchor)[1] else chunk._replace(headings=(head, *chunk.headings))
        for chunk in chunks
    )


def _with_forms(
    chunks: tuple[StoredChunk, ...], metadata: DocumentMetadata
) -> tuple[StoredChunk, ...]:
    """The chunks with the word forms that are indexed in addition to their words."""
    beginning = (chunk.content for chunk in chunks[:_LANGUAGE_CHUNKS])
    language = document_language(beginning, metadata.language or "")
    of_document = (metadata.title, *metadata.tags, *metadata.retrieval_hints)
    of_first = attribute_texts(metadata.attributes)
    found = []
    for number, chunk in enumerate(chunks):
        own = (chunk.content, *chunk.headings, *chunk.tags, *of_document)
        forms = index_text(own if number else (*own, *of_first), language)
        if "open" in tasks_in(chunk.content):
            forms = f"{forms} {OPEN_TASK}"
        found.append(chunk._replace(forms=forms) if forms else chunk)
    return tuple(found)
