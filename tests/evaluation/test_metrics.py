"""The measures are trec_eval's, and the significance test is scipy's."""

from itertools import product
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.evaluation.metrics import METRICS, measures, paired_randomization

_THEIRS = {
    "ndcg@10": "ndcg_cut_10",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
    "mrr": "recip_rank",
    "p@5": "P_5",
    "p@10": "P_10",
}
ids = st.integers(0, 150).map(str)


@given(
    st.lists(ids, unique=True, max_size=120), st.dictionaries(ids, st.integers(-1, 4), min_size=1)
)
def test_every_measure_is_what_trec_eval_says(ranked: list[str], grades: dict[str, int]) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    judge = pytrec_eval.RelevanceEvaluator(
        {"q": grades}, {"ndcg_cut.10", "recall.10,100", "recip_rank", "P.5,10"}
    )
    # Scores that fall with the rank: trec_eval orders by score, and would break ties by id.
    run = {unit: float(len(ranked) - rank) for rank, unit in enumerate(ranked)}
    theirs = judge.evaluate({"q": run}).get("q") if run else None
    ours = measures(ranked, {unit: max(0, grade) for unit, grade in grades.items()})
    assert tuple(ours) == METRICS
    for name, value in ours.items():
        expected = theirs[_THEIRS[name]] if theirs else 0.0
        assert value == pytest.approx(expected, abs=1e-9), name


PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=2, max_size=9)


@given(PAIRS)
def test_the_exact_p_value_is_the_share_of_all_signs(pairs: list[tuple[int, int]]) -> None:
    first, second = [a / 8 for a, _ in pairs], [b / 8 for _, b in pairs]
    differences = [b - a for a, b in pairs]
    signs = product((1, -1), repeat=len(pairs))
    sums = [abs(sum(map(mul, differences, sign))) for sign in signs]
    expected = sum(sum_of_signs >= abs(sum(differences)) for sum_of_signs in sums) / len(sums)
    assert paired_randomization(first, second) == pytest.approx(expected)


def test_the_sampled_p_value_is_near_the_t_test() -> None:
    random = np.random.default_rng(1)
    first = random.uniform(0, 1, 200)
    # The p-values are those of `scipy.stats.ttest_rel(second, first)`.
    for shift, expected in ((0.0, 0.168), (0.01, 0.228), (0.03, 0.843), (0.2, 0.0)):
        second = first + random.normal(shift, 0.2, 200)
        ours = paired_randomization(list(first), list(second))
        assert ours == pytest.approx(expected, abs=0.02)
        assert ours == paired_randomization(list(first), list(second)), "same in, same out"
        assert 0 < ours <= 1


def test_a_pair_needs_two() -> None:
    with pytest.raises(ValueError, match="paired"):
        paired_randomization([1.0], [1.0, 0.0])
