"""What each system ranks, and what a golden set's references name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rolebundle.contracts.evaluation import GoldenQuestion, GoldenSet
from rolebundle.engine import Engine
from rolebundle.evaluation.questions import Question, References, from_golden
from rolebundle.evaluation.runner import Runner

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def question(task: str, role: str | None = None, **fields: object) -> Question:
    settings: dict[str, object] = {"grades": {"auth": 1}, "passages": frozenset(), "limit": None}
    return Question(id="q", task=task, role=role, now=NOW, **(settings | fields))  # type: ignore[arg-type]


def test_every_system_ranks_documents(engine: Engine) -> None:
    answer = Runner(engine).answer(question("token refresh"))
    assert set(answer.rankings) == {"lexical", "semantic", "weighted", "rrf", "governed"}
    assert set(answer.rankings["semantic"]) == {"auth", "plan", "launch", "old", "new"}
    for ranked in answer.rankings.values():
        assert len(ranked) == len(set(ranked)), "a document stands once, for its best chunk"
    assert "plan" in answer.rankings["lexical"]
    assert "old" in answer.rankings["weighted"], "a fusion alone knows nothing of governance"
    assert "old" not in answer.rankings["governed"]
    assert answer.degraded_reason == ""


def test_a_lane_that_cannot_run_has_no_ranking(engine: Engine) -> None:
    alone = Runner(engine, lexical_only=True).answer(question("token refresh"))
    assert set(alone.rankings) == {"lexical", "governed"}


def test_the_governed_ranking_goes_on_past_the_limit(engine: Engine) -> None:
    runner = Runner(engine)
    short = runner.governed(question("token refresh", limit=1), None)
    assert len(short.bundle.selected) == 1
    assert short.ranked == runner.governed(question("token refresh"), None).ranked


def test_a_role_governs(engine: Engine) -> None:
    runner = Runner(engine)
    assert "launch" in runner.governed(question("token"), None).ranked
    assert "launch" not in runner.governed(question("token"), "guard").ranked


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
    references = References(engine.workspace.corpus)
    assert references.matching_ids(reference) == named
    assert references.passages == {item for item in named if "#" in item}


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
    (question,), notes = from_golden(golden, References(engine.workspace.corpus), "guard", NOW)
    assert question.grades == {
        "auth": 2,
        "plan": 2,
        "launch": 2,
        "old": 2,
        "new": 2,
        "gone.md": 3,
        "plan#1": 1,
    }
    assert question.passages == {"plan#1"}
    assert question.role == "guard"
    assert [note.split(": ", 1)[1] for note in notes] == [
        "expect: gone.md names nothing in the corpus",
        "must_not_return: typo/** names nothing in the corpus",
        "expect_rejection: lost names nothing in the corpus",
    ]


def test_a_named_passage_counts_for_itself(engine: Engine) -> None:
    golden_question = question(
        "tokens expire", grades={"auth#1": 1}, passages=frozenset({"auth#1"})
    )
    lexical = Runner(engine).answer(golden_question).rankings["lexical"]
    assert lexical[0] == "auth#1"
    assert Runner(engine).answer(question("tokens expire")).rankings["lexical"][0] == "auth"
