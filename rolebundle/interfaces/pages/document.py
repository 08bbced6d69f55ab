"""The document page: a document as the indexes have it, and what it is related to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from rolebundle.contracts.document import DocumentMetadata, Passage
from rolebundle.contracts.marks import MarkRecord
from rolebundle.contracts.terms import DEFAULT_MAX_AGE_DAYS
from rolebundle.ingest.authority import GOVERNANCE_KEYS
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.page import marked_parts, render, visible
from rolebundle.interfaces.pages.site import Site
from rolebundle.retrieval.filter import age_days, freshness_at
from rolebundle.retrieval.lookups.inspection import MAX_PASSAGES, DocumentInspection
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.finding import Finding
from rolebundle.storage.content.quarantine import Flagged

MAX_ORIGINAL_CHARS = 20_000
NOT_RECORDED = "not recorded"
_OMITTED_KEYS = frozenset({"title", "attributes", "self_declared", "refused_claims", "reach"})
"""Metadata that is shown elsewhere on the page, or is not stored."""
_SECRET = "secret_"
_DEFAULTS: Mapping[str, Any] = DocumentMetadata._field_defaults


def document_page(
    inspection: DocumentInspection,
    now: datetime,
    site: Site,
    *,
    flags: Mapping[str, Any] = MappingProxyType({}),
    flagged: Flagged | None = None,
    marks: Sequence[MarkRecord] = (),
) -> str:
    """The page of a document.

    Args:
        inspection: the document, and one page of its passages.
        now: the time by which its age and validity are judged.
        site: the application around the page.
        flags: for the owner: the metadata that flags of ingests give to its file.
        flagged: for the owner: the findings of the scan; ``None`` if there are none.
        marks: for the owner: all marks on it and its passages, also those that have ended.
    """
    document = inspection.document
    later = inspection.first + MAX_PASSAGES
    return render(
        "document",
        site,
        page=inspection,
        document=document,
        remarks=[*_remarks(inspection, now, flagged)],
        age=_age(document, now),
        metadata=[*_metadata(document, flags)],
        scan=_scan_result(flagged) if flagged else None,
        marks=marks,
        texts={item.place: _visible_text(item.passage) for item in inspection.passages},
        neighbours=[
            _visible_text(neighbour.passage) for neighbour in inspection.neighbours.nearest
        ],
        earlier=max(1, inspection.first - MAX_PASSAGES) if inspection.first > 1 else None,
        later=later if later <= inspection.total else None,
    )


def _visible_text(passage: Passage) -> str:
    # If the scan was set not to mask secrets, they are in the text.
    has_secret = any(flag.startswith(_SECRET) for flag in passage.flags)
    return without_secrets(passage.content) if has_secret else passage.content


def _remarks(
    page: DocumentInspection, now: datetime, flagged: Flagged | None
) -> Iterator[tuple[str, str]]:
    """What limits the use of the document: how bad it is, and a sentence."""
    document = page.document
    if flagged is not None and flagged.scanned.verdict == "quarantine":
        yield "bad", "It is in quarantine: no agent gets it."
    if page.superseded_by:
        yield "caution", "A newer document replaces it."
    if document.valid_from and datetime.fromisoformat(document.valid_from) > now:
        yield "caution", "It is not valid yet."
    if document.valid_until and datetime.fromisoformat(document.valid_until) < now:
        yield "caution", "It is no longer valid."
    flags = next((item.passage.flags for item in page.passages), ())
    if flags:
        yield "caution", f"The scan flagged it: {', '.join(flags)}."
    if document.refused_claims:
        yield "caution", "Some of its own declarations do not count."
    marked = {item.passage.mark.state for item in page.passages if item.passage.mark}
    if marked & {"rejected", "disputed"}:
        yield "caution", "Some of it is marked as wrong or disputed."


def _age(document: DocumentMetadata, now: datetime) -> tuple[str, str]:
    """How good the age is, and the age in words."""
    age = age_days(document, now)
    level = words.LEVEL[freshness_at(age, DEFAULT_MAX_AGE_DAYS)]
    if age is None:
        return level, "undated"
    if age < 0:
        return level, "dated in the future"
    by = "" if document.updated_at else " by its file"
    return level, f"{age:.0f} days old{by}"


def _metadata(document: DocumentMetadata, flags: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Each value of the metadata, and where it comes from."""
    for key, value in document._asdict().items():
        if key not in _OMITTED_KEYS:
            origin = _origin(key, value, document, flags)
            yield {"key": key, "value": _text(value), "origin": origin}
    for key, texts in document.attributes:
        yield {"key": key, "value": ", ".join(texts), "origin": "the document itself"}


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")


def _origin(key: str, value: object, document: DocumentMetadata, flags: Mapping[str, Any]) -> str:
    """Where a value comes from, as far as the corpus has recorded it."""
    if key in document.self_declared:
        return "the document itself"
    if key == "inferred_at" and value:
        return "its file: the name, the last commit or change"
    if flags.get(key) and _text(flags[key]) == _text(value):
        return "a flag of an ingest"
    if key in _DEFAULTS and value == _DEFAULTS[key]:
        return "default" if value else ""
    is_decided = key in GOVERNANCE_KEYS - {"document_id", "source_id"}
    if is_decided and "unknown" not in document.self_declared:
        # The corpus records which of these keys are the document's own declaration.
        return "a manifest or a flag"
    return NOT_RECORDED


def _scan_result(flagged: Flagged) -> dict[str, Any]:
    """The verdict, the findings, and the text as it was read, if something was removed from it."""
    scanned = flagged.scanned
    findings = [Finding(**finding) for finding in json.loads(scanned.findings)]
    original = without_secrets(scanned.original)
    visible_text = original[:MAX_ORIGINAL_CHARS]
    # A masked secret has another length, so that the offsets after it are wrong.
    is_exact = not any(finding.kind.startswith(_SECRET) for finding in findings)
    spans = _spans(visible_text, findings) if is_exact else []
    return {
        "verdict": scanned.verdict,
        "findings": findings,
        "original": marked_parts(visible_text, spans),
        "is_cut": len(visible_text) < len(original),
    }


def _spans(text: str, findings: Sequence[Finding]) -> list[tuple[int, int]]:
    """The places of the findings in the text, without overlaps."""
    spans: list[tuple[int, int]] = []
    for finding in sorted(findings, key=lambda finding: (finding.start, finding.end)):
        begin = max(finding.start, spans[-1][1] if spans else 0)
        end = min(finding.end, len(text))
        if begin < end and _is_in_text(finding, text[finding.start : end]):
            spans.append((begin, end))
    return spans


def _is_in_text(finding: Finding, part: str) -> bool:
    """Whether a finding is at its offsets in the text. Those of hidden markup are of the source."""
    is_words = finding.kind.startswith("instruction_") or finding.kind.endswith("homoglyph")
    return is_words or visible(part) != part
