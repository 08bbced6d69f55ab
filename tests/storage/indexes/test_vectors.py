"""Indexes of vectors, and ties."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from rolebundle.contracts.documents import IndexIdentity, Noise
from rolebundle.retrieval.lexical import CombinedPostings
from rolebundle.retrieval.values import Term
from rolebundle.storage import vector_index, vector_search
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import first_by_score
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.storage.vector_search import GROWTH, MARGIN, search_with_ties
from rolebundle.storage.writing import open_writer
from support.corpora import build, document, fill
from support.fake_embedder import DIMENSIONS, IDENTITY

# -- The embedding index: exact neighbours, replaced and removed vectors, and its identity ---------

TEXTS = [f"text {n}" for n in range(6)]


@pytest.fixture
def corpus_exact(tmp_path: Path) -> Iterator[Corpus]:
    with open_writer(tmp_path / "corpus.db") as opened:
        fill(opened, [document("a", TEXTS[:3]), document("b", TEXTS[3:])])
        yield opened


@pytest.fixture
def index(corpus_exact: Corpus) -> EmbeddingIndex:
    with corpus_exact.writing():
        return vector_index.create_index(corpus_exact, IndexIdentity(IDENTITY, "chunker-1"))


def unit(*components: float) -> bytes:
    vector = np.zeros(DIMENSIONS, dtype="<f4")
    vector[: len(components)] = components
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()


def add(corpus: Corpus, index: EmbeddingIndex, vectors: dict[int, bytes]) -> None:
    with corpus.writing():
        vector_index.add(corpus, index, [(row, f"h{row}", v) for row, v in vectors.items()])


class TestSearch:
    # Angles to (1, 0): cosines 1, 0.6, 0, −1 by construction.
    VECTORS: ClassVar[dict[int, bytes]] = {
        1: unit(1, 0),
        2: unit(3, 4),
        3: unit(0, 1),
        4: unit(-1, 0),
    }

    @pytest.fixture
    def index(self, corpus_exact: Corpus, index: EmbeddingIndex) -> EmbeddingIndex:
        """As it is read once it is filled: with what it has of each compartment."""
        add(corpus_exact, index, self.VECTORS)
        read = vector_index.active_index(corpus_exact)
        assert read == index
        return read

    def test_nearest_first_with_their_cosines(
        self, corpus_exact: Corpus, index: EmbeddingIndex
    ) -> None:
        found = vector_search.search(corpus_exact, index, unit(1, 0), 10)
        assert [*found] == [1, 2, 3, 4]
        assert [*found.values()] == pytest.approx([1, 0.6, 0, -1], abs=1e-6)

    def test_within_documents(self, corpus_exact: Corpus, index: EmbeddingIndex) -> None:
        # Rows 1–3 are the first document's. The restriction comes before the nearest are taken.
        assert [*vector_search.search(corpus_exact, index, unit(1, 0), 1, [2])] == [4]
        assert vector_search.search(corpus_exact, index, unit(1, 0), 9, []) == {}

    def test_given_rows_are_scored(self, corpus_exact: Corpus, index: EmbeddingIndex) -> None:
        found = vector_search.cosines(corpus_exact, index.id, unit(0, 1), [2, 3, 6, 99])
        assert found == pytest.approx({2: 0.8, 3: 1.0}, abs=1e-6)


class TestAddAndRemove:
    def test_a_vector_is_replaced(self, corpus_exact: Corpus, index: EmbeddingIndex) -> None:
        add(corpus_exact, index, {1: unit(1, 0)})
        add(corpus_exact, index, {1: unit(0, 1), 2: unit(1, 0)})
        found = vector_search.cosines(corpus_exact, index.id, unit(0, 1), [1, 2])
        assert found == pytest.approx({1: 1.0, 2: 0.0}, abs=1e-6)
        assert vector_index.count_vectors(corpus_exact, index) == 2
        assert find_problems(corpus_exact) == []

    def test_chunks_without_a_vector_are_listed(
        self, corpus_exact: Corpus, index: EmbeddingIndex
    ) -> None:
        add(corpus_exact, index, {2: unit(1), 5: unit(1)})
        assert vector_index.chunks_without_vector(corpus_exact, index, 0, 100) == [1, 3, 4, 6]
        assert vector_index.chunks_without_vector(corpus_exact, index, 1, 2) == [3, 4]


class TestIdentity:
    def test_every_field_comes_back(self, corpus_exact: Corpus) -> None:
        model = IDENTITY._replace(query_prefix="query: ", passage_prefix="passage: ", digest="d")
        with corpus_exact.writing():
            vector_index.create_index(corpus_exact, IndexIdentity(model, "chunker-2"))
        active = vector_index.active_index(corpus_exact)
        assert active is not None
        assert active.identity == IndexIdentity(model, "chunker-2")

    def test_its_noise_is_unknown_until_it_is_stored(
        self, corpus_exact: Corpus, index: EmbeddingIndex
    ) -> None:
        assert index.noise is None
        with corpus_exact.writing():
            vector_index.set_noise(corpus_exact, index, Noise(-0.25, 0.5))
        assert [index.noise for index in vector_index.all_indexes(corpus_exact)] == [
            Noise(-0.25, 0.5)
        ]


# -- Ties at the edge of a search are broken by chunk id, and cost a second search only if needed


def searched(scores: list[float], number: int) -> tuple[int, list[int]]:
    """How many results come back, and the limits of the searches."""
    limits: list[int] = []

    def search(limit: int) -> dict[int, float]:
        limits.append(limit)
        return dict(enumerate(scores[:limit]))

    return len(search_with_ties(search, number)), limits


def test_one_search_is_enough_if_the_ties_end_in_it() -> None:
    falling = [float(-n) for n in range(1_000)]
    assert searched(falling, 10) == (10 + MARGIN, [10 + MARGIN])
    assert searched(falling[:5], 10) == (5, [10 + MARGIN])
    assert searched([], 1) == (0, [1 + MARGIN])


def test_the_search_goes_on_while_the_last_one_ties_with_the_edge() -> None:
    flat = [1.0] * 1_000
    length, limits = searched(flat, 10)
    assert length == 1_000 and limits == [42, 42 * GROWTH]


def test_the_lower_chunk_id_wins_at_the_edge(tmp_path: Path) -> None:
    names = [f"n{number:03}" for number in range(60)]
    path = build(tmp_path, [document(name, ["the token"], title="t") for name in names[::-1]])
    with open_reader(path) as corpus:
        ids = dict(corpus.rows("SELECT id, chunk_id FROM chunk"))
        [compartment] = [row[0] for row in corpus.rows("SELECT id FROM compartment")]
        best = CombinedPostings.of(corpus, [compartment]).best([Term("token")], 7)
        assert [ids[rowid] for rowid in best] == [f"{name}#0" for name in names[:7]]
        above = {max(ids): 2.0} | dict.fromkeys(ids, 1.0) | {max(ids): 2.0}
        first_three = first_by_score(corpus, above, 3)
        assert [ids[rowid] for rowid in first_three] == ["n000#0", "n001#0", "n002#0"]
        assert first_by_score(corpus, {}, 3) == {}
