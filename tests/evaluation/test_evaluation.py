"""The report, its floors and the governance part."""

from datetime import UTC, datetime

import pytest

from rolebundle.contracts.evaluation import EvalReport, GoldenQuestion, GoldenSet
from rolebundle.embedding.provider import Unavailable
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError, UsageError
from rolebundle.evaluation.evaluation import (
    NAMES,
    evaluate,
    parse_thresholds,
    value_of,
    with_thresholds,
)
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
        for system in report.systems:
            scores = [question.scores[system.system]["ndcg@10"] for question in report.questions]
            assert system.metrics["ndcg@10"] == pytest.approx(sum(scores) / 2)

    def test_a_lane_that_is_down_is_reported(self, engine: Engine) -> None:
        broken = Unavailable(EmbedderError("down", "the model is down", "start it"))
        folders = engine.overlay_folders
        with Engine(Workspace(engine.workspace.path, broken), folders) as without_model:
            report = reported(without_model, GOOD)
        assert "the model is down" in report.degraded
        assert [system.system for system in report.systems] == ["governed"]


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
