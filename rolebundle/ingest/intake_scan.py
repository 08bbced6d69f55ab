"""The intake scan: removes hidden text from documents and masks secrets before they are chunked.

Removed text is neither indexed nor shown nor cited. Line breaks stay, so that locators are correct.
The original text is stored with the findings, without its secrets. The same secret is masked in the
same way everywhere, so that ids which name each other still do.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import accumulate, compress, repeat
from typing import Any, get_type_hints

from rolebundle.contracts.documents import OBSERVED_TYPE, DocumentMetadata, attribute_lines
from rolebundle.ingest.metadata import grouped
from rolebundle.ingest.parsed import Block, Flag, ParsedDocument
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.finding import SecretsPolicy
from rolebundle.scan.hidden_text import find_hidden, normalized_with_offsets
from rolebundle.scan.instructions import MAX_FINDINGS_PER_PATTERN, find_instructions
from rolebundle.scan.scan import NEAR_CHARS, ScanResult, scan_text
from rolebundle.scan.secrets import masked
from rolebundle.storage.documents import Scanned, StoredChunk
from rolebundle.text.decoding import one_line

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
    parsed = replace(parsed, flags=(*_flags(result, body, parsed),))
    record = _scan_record(result, text, masks=masks)
    if result.text == text:
        return parsed, metadata, record
    lines = iter(result.text.split("\n"))
    # Each value is read after its key, because `password: …` is a secret of any form.
    pairs = (one.partition(": ") for one in _clean_all(attribute_lines(metadata.attributes), masks))
    clean: dict[str, Any] = {
        "title": _next_text(lines, metadata.title),
        "attributes": grouped((key, value) for key, _, value in pairs if key and value.strip()),
        **{key: _clean_all(getattr(metadata, key), masks) for key in _SHOWN_LISTS},
    }
    if masks:
        clean |= {key: without_secrets(getattr(metadata, key)) for key in _NAMES}
        clean |= {key: tuple(map(without_secrets, getattr(metadata, key))) for key in _REFERENCES}
    return _with_content_texts(parsed, lines, masks), metadata._replace(**clean), record


def with_flags(chunks: tuple[StoredChunk, ...], parsed: ParsedDocument) -> tuple[StoredChunk, ...]:
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


def _flags(result: ScanResult, body: tuple[int, int], parsed: ParsedDocument) -> Iterator[Flag]:
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


def _clean_all(texts: Sequence[str], masks: bool) -> tuple[str, ...]:
    return tuple(filter(None, (_clean(text, masks) for text in texts)))


def _clean(text: str, masks: bool) -> str:
    text, _ = normalized_with_offsets(text, find_hidden(text))
    return without_secrets(text) if masks else text


def _with_content_texts(
    parsed: ParsedDocument, lines: Iterator[str], masks: bool
) -> ParsedDocument:
    """Replace the texts of :func:`_content_texts` by cleaned ones.

    Each cleaned text has as many lines as the text that it replaces.
    """
    if parsed.ready:
        chunks = [c._replace(content=_next_text(lines, c.content)) for c in parsed.ready]
        ready = tuple(c._replace(tags=_clean_all(c.tags, masks)) for c in chunks)
        return replace(parsed, ready=ready)
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
    anchor = _clean(block.anchor, masks) if block.anchor else ""
    return block._replace(text=text, heading=heading, header=header, anchor=anchor)


def _scan_record(result: ScanResult, text: str, *, masks: bool) -> Scanned:
    findings = (*result.findings, *result.markup)
    # A masked secret must not be stored anywhere.
    original = masked(text, result.findings) if masks else text
    # Also `label` for a clean verdict, if hidden text was removed. The hash identifies the scanned
    # content: a release by a person holds while it is the same.
    return Scanned(
        verdict=result.verdict if result.verdict == "quarantine" else "label",
        content_hash=blake2b(
            repr((text, result.markup)).encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest(),
        kinds=json.dumps(sorted({finding.kind for finding in findings})),
        findings=json.dumps([finding._asdict() for finding in findings[:_MAX_FINDINGS]]),
        original="" if result.text == text else original,
    )
