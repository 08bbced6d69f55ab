"""Measures of a ranking as trec_eval defines them. Pure functions.

Each measure takes the ranked ids of one question, best first, and its judgments (id → grade). A
grade of 1 or more is relevant; an id without a judgment, or with 0 or less, is not. Tests compare
every measure with trec_eval's own code (``pytrec_eval``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Grades = Mapping[str, int]

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr", "p@5", "p@10")
"""The measures of each question and system, in the order of the report."""


def ndcg(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Return the normalized discounted cumulative gain of the first ``k`` ids, from 0 to 1.

    ``DCG = Σ grade / log2(rank + 1)``, divided by the DCG of the best possible order (Järvelin and
    Kekäläinen, ACM TOIS 20(4), 2002, with the discount and the linear gain of trec_eval's
    ``ndcg_cut``). 0 if nothing is relevant.

    Example:
        ``ndcg(["b", "a"], {"a": 1}, 10)`` is 1 / log2(3) = 0.63.
    """
    ideal = _dcg(sorted(grades.values(), reverse=True)[:k])
    return (
        _dcg([grades.get(judged_id, 0) for judged_id in ranked[:k]]) / ideal if ideal > 0 else 0.0
    )


def _dcg(gains: Sequence[int]) -> float:
    return sum(max(0, gain) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def recall(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Return the share of the relevant ids that are among the first ``k`` (trec_eval's ``recall``).

    0 if nothing is relevant.
    """
    relevant = sum(grade > 0 for grade in grades.values())
    return _hits(ranked[:k], grades) / relevant if relevant else 0.0


def precision(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Return the number of relevant ids among the first ``k``, divided by ``k``: trec_eval's ``P``.

    ``k`` is the divisor also if the ranking is shorter.
    """
    return _hits(ranked[:k], grades) / k


def reciprocal_rank(ranked: Sequence[str], grades: Grades) -> float:
    """Return 1 / rank of the first relevant id, or 0 if there is none (trec_eval's ``recip_rank``).

    The mean over questions is MRR (Voorhees, TREC-8, 1999).
    """
    for rank, judged_id in enumerate(ranked, start=1):
        if grades.get(judged_id, 0) > 0:
            return 1 / rank
    return 0.0


def _hits(ranked: Sequence[str], grades: Grades) -> int:
    return sum(grades.get(judged_id, 0) > 0 for judged_id in ranked)


def measures(ranked: Sequence[str], grades: Grades) -> dict[str, float]:
    """Return every measure of :data:`METRICS` for one question."""
    return {
        "ndcg@10": ndcg(ranked, grades, 10),
        "recall@10": recall(ranked, grades, 10),
        "recall@100": recall(ranked, grades, 100),
        "mrr": reciprocal_rank(ranked, grades),
        "p@5": precision(ranked, grades, 5),
        "p@10": precision(ranked, grades, 10),
    }


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 if there are no values."""
    return math.fsum(values) / len(values) if values else 0.0
