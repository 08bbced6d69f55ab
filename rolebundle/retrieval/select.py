"""Step 5: select the best candidates that fit; reject the others with a code. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import RejectionCode
from rolebundle.retrieval.candidate import Candidate, RejectedCandidate, Score, Selection
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.request import ResolvedRequest

OFF_TOPIC_NOTE = "the task is off-topic: nothing visible has enough of its words or is near it"
CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English text. Budgets are held to this estimate, not to a tokenizer."""


def is_answered_off_topic(evidence: Evidence, request: ResolvedRequest) -> bool:
    """Whether nothing is selected, because the corpus has nothing for the task."""
    return evidence.task == "off_topic" and not request.allow_weak


def select(ranked: Iterable[Candidate], request: ResolvedRequest) -> Selection:
    """Select greedily, in the order of the ranking.

    If the task is off-topic for the corpus, every candidate is rejected (``low_score``). Else a
    candidate is rejected if it is superseded (``conflict_downrank``), a copy of a better one
    (``duplicate``), under ``request.min_score`` (``low_score``), past ``request.limit``, or does
    not fit into what is left of ``request.token_budget`` (``budget_cut``). The first of these is
    its code.
    """
    selected: list[Candidate] = []
    rejected: list[RejectedCandidate] = []
    conflicts: list[Passage] = []
    tokens = 0
    for candidate in ranked:
        rejection: tuple[RejectionCode, str] | None = None
        score = candidate.score
        cost = estimated_tokens(candidate.passage.content)
        if candidate.is_off_topic:
            rejection = "low_score", OFF_TOPIC_NOTE
        elif candidate.is_superseded:
            newer = ", ".join(newer.document_id for newer in candidate.passage.superseded_by)
            rejection = "conflict_downrank", f"superseded by {newer}"
            if score.final >= request.min_score and len(selected) < request.limit:
                conflicts.append(candidate.passage)
        elif candidate.duplicate_of is not None:
            rejection = "duplicate", f"the same text as {candidate.duplicate_of}"
        elif score.final < request.min_score:
            rejection = (
                "low_score",
                f"score {score.final:.3f} is under the floor of {request.min_score:g}",
            )
        elif len(selected) >= request.limit:
            rejection = (
                "budget_cut",
                f"{_described(score)} is past the limit of {request.limit} passages",
            )
        elif request.token_budget is not None and tokens + cost > request.token_budget:
            rejection = (
                "budget_cut",
                f"about {cost} tokens do not fit: {tokens} of token_budget "
                f"{request.token_budget} are used",
            )
        if rejection is None:
            selected.append(candidate)
            tokens += cost
        else:
            rejected.append(RejectedCandidate(candidate, *rejection))
    return Selection(tuple(selected), tuple(rejected), tuple(conflicts))


def _described(score: Score) -> str:
    after = f" ({score.final:.3f} after source diversity)" if score.diversity_penalty else ""
    return f"score {score.before_diversity:.3f}{after}"


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has for a model."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
