"""The findings of the scan in documents, and the quarantine.

A quarantined document is stored and indexed like any other, in a compartment that no agent sees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolebundle.storage import compartments, digests, partition
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import Scanned
from rolebundle.storage.sqlite import NO_LIMIT, Binding


class Flagged(NamedTuple):
    """A document with findings of the scan."""

    row: int
    document_id: str
    title: str
    path: str
    scanned: Scanned


_FLAGGED = "scanned s JOIN document d ON d.id = s.document JOIN file f ON f.id = d.file"
_COLUMNS = {"row": "d.id", "content_hash": "s.content_hash"}


def _flagged(corpus: Corpus, condition: str, *bindings: Binding) -> list[Flagged]:
    return corpus.select(Flagged, f"{_FLAGGED} {condition}", bindings, _COLUMNS)


def flagged_documents(corpus: Corpus, verdict: str = "", limit: int = NO_LIMIT) -> list[Flagged]:
    """The first documents with findings, or with this verdict, ordered by id."""
    chosen = "WHERE ? IN ('', verdict) ORDER BY document_id LIMIT ?"
    return _flagged(corpus, chosen, verdict, limit)


def flagged_document(corpus: Corpus, name: str) -> Flagged | None:
    """The findings in the document with this id, or else in the only one with this path.

    ``None`` if there is none.
    """
    found = _flagged(corpus, "WHERE document_id = ?", name)
    found = found or _flagged(corpus, "WHERE path = ? LIMIT 2", name)
    return found[0] if len(found) == 1 else None


def quarantined_named(
    corpus: Corpus, reference: str, document: str, locations: Sequence[str]
) -> Flagged | None:
    """The quarantined document that has this chunk id, id or path, or is at one of these locations.

    ``None`` if none is.
    """
    chosen = (
        "WHERE verdict = 'quarantine' AND (document_id = ?1 OR path = ?1 OR "
        "location IN (SELECT value FROM json_each(?2)) OR "
        "d.id IN (SELECT document FROM chunk WHERE chunk_id = ?3)) ORDER BY document_id LIMIT 1"
    )
    return next(iter(_flagged(corpus, chosen, document, [*locations], reference)), None)


def quarantined_with(corpus: Corpus, scores: Mapping[int, float]) -> list[Flagged]:
    """The quarantined documents of these chunks, ordered by their best chunk, then by id.

    Args:
        corpus: an open corpus.
        scores: rowid of a chunk → score.
    """
    scored = (
        "JOIN (SELECT document, max(CAST(value AS DOUBLE PRECISION)) AS best FROM json_each(?) "
        "JOIN chunk ON chunk.id = CAST(key AS INTEGER) GROUP BY document) scored "
        "ON scored.document = d.id WHERE verdict = 'quarantine' ORDER BY best DESC, document_id"
    )
    return _flagged(corpus, scored, json.dumps(scores))


def is_released(corpus: Corpus, document: int, scanned: Scanned) -> bool:
    """Whether a person has released these findings in this document."""
    released = "SELECT 1 FROM scanned WHERE document = ? AND content_hash = ? AND verdict = ?"
    return bool(corpus.rows(released, (document, scanned.content_hash, "released")))


def release(corpus: Corpus, document: Flagged) -> None:
    """Make a quarantined document visible. Call it inside a write transaction."""
    [(current, scope, sensitivity)] = corpus.rows(
        "SELECT compartment, scope, sensitivity FROM document WHERE id = ?", (document.row,)
    )
    places = {place.id: place for place in compartments.visible_compartments(corpus)}
    target = partition.find_or_create(corpus, scope, sensitivity, places[current].denied)
    with digests.renewing(corpus, [document.row]):
        partition.move_documents(corpus, [document.row], current, target)
        corpus.run("UPDATE scanned SET verdict = 'released' WHERE document = ?", (document.row,))
    partition.remove_empty(corpus)
