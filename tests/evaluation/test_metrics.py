"""The measures are trec_eval's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.evaluation.evaluation import METRICS, measures

_THEIRS = {
    "ndcg@10": "ndcg_cut_10",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
    "mrr": "recip_rank",
}
ids = st.integers(0, 150).map(str)


@given(
    st.lists(ids, unique=True, max_size=120), st.dictionaries(ids, st.integers(-1, 4), min_size=1)
)
def test_every_measure_is_what_trec_eval_says(ranked: list[str], grades: dict[str, int]) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    judge = pytrec_eval.RelevanceEvaluator(
        {"q": grades}, {"ndcg_cut.10", "recall.10,100", "recip_rank"}
    )
    # Scores that fall with the rank: trec_eval orders by score, and would break ties by id.
    run = {unit: float(len(ranked) - rank) for rank, unit in enumerate(ranked)}
    theirs = judge.evaluate({"q": run}).get("q") if run else None
    ours = measures(ranked, {unit: max(0, grade) for unit, grade in grades.items()})
    assert tuple(ours) == METRICS
    for name, value in ours.items():
        expected = theirs[_THEIRS[name]] if theirs else 0.0
        assert value == pytest.approx(expected, abs=1e-9), name
