"""The report, its floors and the governance part."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.evaluation import EvalReport, GoldenQuestion, GoldenSet
from rolebundle.embedding.provider import Unavailable
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError, UsageError
from rolebundle.evaluation.evaluation import (
    METRICS,
    NAMES,
    documents_in,
    evaluate,
    governed,
    measures,
    parse_thresholds,
    value_of,
    with_thresholds,
)
from rolebundle.evaluation.questions import from_golden, references_in
from rolebundle.workspace import Workspace

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def silent(_step: str, _done: int, _total: int) -> None:
    pass


def reported(engine: Engine, *questions: GoldenQuestion) -> EvalReport:
    named = [
        question.model_copy(update={"id": question.id or str(n)})
        for n, question in enumerate(questions)
    ]
    return evaluate(engine, GoldenSet(questions=named), None, NOW, silent)


GOOD = GoldenQuestion(
    id="good",
    task="token refresh flow",
    role="guard",
    expect={"auth": 2, "new": 1},
    must_not_return=["launch", "old"],
    expect_rejection={"launch": "forbidden_source", "old": "conflict_downrank"},
    expect_fallback="forbidden_hit",
    expect_trust="undeclared",
)
LEAKY = GoldenQuestion(id="leaky", task="tokens that nobody can steal", must_not_return=["launch"])


class TestGovernance:
    def test_a_leak_fails_without_being_asked(self, engine: Engine) -> None:
        report = with_thresholds(reported(engine, GOOD, LEAKY), {})
        assert report.governance is not None
        assert report.governance.leak_rate == 0.5
        assert not report.passed
        (leak,) = [check for check in report.governance.checks if not check.held]
        assert (leak.question, leak.kind, leak.found) == (
            "leaky",
            "must_not_return",
            "selected: launch#0",
        )

    def test_a_wrong_code_and_a_wrong_posture(self, engine: Engine) -> None:
        wrong = GOOD.model_copy(
            update={
                "expect_rejection": {"launch": "stale", "auth": "stale"},
                "expect_trust": "strong",
            }
        )
        result = reported(engine, wrong).governance
        assert result is not None
        assert (result.rejection_accuracy, result.posture_accuracy) == (0.0, 0.5)
        by_kind = {
            (check.kind, check.about): check.found for check in result.checks if not check.held
        }
        assert by_kind["expect_rejection", "launch"] == "forbidden_source"
        assert by_kind["expect_rejection", "auth"].startswith("selected")
        assert by_kind["expect_trust", ""] == "undeclared"


class TestReport:
    def test_the_figures_are_the_means(self, engine: Engine) -> None:
        second_question = GoldenQuestion(task="plan of release", expect={"plan": 1})
        report = reported(engine, GOOD, second_question)
        scores = [question.scores["ndcg@10"] for question in report.questions]
        assert report.metrics["ndcg@10"] == pytest.approx(sum(scores) / 2)

    def test_a_lane_that_is_down_is_reported(self, engine: Engine) -> None:
        broken = Unavailable(EmbedderError("down", "the model is down", "start it"))
        folders = engine.access.overlay_folders
        with Engine(Workspace(engine.workspace.path, broken), folders) as without_model:
            report = reported(without_model, GOOD)
        assert "the model is down" in report.degraded
        assert report.metrics.keys() == {*METRICS}


class TestFloors:
    def test_every_name_has_a_value_where_it_is_measured(self, engine: Engine) -> None:
        report = reported(engine, GOOD)
        assert [name for name in NAMES if value_of(report, name) is None] == []

    def test_costs_are_bounded_from_above(self, engine: Engine) -> None:
        report = with_thresholds(
            reported(engine, GOOD), parse_thresholds(["leak_rate=0", "latency_p95=1e-9"])
        )
        assert [(floor.at_most, floor.held) for floor in report.floors] == [
            (True, True),
            (True, False),
        ]
        assert not report.passed

    @pytest.mark.parametrize(
        "pair", ["ndcg@10", "ndcg@10=", "ndcg@10=high", "ndcg=1", "mrr=nan", "lexical.mrr=1"]
    )
    def test_what_makes_no_sense_is_refused(self, pair: str) -> None:
        with pytest.raises(UsageError, match="bad_floor"):
            parse_thresholds([pair])


# -- the measures are those of trec_eval -----------------------------------------------------------


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


# -- what references of a golden set name ----------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("auth", {"auth"}),
        ("auth.md", {"auth"}),
        ("*.md", {"auth", "plan", "launch", "old", "new"}),
        ("a*", {"auth"}),
        ("auth#1", {"auth#1"}),
        ("auth.md:2-2", {"auth#1"}),
        ("auth.md:1-2", {"auth#0", "auth#1"}),
        ("auth.md:7-9", set()),
        ("nobody", set()),
    ],
)
def test_references(engine: Engine, reference: str, named: set[str]) -> None:
    assert references_in(engine.workspace.corpus)(reference) == named


def test_what_is_named_and_not_there_is_noted_and_counts(engine: Engine) -> None:
    golden = GoldenSet(
        questions=[
            GoldenQuestion(
                id="q",
                task="token",
                expect={"auth": 1, "*.md": 2, "gone.md": 3, "plan#1": 1},
                must_not_return=["typo/**"],
                expect_rejection={"lost": "stale"},
            )
        ]
    )
    references = references_in(engine.workspace.corpus)
    ((question, grades),), notes = from_golden(golden, references, "guard", NOW)
    assert grades == {
        "auth": 2,
        "plan": 2,
        "launch": 2,
        "old": 2,
        "new": 2,
        "gone.md": 3,
        "plan#1": 1,
    }
    assert question.role == "guard"
    assert [note.split(": ", 1)[1] for note in notes] == [
        "expect: gone.md names nothing in the corpus",
        "must_not_return: typo/** names nothing in the corpus",
        "expect_rejection: lost names nothing in the corpus",
    ]


def test_a_judged_passage_has_a_rank_of_its_own(engine: Engine) -> None:
    question = GoldenQuestion(task="plan of release", now=NOW)
    document_of = documents_in(engine.workspace.corpus)
    _, ranked, _ = governed(engine, (question, {"plan#1": 1}), document_of)
    assert "plan#1" in ranked and "plan" in ranked
    assert [name for name in ranked if "#" in name] == ["plan#1"]
