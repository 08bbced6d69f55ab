"""Step 3d: what the first passages have in common lifts the others that have it, too. Pure.

Pseudo-relevance feedback (Rocchio 1971) among the candidates, in the terms that
`neighbours.py` compares them by: the first ten stand for what was meant, and each candidate is
compared with them. Where they have little in common, feedback has little say: first results that
disagree tell nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rolebundle.contracts.candidate import Filtered
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval.neighbours import Circle, first_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRST = 10
"""How many stand for what was meant; the first counts most, by 1 / log2(rank + 1)."""
SHARE = 0.15
"""The feedback's share of either lane's score, where the first agree."""
AGREE = 0.05
"""Their mean cosine from which they do; under it the share shrinks in proportion, to nothing."""


def agreeing(
    allowed: Sequence[Filtered],
    among: Circle,
    overlay: Overlay | None,
    fusion: Fusion = "weighted",
) -> list[Filtered]:
    """The candidates with feedback mixed into both lanes' scores alike.

    ``score = 0.85 · own + 0.15 · feedback``, where the feedback is the weighted mean of the
    cosines with the first ten, itself left out, divided by the highest; 1 for the first of all,
    which so stays first, and 0 for whoever does not take part. The first are those by lanes,
    metadata and vocabulary, so that with a role it is the role's sources that tell what was meant.
    With ``rrf`` nothing is changed.

    Args:
        allowed: the candidates with their neighbours' support.
        among: those of them that take part, as they were before.
        overlay: for the weights by which the first are found.
        fusion: how the scores were normalized.

    Returns:
        The same candidates in the same order; scores stay in [0, 1].
    """
    if fusion == "rrf" or len(among.best) < 2:
        return list(allowed)
    now = {one.candidate.passage.chunk_id: one for one in allowed}
    ids = [one.candidate.passage.chunk_id for one in among.best]
    ranked = first_of(among, [now[chunk_id] for chunk_id in ids], overlay, fusion)
    scores, share = feedback(among.cosines, ranked[:FIRST])
    if not share:
        return list(allowed)
    by_id = dict(zip(ids, scores, strict=True))
    return [_mixed(one, by_id.get(one.candidate.passage.chunk_id, 0.0), share) for one in allowed]


def feedback(cosines: NDArray[np.float64], first: Sequence[int]) -> tuple[list[float], float]:
    """How much each passage has of what the first have in common, in [0, 1]; and its share.

    Args:
        cosines: of all pairs, (n, n); 0 with oneself.
        first: positions of those that stand for what was meant, the best first.
    """
    import numpy as np

    say = np.zeros(len(cosines))
    say[list(first)] = 1 / np.log2(np.arange(len(first)) + 2)
    say /= say.sum()
    # Rounded, so that another order of summing gives the same.
    common = ((cosines @ say) / np.maximum(1 - say, 1e-9)).round(9)
    highest = float(common.max())
    if not highest:
        return [0.0] * len(cosines), 0.0
    pairs = len(first) * (len(first) - 1)
    agreement = round(float(cosines[np.ix_(first, first)].sum()) / pairs, 9) if pairs else 0.0
    scores = common / highest
    scores[first[0]] = 1.0
    return scores.tolist(), SHARE * min(1.0, agreement / AGREE)


def _mixed(one: Filtered, score: float, share: float) -> Filtered:
    own = one.candidate
    return one.with_lanes(
        (1 - share) * own.lexical + share * score, (1 - share) * own.semantic + share * score
    )
