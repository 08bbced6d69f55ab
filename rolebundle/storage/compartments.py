"""Compartments: documents that any agent may either all see or not see at all.

Each compartment has its own words and vectors, and retrieval adds up the statistics of the visible
ones. So an answer depends on nothing but what its agent may see (docs/decisions/0011).
`partition.py` assigns documents to compartments.

Remembered facts have compartments of their own, so that no score of a document depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rolebundle.storage.corpus import Corpus, once_in_snapshot
from rolebundle.storage.sqlite import IN_SET
from rolebundle.storage.stored_values import grouped

REMEMBERED = "remembered:"
"""How the location of a remembered fact begins. No file of a machine has such an absolute path."""
FACTS_PATTERN = f"{REMEMBERED}**"
"""The pattern that matches all facts. It always counts as one of the deny patterns."""


Kind = tuple[str, str, tuple[str, ...], bool]
"""What distinguishes compartments: scope, sensitivity, deny patterns, and whether quarantined."""


class Compartment(NamedTuple):
    """One compartment. ``denied`` are the deny patterns that match its documents."""

    id: int
    scope: str
    sensitivity: str
    denied: tuple[str, ...]
    quarantined: bool
    documents: int
    chunks: int

    @property
    def kind(self) -> Kind:
        """What distinguishes it from others."""
        return self[1:5]

    @property
    def is_of_facts(self) -> bool:
        """Whether it has remembered facts, and nothing else."""
        return FACTS_PATTERN in self.denied


@once_in_snapshot
def visible_compartments(corpus: Corpus) -> Sequence[Compartment]:
    """The compartments that are visible through this connection, the oldest first."""
    if not corpus.is_restricted:
        return stored_compartments(corpus)
    return corpus.select(Compartment, "compartment ORDER BY id")


@once_in_snapshot
def stored_compartments(corpus: Corpus) -> Sequence[Compartment]:
    """All compartments of the file, visible or not: to decide which an agent may see."""
    return corpus.select(Compartment, "main.compartment ORDER BY id")


def searchable_compartments(corpus: Corpus, *, with_facts: bool = False) -> list[Compartment]:
    """The visible compartments with chunks, without quarantined ones, the oldest first.

    Those of remembered facts are only among them ``with_facts``.
    """
    return [
        part
        for part in visible_compartments(corpus)
        if part.chunks and not part.quarantined and (with_facts or not part.is_of_facts)
    ]


def has_facts(corpus: Corpus) -> bool:
    """Whether remembered facts are visible."""
    return any(part.is_of_facts for part in searchable_compartments(corpus, with_facts=True))


def chunks_by_compartment(corpus: Corpus, rowids: Sequence[int]) -> dict[int, list[int]]:
    """Compartment → those of these chunks that are in it, ordered by rowid."""
    by_compartment = (
        "SELECT d.compartment, c.id FROM chunk c JOIN document d ON d.id = c.document "
        f"WHERE c.id {IN_SET} ORDER BY c.id"
    )
    return grouped(corpus.rows(by_compartment, (rowids,)))


def add_to_counts(corpus: Corpus, compartment: int, *, documents: int = 0, chunks: int = 0) -> None:
    """Add to the recorded numbers of a compartment; negative numbers subtract."""
    update = "UPDATE compartment SET documents = documents + ?, chunks = chunks + ? WHERE id = ?"
    corpus.run(update, (documents, chunks, compartment))
