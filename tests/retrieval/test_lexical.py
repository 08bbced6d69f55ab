"""The lexical lane: BM25 of the task's terms and of the role's, scored separately."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.retrieval import lexical
from rolebundle.retrieval.candidate import Query, Term
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_by_rowid
from support.corpora import build, document, overlay
from support.values import query


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    path = build(
        tmp_path,
        [
            document("a", ["token rotation is due", "nothing here"]),
            document("b", ["a token", "threat model"]),
            document("c", ["bread and butter"]),
        ],
    )
    with open_reader(path) as opened:
        yield opened


def by_id(corpus: Corpus, hits: dict[int, tuple[float, float]]) -> dict[str, tuple[bool, bool]]:
    names = passages_by_rowid(corpus, [*hits])
    return {names[rowid].chunk_id: (task > 0, role > 0) for rowid, (task, role) in hits.items()}


def searched(
    corpus: Corpus, searched_query: Query, depth: int, within: list[int] | None = None
) -> dict[int, tuple[float, float]]:
    """The hits of the lane, with their true scores."""
    found = lexical.propose(corpus, searched_query, depth, within)
    return lexical.score(
        corpus, searched_query, found, sorted(found.task.keys() | found.role.keys())
    )


@pytest.mark.parametrize(
    ("terms", "expression"),
    [
        ([Term("token"), Term("v2.1")], '"token" OR "v2.1"'),
        ([Term("a", 3)], '"a" OR "a" OR "a"'),  # a weight is a repetition
        ([Term('a"b\x00c')], '"a""b c"'),
        ([Term("NEAR("), Term("-x*")], '"NEAR(" OR "-x*"'),
    ],
)
def test_terms_are_quoted_and_or_joined(terms: list[Term], expression: str) -> None:
    assert lexical.match_expression(terms) == expression


class TestSearch:
    def test_the_roles_terms_are_scored_separately(self, corpus: Corpus) -> None:
        role = overlay(vocabulary={"boost_phrases": ["threat model"]})
        hits = searched(corpus, query("token", role), 10)
        assert by_id(corpus, hits) == {
            "a#0": (True, False),
            "b#0": (True, False),
            "b#1": (False, True),
        }

    def test_a_chunk_beyond_the_depth_of_a_list_has_its_true_score(self, tmp_path: Path) -> None:
        # "both" is second for the task and first for the role; at a depth of one the task's list
        # does not name it, and its score is asked for.
        path = build(
            tmp_path, [document("task", ["token token token"]), document("both", ["token threat"])]
        )
        role = overlay(vocabulary={"boost_phrases": ["threat"]})
        with open_reader(path) as corpus:
            hits = searched(corpus, query("token", role), 1)
            assert by_id(corpus, hits) == {"task#0": (True, False), "both#0": (True, True)}
