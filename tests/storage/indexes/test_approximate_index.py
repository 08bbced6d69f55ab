"""The approximate index: it proposes, exact scores decide, and it is not used if it is stale."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.upkeep import ModelIdentity
from rolebundle.errors import ConfigurationError
from rolebundle.ingest import indexes
from rolebundle.storage import approximate_index, vector_index, vector_search
from rolebundle.storage.approximate_index import ApproximateState
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_writer
from support.compartments import only_share
from support.corpora import ask, build, document
from support.index_builds import active_in

COUNT, DIMENSIONS, CLUSTERS = 2_000, 32, 40


def clustered() -> np.ndarray:
    chance = np.random.default_rng(7)
    centres = chance.normal(size=(CLUSTERS, DIMENSIONS))
    noise = 0.4 * chance.normal(size=(COUNT, DIMENSIONS))
    return (centres[chance.integers(0, CLUSTERS, COUNT)] + noise).astype(np.float32)


class Clustered:
    """The text's number says which vector is its own; a query lies near the one that it names."""

    identity = ModelIdentity("fake", "clustered", "1", DIMENSIONS)

    def __init__(self) -> None:
        self.vectors = clustered()

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.vectors[int(text.rpartition("n")[2])] for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        away = 0.2 * np.random.default_rng(3).normal(size=(len(texts), DIMENSIONS))
        return (self.embed_passages(texts) + away).astype(np.float32)


PROVIDER = Clustered()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same corpus without a fast companion and with one."""
    folder = tmp_path_factory.mktemp("fast")
    documents = [
        document(f"d{place}", [f"passage n{100 * place + n}" for n in range(100)])
        for place in range(COUNT // 100)
    ]
    exact = build(folder, documents, PROVIDER, name="exact.db")
    fast = Path(shutil.copy(exact, folder / "fast.db"))
    with open_writer(fast) as corpus:
        optimized = indexes.optimize(corpus)
        assert optimized.is_kept
        assert optimized.recall >= indexes.TARGET_RECALL
    return exact, fast


@pytest.fixture
def exact(images: tuple[Path, Path], tmp_path: Path) -> Iterator[Corpus]:
    with open_writer(Path(shutil.copy(images[0], tmp_path / "same.db"))) as corpus:
        yield corpus


@pytest.fixture
def fast(images: tuple[Path, Path], tmp_path: Path) -> Iterator[Corpus]:
    (tmp_path / "fast").mkdir()
    with open_writer(Path(shutil.copy(images[1], tmp_path / "fast" / "same.db"))) as corpus:
        yield corpus


def vector(number: int) -> bytes:
    row = PROVIDER.vectors[number]
    return (row / np.linalg.norm(row)).astype("<f4").tobytes()


def found(corpus: Corpus, number: int, limit: int) -> list[tuple[int, float]]:
    return vector_search.search(corpus, active_in(corpus), vector(number), limit)


def proposed(corpus: Corpus, number: int, k: int = 50) -> list[int]:
    assert approximate_index.is_available(corpus)
    return approximate_index.nearest(corpus, only_share(corpus), vector(number), k)


def state(corpus: Corpus) -> ApproximateState:
    read = ApproximateState.read(only_share(corpus).approximate)
    assert read is not None
    return read


def warnings(bundle: RetrievalBundle, code: str) -> list[str]:
    return [warning.message for warning in bundle.warnings if warning.code == code]


class TestAnswers:
    def test_the_same_neighbours_as_the_exact_search(self, fast: Corpus, exact: Corpus) -> None:
        hits = 0
        for number in range(0, COUNT, 50):
            truth = {row for row, _ in found(exact, number, 50)}
            hits += len(truth & {row for row, _ in found(fast, number, 50)})
        assert hits / (COUNT / 50 * 50) >= 0.98

    @pytest.mark.parametrize("number", [3, 640, 1_999])
    def test_the_same_answer(self, fast: Corpus, exact: Corpus, number: int) -> None:
        bundles = [
            ask(corpus, None, PROVIDER, task=f"passage n{number}", limit=20)
            for corpus in (exact, fast)
        ]
        ours, theirs = [bundle.without_timings() for bundle in bundles]
        for bundle in (ours, theirs):
            bundle["corpus"].pop("generation")
        assert ours["selected"] == theirs["selected"]
        assert ours == theirs

    def test_a_limit_above_its_buckets_is_searched_exactly(
        self, fast: Corpus, exact: Corpus
    ) -> None:
        """Fewer than were asked for would look as if the corpus had no more (law 2)."""
        assert len(proposed(fast, 5, 2 * COUNT)) < COUNT
        assert found(fast, 5, COUNT) == found(exact, 5, COUNT)
        assert len(found(fast, 5, 4_096)) == COUNT


class TestChanges:
    def test_a_removed_vector_is_not_proposed(self, fast: Corpus) -> None:
        assert 6 in proposed(fast, 5)
        with fast.writing():
            vector_index.remove(fast, active_in(fast), [6])
        assert 6 not in proposed(fast, 5, 2_000)
        assert state(fast).changed == 1

    def test_an_added_vector_is_proposed(self, fast: Corpus) -> None:
        with fast.writing():
            vector_index.remove(fast, active_in(fast), [6])
            vector_index.add(fast, active_in(fast), [(6, "input", vector(900))])
        assert {6, 901} == {row for row, _ in found(fast, 900, 2)}
        assert state(fast).changed == 2
        assert find_problems(fast) == []

    def test_stale_over_a_fifth(self, fast: Corpus, exact: Corpus) -> None:
        def replaced(rowids: range) -> None:
            with fast.writing():
                vector_index.add(fast, active_in(fast), [(n, "i", vector(n - 1)) for n in rowids])

        replaced(range(1, 201))  # each counts as one gone and one come
        assert state(fast).changed == COUNT // 5
        assert not state(fast).is_stale
        replaced(range(1, 2))
        assert state(fast).is_stale
        bundle = ask(fast, None, PROVIDER, task="passage n640", limit=20)
        [message] = warnings(bundle, "INDEX_STALE")
        assert "402 of 2000 vectors changed" in message
        assert found(fast, 640, 50) == found(exact, 640, 50)


class TestStaleReason:
    """Every doubt gives the exact answer and INDEX_STALE with the reason."""

    def assert_exact_with_reason(self, fast: Corpus, exact: Corpus, reason: str) -> None:
        assert not approximate_index.is_usable(fast, only_share(fast))
        assert found(fast, 640, 50) == found(exact, 640, 50)
        bundle = ask(fast, None, PROVIDER, task="passage n640", limit=20)
        [message] = warnings(bundle, "INDEX_STALE")
        assert reason in message
        truth = ask(exact, None, PROVIDER, task="passage n640", limit=20)
        assert [passage.chunk_id for passage in bundle.selected] == [
            passage.chunk_id for passage in truth.selected
        ]

    def test_a_low_recall(self, fast: Corpus, exact: Corpus) -> None:
        approximate_index.store_state(fast, only_share(fast), state(fast)._replace(recall=0.9))
        self.assert_exact_with_reason(fast, exact, "only 0.90 of the exact neighbours")

    @pytest.mark.sample(3)
    @pytest.mark.parametrize(
        "record",
        [
            "not json",
            "[]",
            "{}",
            '{"buckets": 1}',
            "[" * 100_000,
            json.dumps({"buckets": 4, "probes": 4, "recall": "1", "built": 9, "changed": 0}),
            json.dumps({"buckets": 4, "probes": 4, "recall": 1.0, "built": 9, "changed": None}),
        ],
        ids=range(7),
    )
    def test_a_damaged_record(self, fast: Corpus, exact: Corpus, record: str) -> None:
        fast.run("UPDATE embedding_share SET fast = ?", (record,))
        self.assert_exact_with_reason(fast, exact, "record is damaged")
        with fast.writing():
            vector_index.remove(fast, active_in(fast), [6])
        assert only_share(fast).approximate == ""

    def test_no_extension(
        self, fast: Corpus, exact: Corpus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Corpus, "load_bundled_extension", lambda _corpus, _name: False)
        self.assert_exact_with_reason(fast, exact, "no vec1 extension")
        with fast.writing():
            vector_index.remove(fast, active_in(fast), [6])
        assert only_share(fast).approximate == "", (
            "it was not kept in step, and may never answer again"
        )

    def test_no_table(self, fast: Corpus, exact: Corpus) -> None:
        approximate_index.is_available(fast)
        fast.run(f"DROP TABLE {only_share(fast).approximate_table}")
        self.assert_exact_with_reason(fast, exact, "table is gone")


class TestOptimize:
    def test_an_index_with_low_recall_is_dropped(
        self, exact: Corpus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(approximate_index, "nearest", lambda *_: [1, 2, 3])
        optimized = indexes.optimize(exact)
        assert not optimized.is_kept
        assert optimized.recall < approximate_index.MIN_RECALL
        assert only_share(exact).approximate == ""
        assert exact.rows("SELECT 1 FROM sqlite_schema WHERE name LIKE 'fast_%'") == []

    def test_large_compartments_get_one_by_themselves(
        self, exact: Corpus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps: list[tuple[str, int, int]] = []

        def optimize_large() -> int:
            return indexes.optimize_large(exact, active_in(exact), lambda *step: steps.append(step))

        assert (optimize_large(), only_share(exact).approximate) == (0, ""), "it is small"
        monkeypatch.setattr(approximate_index, "MIN_VECTORS", 1000)
        assert optimize_large() == 1
        assert steps == [("indexing", 0, 1), ("indexing", 1, 1)]
        assert state(exact).recall >= indexes.TARGET_RECALL
        assert optimize_large() == 0
        with exact.writing():
            vector_index.remove(exact, active_in(exact), list(range(1, 500)))
        assert (state(exact).is_stale, optimize_large()) == (True, 1)

    def test_one_with_low_recall_is_not_built_again_and_again(
        self, exact: Corpus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(approximate_index, "MIN_VECTORS", 1000)
        monkeypatch.setattr(approximate_index, "nearest", lambda *_: [1, 2, 3])
        built = [indexes.optimize_large(exact, active_in(exact), lambda *_: None) for _ in range(2)]
        assert built == [1, 0]
        assert not approximate_index.is_usable(exact, only_share(exact))

    def test_without_the_extension(self, exact: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Corpus, "load_bundled_extension", lambda _corpus, _name: False)
        with pytest.raises(ConfigurationError) as refused:
            indexes.optimize(exact)
        assert refused.value.code == "no_vec1"

    def test_too_few_vectors(self, exact: Corpus) -> None:
        with exact.writing():
            vector_index.remove(exact, active_in(exact), list(range(1, COUNT - 50)))
        with pytest.raises(ConfigurationError) as refused:
            indexes.optimize(exact)
        assert refused.value.code == "too_few_vectors"
