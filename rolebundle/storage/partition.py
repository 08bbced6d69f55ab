"""Assigning documents to compartments, moving them with chunks and vectors, and the quarantine.

A quarantined document is stored and indexed like any other, in a compartment that no agent sees.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rolebundle.storage import digests, vector_index
from rolebundle.storage.compartments import (
    FACTS_PATTERN,
    REMEMBERED,
    Kind,
    add_to_counts,
    visible_compartments,
)
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import Scanned
from rolebundle.storage.sqlite import IN_SET, Binding

_DOCUMENTS_PER_STEP = 1_000
DenyMatcher = Callable[[str, str], tuple[str, ...]]
"""A file's path and location → the deny patterns of the policy that match it."""


def no_denied_patterns(path: str, location: str) -> tuple[str, ...]:
    """The deny patterns of a corpus that has no policy."""
    return ()


def denied_by(deny_matcher: DenyMatcher, path: str, location: str) -> tuple[str, ...]:
    """The patterns that match a file, in order, with the one that matches every fact."""
    patterns = deny_matcher(path, location)
    is_fact = location.startswith(REMEMBERED)
    return tuple(sorted((*patterns, FACTS_PATTERN))) if is_fact else patterns


def placements(corpus: Corpus, deny_matcher: DenyMatcher) -> Iterator[tuple[int, str, int, Kind]]:
    """Each document's row and id, its compartment, and the kind of compartment it belongs to."""
    for row, name, current, scope, sensitivity, path, location, verdict in corpus.iterate(
        "SELECT d.id, document_id, compartment, scope, sensitivity, path, location, verdict "
        "FROM document d JOIN file f ON f.id = d.file "
        "LEFT JOIN scanned s ON s.document = d.id ORDER BY d.id"
    ):
        patterns = denied_by(deny_matcher, path, location)
        yield row, name, current, (scope, sensitivity, patterns, verdict == "quarantine")


def assign_compartments(corpus: Corpus, deny_matcher: DenyMatcher) -> int:
    """Put every document into the compartment that it belongs to now.

    Call it inside a write transaction.

    Returns:
        How many documents moved.
    """
    moves: dict[tuple[int, int], list[int]] = {}
    for row, _, current, kind in [*placements(corpus, deny_matcher)]:
        target = find_or_create(corpus, *kind)
        if target != current:
            moves.setdefault((current, target), []).append(row)
    for (source, target), rows in moves.items():
        # Step by step: the vectors of all documents might not fit into memory.
        for start in range(0, len(rows), _DOCUMENTS_PER_STEP):
            move_documents(corpus, rows[start : start + _DOCUMENTS_PER_STEP], source, target)
    remove_empty(corpus)
    return sum(map(len, moves.values()))


def separate_facts(corpus: Corpus) -> None:
    """Move facts from the compartments of documents to their own, inside a write transaction."""
    facts = (
        "SELECT d.id FROM document d JOIN file f ON f.id = d.file "
        "WHERE d.compartment = ? AND f.location LIKE ?"
    )
    for compartment in visible_compartments(corpus):
        rows = corpus.column(facts, (compartment.id, f"{REMEMBERED}%"))
        if rows and not compartment.is_of_facts:
            denied = (*compartment.denied, FACTS_PATTERN)
            target = find_or_create(
                corpus, compartment.scope, compartment.sensitivity, denied, compartment.quarantined
            )
            move_documents(corpus, rows, compartment.id, target)
    remove_empty(corpus)


def find_or_create(
    corpus: Corpus, scope: str, sensitivity: str, denied: Sequence[str], quarantined: bool = False
) -> int:
    """The number of the compartment for such documents. Call it inside a write transaction.

    Args:
        corpus: a corpus open for writing.
        scope: the documents' scope.
        sensitivity: their sensitivity.
        denied: the deny patterns that match their path.
        quarantined: whether the intake scan put them into quarantine.
    """
    key = (scope, sensitivity, json.dumps(sorted(denied)), int(quarantined))
    same = "scope = ? AND sensitivity = ? AND denied = ? AND quarantined = ?"
    existing = corpus.value(f"SELECT id FROM compartment WHERE {same}", key)
    if existing is not None:
        return int(existing)
    columns = "scope, sensitivity, denied, quarantined, documents, chunks"
    corpus.insert(f"compartment ({columns})", [(*key, 0, 0)])
    compartment = corpus.last_rowid()
    corpus.lexical.create(corpus, compartment)
    return compartment


def move_documents(corpus: Corpus, rows: Sequence[int], source: int, target: int) -> None:
    """Move documents with their chunks and vectors; compartment 0 has no indexes."""
    with digests.renewing(corpus, rows):
        chunks = corpus.column(f"SELECT id FROM chunk WHERE document {IN_SET} ORDER BY id", (rows,))
        if source:
            corpus.lexical.remove_chunks(corpus, source, chunks)
            add_to_counts(corpus, source, documents=-len(rows), chunks=-len(chunks))
        corpus.run(f"UPDATE document SET compartment = ? WHERE id {IN_SET}", (target, rows))
        corpus.lexical.add_chunks(corpus, target, chunks)
        add_to_counts(corpus, target, documents=len(rows), chunks=len(chunks))
        vector_index.move(corpus, chunks, target)


def remove_empty(corpus: Corpus) -> None:
    """Remove the compartments without documents, with their indexes."""
    for compartment in visible_compartments(corpus):
        if not compartment.documents:
            corpus.lexical.drop(corpus, compartment.id)
            corpus.run("DELETE FROM compartment WHERE id = ?", (compartment.id,))


# -- the findings of the scan, and the quarantine --------------------------------------------------


class Flagged(NamedTuple):
    """A document with findings of the scan."""

    rowid: int
    document_id: str
    title: str
    path: str
    scanned: Scanned


_FLAGGED = "scanned s JOIN document d ON d.id = s.document JOIN file f ON f.id = d.file"
_COLUMNS = {"rowid": "d.id", "content_hash": "s.content_hash"}


def _flagged(corpus: Corpus, condition: str, *bindings: Binding) -> list[Flagged]:
    return corpus.select(Flagged, f"{_FLAGGED} {condition}", bindings, _COLUMNS)


def flagged_documents(corpus: Corpus, verdict: str = "") -> list[Flagged]:
    """The documents with findings, or with this verdict, ordered by id."""
    return _flagged(corpus, "WHERE ? IN ('', verdict) ORDER BY document_id", verdict)


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
    return next(iter(_flagged(corpus, chosen, document, locations, reference)), None)


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
        "SELECT compartment, scope, sensitivity FROM document WHERE id = ?", (document.rowid,)
    )
    visible = {found.id: found for found in visible_compartments(corpus)}
    target = find_or_create(corpus, scope, sensitivity, visible[current].denied)
    with digests.renewing(corpus, [document.rowid]):
        move_documents(corpus, [document.rowid], current, target)
        corpus.run("UPDATE scanned SET verdict = 'released' WHERE document = ?", (document.rowid,))
    remove_empty(corpus)
