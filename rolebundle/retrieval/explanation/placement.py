"""The position of a passage in the ranking of a request, also under other conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import RejectionCode
from rolebundle.retrieval.candidate import Candidate, LexicalHit, SemanticHit
from rolebundle.retrieval.filter import (
    as_valid,
    filter_candidates,
    with_metadata,
)
from rolebundle.retrieval.lanes import Lanes
from rolebundle.retrieval.merge import merge
from rolebundle.retrieval.outcome import Retrieval, Selection
from rolebundle.retrieval.pipeline import plain_candidates
from rolebundle.retrieval.rank import rank
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.select import select

if TYPE_CHECKING:
    from rolebundle.retrieval.rerank import Reranker

Hit = TypeVar("Hit", LexicalHit, SemanticHit)


@dataclass(frozen=True, slots=True)
class Execution:
    """One request, what each step returned, and what is needed to run the steps again."""

    lanes: Lanes
    request: ResolvedRequest
    reranker: Reranker | None
    retrieval: Retrieval

    def was_proposed(self, passage: Passage) -> bool:
        """Whether a lane proposed the passage."""
        pool = self.retrieval.pool
        return passage.rowid in pool.lexical or passage.rowid in pool.semantic

    def ranked_with(self, passages: Sequence[Passage]) -> list[Candidate]:
        """The ranking if a lane had proposed these passages and policy had allowed them.

        Nothing is sent to the reranking model. A passage that the model has not scored keeps the
        score of its lanes.
        """
        pool, request = self.retrieval.pool, self.request
        passages = [as_valid(passage, request) for passage in passages]
        missing = [passage for passage in passages if not self.was_proposed(passage)]
        lexical, semantic = self.lanes.measure(missing)
        lexical = {
            passage.rowid: lexical.get(passage.rowid, LexicalHit(passage.rowid, 0.0, 0.0))
            for passage in missing
        }
        pool = pool._replace(
            lexical={**pool.lexical, **_mark_proposed(lexical)},
            semantic={**pool.semantic, **_mark_proposed(semantic)},
            passages={**pool.passages, **{passage.rowid: passage for passage in passages}},
        )
        added = {passage.rowid for passage in passages}
        candidates = merge(pool, self.retrieval.weights)
        proposed = [candidate for candidate in candidates if candidate.passage.rowid not in added]
        allowed, _ = filter_candidates(proposed, request, self.retrieval.seen)
        allowed += [
            with_metadata(candidate, request)
            for candidate in candidates
            if candidate.passage.rowid in added
        ]
        return rank(
            allowed,
            request,
            self.retrieval.weights,
            plain_candidates(pool, request, self.retrieval.weights),
            self.lanes.exact,
            self.reranker.known if self.reranker else None,
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """The position of one candidate in a ranking, and the result of the selection for it.

    Attributes:
        own: the candidate.
        ranked: all candidates, in order.
        request: has the limits.
        selection: the selection from the ranked candidates.
        position: the candidate's position among the ranked, from 1.
        rank: its rank in the selection, from 1; ``None`` if it is rejected.
        code: the code of its rejection; ``None`` if it is selected.
        is_hypothetical: whether the candidate was not ranked when the request was answered.
    """

    own: Candidate
    ranked: Sequence[Candidate]
    request: ResolvedRequest
    selection: Selection
    position: int
    rank: int | None
    code: RejectionCode | None
    is_hypothetical: bool

    @classmethod
    def of(
        cls,
        chunk_id: str,
        ranked: Sequence[Candidate],
        request: ResolvedRequest,
        withheld: str = "",
        *,
        is_hypothetical: bool,
    ) -> Placement:
        """The position of a ranked candidate, and what the selection makes of it."""
        selection = select(ranked, request, withheld)
        codes = {rejection.candidate.chunk_id: rejection.code for rejection in selection.rejected}
        position = positions(ranked)[chunk_id]
        return cls(
            own=ranked[position - 1],
            ranked=ranked,
            request=request,
            selection=selection,
            position=position,
            rank=positions(selection.selected).get(chunk_id),
            code=codes.get(chunk_id),
            is_hypothetical=is_hypothetical,
        )


def positions(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Chunk id → position from 1."""
    return {candidate.chunk_id: n for n, candidate in enumerate(candidates, start=1)}


def _mark_proposed(hits: Mapping[int, Hit]) -> dict[int, Hit]:
    return {rowid: hit._replace(proposed=True) for rowid, hit in hits.items()}
