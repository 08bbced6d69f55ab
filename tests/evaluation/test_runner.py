"""What each system ranks, and what a golden set's references name."""

from datetime import UTC, datetime

import pytest

from rolebundle.contracts.evaluation import GoldenQuestion, GoldenSet
from rolebundle.engine import Engine
from rolebundle.evaluation.questions import Question, References, from_golden

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def question(task: str, role: str | None = None, **fields: object) -> Question:
    settings: dict[str, object] = {"grades": {"auth": 1}, "passages": frozenset(), "limit": None}
    return Question(id="q", task=task, role=role, now=NOW, **(settings | fields))  # type: ignore[arg-type]


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
