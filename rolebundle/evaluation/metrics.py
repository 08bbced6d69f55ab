"""The measures of a ranking, as trec_eval has them, and whether two systems differ. Pure.

Each takes the ranked ids of one question, best first, and its judgments: id → grade. A grade of 1
or more is relevant; what is not judged, or judged 0 or less, is not. A test holds every measure
to trec_eval's own code (``pytrec_eval``) and the significance test to ``scipy``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Grades = Mapping[str, int]

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr", "p@5", "p@10")
"""What is measured for each question and system, in the order of the report."""

PERMUTATIONS = 10_000
EXACT_UP_TO = 12
"""Up to so many questions that differ, every assignment of signs is looked at: 4,096 of them."""
_SEED = 20_070_601


def ndcg(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Normalized discounted cumulative gain of the first ``k``.

    ``DCG = Σ grade / log2(rank + 1)``, over the DCG of the best order that the judgments allow
    (Järvelin and Kekäläinen, ACM TOIS 20(4), 2002, with the discount and the linear gain of
    trec_eval's ``ndcg_cut``). 0 where nothing is relevant.

    Example:
        ``ndcg(["b", "a"], {"a": 1}, 10)`` is 1 / log2(3) = 0.63.
    """
    ideal = _dcg(sorted(grades.values(), reverse=True)[:k])
    return _dcg([grades.get(one, 0) for one in ranked[:k]]) / ideal if ideal > 0 else 0.0


def _dcg(gains: Sequence[int]) -> float:
    return sum(max(0, gain) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def recall(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """The share of what is relevant that stands in the first ``k`` (trec_eval's ``recall``)."""
    wanted = sum(grade > 0 for grade in grades.values())
    return _hits(ranked[:k], grades) / wanted if wanted else 0.0


def precision(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """The share of ``k`` places that hold something relevant (trec_eval's ``P``).

    A list shorter than ``k`` counts as filled up with what is not relevant.
    """
    return _hits(ranked[:k], grades) / k


def reciprocal_rank(ranked: Sequence[str], grades: Grades) -> float:
    """1 / the rank of the first that is relevant, or 0 (trec_eval's ``recip_rank``).

    Its mean over questions is MRR (Voorhees, TREC-8, 1999).
    """
    for rank, one in enumerate(ranked, start=1):
        if grades.get(one, 0) > 0:
            return 1 / rank
    return 0.0


def _hits(ranked: Sequence[str], grades: Grades) -> int:
    return sum(grades.get(one, 0) > 0 for one in ranked)


def measures(ranked: Sequence[str], grades: Grades) -> dict[str, float]:
    """Every measure of :data:`METRICS` for one question."""
    return {
        "ndcg@10": ndcg(ranked, grades, 10),
        "recall@10": recall(ranked, grades, 10),
        "recall@100": recall(ranked, grades, 100),
        "mrr": reciprocal_rank(ranked, grades),
        "p@5": precision(ranked, grades, 5),
        "p@10": precision(ranked, grades, 10),
    }


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of the values do not exceed, linear between neighbours.

    Definition 7 of Hyndman and Fan (The American Statistician 50(4), 1996), as numpy has it.
    """
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def paired_randomization(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value of Fisher's paired randomization test on the difference of means.

    If the two systems were one, each question's difference could as well have the other sign. The
    p-value is the share of assignments of signs whose mean is at least as far from 0 as the mean
    that was seen; the seen one counts among them. Of the tests in use it is the one that supposes
    least about the values (Smucker, Allan and Carterette, CIKM 2007). Few questions are looked at
    exactly, many by 10,000 assignments from a fixed seed: same values, same answer.

    Raises:
        ValueError: the two are not of one length.
    """
    if len(first) != len(second):
        raise ValueError("a paired test needs as many values of one as of the other")
    import numpy as np

    differences = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    # What does not differ adds nothing, whatever its sign.
    differences = differences[differences != 0]
    count = len(differences)
    if count == 0:
        return 1.0
    if count <= EXACT_UP_TO:
        bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        extra = 0
    else:
        bits = np.random.default_rng(_SEED).integers(0, 2, (PERMUTATIONS, count), dtype=np.int8)
        extra = 1
    sums = np.abs((2.0 * bits - 1.0) @ differences)
    seen = abs(float(differences.sum()))
    # Sums of the same numbers in another order may differ in their last bits.
    as_far = int((sums >= seen * (1 - 1e-9)).sum())
    return (as_far + extra) / (len(bits) + extra)
