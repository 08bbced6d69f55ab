"""Bridges equal the result of comparing every vector with every other one."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from rolebundle.contracts.upkeep import Noise
from rolebundle.errors import UsageError
from rolebundle.policy import bridges
from rolebundle.policy.bridges import find_bridges
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader, open_writer
from support.corpora import build, document
from support.fake_embedder import HashingProvider

WORDS = [f"word{number}" for number in range(12)]
Pair = tuple[str, str]


def set_noise(path: Path, noise: Noise) -> None:
    with open_writer(path) as corpus, corpus.writing():
        index = vector_index.active_index(corpus)
        assert index is not None
        vector_index.set_noise(corpus, index, noise)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance = Random(5)
    documents = [
        document(
            f"d{number:02}",
            [" ".join(chance.choices(WORDS, k=5)) for _ in range(chance.randrange(1, 5))],
            scope=chance.choice(("board", "hr", "shared", "shared", "shared")),
            sensitivity=chance.choice(("internal", "confidential")),
        )
        for number in range(40)
    ]
    path = build(tmp_path_factory.mktemp("bridges"), documents, HashingProvider())
    set_noise(path, Noise(0.0, 0.5))  # so that similarity is the cosine
    return path


@pytest.fixture
def corpus(db: Path) -> Iterator[Corpus]:
    with open_reader(db) as opened:
        yield opened


def every_pair(corpus: Corpus, threshold: float) -> dict[Pair, float]:
    """Pair of documents → the cosine of their nearest passages, by looking at each pair."""
    rows = [
        (scope, name, np.frombuffer(vector, dtype="<f4"))
        for scope, name, vector in corpus.rows(
            "SELECT d.scope, d.document_id, e.vector FROM embedded e "
            "JOIN chunk c ON c.id = e.chunk JOIN document d ON d.id = c.document"
        )
    ]
    best: dict[Pair, float] = {}
    for first, second in combinations(rows, 2):
        left, right = sorted((first, second), key=lambda row: row[0])
        cosine = float(left[2] @ right[2])
        if left[0] != right[0] and cosine > threshold:
            pair = (left[1], right[1])
            best[pair] = max(cosine, best.get(pair, -1))
    return best


def pairs_of(found: bridges.BridgeReport) -> dict[Pair, float]:
    return {
        (bridge.left.document_id, bridge.right.document_id): bridge.cosine
        for bridge in found.bridges
    }


block_sizes = pytest.mark.parametrize(
    "sizes", [(4096, 512), (7, 3), pytest.param((1, 1), marks=pytest.mark.slow)]
)
"""Rows of a block and of a strip: of one, of some, and of single rows."""


@pytest.mark.sample(2)
@block_sizes
@pytest.mark.parametrize("threshold", [0.78, 0.5, 0.999])
def test_the_blocks_do_not_change_the_result(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int], threshold: float
) -> None:
    monkeypatch.setattr(bridges, "_BLOCK_ROWS", sizes[0])
    monkeypatch.setattr(bridges, "_STRIP_ROWS", sizes[1])
    expected = every_pair(corpus, threshold)
    found = find_bridges(corpus, threshold, 10_000)
    assert pairs_of(found) == pytest.approx(expected, abs=1e-4)
    assert not found.more
    assert len(expected) > (50 if threshold < 0.9 else -1)
    cosines = [bridge.cosine for bridge in found.bridges]
    assert cosines == sorted(cosines, reverse=True)
    assert found.vectors == corpus.value("SELECT count(*) FROM embedded")


@block_sizes
def test_the_closest_pairs_under_the_threshold_are_named_if_few_are_over_it(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int]
) -> None:
    monkeypatch.setattr(bridges, "_BLOCK_ROWS", sizes[0])
    monkeypatch.setattr(bridges, "_STRIP_ROWS", sizes[1])
    cosines = sorted(every_pair(corpus, 0.0).values(), reverse=True)
    for over in (0, 2, 5, 6):
        found = find_bridges(corpus, (cosines[over - 1] + cosines[over]) / 2 if over else 0.9999)
        over = sum(cosine > found.threshold for cosine in cosines)  # noqa: PLW2901
        assert len(found.bridges) == over
        assert [bridge.cosine for bridge in (*found.bridges, *found.below)] == pytest.approx(
            cosines[: max(over, 5)], abs=1e-4
        )
        assert not found.more


def test_the_threshold_is_on_a_scale_from_noise_to_the_same_text(db: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(db.read_bytes())
    set_noise(copy, Noise(0.8, 0.9))
    with open_reader(db) as plain, open_reader(copy) as changed:
        expected, found = find_bridges(plain, 0.9, 1000), find_bridges(changed, 0.5, 1000)
    # 0.8 + 0.5 · (1 − 0.8) = 0.9
    assert pairs_of(found) == pairs_of(expected)
    assert found.noise_floor == 0.8
    for bridge in found.bridges:
        assert bridge.similarity == pytest.approx((bridge.cosine - 0.8) / 0.2, abs=1e-3)


def test_the_best_pairs_survive_the_bound_on_memory(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_bridges = find_bridges(corpus, 0.3, 10_000)
    monkeypatch.setattr(bridges, "_BLOCK_ROWS", 5)
    found = find_bridges(corpus, 0.3, 20)
    assert found.bridges == all_bridges.bridges[:20]
    assert found.more


def test_a_damaged_vector_is_left_out(tmp_path: Path) -> None:
    db = build(
        tmp_path, [document(name, ["same text"], scope=name) for name in "abc"], HashingProvider()
    )
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("UPDATE embedded SET vector = x'0000' WHERE chunk = 1")
    with open_reader(db) as corpus:
        assert set(pairs_of(find_bridges(corpus))) == {("b", "c")}


@pytest.mark.parametrize(
    ("threshold", "limit"), [(0.0, 5), (1.0, 5), (-1.0, 5), (float("nan"), 5), (0.5, 0), (0.5, -1)]
)
def test_arguments_out_of_range_are_refused(corpus: Corpus, threshold: float, limit: int) -> None:
    with pytest.raises(UsageError) as refused:
        find_bridges(corpus, threshold, limit)
    assert refused.value.code == "bad_bridges"


def test_a_corpus_without_an_index_or_its_noise_is_refused(db: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(db.read_bytes())
    with open_writer(copy) as corpus, corpus.writing():
        corpus.run("UPDATE embedding_index SET noise_floor = NULL, related_cosine = NULL")
    bare = build(tmp_path, [document("a", ["one"])])
    for path, code in ((copy, "no_noise_floor"), (bare, "no_index")):
        with open_reader(path) as corpus, pytest.raises(UsageError) as refused:
            find_bridges(corpus)
        assert refused.value.code == code
