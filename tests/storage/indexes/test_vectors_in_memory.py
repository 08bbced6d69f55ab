"""Vectors in memory: a search with them gives exactly what a search in the file gives."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import vector_index, vector_search
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.opening import open_reader
from rolebundle.storage.vectors_in_memory import VectorsInMemory
from rolebundle.storage.writing import open_writer
from support.corpora import build, document, scratch_folder
from support.fake_embedder import DIMENSIONS, HashingProvider

COUNT = 300


@pytest.fixture(autouse=True)
def no_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Corpus, "min_vectors_in_memory", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return filled(tmp_path, np.random.default_rng(1).normal(size=(COUNT, DIMENSIONS)))


def filled(folder: Path, vectors: np.ndarray) -> Path:
    texts = [f"text {number}" for number in range(len(vectors))]
    path = build(folder, [document("a", texts)], HashingProvider())
    replace(path, dict(enumerate(vectors, 1)))
    return path


def replace(path: Path, vectors: dict[int, np.ndarray]) -> None:
    with open_writer(path) as corpus, corpus.writing():
        index = vector_index.active_index(corpus)
        assert index is not None
        rows = [(row, f"h{row}", v.astype("<f4").tobytes()) for row, v in vectors.items()]
        vector_index.add(corpus, index, rows)
        increment_generation(corpus)


def answers(corpus: Corpus, query: np.ndarray, *limits: int) -> list[list[tuple[int, float]]]:
    with corpus.reading():
        index = vector_index.active_index(corpus)
        assert index is not None
        vector = query.astype("<f4").tobytes()
        return [[*vector_search.search(corpus, index, vector, limit).items()] for limit in limits]


def scans(corpus: Corpus) -> list[VectorsInMemory]:
    return [kept for *_, kept in corpus.in_memory.values() if isinstance(kept, VectorsInMemory)]


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-20, 1e-3, 0.3, 3.0]), st.booleans())
def test_the_same_answers_as_from_the_file(seed: int, spread: float, is_unit: bool) -> None:
    """Also for equal vectors, for vectors whose int8 are equal, and for long or short ones."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(3, DIMENSIONS))
    vectors = centres[chance.integers(0, 3, 60)] + spread * chance.normal(size=(60, DIMENSIONS))
    vectors[:10] = vectors[10]
    if is_unit:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = centres[0] / np.linalg.norm(centres[0])
    with scratch_folder() as folder, open_reader(filled(folder, vectors)) as corpus:
        exact = answers(corpus, query, 1, 7, 40, 100)
        assert scans(corpus) == []
        assert answers(corpus, query, 1, 7, 40, 100) == exact
        assert len(scans(corpus)) == 1


def test_few_are_candidates(path: Path) -> None:
    query = np.eye(DIMENSIONS)[0]
    with open_reader(path) as corpus:
        for _ in range(2):
            assert [len(found) for found in answers(corpus, query, 5)] == [5]
        [scan] = scans(corpus)
        assert 5 <= len(scan.shortlist([1], query.astype("<f4").tobytes(), 5)) < 15


def test_a_change_is_seen(path: Path) -> None:
    query = np.eye(DIMENSIONS)[0]
    with open_reader(path) as corpus, open_reader(path) as other:
        for reader in (corpus, corpus, other, other):
            answers(reader, query, 5)
        assert scans(corpus) == scans(other) != [], "two connections have one copy"
        replace(path, {7: query})
        for _ in range(3):
            [found] = answers(corpus, query, 1)
            assert found == [(7, 1.0)]


@pytest.mark.parametrize("damage", [b"\0", np.full(DIMENSIONS, np.nan, "<f4").tobytes()])
def test_a_damaged_vector_is_an_error(path: Path, damage: bytes) -> None:
    query = np.eye(DIMENSIONS)[0]
    with open_writer(path) as corpus, corpus.writing():
        corpus.run("UPDATE embedded SET vector = ? WHERE chunk = 7", (damage,))
        increment_generation(corpus)
    with open_reader(path) as corpus:
        for _ in range(3):
            with pytest.raises(CorpusCorrupt, match="a vector is not what was stored"):
                answers(corpus, query, 5)
        assert len(scans(corpus)) == 1
