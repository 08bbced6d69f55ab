"""The embedding index: exact neighbours, replaced and removed vectors, and its identity."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from rolebundle.contracts.upkeep import IndexIdentity, Noise
from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import vector_index, vector_search
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_writer
from rolebundle.storage.vector_index import EmbeddingIndex
from support.corpora import document, fill
from support.fake_embedder import DIMENSIONS, IDENTITY

TEXTS = [f"text {n}" for n in range(6)]


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    with open_writer(tmp_path / "corpus.db") as opened:
        fill(opened, [document("a", TEXTS[:3]), document("b", TEXTS[3:])])
        yield opened


@pytest.fixture
def index(corpus: Corpus) -> EmbeddingIndex:
    with corpus.writing():
        return vector_index.create_index(corpus, IndexIdentity(IDENTITY, "chunker-1"))


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
    def index(self, corpus: Corpus, index: EmbeddingIndex) -> EmbeddingIndex:
        """As it is read once it is filled: with what it has of each compartment."""
        add(corpus, index, self.VECTORS)
        read = vector_index.active_index(corpus)
        assert read == index
        return read

    def test_nearest_first_with_their_cosines(self, corpus: Corpus, index: EmbeddingIndex) -> None:
        found = vector_search.search(corpus, index, unit(1, 0), 10)
        assert [row for row, _ in found] == [1, 2, 3, 4]
        assert [cosine for _, cosine in found] == pytest.approx([1, 0.6, 0, -1], abs=1e-6)

    def test_within_documents(self, corpus: Corpus, index: EmbeddingIndex) -> None:
        # Rows 1–3 are the first document's. The restriction comes before the nearest are taken.
        assert [r for r, _ in vector_search.search(corpus, index, unit(1, 0), 1, [2])] == [4]
        assert vector_search.search(corpus, index, unit(1, 0), 9, []) == []

    @pytest.mark.parametrize("documents", [[1], [2], [1, 2], [2, 1, 99]])
    def test_few_and_many_documents_are_searched_with_the_same_result(
        self,
        corpus: Corpus,
        index: EmbeddingIndex,
        documents: list[int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        found = []
        for few in (0.0, 2.0):
            monkeypatch.setattr(vector_search, "_MAX_FEW_SHARE", few)
            found.append(vector_search.search(corpus, index, unit(0.8, 0.6), 3, documents))
        rows, cosines = zip(*found[0], strict=True)
        assert [row for row, _ in found[1]] == list(rows)
        assert [cosine for _, cosine in found[1]] == pytest.approx(cosines, abs=1e-6)

    def test_given_rows_are_scored(self, corpus: Corpus, index: EmbeddingIndex) -> None:
        found = vector_search.score(corpus, index, unit(0, 1), [2, 3, 6, 99])
        assert found == pytest.approx({2: 0.8, 3: 1.0}, abs=1e-6)

    def test_a_limit_above_that_of_sqlite_vec_is_reduced(
        self, corpus: Corpus, index: EmbeddingIndex
    ) -> None:
        assert len(vector_search.search(corpus, index, unit(1, 0), 1_000_000)) == 4


class TestAddAndRemove:
    def test_a_vector_is_replaced(self, corpus: Corpus, index: EmbeddingIndex) -> None:
        add(corpus, index, {1: unit(1, 0)})
        add(corpus, index, {1: unit(0, 1), 2: unit(1, 0)})
        found = vector_search.score(corpus, index, unit(0, 1), [1, 2])
        assert found == pytest.approx({1: 1.0, 2: 0.0}, abs=1e-6)
        assert vector_index.count_vectors(corpus, index) == 2
        assert find_problems(corpus) == []

    def test_chunks_without_a_vector_are_listed(
        self, corpus: Corpus, index: EmbeddingIndex
    ) -> None:
        add(corpus, index, {2: unit(1), 5: unit(1)})
        assert vector_index.chunks_without_vector(corpus, index, 0, 100) == [1, 3, 4, 6]
        assert vector_index.chunks_without_vector(corpus, index, 1, 2) == [3, 4]


class TestIdentity:
    def test_every_field_comes_back(self, corpus: Corpus) -> None:
        model = IDENTITY._replace(query_prefix="query: ", passage_prefix="passage: ", digest="d")
        with corpus.writing():
            vector_index.create_index(corpus, IndexIdentity(model, "chunker-2"))
        active = vector_index.active_index(corpus)
        assert active is not None
        assert active.identity == IndexIdentity(model, "chunker-2")

    def test_its_noise_is_unknown_until_it_is_stored(
        self, corpus: Corpus, index: EmbeddingIndex
    ) -> None:
        assert index.noise is None
        with corpus.writing():
            vector_index.set_noise(corpus, index, Noise(-0.25, 0.5))
        assert [index.noise for index in vector_index.all_indexes(corpus)] == [Noise(-0.25, 0.5)]

    def test_half_a_noise_is_damage(self, corpus: Corpus, index: EmbeddingIndex) -> None:
        with corpus.writing():
            corpus.run("UPDATE embedding_index SET noise_floor = 0.5")
        with pytest.raises(CorpusCorrupt):
            vector_index.active_index(corpus)
