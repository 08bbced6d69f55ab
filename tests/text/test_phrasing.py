"""Phrases that do not name the topic are removed from a question; possible names are not."""

from __future__ import annotations

import pytest

from rolebundle.retrieval.query import build_query
from rolebundle.text.phrasing import remove_phrasing
from support.amounts import lengths, linear_time


@pytest.mark.parametrize(
    ("task", "topic"),
    [
        ("I am interested in articles on solid fuel", "solid fuel"),
        ("We're especially interested in solid fuel", "solid fuel"),
        ("Find all papers about solid fuel.", "solid fuel."),
        ("Could you please show me the documentation on token replay?", "token replay?"),
        ("tell me about token replay", "token replay"),
        ("What documents exist that deal with token replay?", "token replay?"),
        ("Any information on packet radio. Of particular interest are routes.",
         "packet radio. routes."),
        ("I'd like to know more about the sync queue", "the sync queue"),
        ("I need information about the sync queue", "the sync queue"),
        ("I’m looking for notes on the sync queue", "the sync queue"),
        ("Sync queue. I would like to see reports on drift.", "Sync queue. drift."),
    ],
)  # fmt: skip
def test_phrases_without_a_topic_are_removed(task: str, topic: str) -> None:
    assert remove_phrasing(task)[0] == topic


@pytest.mark.parametrize(
    "task",
    [
        "list comprehension",
        "find -name pattern",
        "EXPLAIN ANALYZE shows a sequential scan",
        "describe table users",
        "SHOW ALL in postgres",
        "get the information_schema",
        "git show HEAD",
        "interest rates on loans",
        "document store internals",
        "how do I rotate the token?",
        "we rotate tokens every week",
        "works on my machine",
        "notes.md: line 3",
        "reports in the morning",
        "what is the type of a module",
        "Die Information über Artikel",
        "",
    ],
)
def test_possible_names_stay(task: str) -> None:
    assert remove_phrasing(task) == (task, 0)


@pytest.mark.parametrize("task", ["Tell me about it", "What information is there on this?", "I am"])
def test_a_question_without_a_topic_is_unchanged(task: str) -> None:
    query = build_query(task, None)
    assert query.semantic_text == task and query.applied_rules == ()


def test_both_lanes_search_for_the_topic_and_the_trace_names_the_rule() -> None:
    query = build_query("I am interested in articles on solid fuel", None)
    assert query.semantic_text == "solid fuel"
    assert [term.text for term in query.task_terms] == ["solid", "fuel"]
    assert query.task_text == "I am interested in articles on solid fuel"
    assert query.applied_rules == ("task:frame(1)",)


@lengths
def test_the_patterns_do_not_backtrack(length: int) -> None:
    for piece in ("all any some ", "i am ", "find me the ", " ", "interested in all "):
        task = piece * (length // len(piece)) + "articles"
        with linear_time(length):
            remove_phrasing(task)
