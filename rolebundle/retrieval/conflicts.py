"""Which passages of an answer belong to documents that declare a disagreement. Pure.

Two passages *conflict* if their documents are two, have the same trust tier, and one of them
declares that it contradicts the other one (``contradicts``). Texts are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from rolebundle.contracts.document import Passage


class Conflict(NamedTuple):
    """Two passages that disagree; ``first`` ranks higher."""

    first: Passage
    second: Passage

    @property
    def sentence(self) -> str:
        """One sentence that names both passages."""
        first, second = self.first.chunk_id, self.second.chunk_id
        return f"{first} and {second} disagree, as one of their documents declares"


def conflicts(selected: Sequence[Passage], cut: Sequence[Passage]) -> tuple[Conflict, ...]:
    """The conflicts among selected passages, and of them with passages that the limit cut.

    Args:
        selected: in the order of the ranking.
        cut: the passages that follow.
    """
    pairs = [*combinations(selected, 2), *((first, second) for second in cut for first in selected)]
    return tuple(Conflict(*pair) for pair in pairs if _conflict(*pair))


def _conflict(first: Passage, second: Passage) -> bool:
    return (
        first.document.trust_tier == second.document.trust_tier
        and first.document.document_id != second.document.document_id
        and (_declares(first, second) or _declares(second, first))
    )


def _declares(passage: Passage, other: Passage) -> bool:
    claimed = passage.document.contradicts
    return other.document.document_id in claimed or other.path in claimed
