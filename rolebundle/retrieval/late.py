"""Step 3b: the best candidates are scored again by a contextual model. Pure.

Late, because only what the cheap lanes found is looked at: no index of that model is needed. The
cosines come in as plain numbers; `reranker.py` gets them from the model.

The step re-orders the best candidates among themselves, and nothing else. What comes after it
weighs what it weighed before: passages that are alike, metadata, vocabulary, diversity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rolebundle.contracts.candidate import Filtered
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval.merge import by_range
from rolebundle.retrieval.rerank import best_by_lanes, lane_weights

DEPTH = 50
"""How many candidates, the best by their lanes, are scored again: this bounds the cost."""
SHARE = 0.85
"""The context's share of the semantic term (docs/quality.md has what it was chosen by)."""
KEPT = 0.1
"""What is left of the distances of those that are lifted, so that their order stays."""
MARGIN = 1e-9
"""By how much the last of them stays before the others: rounding must not turn that round."""


def rescored(
    allowed: Sequence[Filtered],
    cosines: Mapping[str, float],
    overlay: Overlay | None,
    fusion: Fusion = "weighted",
    share: float = SHARE,
) -> list[Filtered]:
    """The candidates, the best of them with the context's cosine mixed into the semantic term.

    ``semantic = (1 − share) · semantic + share · contextual``, where the contextual score is the
    cosine by minimum and maximum among those that have one, so in [0, 1]. It is a scale of their
    own, on which the last of them has 0; that alone must not put it behind a candidate that
    nobody looked at. So whoever's lanes would come to less than the best of the others is lifted
    to that, and a tenth of the distances is kept: the order among the re-scored is that of the
    mix, as far as a semantic score of 1 allows, and all of them stay before the others by their
    lanes. The others are not changed. With a semantic weight of 0 the mix has no say in the final
    score.

    Args:
        allowed: what policy allows.
        cosines: chunk id → cosine in [−1, 1]; a best candidate that is not in it keeps its score.
        overlay: for the lanes' weights, by which the best are found.
        fusion: how the lanes' scores were normalized.
        share: the context's share of the semantic term, in [0, 1].

    Returns:
        The same candidates in the same order; every semantic score in [0, 1].
    """
    weights = _weights(overlay, fusion)
    best = best_by_lanes(allowed, overlay, fusion, DEPTH)
    looked_at = {one.candidate.passage.chunk_id for one in best}
    contextual = by_range({name: cosines[name] for name in looked_at & cosines.keys()})
    if not contextual:
        return list(allowed)
    mixed = {
        one.candidate.passage.chunk_id: _mixed(
            one, contextual.get(one.candidate.passage.chunk_id), cosines, share
        )
        for one in best
    }
    others = (one for one in allowed if one.candidate.passage.chunk_id not in looked_at)
    bound = max((_lanes(one, weights) for one in others), default=0.0)
    lifted = _lifted(mixed, bound, weights)
    return [lifted.get(one.candidate.passage.chunk_id, one) for one in allowed]


def _weights(overlay: Overlay | None, fusion: Fusion) -> tuple[float, float]:
    return lane_weights(overlay.retrieval_policy if overlay else RetrievalPolicy(), fusion)


def _lanes(one: Filtered, weights: tuple[float, float]) -> float:
    by_words, by_meaning = weights
    return by_words * one.candidate.lexical + by_meaning * one.candidate.semantic


def _mixed(
    one: Filtered, score: float | None, cosines: Mapping[str, float], share: float
) -> Filtered:
    if score is None:
        return one
    own = one.candidate
    mixed = replace(
        own,
        semantic=(1 - share) * own.semantic + share * score,
        contextual=cosines[own.passage.chunk_id],
        contextual_score=score,
        semantic_before=own.semantic,
    )
    return replace(one, candidate=mixed)


def _lifted(
    best: Mapping[str, Filtered], bound: float, weights: tuple[float, float]
) -> dict[str, Filtered]:
    by_words, by_meaning = weights
    lanes = {name: _lanes(one, weights) for name, one in best.items()}
    least = min(lanes.values())
    lifted: dict[str, Filtered] = {}
    for name, one in best.items():
        wanted = max(lanes[name], bound + KEPT * (lanes[name] - least))
        if by_meaning > 0 and wanted > lanes[name]:
            candidate = one.candidate
            # It had as much by its lanes before the mix, so this is no more than it can have.
            semantic = (wanted - by_words * candidate.lexical) / by_meaning
            semantic = min(1.0, semantic + MARGIN)
            one = replace(one, candidate=replace(candidate, semantic=semantic))  # noqa: PLW2901
        lifted[name] = one
    return lifted
