"""Which forbidden passages would have been selected if they were not forbidden. Pure.

They are scored like the allowed candidates, by lanes, metadata and vocabulary, and have to stand
among the selected ones. The other steps of the ranking compare candidates with each other.
Forbidden candidates take no part in these, so that they influence nothing but a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rolebundle.retrieval.candidate import Candidate, RejectedCandidate
from rolebundle.retrieval.filter import rejections, seen_rejection, with_metadata
from rolebundle.retrieval.rank import ranking_order, with_role
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.score import Weights
from rolebundle.retrieval.select import select


def forbidden_hits(
    rejected: Iterable[RejectedCandidate],
    selected: Sequence[Candidate],
    request: ResolvedRequest,
    weights: Weights,
    seen: Mapping[str, Sequence[str]],
) -> list[Candidate]:
    """The candidates that would be selected if the role forbade no source, best first.

    What is rejected for another reason as well is not among them.

    Args:
        rejected: what the filter rejected.
        selected: the selected candidates.
        request: the resolved request.
        weights: of the score's terms.
        seen: the hashes of the texts that the agent has, and the ids of its passages.
    """
    supposed = [
        with_role(with_metadata(rejection.candidate, request), request, weights)
        for rejection in rejected
        if {code for code, _ in rejections(rejection.candidate.passage, request)}
        == {"forbidden_source"}
        and not seen_rejection(rejection.candidate.passage, seen)
    ]
    names = {candidate.chunk_id for candidate in supposed}
    together = sorted((*selected, *supposed), key=ranking_order)
    return [
        candidate for candidate in select(together, request).selected if candidate.chunk_id in names
    ]
