"""Code and tests do not outrank the documentation, unless the task asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.rank import rank
from support.corpora import overlay, resolved
from support.values import allowed, passage, weights

PROSE = passage("prose", path="docs/retry.rst")
CODE = passage("code", path="src/retry.py", content_type="code")
TESTS = passage("tests", path="tests/test_retry.py", content_type="code")
LANES = 0.5
"""The final score of a candidate with these terms and without a role."""


def ranked(
    task: str, *passages: Passage, role: Overlay | None = None, score: float = LANES, **fields: Any
) -> list[Candidate]:
    """The passages with equal scores of the lanes, as they are ranked."""
    candidates = [
        allowed(one, lexical=score, semantic=score, **fields)
        for one in passages or (TESTS, CODE, PROSE)
    ]
    request = resolved(role, task=task)
    return rank(candidates, request, weights(role), has_vectors=False)


@pytest.mark.parametrize(
    ("task", "order"),
    [
        ("How do I retry?", ["prose", "code", "tests"]),
        ("Where is the retry implemented?", ["code", "prose", "tests"]),
        ("Which test covers the retry?", ["tests", "code", "prose"]),
        ("retry_delay", ["code", "prose", "tests"]),
        ("Review the retry", ["code", "prose", "tests"]),
    ],
)
def test_the_asked_kind_is_first(task: str, order: list[str]) -> None:
    assert [candidate.chunk_id for candidate in ranked(task)] == order


def test_each_step_away_takes_a_quarter() -> None:
    scores = [candidate.score.final for candidate in ranked("How do I retry?")]
    assert scores == pytest.approx([LANES, 0.75 * LANES, 0.75**2 * LANES])


def test_the_contributions_sum_to_the_score() -> None:
    for candidate in ranked("How do I retry?"):
        parts = (part.value * part.weight for part in candidate.score.contributions)
        assert sum(parts) == pytest.approx(candidate.score.final)


def test_a_much_better_passage_of_code_stays_first() -> None:
    better = allowed(CODE, lexical=0.9, semantic=0.9)
    request = resolved(task="How do I retry?")
    found = rank([allowed(PROSE), better], request, weights(), has_vectors=False)
    assert found[0].chunk_id == "code"


def test_without_code_nothing_changes() -> None:
    (only,) = ranked("Where is the retry implemented?", PROSE)
    assert only.score.final == LANES


def test_no_score_falls_under_the_floor() -> None:
    floor = resolved().min_score
    found = ranked("How do I retry?", score=1.05 * floor)
    assert min(candidate.score.final for candidate in found) >= floor


def test_what_the_role_prefers_keeps_its_score() -> None:
    role = overlay(source_policy={"document_type_boosts": {"source-code": 1.5, "test-code": 0.9}})
    code = CODE._replace(document=CODE.document._replace(document_type="source-code"))
    tests = TESTS._replace(document=TESTS.document._replace(document_type="test-code"))
    found = {one.chunk_id: one for one in ranked("How do I retry?", code, tests, role=role)}
    assert not found["code"].score.hits_of("kind")
    assert found["tests"].score.hits_of("kind") == ("tests ×0.56",)
