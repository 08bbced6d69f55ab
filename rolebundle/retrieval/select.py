"""Step 5: select the best candidates that fit; reject the others with a code. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rolebundle.contracts.terms import RejectionCode
from rolebundle.retrieval.candidate import Candidate, RejectedCandidate
from rolebundle.retrieval.conflicts import conflicts
from rolebundle.retrieval.outcome import Selection
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import Score
from rolebundle.text.counts import counted

ALWAYS_COMPARED = 10
"""If the limit is smaller, so many passages are looked at for declared disagreements, so that a
small answer hides none."""
CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English text. Budgets are held to this estimate, not to a tokenizer."""


def select(ranked: Iterable[Candidate], request: ResolvedRequest, withheld: str = "") -> Selection:
    """Select greedily, in the order of the ranking.

    A candidate is rejected if it is superseded (``conflict_downrank``), a copy of another one
    (``duplicate``), under ``request.min_score`` (``low_score``), past ``request.limit`` or the
    role's hard limit for its source, or does not fit into what is left of ``request.token_budget``
    (``budget_cut``). The first of these is its code.

    A conflict may be with a passage past a small limit.

    Args:
        ranked: the candidates in their order.
        request: the resolved request.
        withheld: why every candidate is rejected (``low_score``); empty if none is for this reason.
    """
    selecting = _Selecting(request, withheld)
    rejected: list[RejectedCandidate] = []
    cut: list[Candidate] = []
    for candidate in ranked:
        is_full = selecting.is_full()
        rejection = selecting.consider(candidate)
        if rejection is not None:
            rejected.append(RejectedCandidate(candidate, *rejection))
            if is_full and rejection[0] == "budget_cut":
                cut.append(candidate)
    selected = selecting.selected
    compared = cut[: max(0, ALWAYS_COMPARED - request.limit)]
    return Selection(
        tuple(selected),
        tuple(rejected),
        conflicts([chosen.passage for chosen in selected], [chosen.passage for chosen in compared]),
    )


class _Selecting:
    """A selection to which candidates are added in the order of the ranking."""

    def __init__(self, request: ResolvedRequest, withheld: str) -> None:
        self.request = request
        self.withheld = withheld
        self.selected: list[Candidate] = []
        self._tokens = 0

    def consider(self, candidate: Candidate) -> tuple[RejectionCode, str] | None:
        """Select a candidate, or return why not: a code and a note."""
        rejection = self._rejection(candidate)
        if rejection is None:
            self.selected.append(candidate)
            self._tokens += estimated_tokens(candidate.passage.content)
        return rejection

    def is_full(self) -> bool:
        return len(self.selected) >= self.request.limit

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
        if self.is_full():
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

    def _is_past_source_limit(self, candidate: Candidate) -> bool:
        """Whether the role limits passages of a source, and so many of its source are selected.

        What a lift keeps is not limited: the best for the task (law 11), and exact words.
        """
        policy, source = self.request.policy, candidate.passage.document.source_id
        if policy.diversity != "hard" or candidate.is_kept:
            return False
        selected = (chosen.passage.document.source_id for chosen in self.selected)
        return sum(other == source for other in selected) >= policy.max_chunks_per_source


def _described(score: Score) -> str:
    after = f" ({score.final:.3f} after source diversity)" if score.diversity_penalty else ""
    return f"score {score.before_diversity:.3f}{after}"


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has for a model."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
