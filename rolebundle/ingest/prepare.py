"""Files, from their bytes to the values that are stored.

Runs in worker processes: no access to the corpus, and only plain values in and out.
"""

from __future__ import annotations

import json
import os
import traceback
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from itertools import accumulate, compress, islice, repeat
from time import time_ns
from typing import Any, NamedTuple, get_type_hints

from rolebundle.contracts.documents import (
    METADATA_VERSION,
    OBSERVED_TYPE,
    Attributes,
    DocumentMetadata,
    attribute_lines,
    attribute_texts,
    iso_utc,
)
from rolebundle.contracts.ingest import Skipped
from rolebundle.errors import DocumentError, RolebundleError, with_detail
from rolebundle.ingest import readers
from rolebundle.ingest.attachments import with_attachments
from rolebundle.ingest.authority import AUTHORITY_VERSION
from rolebundle.ingest.chunking import (
    CHUNKER_VERSION,
    ChunkSettings,
    chunk_document,
    with_note_on_data,
)
from rolebundle.ingest.declarations import MAX_BYTES, with_unread
from rolebundle.ingest.metadata import grouped, resolve
from rolebundle.ingest.parsed import Block, Flag, ParsedDocument
from rolebundle.ingest.turns import QUOTED, with_turns
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, read_bytes, skipped_for
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.finding import SecretsPolicy
from rolebundle.scan.hidden_text import find_hidden, normalized
from rolebundle.scan.instructions import (
    MAX_FINDINGS_PER_PATTERN,
    find_instructions,
    patterns_digest,
)
from rolebundle.scan.scan import NEAR_CHARS, ScanResult, scan_text
from rolebundle.scan.secrets import masked
from rolebundle.storage.documents import (
    FileIdentity,
    Scanned,
    StoredChunk,
    StoredDocument,
    StoredFile,
)
from rolebundle.text.decoding import one_line
from rolebundle.text.forms import FORMS_VERSION, document_language, index_text
from rolebundle.text.words import first_of

# The language of a document is detected in this many chunks.
_LANGUAGE_CHUNKS = 3
_MAX_NAMED_CLAIMS = 5
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
    """A file ready to be stored; while it is read, its documents are :class:`IntakeDocument`.

    ``notes`` are remarks on the file (code ``note``) and the errors of records that are not stored.
    """

    file: StoredFile
    documents: tuple[Any, ...]
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


def prepare_files(files: Sequence[FileEntry], settings: RunSettings) -> list[Outcome]:
    """Read, parse, scan and chunk files, in order. A file with an error becomes ``Skipped``.

    Each step runs over all files of the group before the next one starts: the code and tables of a
    step stay in the processor's cache, which saves a sixth of the time.
    """
    read = [_read(file, settings) for file in files]
    intake = [d for outcome in read if isinstance(outcome, Prepared) for d in outcome.documents]
    try:
        documents = iter(stored_documents(intake, settings))
    except RolebundleError:
        raise
    except Exception as error:
        if len(files) == 1:
            return [_failed(files[0], error)]
        return [outcome for file in files for outcome in prepare_files([file], settings)]
    outcomes: list[Outcome] = []
    for file, outcome in zip(files, read, strict=True):
        if isinstance(outcome, Prepared):
            own = tuple(islice(documents, len(outcome.documents)))
            notes = outcome.notes
            if file.size and own and not any(document.chunks for document in own):
                # The user should know why the file is in no answer.
                notes += (Skipped(file.path, "note", "it has no text"),)
            outcomes.append(Prepared(outcome.file, own, notes))
        else:
            outcomes.append(outcome)
    return outcomes


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


def _read(file: FileEntry, settings: RunSettings) -> Outcome:
    """The first step: read a file, parse it and resolve metadata.

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
        return Prepared(stored, tuple(documents), tuple(notes))
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
        parsed = with_turns(with_note_on_data(one))
        try:
            metadata = resolve(file.path, file.defaults, parsed)
        except DocumentError as error:
            if not parsed.key:
                raise
            notes.append(skipped_for(file.path, error))
            has_bad_metadata = True
            continue
        if not metadata.updated_at:
            metadata = metadata._replace(inferred_at=inferred_at(file))
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
    name, defaults = _reader_name(file), file.defaults
    names = readers.NAMES if _has_attachments(file) else (name,)
    version = tuple(readers.reader_named(one)[0] for one in names)
    chunks = settings.chunks
    # Hashes are stored: if a part of them changes, all files are read again.
    parts = (
        *(name, CHUNKER_VERSION, FORMS_VERSION, defaults.fingerprint),
        *(AUTHORITY_VERSION, METADATA_VERSION, defaults.authority.default_source),
        *(sorted(defaults.ignore_keys), *version),
        *(chunks.size, 0, chunks.maximum, settings.secrets, patterns_digest()),
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


def stored_documents(
    documents: Sequence[IntakeDocument], settings: RunSettings
) -> list[StoredDocument]:
    """The steps after reading: scan ─▶ chunk ─▶ word forms."""
    scanned = [scan_document(document, settings.secrets) for document in documents]
    chunked = [
        (
            metadata,
            _with_flags(_chunks(parsed, metadata, settings.chunks), parsed),
            record,
        )
        for parsed, metadata, record in scanned
    ]
    return [
        StoredDocument(metadata, _with_forms(chunks, metadata), record)
        for metadata, chunks, record in chunked
    ]


def _chunks(
    parsed: ParsedDocument, metadata: DocumentMetadata, settings: ChunkSettings
) -> tuple[StoredChunk, ...]:
    """The chunks of a document; those of a mail are under its sender, receivers and date."""
    chunks = chunk_document(metadata.document_id, parsed, settings)
    people = dict(metadata.attributes) if metadata.document_type == "mail" else {}
    if not people.get("from"):
        return chunks
    names = [_names(people.get(key, ())) for key in ("from", "to")]
    parts = (f"from {names[0]}", f"to {names[1]}" * bool(names[1]))
    when = (metadata.updated_at or "")[:10]
    head = ", ".join(filter(None, (" ".join(filter(None, parts)), when)))
    return tuple(
        chunk
        if chunk.anchor.rpartition(", ")[2].startswith(QUOTED)
        else chunk._replace(headings=(head, *chunk.headings))
        for chunk in chunks
    )


def _names(people: Sequence[str]) -> str:
    """The names of people, or the addresses of those without one."""
    return ", ".join(person.partition(" <")[0] for person in people[:_MAX_PEOPLE])


def _with_flags(chunks: tuple[StoredChunk, ...], parsed: ParsedDocument) -> tuple[StoredChunk, ...]:
    """The chunks with the kinds of what the scan found in their lines and headings."""
    if parsed.flags is None:
        return chunks
    flagged = []
    for chunk in chunks:
        first, last = chunk.start_line, chunk.end_line
        kinds = {f.kind for f in parsed.flags if f.start_line <= last and first <= f.end_line}
        # The lines of headings may be those of an earlier chunk.
        kinds |= {finding.kind for finding in find_instructions("\n".join(chunk.headings))}
        flagged.append(chunk._replace(flags=(*sorted(kinds),)))
    return tuple(flagged)


def _with_forms(
    chunks: tuple[StoredChunk, ...], metadata: DocumentMetadata
) -> tuple[StoredChunk, ...]:
    """The chunks with the word forms that are indexed in addition to their words."""
    beginning = (chunk.content for chunk in chunks[:_LANGUAGE_CHUNKS])
    language = document_language(beginning, metadata.language or "")
    of_document = (metadata.title, *metadata.tags, *metadata.retrieval_hints)
    of_first = attribute_texts(metadata.attributes)
    forms = []
    for number, chunk in enumerate(chunks):
        own = (chunk.content, *chunk.headings, *chunk.tags, *of_document)
        forms.append(index_text(own if number else (*own, *of_first), language))
    if not any(forms):
        return chunks
    return tuple(chunk._replace(forms=own) for chunk, own in zip(chunks, forms, strict=True))


# -- intake scan --
#
# The intake scan: removes hidden text from documents and masks secrets before they are chunked.
#
# Removed text is neither indexed nor shown nor cited. Line breaks stay, so that locators are
# correct. The original text is stored with the findings, without its secrets. The same secret is
# masked in the same way everywhere, so that ids which name each other still do.


_SEPARATOR = "\n\n"
_SHOWN_LISTS = ("tags", "retrieval_hints", "refused_claims")
_REFERENCES = ("supersedes", "contradicts")
_NAMES = tuple(
    name
    for name, kind in get_type_hints(DocumentMetadata).items()
    if kind is str and name not in ("title", "language", "source_kind", "scope")
)
"""What names a document. Scope, sensitivity and roles are words of the policy."""
_MAX_FINDINGS = 200
_MAX_SOUGHT = 20
"""Of more hidden parts of a document it is not looked for the passages that have them."""


IntakeDocument = tuple[ParsedDocument, DocumentMetadata]
"""A document as read, and its metadata."""
ScannedDocument = tuple[ParsedDocument, DocumentMetadata, Scanned | None]
"""A document without hidden text, its metadata, and the findings; ``None`` if there are none."""


def scan_document(document: IntakeDocument, secrets: SecretsPolicy = "mask") -> ScannedDocument:
    """Scan a document and remove hidden text.

    Title, tags and other metadata are scanned as well, because models see them.
    """
    parsed, metadata = document
    masks = secrets == "mask"
    # The title is first. The other metadata is last, so that offsets in the text do not depend on
    # it. The cleaned texts are read from the result in the same order.
    described = _metadata_text(parsed, metadata)
    text = _SEPARATOR.join((metadata.title, *_content_texts(parsed), described))
    body = (len(metadata.title), len(text) - len(described))
    result = scan_text(text, body, parsed.hidden, secrets)
    if result.text == text and result.verdict == "clean":
        return parsed, metadata, None
    parsed = replace(parsed, flags=(*_flags(result, text, body, parsed),))
    if result.text == text:
        return parsed, metadata, _scan_record(result, text, masks=masks)
    lines = iter(result.text.split("\n"))
    clean: dict[str, Any] = {
        "title": _next_text(lines, metadata.title),
        "attributes": _clean_attributes(metadata.attributes, masks),
        **{key: _clean_all(getattr(metadata, key), masks) for key in _SHOWN_LISTS},
    }
    if masks:
        clean |= {key: without_secrets(getattr(metadata, key)) for key in _NAMES}
        clean |= {key: tuple(map(without_secrets, getattr(metadata, key))) for key in _REFERENCES}
    record = _scan_record(result, text, masks=masks)
    return _with_content_texts(parsed, lines, masks), metadata._replace(**clean), record


def _flags(
    result: ScanResult, text: str, body: tuple[int, int], parsed: ParsedDocument
) -> Iterator[Flag]:
    """The findings in a document by line.

    Title and metadata are shown with each passage, and what was removed may be from any.
    """
    if is_exact := parsed.line_exact and not parsed.ready:
        units, spans = parsed.lines, [(n, n) for n in range(1, len(parsed.lines) + 1)]
    else:
        units = _content_texts(parsed)
        spans = [(item.start_line, item.end_line) for item in parsed.ready or parsed.blocks]
    gap = 1 if is_exact else len(_SEPARATOR)
    first = body[0] + len(_SEPARATOR)
    starts = [*accumulate(units, lambda at, unit: at + len(unit) + gap, initial=first)]
    counts = Counter(finding.kind for finding in result.findings)
    for kind, start, end, *_ in result.findings:
        # What a pattern found after so many others was not reported.
        if counts[kind] < MAX_FINDINGS_PER_PATTERN and first <= start and end <= body[1]:
            above, below = (spans[bisect_right(starts, at) - 1] for at in (start, end - 1))
            yield Flag(kind, above[0], below[1])
        else:
            yield Flag(kind)
    yield from (Flag(finding.kind) for finding in result.markup if finding.severity == "high")
    lines = [*map(one_line, units)]
    for number, part in enumerate(part for part in parsed.hidden if part.is_labelled):
        hidden, places = one_line(part.text), list[Flag]()
        if part.is_kept and hidden and len(hidden) <= NEAR_CHARS and number < _MAX_SOUGHT:
            near = [line and (line in hidden or hidden in line) for line in lines]
            places = [Flag(part.kind, *span) for span in compress(spans, near)]
        yield from places or [Flag(part.kind)]


def _content_texts(parsed: ParsedDocument) -> list[str]:
    if parsed.ready:
        return [chunk.content for chunk in parsed.ready]
    if parsed.line_exact:
        return ["\n".join(parsed.lines)]
    return [block.text for block in parsed.blocks]


def _metadata_text(parsed: ParsedDocument, metadata: DocumentMetadata) -> str:
    """The metadata that a model may see besides the text; an id may be a file name."""
    words = [getattr(metadata, name) for name in _NAMES]
    words += [*metadata.tags, *metadata.retrieval_hints]
    words += [*metadata.supersedes, *metadata.contradicts, *metadata.refused_claims]
    # What this version makes of a document must not undo a release from quarantine.
    words += attribute_lines(tuple(one for one in metadata.attributes if one[0] != OBSERVED_TYPE))
    words += [tag for chunk in parsed.ready for tag in chunk.tags]
    return "\n".join(words)


def _clean_attributes(attributes: Attributes, masks: bool) -> Attributes:
    # Each value is read after its key, because `password: …` is a secret of any form.
    parts = (line.partition(": ") for line in _clean_all(attribute_lines(attributes), masks))
    return grouped((key, text) for key, _, text in parts if key and text.strip())


def _clean_all(texts: Sequence[str], masks: bool) -> tuple[str, ...]:
    return tuple(filter(None, (_clean(text, masks) for text in texts)))


def _clean(text: str, masks: bool) -> str:
    text = normalized(text, find_hidden(text))
    return without_secrets(text) if masks else text


def _with_content_texts(
    parsed: ParsedDocument, lines: Iterator[str], masks: bool
) -> ParsedDocument:
    """Replace the texts of :func:`_content_texts` by cleaned ones.

    Each cleaned text has as many lines as the text that it replaces.
    """
    if parsed.ready:
        chunks = [
            chunk._replace(
                content=_next_text(lines, chunk.content), tags=_clean_all(chunk.tags, masks)
            )
            for chunk in parsed.ready
        ]
        return replace(parsed, ready=tuple(chunks))
    clean_lines = parsed.lines
    if parsed.line_exact:
        clean_lines = _next_text(lines, "\n".join(parsed.lines)).split("\n")
        texts = ["\n".join(clean_lines[b.start_line - 1 : b.end_line]) for b in parsed.blocks]
    else:
        texts = [_next_text(lines, block.text) for block in parsed.blocks]
    blocks = map(_with_block_text, parsed.blocks, texts, repeat(masks))
    return replace(parsed, lines=clean_lines, blocks=tuple(blocks))


def _next_text(lines: Iterator[str], original: str) -> str:
    """The next text, which has as many lines as the original; also skips the separator."""
    text_lines = [next(lines) for _ in range(original.count("\n") + 1)]
    next(lines, None)
    return "\n".join(text_lines)


def _with_block_text(block: Block, text: str, masks: bool) -> Block:
    heading = block.heading
    if heading and block.text != text:
        # Hidden text in a heading block is also in its plain words.
        heading = _clean(heading, masks)
    # The header row may be in the text of another block.
    header = _clean(block.header, masks) if block.header else ""
    return block._replace(text=text, heading=heading, header=header)


def _scan_record(result: ScanResult, text: str, *, masks: bool) -> Scanned:
    findings = (*result.findings, *result.markup)
    original = "" if result.text == text else text
    if original and masks:
        # A masked secret must not be stored anywhere.
        original = masked(text, result.findings)
    # Also `label` for a clean verdict, if hidden text was removed. The hash identifies the scanned
    # content: a release by a person holds while it is the same.
    return Scanned(
        verdict=result.verdict if result.verdict == "quarantine" else "label",
        content_hash=blake2b(
            repr((text, result.markup)).encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest(),
        kinds=json.dumps(sorted({finding.kind for finding in findings})),
        findings=json.dumps([finding._asdict() for finding in findings[:_MAX_FINDINGS]]),
        original=original,
    )
