"""Which document belongs to which compartment, and how documents move between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rolebundle.storage import compartments, lexical_index, vector_index
from rolebundle.storage.connection import Corpus

if TYPE_CHECKING:
    import apsw

_AT_ONCE = 1_000
DeniedPatterns = Callable[[str, str], tuple[str, ...]]
"""A file's path and location → the deny patterns of the policy that match it."""


def nothing_denied(path: str, location: str) -> tuple[str, ...]:
    """The deny patterns of a corpus that has no policy."""
    return ()


def partition(corpus: Corpus, denied: DeniedPatterns) -> int:
    """Put every document into the compartment that it belongs to now.

    Call it inside a write transaction.

    Returns:
        How many documents moved.
    """
    moves: dict[tuple[int, int], list[int]] = {}
    for row, scope, sensitivity, path, location, here, verdict in corpus.rows(
        "SELECT d.id, d.scope, d.sensitivity, f.path, f.location, d.compartment, s.verdict "
        "FROM document d JOIN file f ON f.id = d.file "
        "LEFT JOIN scanned s ON s.document = d.id ORDER BY d.id"
    ):
        there = compartments.find_or_create(
            corpus, scope, sensitivity, denied(path, location), verdict == "quarantine"
        )
        if there != here:
            moves.setdefault((here, there), []).append(row)
    for (here, there), rows in moves.items():
        # A part at a time: the vectors of all of them would not fit into memory.
        for start in range(0, len(rows), _AT_ONCE):
            move_documents(corpus, rows[start : start + _AT_ONCE], here, there)
    compartments.remove_empty(corpus)
    return sum(map(len, moves.values()))


def move_documents(corpus: Corpus, rows: Sequence[int], here: int, there: int) -> None:
    """Move documents with their chunks and vectors; 0 is where nothing is indexed."""
    chosen = json.dumps(list(rows))
    chunks = [
        row
        for (row,) in corpus.rows(
            "SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?)) ORDER BY id",
            (chosen,),
        )
    ]
    if here:
        lexical_index.remove(corpus, here, chunks)
        compartments.count(corpus, here, documents=-len(rows), chunks=-len(chunks))
    corpus.run(
        "UPDATE document SET compartment = ? WHERE id IN (SELECT value FROM json_each(?))",
        (there, chosen),
    )
    lexical_index.add_these(corpus, there, chunks)
    compartments.count(corpus, there, documents=len(rows), chunks=len(chunks))
    for index in vector_index.all_indexes(corpus):
        vector_index.move(corpus, index, chunks, here, there)


def fill_new_schema(db: apsw.Connection, path: Path) -> None:
    """What the second migration leaves to code: compartments, and the indexes of each."""
    from rolebundle.storage.migrate import corpus_format

    corpus = Corpus(path, db, True, corpus_format())
    indexes = vector_index.all_indexes(corpus)
    if indexes:
        corpus.load_vectors()
    for index in indexes:
        corpus.run(f"DROP TABLE IF EXISTS vectors_{index.id}")
        # A companion stands beside it; without its extension it can only be left where it is.
        if corpus.load_extra("vec1"):
            corpus.run(f"DROP TABLE IF EXISTS fast_{index.id}")
    partition(corpus, nothing_denied)
