"""The lanes' hits become the rows of the score sheet, with comparable scores. Pure.

``weighted`` needs the true scores of both lanes for every candidate. So each hit has the score of
each lane that can score it, no matter which lane proposed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rolebundle.retrieval.candidate import Candidate, Pool, Weights

RRF_K = 10


def merge(pool: Pool, weights: Weights) -> list[Candidate]:
    """One candidate for each hit, ordered by chunk id.

    The lanes' scores are normalized to [0, 1]:

    - ``weighted``: BM25 is divided by its maximum; cosines are scaled by minimum and maximum and
      multiplied with the pool's confidence.
    - ``rrf``: (k + 1) / (k + rank) with k = 10 for what the lane proposed and scored, else 0
      (Cormack, Clarke and Buettcher, "Reciprocal rank fusion", SIGIR 2009). Their k is 60; with 10
      the scores spread over [0, 1] about as the normalized ones do, so that the role's terms count
      alike.

    Neither deeper searches nor what only the role's terms proposed change these scores.

    Only what a candidate has of the task counts here. The role's terms count in ``rank``.
    """
    rows = sorted((Candidate(*hit) for hit in pool.hits.values()), key=lambda row: row.chunk_id)
    first = [row for row in rows if row.round == 0]
    best = max((row.bm25 or 0.0 for row in first), default=0.0)
    best_of_role = max((row.bm25_expansion or 0.0 for row in first), default=0.0)
    for row in rows:
        row.lexical = _share(row.bm25, best)
        row.expansion = _share(row.bm25_expansion, best_of_role)
    cosines = {row.chunk_id: row.cosine for row in rows if row.cosine is not None}
    if weights.fusion == "rrf":
        by_words = {row.chunk_id: row.lexical for row in rows}
        lexical = _reciprocal_ranks(
            by_words, [row for row in rows if "lexical" in row.lanes and row.lexical]
        )
        for row in rows:
            row.lexical = lexical.get(row.chunk_id, 0.0)
        semantic = _reciprocal_ranks(cosines, [row for row in rows if "semantic" in row.lanes])
    else:
        # What neither the task's terms nor its meaning proposed does not move the scale.
        measured = [
            row.chunk_id
            for row in first
            if row.passage.rowid not in pool.only_by_role or "semantic" in row.lanes
        ]
        scaled = scale_by_range(cosines, measured)
        semantic = {chunk_id: pool.confidence * score for chunk_id, score in scaled.items()}
    for row in rows:
        row.semantic = semantic.get(row.chunk_id, 0.0)
        row.weigh(weights)
    return rows


def scale_by_range(
    scores: Mapping[str, float], measured: Iterable[str] | None = None
) -> dict[str, float]:
    """Scores scaled by their minimum and maximum to [0, 1]; if all are equal, they become 1.

    Args:
        scores: the scores.
        measured: whose minimum and maximum count; ``None`` for all.
    """
    keys = scores.keys() if measured is None else measured
    values = [scores[key] for key in keys if key in scores]
    lowest, highest = min(values, default=0.0), max(values, default=0.0)
    width = highest - lowest
    return {
        key: min(1.0, max(0.0, (score - lowest) / width)) if width > 0 else 1.0
        for key, score in scores.items()
    }


def _share(score: float | None, highest: float) -> float:
    """A score divided by the highest one of the first search, in [0, 1]."""
    return min(1.0, max(0.0, score or 0.0) / highest) if highest > 0 else 0.0


def _reciprocal_ranks(
    scores: Mapping[str, float], proposed: Iterable[Candidate]
) -> dict[str, float]:
    ranked = sorted(proposed, key=lambda row: (row.round, -scores[row.chunk_id], row.chunk_id))
    return {row.chunk_id: (RRF_K + 1) / (RRF_K + rank) for rank, row in enumerate(ranked, start=1)}
