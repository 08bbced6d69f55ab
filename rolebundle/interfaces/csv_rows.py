"""A bundle as comma-separated values (RFC 4180), one row for each passage."""

from __future__ import annotations

import csv
import io
import re

from rolebundle.contracts.bundle import RetrievalBundle, SelectedChunk
from rolebundle.interfaces.layout import harmless

# What a spreadsheet would read as a formula (OWASP, "CSV Injection").
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\n]")


COLUMNS = (
    "rank",
    "score",
    "locator",
    "anchor",
    "absolute_path",
    "source_id",
    "document_id",
    "chunk_id",
    "title",
    "headings",
    "trust_tier",
    "freshness",
    "updated_at",
    "evidence",
    "flags",
    "reasons",
    "content",
)


def csv_rows(bundle: RetrievalBundle) -> str:
    """The passages as rows under a header, each line with the end that the RFC requires."""
    output = io.StringIO(newline="")
    writer = csv.DictWriter(output, COLUMNS)
    writer.writeheader()
    writer.writerows(
        {name: _cell(value) for name, value in _row(chunk).items()} for chunk in bundle.selected
    )
    return output.getvalue()


def _row(chunk: SelectedChunk) -> dict[str, str | float | None]:
    metadata, citation = chunk.metadata, chunk.citation
    return {
        "rank": chunk.rank,
        "score": chunk.scores.final,
        "locator": citation.locator,
        "anchor": citation.anchor,
        "absolute_path": citation.absolute_path,
        "source_id": chunk.source_id,
        "document_id": chunk.document_id,
        "chunk_id": chunk.chunk_id,
        "title": chunk.title,
        "headings": " › ".join(chunk.headings),
        "trust_tier": metadata.trust_tier,
        "freshness": metadata.freshness.status,
        "updated_at": metadata.freshness.updated_at,
        "evidence": chunk.evidence,
        "flags": " ".join(metadata.flags or ()),
        "reasons": "; ".join(chunk.reasons_selected),
        "content": chunk.content,
    }


def _cell(value: str | float | None) -> str | float | None:
    """A value, with an apostrophe before a text that a spreadsheet would calculate."""
    if not isinstance(value, str):
        return value
    text = harmless(value)
    return f"'{text}" if _FORMULA.match(text) else text
