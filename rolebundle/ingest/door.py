"""The scan at the door: a document as it was read, and as it is taken in.

What is hidden in a text is taken out before it is chunked, so that nothing of it is indexed, shown
or cited; line breaks stay, so that locators stay true. The original is kept beside what was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.finding import Finding
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.scan.scan import Scannable, ScanResult, scan_texts
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage.quarantine import Scanned

MARKUP_READERS = frozenset({"html", "markdown"})
"""Readers of formats in which markup can hide text."""
_BETWEEN = "\n\n"
_MOST_FINDINGS = 200


class Arrival(NamedTuple):
    """A document as its reader found it, what it carries, and its markup where there is one.

    The title is scanned as well: it is shown to models, too.
    """

    parsed: ParsedDocument
    metadata: DocumentMetadata
    source: bytes | None = None


class Examined(NamedTuple):
    """A document without what was hidden in it, and what was found."""

    parsed: ParsedDocument
    metadata: DocumentMetadata
    scanned: Scanned | None


def examine(arrivals: Sequence[Arrival], settings: ScanSettings) -> list[Examined]:
    """Documents without what was hidden in them, in order.

    Raises:
        ConfigurationError: the settings name a file of patterns that is wrong.
    """
    scannable = [Scannable(_text(one.parsed, one.metadata), one.source) for one in arrivals]
    results = scan_texts(scannable, settings)
    return [
        _examined(one, text, result, masks=settings.secrets == "mask")
        for one, (text, _), result in zip(arrivals, scannable, results, strict=True)
    ]


def _text(parsed: ParsedDocument, metadata: DocumentMetadata) -> str:
    # What it declares comes last, so that offsets in the text do not depend on it.
    return _BETWEEN.join((metadata.title, *_texts(parsed), *_declared(parsed, metadata)))


def _examined(arrival: Arrival, text: str, result: ScanResult, *, masks: bool) -> Examined:
    parsed, metadata, _ = arrival
    if result.verdict == "clean" and result.text == text:
        return Examined(parsed, metadata, None)
    scanned = _scanned(result, text, masks=masks)
    if result.text == text:
        return Examined(parsed, metadata, scanned)
    lines = iter(result.text.split("\n"))
    shown = replace(
        metadata,
        title=_take(lines, metadata.title),
        tags=_shown(metadata.tags, masks),
        retrieval_hints=_shown(metadata.retrieval_hints, masks),
    )
    return Examined(_with_texts(parsed, lines, masks), shown, scanned)


def _texts(parsed: ParsedDocument) -> list[str]:
    if parsed.ready:
        return [chunk.content for chunk in parsed.ready]
    if parsed.line_exact and parsed.lines:
        return ["\n".join(parsed.lines)]
    return [block.text for block in parsed.blocks]


def _declared(parsed: ParsedDocument, metadata: DocumentMetadata) -> list[str]:
    """What a model gets to see of a document besides its text; an id may be a file's name."""
    words = [metadata.document_id, metadata.document_type, metadata.domain]
    words += [*metadata.tags, *metadata.retrieval_hints]
    words += [tag for chunk in parsed.ready for tag in chunk.tags]
    return ["\n".join(words)]


def _shown(texts: Sequence[str], masks: bool) -> tuple[str, ...]:
    return tuple(filter(None, (_cleaned(text, masks) for text in texts)))


def _cleaned(text: str, masks: bool) -> str:
    from rolebundle.scan.hidden_text import find_hidden, normalized

    text = normalized(text, find_hidden(text))
    if masks:
        from rolebundle.scan.secrets import find_secrets, masked

        text = masked(text, find_secrets(text))
    return text


def _with_texts(parsed: ParsedDocument, lines: Iterator[str], masks: bool) -> ParsedDocument:
    """The document with the texts of :func:`_texts`, as they are now; each has as many lines."""
    if parsed.ready:
        chunks = (
            replace(chunk, content=_take(lines, chunk.content), tags=_shown(chunk.tags, masks))
            for chunk in parsed.ready
        )
        return replace(parsed, ready=tuple(chunks))
    if parsed.line_exact and parsed.lines:
        now = _take(lines, "\n".join(parsed.lines)).split("\n")
        return replace(parsed, lines=now, blocks=tuple(_cut(parsed.blocks, now, masks)))
    blocks = (_renamed(block, _take(lines, block.text), masks) for block in parsed.blocks)
    return replace(parsed, blocks=tuple(blocks))


def _take(lines: Iterator[str], before: str) -> str:
    """As many lines as the text had, and past the blank one after them."""
    taken = [next(lines) for _ in range(before.count("\n") + 1)]
    next(lines, None)
    return "\n".join(taken)


def _cut(blocks: Sequence[Block], lines: Sequence[str], masks: bool) -> Iterator[Block]:
    for block in blocks:
        yield _renamed(block, "\n".join(lines[block.start_line - 1 : block.end_line]), masks)


def _renamed(block: Block, text: str, masks: bool) -> Block:
    heading = block.heading
    if heading and block.text != text:
        # What was hidden in a heading was hidden in its words as well.
        heading = _cleaned(heading, masks)
    return block._replace(text=text, heading=heading)


def _scanned(result: ScanResult, text: str, *, masks: bool) -> Scanned:
    found = (*result.findings, *result.markup)
    original = "" if result.text == text else text
    if original and masks:
        # A secret that is masked is kept nowhere.
        from rolebundle.scan.secrets import masked

        original = masked(text, result.findings)
    return Scanned(
        verdict=result.verdict if result.verdict == "quarantine" else "label",
        content_hash=blake2b(
            repr((text, result.markup)).encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest(),
        kinds=json.dumps(sorted({finding.kind for finding in found})),
        findings=json.dumps([_plain(finding) for finding in found[:_MOST_FINDINGS]]),
        original=original,
    )


def _plain(finding: Finding) -> dict[str, object]:
    return finding._asdict()
