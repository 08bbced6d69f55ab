"""BM25 equals that of FTS5, and does not depend on how documents are divided into compartments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.retrieval import lexical
from rolebundle.retrieval.candidate import Query, Term
from rolebundle.retrieval.lexical import (
    LexicalProposals,
    Statistics,
    match_expression,
)
from rolebundle.storage import compartments, lexical_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader
from support.amounts import few_examples
from support.compartments import only_compartment
from support.corpora import build, built, chunk, document, scratch_folder
from support.strategies import any_text, choices
from support.values import WORDS, query

CLOSE = 1e-9

# Phrases, words that are none, syntax, and the same word twice.
TERMS = (*WORDS, "token rotation", "audit release kernel", "tokens", "NOT", "!!!", "zzz", '"', "")

text = st.one_of(choices(*[(*WORDS, "")] * 5).map(" ".join), any_text)
terms = st.lists(
    st.tuples(st.sampled_from(TERMS), st.integers(1, 3)).map(lambda pair: Term(*pair)),
    min_size=1,
    max_size=6,
)
kinds = st.tuples(
    st.sampled_from(["shared", "hr", "board"]), st.sampled_from(["public", "internal"])
)


@st.composite
def corpora(draw: st.DrawFn, least: int = 1) -> list[StoredDocument]:
    """A few documents with words in every column."""
    stored = []
    for number in range(draw(st.integers(least, 7))):
        source = document(
            f"d{number}",
            [],
            title=draw(text) or "t",
            tags=tuple(draw(st.lists(st.sampled_from(WORDS), max_size=2, unique=True))),
            retrieval_hints=tuple(draw(st.lists(st.sampled_from(WORDS), max_size=2, unique=True))),
        )
        chunks = [
            chunk(f"d{number}#{place}", content, headings=headings)
            for place, (content, headings) in enumerate(
                draw(
                    st.lists(
                        st.tuples(text, st.lists(st.sampled_from(WORDS), max_size=2).map(tuple)),
                        min_size=1,
                        max_size=3,
                    )
                )
            )
        ]
        stored.append(StoredDocument(source.metadata, tuple(chunks)))
    return stored


def parted(
    documents: Sequence[StoredDocument], kinds: Sequence[tuple[str, str]]
) -> list[StoredDocument]:
    """The same documents with other scopes and sensitivities."""
    return [
        StoredDocument(
            document(
                stored.metadata.document_id,
                [],
                title=stored.metadata.title,
                tags=stored.metadata.tags,
                retrieval_hints=stored.metadata.retrieval_hints,
                scope=scope,
                sensitivity=sensitivity,
            ).metadata,
            stored.chunks,
        )
        for stored, (scope, sensitivity) in zip(documents, kinds, strict=False)
    ]


def literal(term: Term) -> str:
    return match_expression([Term(term.text)])


def merged_scores(corpus: Corpus, place: int, terms: Sequence[Term]) -> dict[int, float]:
    """The scores as computed if several compartments are visible."""
    known = [term for term in terms if lexical_index.frequencies(corpus, place, [literal(term)])[0]]
    extent = lexical_index.extent(corpus, place)
    statistics = Statistics.of(
        extent.chunks,
        extent.tokens,
        [lexical_index.frequencies(corpus, place, [literal(term)])[0] for term in known],
        [term.weight for term in known],
    )
    rows = [row for (row,) in corpus.rows("SELECT id FROM chunk")]
    unweighted = match_expression(Term(term.text) for term in known)
    if not known:
        return {}
    found = lexical_index.occurrences(corpus, place, unweighted, rows)
    return {row: statistics.bm25(tokens, counts) for row, (tokens, *counts) in found.items()}


def fts5_scores(corpus: Corpus, place: int, terms: Sequence[Term]) -> dict[int, float]:
    """The scores of FTS5's bm25()."""
    rows = [row for (row,) in corpus.rows("SELECT id FROM chunk")]
    return lexical_index.score(corpus, place, match_expression(terms), rows)


@few_examples
@given(documents=corpora(), terms=terms)
@example(documents=[document("a", ["token"])], terms=[Term("token", 3)])
@example(documents=[document("a", ["token", "token", ""])], terms=[Term("token"), Term("token")])
@example(documents=[document("a", ["a b a b a"], title="a b")], terms=[Term("a b"), Term("a")])
@example(documents=[document("a", ["naïve"], tags=("Straße",))], terms=[Term("NAIVE straße")])
def test_bm25_equals_that_of_fts5(documents: list[StoredDocument], terms: list[Term]) -> None:
    with scratch_folder() as folder, built(folder, documents) as corpus:
        place = only_compartment(corpus)
        expected = fts5_scores(corpus, place, terms)
        found = merged_scores(corpus, place, terms)
        assert found.keys() == expected.keys()
        for row, score in found.items():
            assert math.isclose(score, expected[row], rel_tol=CLOSE, abs_tol=1e-15)


def query_of(task: Sequence[Term], expansion: Sequence[Term] = ()) -> Query:
    plain = query("token")
    values: dict[str, Any] = plain._asdict()
    return Query(**(values | {"task_terms": tuple(task), "expansion_terms": tuple(expansion)}))


def assert_same(found: dict[int, float], expected: dict[int, float]) -> None:
    """The same chunks with the same scores, in the same order if the scores differ."""
    assert found.keys() == expected.keys()
    for row, score in found.items():
        assert math.isclose(score, expected[row], rel_tol=CLOSE, abs_tol=1e-15), row
    assert [*found.items()] == sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    for first, second in zip(found, [*found][1:], strict=False):
        above, below = expected[first], expected[second]
        assert above > below or math.isclose(above, below, rel_tol=CLOSE, abs_tol=1e-15)


@few_examples
@given(
    documents=corpora(least=2),
    where=st.lists(kinds, min_size=7, max_size=7),
    task=terms,
    expansion=st.one_of(st.just([]), terms),
    depth=st.sampled_from([21, 1000]),
)
@example(
    documents=[document(f"d{n}", ["token", "audit token"]) for n in range(3)],
    where=[("shared", "public"), ("hr", "public"), ("board", "internal")]
    + [("hr", "internal")] * 4,
    task=[Term("token"), Term("audit", 2), Term("!!!")],
    expansion=[Term("audit")],
    depth=1000,
)
def test_scores_do_not_depend_on_the_compartments(
    documents: list[StoredDocument],
    where: list[tuple[str, str]],
    task: list[Term],
    expansion: list[Term],
    depth: int,
) -> None:
    expanded = query_of(task, expansion)
    with (
        scratch_folder() as folder,
        built(folder, documents) as together,
        built(folder, parted(documents, where)) as apart,
    ):
        assert len(compartments.searchable_compartments(apart)) == len({*where[: len(documents)]})
        assert together.rows("SELECT id, chunk_id FROM chunk") == apart.rows(
            "SELECT id, chunk_id FROM chunk"
        )
        expected = lexical.propose(together, expanded, depth)
        found = lexical.propose(apart, expanded, depth)
        assert_same(found.task, expected.task)
        assert_same(found.role, expected.role)
        rows = [row for (row,) in apart.rows("SELECT id FROM chunk")]
        assert _completed(apart, expanded, rows) == {
            row: pytest.approx(scores, rel=CLOSE, abs=1e-15)
            for row, scores in _completed(together, expanded, rows).items()
        }
        words = [(term,) for term in task]
        assert lexical.matching_words(apart, words, rows) == lexical.matching_words(
            together, words, rows
        )


def _completed(
    corpus: Corpus, expanded: Query, rows: Sequence[int]
) -> dict[int, tuple[float, float]]:
    """The true scores of chunks that no lane proposed."""
    return lexical.score(corpus, expanded, LexicalProposals(), rows)


@few_examples
@given(documents=corpora(least=2), where=st.lists(kinds, min_size=7, max_size=7), task=terms)
def test_a_search_within_documents_has_the_same_scores(
    documents: list[StoredDocument], where: list[tuple[str, str]], task: list[Term]
) -> None:
    expanded = query_of(task)
    with (
        scratch_folder() as folder,
        built(folder, documents) as together,
        built(folder, parted(documents, where)) as apart,
    ):
        within = [1, len(documents)]
        expected = lexical.propose(together, expanded, 1000, within)
        found = lexical.propose(apart, expanded, 1000, within)
        assert_same(found.task, expected.task)


class TestDepth:
    """If the depth does not cover everything, the worst are cut off."""

    @pytest.fixture
    def corpus(self, tmp_path: Path) -> Any:
        scopes = ("shared", "hr", "board")
        documents = [
            document(
                f"d{n}", [f"{'token ' * (n % 7 + 1)}{'bread ' * (n % 5)}"], scope=scopes[n % 3]
            )
            for n in range(60)
        ] + [document(f"o{n}", ["bread"], scope=scopes[n % 3]) for n in range(90)]
        with open_reader(build(tmp_path, documents)) as opened:
            yield opened

    def test_a_word_that_is_rare_in_a_small_compartment_has_no_advantage(
        self, tmp_path: Path
    ) -> None:
        """By its own statistics each of the other two would have the best one."""
        long = "bread " * 30
        documents = [document("best", ["token " * 20])]
        documents += [document(f"s{n}", [f"token {long}"]) for n in range(12)]
        documents += [document(f"t{n}", ["bread"]) for n in range(16)]
        for scope in ("hr", "board"):
            documents += [document(f"{scope}{n}", ["bread"], scope=scope) for n in range(50)]
            documents.append(document(scope, [f"token {long}"], scope=scope))
        with open_reader(build(tmp_path, documents)) as corpus:
            alone = {
                compartment.scope: lexical_index.search(corpus, compartment.id, '"token"', 1)[0][1]
                for compartment in compartments.searchable_compartments(corpus)
            }
            assert alone["shared"] < alone["hr"] == alone["board"]
            found = lexical.propose(corpus, query_of([Term("token")]), 1).task
            assert [*found] == [1]
