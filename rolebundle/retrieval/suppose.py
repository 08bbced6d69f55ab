"""Where a passage stands, and where it would stand if it had been let in: the same pure steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rolebundle.contracts.candidate import LexicalHit, Ranked, SemanticHit
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import RejectionCode
from rolebundle.policy.trust import Purpose
from rolebundle.retrieval.assemble import Cut, cut
from rolebundle.retrieval.filter import filter_candidates
from rolebundle.retrieval.merge import merge
from rolebundle.retrieval.pipeline import Run, rank
from rolebundle.retrieval.rerank import order


@dataclass(frozen=True, slots=True)
class LetIn:
    """A passage as it would have to be, what lets it in, and its true lane scores.

    The scores are ``None`` where the pool has them, or the lane has none.
    """

    passage: Passage
    overlay: Overlay | None
    purpose: Purpose
    lexical: LexicalHit | None = None
    semantic: SemanticHit | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How one passage stands among the ranked candidates, and the limits of the cut."""

    own: Ranked
    ranked: Sequence[Ranked]
    limit: int
    min_score: float
    token_budget: int | None
    supposed: bool = False

    @property
    def made(self) -> Cut:
        """The cut of these candidates."""
        return cut(self.ranked, self.limit, self.min_score, self.token_budget)

    @property
    def place(self) -> int:
        """Among all allowed candidates, from 1."""
        return 1 + next(n for n, one in enumerate(self.ranked) if one is self.own)

    @property
    def rank(self) -> int | None:
        """In the answer, from 1; ``None`` where it is not in it."""
        ranks = (n for n, one in enumerate(self.made.selected, start=1) if one is self.own)
        return next(ranks, None)

    @property
    def code(self) -> RejectionCode | None:
        """What the cut rejects it with, if it does."""
        own = self.own.passage.chunk_id
        codes = (one.reason for one in self.made.rejected if one.passage.chunk_id == own)
        return next(codes, None)

    def selected_at(self, final: float) -> bool:
        """Whether it would be selected with this final score, the others' being what they are."""
        raised = replace(self.own, final=final)
        ranked = sorted([raised, *(one for one in self.ranked if one is not self.own)], key=order)
        made = cut(ranked, self.limit, self.min_score, self.token_budget)
        return any(one is raised for one in made.selected)

    def before_and_own(self, limit: int | None, token_budget: int | None) -> tuple[Ranked, ...]:
        """What is selected of the candidates down to this one, under other limits."""
        first = self.ranked[: self.place]
        made = cut(first, len(first) if limit is None else limit, self.min_score, token_budget)
        return made.selected


def standing(run: Run, chunk_id: str, token_budget: int | None) -> Standing | None:
    """How a passage stands in the run; ``None`` where it was not ranked."""
    for one in run.ranked:
        if one.passage.chunk_id == chunk_id:
            return Standing(one, run.ranked, run.limit, run.policy.min_score, token_budget)
    return None


def suppose(
    run: Run, let_in: Sequence[LetIn], overlay: Overlay | None, now: datetime
) -> list[Ranked]:
    """The ranking as it would be, had these passages been proposed and allowed.

    No model is asked: what is not allowed in truth is sent to none, so a passage that was not
    scored in context keeps its lanes' score.

    Args:
        run: what happened.
        let_in: passages, each with the policy under which it is allowed.
        overlay: the policy of all others, and of the ranking.
        now: the time that ages are measured against.
    """
    pool = run.pool
    added = {one.passage.rowid: one for one in let_in}
    lexical = pool.lexical | {
        row: replace(one.lexical, proposed=True) for row, one in added.items() if one.lexical
    }
    semantic = pool.semantic | {
        row: replace(one.semantic, proposed=True) for row, one in added.items() if one.semantic
    }
    passages = {one.passage.rowid: one.passage for one in pool.candidates}
    passages |= {row: one.passage for row, one in added.items()}
    candidates = merge(
        lexical.values(), semantic.values(), passages, run.query, run.fusion, run.lane.say
    )
    others = [one for one in candidates if one.passage.rowid not in added]
    allowed, _ = filter_candidates(others, overlay, now, run.purpose)
    for candidate in candidates:
        one = added.get(candidate.passage.rowid)
        if one is not None:
            allowed += filter_candidates([candidate], one.overlay, now, one.purpose)[0]
    known = run.late.known if run.late else None
    return rank(allowed, run.lane, overlay, run.fusion, known)


def supposed_standing(
    run: Run, let_in: LetIn, overlay: Overlay | None, now: datetime, token_budget: int | None
) -> Standing:
    """How a passage would stand, had it been proposed and allowed."""
    ranked = suppose(run, [let_in], overlay, now)
    own = next(one for one in ranked if one.passage.rowid == let_in.passage.rowid)
    return Standing(own, ranked, run.limit, run.policy.min_score, token_budget, supposed=True)
