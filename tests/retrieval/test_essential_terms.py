"""The lexical lane of large corpora: only chunks with an essential term are scored."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from rolebundle.retrieval import lexical
from rolebundle.retrieval.candidate import Term
from rolebundle.retrieval.lexical import essential
from rolebundle.storage import lexical_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from support.amounts import rounds
from support.compartments import only_compartment
from support.corpora import build, document
from support.values import query

CHUNKS = 3_000
DEPTH = 100


class TestEssential:
    # Of 1,000 chunks; a term's idf is ln((1000 - f + 0.5) / (f + 0.5)), and it usually adds
    # 1.3 idfs at most: "rare" 8.45, "some" 2.85, "most" next to nothing.
    RARE, SOME, MOST = (Term("rare"), 1), (Term("some"), 100), (Term("most"), 900)

    @pytest.mark.parametrize(
        ("score", "needed"),
        [(12.0, 0), (11.0, 1), (3.0, 1), (2.0, 2), (0.1, 2), (0.0, 3)],
    )
    def test_the_terms_after_the_essential_ones_stay_below_the_score(
        self, score: float, needed: int
    ) -> None:
        assert essential([self.RARE, self.SOME, self.MOST], 1_000, score) == needed

    def test_no_terms(self) -> None:
        assert essential([], 1_000, 0.0) == 0


# -- against the full search ---------------------------------------------------------------------

LETTERS = "bcdfghklmnprstvz"
VOCABULARY = [f"{a}o{b}a{c}i" for a in LETTERS[:12] for b in LETTERS for c in LETTERS]


def zipf_text(chance: random.Random, length: int) -> str:
    return " ".join(chance.choices(VOCABULARY, WEIGHTS, k=length))


WEIGHTS = [1 / (rank + 2) for rank in range(len(VOCABULARY))]


@pytest.fixture(scope="module")
def zipf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    chance = random.Random(5)
    documents = [
        document(f"d{place}", [zipf_text(chance, chance.randint(20, 120)) for _ in range(100)])
        for place in range(CHUNKS // 100)
    ]
    with open_reader(build(tmp_path_factory.mktemp("zipf"), documents)) as corpus:
        yield corpus


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a corpus of 3,000 chunks count as large."""
    monkeypatch.setattr(lexical, "SCORE_ALL_UP_TO", 0)
    monkeypatch.setattr(lexical, "FIRST_ROWS", 150)


def questions(number: int) -> list[str]:
    chance = random.Random(11)
    return [zipf_text(chance, chance.randint(3, 9)) for _ in range(number)]


def full(corpus: Corpus, task: str, depth: int = DEPTH) -> dict[int, float]:
    """The search of a small corpus: every match is scored."""
    with pytest.MonkeyPatch.context() as small:
        small.setattr(lexical, "SCORE_ALL_UP_TO", CHUNKS)
        return lexical.propose(corpus, query(task), depth).task


def fast(corpus: Corpus, task: str, depth: int = DEPTH) -> dict[int, float]:
    return lexical.propose(corpus, query(task), depth).task


def frequency(corpus: Corpus, word: str) -> int:
    return lexical_index.frequencies(corpus, only_compartment(corpus), [f'"{word}"'])[0]


def best(found: dict[int, float]) -> list[int]:
    return list(found)[: lexical.EXACT_BEST]


@rounds(4, 60)
@pytest.mark.usefixtures("few_rows")
def test_with_the_true_bound_the_best_are_the_same(
    zipf: Corpus, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """With k1 + 1 = 2.2 idfs a term, what BM25 cannot exceed, nothing is missed."""
    monkeypatch.setattr(lexical, "USUAL_CONTRIBUTION", 2.2)
    for task in questions(rounds):
        ours, theirs = fast(zipf, task), full(zipf, task)
        assert best(ours) == best(theirs)
        assert len(ours) == len(theirs)


@rounds(6, 30)
@pytest.mark.usefixtures("few_rows")
def test_further_scored_chunks_have_the_score_of_the_full_search(zipf: Corpus, rounds: int) -> None:
    """Chunks that the other lane proposed need no further search, and their scores are the same."""
    chance = random.Random(5)
    completed_count = 0
    rowids = [row for (row,) in zipf.rows("SELECT id FROM chunk ORDER BY id")]
    for task in questions(rounds):
        also = chance.sample(rowids, 70)
        plain, found = (
            lexical.propose(zipf, query(task), DEPTH, None, rowids) for rowids in ((), also)
        )
        assert (found.task, found.role) == (plain.task, plain.role)
        completed = lexical.score(zipf, query(task), found, also)
        assert completed == lexical.score(zipf, query(task), plain, also)
        completed_count += len(completed.keys() - found.task.keys() - found.role.keys())
    assert completed_count


@pytest.mark.usefixtures("few_rows")
class TestNeverFewer:
    """Fewer results than the depth would end the refill of law 2 too early."""

    def test_few_rare_matches_are_filled_with_common_ones(self, zipf: Corpus) -> None:
        rare = min(VOCABULARY[-200:], key=lambda word: frequency(zipf, word) or 9_999)
        task = f"{rare} {VOCABULARY[0]}"
        assert 0 < frequency(zipf, rare) < DEPTH
        assert fast(zipf, task) == full(zipf, task)
        assert len(fast(zipf, task)) == DEPTH

    def test_a_single_term(self, zipf: Corpus) -> None:
        assert fast(zipf, VOCABULARY[1]) == full(zipf, VOCABULARY[1])
