"""The intake scan: removes hidden text from documents and masks secrets before they are chunked.

Removed text is neither indexed nor shown nor cited. Line breaks stay, so that locators are correct.
The original text is stored with the findings, without its secrets. The same secret is masked in the
same way everywhere, so that ids which name each other still do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from rolebundle.contracts.document import Attributes, DocumentMetadata, attribute_lines
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.hidden_text import find_hidden, normalized
from rolebundle.scan.scan import Scannable, ScanResult, scan_texts
from rolebundle.scan.secrets import masked
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage.content.quarantine import Scanned

MARKUP_READERS = frozenset({"html"})
"""Readers of which the scan searches the source for hidden markup as well."""
_SEPARATOR = "\n\n"
_MAX_FINDINGS = 200


class IntakeDocument(NamedTuple):
    """A document as read, its metadata, and its markup source if the format has markup."""

    parsed: ParsedDocument
    metadata: DocumentMetadata
    source: bytes | None = None


class ScannedDocument(NamedTuple):
    """A document without hidden text, and the findings; ``None`` if there are none."""

    parsed: ParsedDocument
    metadata: DocumentMetadata
    scanned: Scanned | None


def scan_documents(
    documents: Sequence[IntakeDocument], settings: ScanSettings
) -> list[ScannedDocument]:
    """Scan documents and remove hidden text. The order is kept.

    Titles, tags and other metadata are scanned as well, because models see them.

    Raises:
        ConfigurationError: the settings name an invalid file of patterns.
    """
    scannable = [_scannable(document) for document in documents]
    results = scan_texts(scannable, settings)
    return [
        _scanned_document(document, scanned.text, result, masks=settings.secrets == "mask")
        for document, scanned, result in zip(documents, scannable, results, strict=True)
    ]


def _scannable(document: IntakeDocument) -> Scannable:
    # The title is first. The other metadata is last, so that offsets in the text do not depend on
    # it. The cleaned texts are read from the result in the same order.
    parsed, metadata, source = document
    described = _metadata_text(parsed, metadata)
    text = _SEPARATOR.join((metadata.title, *_content_texts(parsed), described))
    body = (len(metadata.title), len(text) - len(described))
    return Scannable(text, source, body, parsed.hidden)


def _scanned_document(
    document: IntakeDocument, text: str, result: ScanResult, *, masks: bool
) -> ScannedDocument:
    parsed, metadata, _ = document
    if result.verdict == "clean" and result.text == text:
        return ScannedDocument(parsed, metadata, None)
    record = _scan_record(result, text, masks=masks)
    if result.text == text:
        return ScannedDocument(parsed, metadata, record)
    # The cleaned texts are read in the order of _scanned_text(): first the title.
    lines = iter(result.text.split("\n"))
    clean_metadata = metadata._replace(
        title=_next_text(lines, metadata.title),
        tags=_clean_all(metadata.tags, masks),
        retrieval_hints=_clean_all(metadata.retrieval_hints, masks),
        refused_claims=_clean_all(metadata.refused_claims, masks),
        attributes=_clean_attributes(metadata.attributes, masks),
    )
    if masks:
        clean_metadata = _without_secrets(clean_metadata)
    return ScannedDocument(_with_content_texts(parsed, lines, masks), clean_metadata, record)


def _without_secrets(metadata: DocumentMetadata) -> DocumentMetadata:
    """Masks what names a document. Scope, sensitivity and roles are words of the policy."""
    return metadata._replace(
        document_id=without_secrets(metadata.document_id),
        source_id=without_secrets(metadata.source_id),
        uri=without_secrets(metadata.uri),
        document_type=without_secrets(metadata.document_type),
        domain=without_secrets(metadata.domain),
        supersedes=tuple(map(without_secrets, metadata.supersedes)),
        contradicts=tuple(map(without_secrets, metadata.contradicts)),
    )


def _content_texts(parsed: ParsedDocument) -> list[str]:
    if parsed.ready:
        return [chunk.content for chunk in parsed.ready]
    if parsed.line_exact and parsed.lines:
        return ["\n".join(parsed.lines)]
    return [block.text for block in parsed.blocks]


def _metadata_text(parsed: ParsedDocument, metadata: DocumentMetadata) -> str:
    """The metadata that a model may see besides the text; an id may be a file name."""
    words = [metadata.document_id, metadata.document_type, metadata.domain]
    words += [metadata.uri, metadata.source_id]
    words += [*metadata.tags, *metadata.retrieval_hints]
    words += [*metadata.supersedes, *metadata.contradicts, *metadata.refused_claims]
    words += attribute_lines(metadata.attributes)
    words += [tag for chunk in parsed.ready for tag in chunk.tags]
    return "\n".join(words)


def _clean_attributes(attributes: Attributes, masks: bool) -> Attributes:
    # Each value is read after its key, because `password: …` is a secret of any form.
    clean: dict[str, dict[str, None]] = {}
    for line in _clean_all(attribute_lines(attributes), masks):
        key, _, text = line.partition(": ")
        if key and text.strip():
            clean.setdefault(key, {})[text] = None
    return tuple(sorted((key, tuple(texts)) for key, texts in clean.items()))


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
        chunks = (
            replace(
                chunk,
                content=_next_text(lines, chunk.content),
                tags=_clean_all(chunk.tags, masks),
            )
            for chunk in parsed.ready
        )
        return replace(parsed, ready=tuple(chunks))
    if parsed.line_exact and parsed.lines:
        clean_lines = _next_text(lines, "\n".join(parsed.lines)).split("\n")
        new_blocks = tuple(_with_block_lines(parsed.blocks, clean_lines, masks))
        return replace(parsed, lines=clean_lines, blocks=new_blocks)
    blocks = (
        _with_block_text(block, _next_text(lines, block.text), masks) for block in parsed.blocks
    )
    return replace(parsed, blocks=tuple(blocks))


def _next_text(lines: Iterator[str], original: str) -> str:
    """The next text, which has as many lines as the original; also skips the separator."""
    text_lines = [next(lines) for _ in range(original.count("\n") + 1)]
    next(lines, None)
    return "\n".join(text_lines)


def _with_block_lines(
    blocks: Sequence[Block], lines: Sequence[str], masks: bool
) -> Iterator[Block]:
    for block in blocks:
        yield _with_block_text(
            block, "\n".join(lines[block.start_line - 1 : block.end_line]), masks
        )


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
    # Also `label` for a clean verdict, if hidden text was removed.
    return Scanned(
        verdict=result.verdict if result.verdict == "quarantine" else "label",
        content_hash=_scan_hash(text, result),
        kinds=json.dumps(sorted({finding.kind for finding in findings})),
        findings=json.dumps([finding._asdict() for finding in findings[:_MAX_FINDINGS]]),
        original=original,
    )


def _scan_hash(text: str, result: ScanResult) -> str:
    """Identifies the scanned content. A release by a person holds while this hash is the same."""
    content = repr((text, result.markup)).encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=16).hexdigest()
