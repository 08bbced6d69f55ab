"""Step 5: candidates that fit are selected, all others are rejected with a code."""

from __future__ import annotations

from typing import Any

import pytest

from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.rank import estimated_tokens, select
from support.corpora import resolved
from support.values import passage, ranked


def cut(
    candidates: list[Candidate], limit: int, min_score: float, token_budget: int | None = None
) -> list[Candidate]:
    request = resolved(limit=limit, token_budget=token_budget)
    select(candidates, request._replace(min_score=min_score))
    return candidates


def ids(candidates: list[Candidate]) -> list[str]:
    return [candidate.chunk_id for candidate in candidates if candidate.code is None]


def rejections(candidates: list[Candidate]) -> dict[str, tuple[str, str]]:
    return {row.chunk_id: (row.code, row.note) for row in candidates if row.code}


def of_length(chunk_id: str, characters: int, **fields: Any) -> Candidate:
    return ranked(passage(chunk_id, "x" * characters), **fields)


class TestFloor:
    def test_a_score_below_the_minimum_is_a_low_score(self) -> None:
        selection = cut([ranked(passage("a"), 0.1), ranked(passage("b"), 0.0999)], 9, 0.1)
        assert ids(selection) == ["a"]
        assert rejections(selection) == {
            "b": ("low_score", "score 0.100 is under the floor of 0.1")
        }

    def test_a_low_score_is_reported_before_the_limit(self) -> None:
        selection = cut([ranked(passage("a"), 0.9), ranked(passage("b"), 0.01)], 1, 0.1)
        assert rejections(selection)["b"][0] == "low_score"


class TestDuplicates:
    def test_a_duplicate_is_rejected_and_takes_no_place(self) -> None:
        selection = cut(
            [
                ranked(passage("a")),
                ranked(passage("b"), duplicate_of="a"),
                ranked(passage("c")),
            ],
            2,
            0.0,
        )
        assert ids(selection) == ["a", "c"]
        assert rejections(selection) == {"b": ("duplicate", "the same text as a")}


class TestTokenBudget:
    @pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
    def test_four_characters_a_token_rounded_up(self, characters: int, tokens: int) -> None:
        assert estimated_tokens("x" * characters) == tokens

    def test_greedy_by_final_score(self) -> None:
        # 10 + 15 of 30 tokens are used, 10 do not fit, 5 do: a passage that is too long ends
        # nothing for the shorter ones behind it.
        selection = cut(
            [of_length("a", 40), of_length("b", 60), of_length("c", 40), of_length("d", 20)],
            9,
            0.0,
            30,
        )
        assert ids(selection) == ["a", "b", "d"]
        assert rejections(selection) == {
            "c": ("budget_cut", "about 10 tokens do not fit: 25 of token_budget 30 are used")
        }

    def test_an_exact_fit_fits(self) -> None:
        assert ids(cut([of_length("a", 40), of_length("b", 40)], 9, 0.0, 20)) == ["a", "b"]

    def test_nothing_fits(self) -> None:
        assert ids(cut([of_length("a", 40)], 9, 0.0, 9)) == []

    def test_the_limit_also_applies(self) -> None:
        selection = cut([of_length("a", 4), of_length("b", 4)], 1, 0.0, 100)
        assert "limit of 1" in rejections(selection)["b"][1]
