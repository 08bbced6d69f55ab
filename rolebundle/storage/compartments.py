"""Compartments: documents that any agent may either see or not see together.

Retrieval runs in each compartment that is visible, and merges. What is computed for an agent is
therefore a function of what it may see, and of nothing else (docs/decisions/0011).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rolebundle.storage import lexical_index
from rolebundle.storage.connection import Corpus
from rolebundle.storage.sqlite_file import check_types, damaged


class Compartment(NamedTuple):
    """One compartment, and how much is in it."""

    id: int
    scope: str
    sensitivity: str
    denied: tuple[str, ...]
    quarantined: bool
    documents: int
    chunks: int


def all_compartments(corpus: Corpus) -> list[Compartment]:
    """The compartments that can be seen from here, the oldest first."""
    return _read(corpus, "compartment")


def every_compartment(corpus: Corpus) -> list[Compartment]:
    """All of the file's, for deciding which of them may be seen."""
    return _read(corpus, "main.compartment")


def filled(corpus: Corpus) -> list[Compartment]:
    """The compartments that can be seen from here and have chunks, the oldest first."""
    return [one for one in all_compartments(corpus) if one.chunks and not one.quarantined]


def any_quarantined(corpus: Corpus) -> bool:
    """Whether the file holds anything that no agent may see."""
    return bool(corpus.value("SELECT count(*) FROM main.compartment WHERE quarantined = 1"))


def _read(corpus: Corpus, table: str) -> list[Compartment]:
    found = corpus.rows(
        "SELECT id, scope, sensitivity, denied, quarantined, documents, chunks "
        f"FROM {table} ORDER BY id"
    )
    for row in found:
        check_types(row, (int, str, str, str, int, int, int), "a compartment")
    return [
        Compartment(
            number, scope, sensitivity, _patterns(denied), bool(quarantined), documents, chunks
        )
        for number, scope, sensitivity, denied, quarantined, documents, chunks in found
    ]


def _patterns(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise damaged("a compartment's patterns")
    return tuple(found)


def find_or_create(
    corpus: Corpus,
    scope: str,
    sensitivity: str,
    denied: Sequence[str],
    quarantined: bool = False,
) -> int:
    """The compartment of documents like this. Call it inside a write transaction.

    Args:
        corpus: a corpus open for writing.
        scope: the documents' scope.
        sensitivity: their sensitivity.
        denied: the deny patterns that match their path.
        quarantined: whether the scan at the door keeps them back.
    """
    kind = (scope, sensitivity, json.dumps(sorted(denied)), int(quarantined))
    known = corpus.value(
        "SELECT id FROM compartment "
        "WHERE scope = ? AND sensitivity = ? AND denied = ? AND quarantined = ?",
        kind,
    )
    if known is not None:
        return int(known)
    corpus.run(
        "INSERT INTO compartment (scope, sensitivity, denied, quarantined, documents, chunks) "
        "VALUES (?, ?, ?, ?, 0, 0)",
        kind,
    )
    compartment = corpus.last_rowid()
    lexical_index.create(corpus, compartment)
    return compartment


def of_chunks(corpus: Corpus, rowids: Sequence[int]) -> dict[int, list[int]]:
    """Compartment → those of these chunks that are in it, in their order by rowid."""
    by_compartment: dict[int, list[int]] = {}
    for rowid, compartment in corpus.rows(
        "SELECT c.id, d.compartment FROM chunk c JOIN document d ON d.id = c.document "
        "WHERE c.id IN (SELECT value FROM json_each(?)) ORDER BY c.id",
        (json.dumps(list(rowids)),),
    ):
        by_compartment.setdefault(compartment, []).append(rowid)
    return by_compartment


def of_range(corpus: Corpus, first_rowid: int, last_rowid: int) -> dict[int, int]:
    """Compartment → how many of the chunks in the range, ends included, are in it."""
    return dict(
        corpus.rows(
            "SELECT d.compartment, count(*) FROM chunk c CROSS JOIN document d "
            "ON d.id = c.document WHERE c.id BETWEEN ? AND ? GROUP BY d.compartment",
            (first_rowid, last_rowid),
        )
    )


def count(corpus: Corpus, compartment: int, *, documents: int = 0, chunks: int = 0) -> None:
    """Note that a compartment holds so many more."""
    corpus.run(
        "UPDATE compartment SET documents = documents + ?, chunks = chunks + ? WHERE id = ?",
        (documents, chunks, compartment),
    )


def recount(corpus: Corpus) -> None:
    """Count anew what each compartment holds."""
    corpus.run(
        "UPDATE compartment SET "
        "documents = (SELECT count(*) FROM document d WHERE d.compartment = compartment.id), "
        "chunks = (SELECT count(*) FROM chunk c JOIN document d ON d.id = c.document "
        "WHERE d.compartment = compartment.id)"
    )


def miscounted(corpus: Corpus) -> list[tuple[int, str, int, int]]:
    """(compartment, what, said, found) where a compartment's record is wrong."""
    found: dict[int, tuple[int, int]] = {
        number: (documents, chunks)
        for number, documents, chunks in corpus.rows(
            "SELECT d.compartment, count(DISTINCT d.id), count(c.id) FROM document d "
            "LEFT JOIN chunk c ON c.document = d.id GROUP BY d.compartment"
        )
    }
    wrong = []
    for one in all_compartments(corpus):
        documents, chunks = found.pop(one.id, (0, 0))
        if one.documents != documents:
            wrong.append((one.id, "documents", one.documents, documents))
        if one.chunks != chunks:
            wrong.append((one.id, "chunks", one.chunks, chunks))
    return wrong + [(number, "documents", 0, held[0]) for number, held in found.items()]


def remove_empty(corpus: Corpus) -> None:
    """Forget compartments that have no documents left, with their indexes."""
    for one in all_compartments(corpus):
        if not one.documents:
            _remove(corpus, one.id)


def _remove(corpus: Corpus, compartment: int) -> None:
    from rolebundle.storage import vector_index

    vector_index.drop_compartment(corpus, compartment)
    lexical_index.drop(corpus, compartment)
    corpus.run("DELETE FROM compartment WHERE id = ?", (compartment,))


def chunks_in(corpus: Corpus, compartments: Iterable[int]) -> int:
    """How many chunks these compartments hold."""
    wanted = set(compartments)
    return sum(one.chunks for one in all_compartments(corpus) if one.id in wanted)
