"""What the scan at the door found, and what it keeps back.

A quarantined document is stored and indexed like any other, in a compartment that no agent sees.
"""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.storage import compartments
from rolebundle.storage.connection import Corpus
from rolebundle.storage.partition import move_documents
from rolebundle.storage.sqlite_file import Row, check_types


class Scanned(NamedTuple):
    """What was found in one document. ``kinds`` and ``findings`` are JSON arrays."""

    verdict: str
    """``label``, ``quarantine``, or ``released`` by a person."""
    content_hash: str
    kinds: str
    findings: str
    original: str
    """The text before what was hidden in it was taken out; empty where nothing was."""


class Flagged(NamedTuple):
    """A document that the scan found something in."""

    row: int
    document_id: str
    title: str
    path: str
    scanned: Scanned


_COLUMNS = (
    "d.id, d.document_id, d.title, f.path, s.verdict, s.content_hash, s.kinds, s.findings, "
    "s.original FROM scanned s JOIN document d ON d.id = s.document JOIN file f ON f.id = d.file"
)


def flagged(corpus: Corpus, verdict: str = "") -> list[Flagged]:
    """The documents with findings, or those with this verdict, by their ids."""
    found = corpus.rows(
        f"SELECT {_COLUMNS} WHERE ? IN ('', s.verdict) ORDER BY d.document_id", (verdict,)
    )
    return [_flagged(row) for row in found]


def flagged_document(corpus: Corpus, document_id: str) -> Flagged | None:
    """What was found in the document with this id; ``None`` where nothing was."""
    found = corpus.rows(f"SELECT {_COLUMNS} WHERE d.document_id = ?", (document_id,))
    return _flagged(found[0]) if found else None


def _flagged(row: Row) -> Flagged:
    check_types(row, (int, str, str, str, str, str, str, str, str), "what was found in a document")
    number, document_id, title, path, *scanned = row
    return Flagged(number, document_id, title, path, Scanned(*scanned))


def is_released(corpus: Corpus, document: int, scanned: Scanned) -> bool:
    """Whether a person has released just this, found in this document."""
    found = corpus.rows(
        "SELECT 1 FROM scanned WHERE document = ? AND verdict = 'released' AND content_hash = ?",
        (document, scanned.content_hash),
    )
    return bool(found)


def release(corpus: Corpus, one: Flagged) -> None:
    """Let a quarantined document be seen. Call it inside a write transaction."""
    [(here, scope, sensitivity)] = corpus.rows(
        "SELECT compartment, scope, sensitivity FROM document WHERE id = ?", (one.row,)
    )
    denied = next(
        place.denied for place in compartments.all_compartments(corpus) if place.id == here
    )
    there = compartments.find_or_create(corpus, scope, sensitivity, denied)
    move_documents(corpus, [one.row], here, there)
    corpus.run("UPDATE scanned SET verdict = 'released' WHERE document = ?", (one.row,))
    compartments.remove_empty(corpus)
