"""The findings of the scan in documents, and the quarantine.

A quarantined document is stored and indexed like any other, in a compartment that no agent sees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolebundle.storage import digests
from rolebundle.storage.connection import Corpus
from rolebundle.storage.files.stored_values import records
from rolebundle.storage.indexes import compartments, partition


class Scanned(NamedTuple):
    """The findings in one document. ``kinds`` and ``findings`` are JSON arrays."""

    verdict: str
    """``label``, ``quarantine``, or ``released`` by a person."""
    content_hash: str
    kinds: str
    findings: str
    original: str
    """The text before hidden parts were removed; empty if nothing was removed."""


class Flagged(NamedTuple):
    """A document with findings of the scan."""

    row: int
    document_id: str
    title: str
    path: str
    scanned: Scanned


_COLUMNS = (
    "d.id, d.document_id, d.title, f.path, s.verdict, s.content_hash, s.kinds, s.findings, "
    "s.original FROM scanned s JOIN document d ON d.id = s.document JOIN file f ON f.id = d.file"
)


def flagged_documents(corpus: Corpus, verdict: str = "") -> list[Flagged]:
    """The documents with findings, or those with this verdict, ordered by id."""
    rows = corpus.rows(
        f"SELECT {_COLUMNS} WHERE ? IN ('', s.verdict) ORDER BY d.document_id", (verdict,)
    )
    return records(Flagged, rows)


class FlaggedName(NamedTuple):
    """A document with findings, without its texts. ``kinds`` is a JSON array."""

    document_id: str
    title: str
    verdict: str
    kinds: str


def flagged_names(corpus: Corpus, verdict: str, limit: int) -> list[FlaggedName]:
    """The first documents with this verdict, ordered by id."""
    rows = corpus.rows(
        "SELECT d.document_id, d.title, s.verdict, s.kinds FROM scanned s "
        "JOIN document d ON d.id = s.document WHERE s.verdict = ? ORDER BY d.document_id LIMIT ?",
        (verdict, limit),
    )
    return records(FlaggedName, rows)


def count_flagged(corpus: Corpus) -> dict[str, int]:
    """Verdict → number of documents."""
    return dict(corpus.rows("SELECT verdict, count(*) FROM scanned GROUP BY verdict ORDER BY 1"))


def flagged_document(corpus: Corpus, name: str) -> Flagged | None:
    """The findings in the document with this id, or else in the only one with this path.

    ``None`` if there is none.
    """
    by_id = corpus.rows(f"SELECT {_COLUMNS} WHERE d.document_id = ?", (name,))
    rows = by_id or corpus.rows(f"SELECT {_COLUMNS} WHERE f.path = ? LIMIT 2", (name,))
    return records(Flagged, rows)[0] if len(rows) == 1 else None


def quarantined_named(
    corpus: Corpus, reference: str, document: str, locations: Sequence[str]
) -> Flagged | None:
    """The quarantined document that has this chunk id, id or path, or is at one of these locations.

    ``None`` if none is.
    """
    rows = corpus.rows(
        f"SELECT {_COLUMNS} WHERE s.verdict = 'quarantine' AND (d.document_id = ? OR f.path = ? OR "
        "f.location IN (SELECT value FROM json_each(?)) OR "
        "d.id IN (SELECT document FROM chunk WHERE chunk_id = ?)) ORDER BY d.document_id LIMIT 1",
        (document, document, [*locations], reference),
    )
    return next(iter(records(Flagged, rows)), None)


def quarantined_with(corpus: Corpus, scores: Mapping[int, float]) -> list[Flagged]:
    """The quarantined documents of these chunks, ordered by their best chunk, then by id.

    Args:
        corpus: an open corpus.
        scores: rowid of a chunk → score.
    """
    rows = corpus.rows(
        f"SELECT {_COLUMNS} JOIN chunk c ON c.document = d.id "
        "JOIN json_each(?) scored ON CAST(scored.key AS INTEGER) = c.id "
        "WHERE s.verdict = 'quarantine' "
        "GROUP BY d.id ORDER BY max(scored.value) DESC, d.document_id",
        (json.dumps(scores),),
    )
    return records(Flagged, rows)


def is_released(corpus: Corpus, document: int, scanned: Scanned) -> bool:
    """Whether a person has released these findings in this document."""
    return bool(
        corpus.rows(
            "SELECT 1 FROM scanned WHERE document = ? AND verdict = 'released' "
            "AND content_hash = ?",
            (document, scanned.content_hash),
        )
    )


def release(corpus: Corpus, document: Flagged) -> None:
    """Make a quarantined document visible. Call it inside a write transaction."""
    [(current, scope, sensitivity)] = corpus.rows(
        "SELECT compartment, scope, sensitivity FROM document WHERE id = ?", (document.row,)
    )
    denied = next(
        compartment.denied
        for compartment in compartments.visible_compartments(corpus)
        if compartment.id == current
    )
    target = partition.find_or_create(corpus, scope, sensitivity, denied)
    with digests.renewing(corpus, [document.row]):
        partition.move_documents(corpus, [document.row], current, target)
        corpus.run("UPDATE scanned SET verdict = 'released' WHERE document = ?", (document.row,))
    partition.remove_empty(corpus)
