"""Step 4, part 3: texts of another kind than the task asks for are ranked lower. Pure.

In a software project tests and source code have the words of most questions, often in every line.
A question in natural language is answered by the documentation, unless it asks for code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import FLOOR_MARGIN, Weights
from rolebundle.text.asked_kind import TextKind, asked_kind, kind_of_text

OTHER_KIND = 0.75
"""A score is multiplied with this for each step away from the kind that the task asks for."""
STEPS_AWAY: Mapping[TextKind | None, Mapping[TextKind, int]] = MappingProxyType(
    {
        "prose": {"code": 1, "tests": 2},
        "code": {"prose": 1, "tests": 2},
        "tests": {"code": 1, "prose": 2},
        None: {"tests": 1},
    }
)
"""Asked kind → kind → steps. Tests use what prose and code explain, so they are far from both."""


def with_kinds(
    candidates: Sequence[Candidate], request: ResolvedRequest, weights: Weights
) -> list[Candidate]:
    """The candidates, with all terms of other kinds than the asked one times their factor.

    A type of document that the role prefers keeps its score. No score falls under
    ``request.min_score`` by this.
    """
    steps = STEPS_AWAY[asked_kind(request.task)]
    return [_with_kind(candidate, steps, request, weights) for candidate in candidates]


def _with_kind(
    candidate: Candidate,
    steps: Mapping[TextKind, int],
    request: ResolvedRequest,
    weights: Weights,
) -> Candidate:
    passage, score = candidate.passage, candidate.score
    floor = request.min_score * (1 + FLOOR_MARGIN)
    boosts = request.overlay.source_policy.document_type_boosts if request.overlay else {}
    if boosts.get(passage.document.document_type, 1.0) > 1 or score.final <= floor:
        return candidate
    kind = kind_of_text(passage.path, is_code=passage.content_type == "code")
    if kind not in steps:
        return candidate
    factor = max(OTHER_KIND ** steps[kind], floor / score.final)
    terms = tuple(factor * term for term in score.terms)
    hit = f"{kind} ×{factor:.2f}"
    return candidate.with_score(score.with_terms("kind", terms, (hit,), weights))
