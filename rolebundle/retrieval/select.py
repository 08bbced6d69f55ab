"""Step 5: select the best candidates that fit; reject the others with a code. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rolebundle.contracts.terms import RejectionCode
from rolebundle.retrieval.candidate import Candidate, RejectedCandidate
from rolebundle.retrieval.outcome import Selection
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import Score
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    from rolebundle.retrieval.conflicts import Comparison, Conflict

MAX_COMPARED_PAST_LIMIT = 10
"""So many dated candidates after the limit are compared with the selected ones."""
ALWAYS_COMPARED = 10
"""If the limit is smaller, further candidates up to this rank are compared with the selected ones,
so that a small answer hides no disagreement."""
CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English text. Budgets are held to this estimate, not to a tokenizer."""


def select(ranked: Iterable[Candidate], request: ResolvedRequest, withheld: str = "") -> Selection:
    """Select greedily, in the order of the ranking.

    A candidate is rejected if it is superseded (``conflict_downrank``), a copy of another one
    (``duplicate``), under ``request.min_score`` (``low_score``), past ``request.limit`` or the
    role's hard limit for its source, or does not fit into what is left of ``request.token_budget``
    (``budget_cut``). The first of these is its code.

    If the role prefers what is newest, the older one of two passages that disagree is rejected
    (``conflict_downrank``). A newer one soon after the limit takes the place of an older one.

    A conflict may be with a passage past a small limit.

    Args:
        ranked: the candidates in their order.
        request: the resolved request.
        withheld: why every candidate is rejected (``low_score``); empty if none is for this reason.
    """
    selecting = _Selecting(request, withheld)
    candidates = list(ranked)
    for candidate in candidates:
        selecting.consider(candidate)
    return Selection(
        tuple(selecting.selected.values()),
        tuple(
            RejectedCandidate(candidate, *selecting.rejections[candidate.chunk_id])
            for candidate in candidates
            if candidate.chunk_id in selecting.rejections
        ),
        tuple(selecting.conflicts),
    )


class _Selecting:
    """A selection to which candidates are added in the order of the ranking."""

    def __init__(self, request: ResolvedRequest, withheld: str) -> None:
        self.request = request
        self.withheld = withheld
        self.selected: dict[str, Candidate] = {}
        self.rejections: dict[str, tuple[RejectionCode, str]] = {}
        self.conflicts: list[Conflict] = []
        self._tokens = 0
        self._past_limit = 0
        self._dated_past_limit = 0
        self._comparison: Comparison | None = None

    def consider(self, candidate: Candidate) -> None:
        rejection = self._rejection(candidate)
        conflicts = []
        is_among_first = may_replace = False
        if rejection is not None and rejection[0] == "budget_cut" and self._is_full():
            is_dated = candidate.passage.document.updated_at is not None
            self._past_limit += 1
            self._dated_past_limit += is_dated
            is_among_first = self.request.limit + self._past_limit <= ALWAYS_COMPARED
            # It may be newer than a selected one.
            may_replace = is_dated and self.request.policy.prefer_newest
            may_replace &= self._dated_past_limit <= MAX_COMPARED_PAST_LIMIT
        if rejection is None or is_among_first or may_replace:
            conflicts = self._conflicts_of(candidate)
        if rejection is None or any(conflict.outdated is conflict.first for conflict in conflicts):
            self._add(candidate, conflicts)
            return
        self.rejections[candidate.chunk_id] = rejection
        if is_among_first:
            self.conflicts += (conflict for conflict in conflicts if conflict.outdated is None)

    def _rejection(self, candidate: Candidate) -> tuple[RejectionCode, str] | None:
        request, score = self.request, candidate.score
        if self.withheld:
            return "low_score", self.withheld
        if candidate.is_superseded:
            newer = ", ".join(newer.document_id for newer in candidate.passage.superseded_by)
            return "conflict_downrank", f"superseded by {newer}"
        if candidate.duplicate_of is not None:
            return "duplicate", f"the same text as {candidate.duplicate_of}"
        if score.final < request.min_score:
            note = f"score {score.final:.3f} is under the floor of {request.min_score:g}"
            return "low_score", note
        if self._is_full():
            note = f"{_described(score)} is past the limit of {counted(request.limit, 'passage')}"
            return "budget_cut", note
        if self._is_past_source_limit(candidate):
            most = counted(request.policy.max_chunks_per_source, "passage")
            source = candidate.passage.document.source_id
            return "budget_cut", f"it is past the role's limit of {most} of {source}"
        cost, budget = estimated_tokens(candidate.passage.content), request.token_budget
        if budget is not None and self._tokens + cost > budget:
            note = (
                f"about {cost} tokens do not fit: {self._tokens} of token_budget {budget} are used"
            )
            return "budget_cut", note
        return None

    def _is_full(self) -> bool:
        return len(self.selected) >= self.request.limit

    def _is_past_source_limit(self, candidate: Candidate) -> bool:
        """Whether the role limits passages of a source, and so many of its source are selected.

        What a lift keeps is not limited: the best for the task (law 11), and exact words.
        """
        policy, source = self.request.policy, candidate.passage.document.source_id
        if policy.diversity != "hard" or candidate.is_kept:
            return False
        selected = (one.passage.document.source_id for one in self.selected.values())
        return sum(other == source for other in selected) >= policy.max_chunks_per_source

    def _conflicts_of(self, candidate: Candidate) -> list[Conflict]:
        """The conflicts with selected candidates.

        If the role prefers what is newest, each names what is outdated.

        What is outdated itself replaces nothing: the newest one may not disagree with the other.
        """
        if not self.selected:
            return []
        if self._comparison is None:
            # Imported here, because an answer of one passage does not need it.
            from rolebundle.retrieval.conflicts import Comparison

            self._comparison = Comparison(self.request.task)
            for selected in self.selected.values():
                self._comparison.add(selected.passage)
        conflicts = self._comparison.add(candidate.passage, among=self.selected)
        if not self.request.policy.prefer_newest:
            return conflicts
        older = [conflict.older() for conflict in conflicts]
        if any(passage is candidate.passage for passage in older):
            older = [passage if passage is candidate.passage else None for passage in older]
        return [
            conflict._replace(outdated=passage)
            for conflict, passage in zip(conflicts, older, strict=True)
        ]

    def _add(self, candidate: Candidate, conflicts: Iterable[Conflict]) -> None:
        self.selected[candidate.chunk_id] = candidate
        self._tokens += estimated_tokens(candidate.passage.content)
        for conflict in conflicts:
            self.conflicts.append(conflict)
            outdated = conflict.outdated
            if outdated is not None and outdated.chunk_id in self.selected:
                del self.selected[outdated.chunk_id]
                self._tokens -= estimated_tokens(outdated.content)
                self.rejections[outdated.chunk_id] = "conflict_downrank", conflict.note()


def _described(score: Score) -> str:
    after = f" ({score.final:.3f} after source diversity)" if score.diversity_penalty else ""
    return f"score {score.before_diversity:.3f}{after}"


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has for a model."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
