"""Vectors kept for text that comes back: by model and by input, bounded, cleared, and used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rolebundle.contracts.upkeep import IndexIdentity
from rolebundle.ingest import sync
from rolebundle.ingest.options import IngestOptions, IngestReport
from rolebundle.storage import vector_index
from rolebundle.storage import vector_index as vector_cache
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_writer
from support.corpora import document, fill
from support.fake_embedder import DIMENSIONS, IDENTITY, HashingProvider
from support.sound import assert_sound, contents


def vector(number: int) -> bytes:
    return np.full(DIMENSIONS, number, dtype="<f4").tobytes()


def keep(corpus: Corpus, *numbers: int) -> None:
    with corpus.writing():
        vector_cache.cache_vectors(corpus, IDENTITY, [(f"h{n}", vector(n)) for n in numbers])


class TestKeys:
    def test_a_vector_is_found_by_its_model_and_its_input(self, corpus: Corpus) -> None:
        keep(corpus, 1, 2)
        found = vector_cache.cached_vectors(corpus, IDENTITY, ["h2", "h3"])
        assert found == {"h2": vector(2)}

    @pytest.mark.parametrize(
        "change",
        [
            {"provider": "other"},
            {"model": "other"},
            {"digest": "other"},
            {"dimensions": 12},
            {"query_prefix": "query: "},
            {"passage_prefix": "passage: "},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_whatever_changes_a_vector_changes_the_key(
        self, corpus: Corpus, change: dict[str, Any]
    ) -> None:
        keep(corpus, 1)
        changed_identity = IDENTITY._replace(**change)
        assert vector_cache.model_key(changed_identity) != vector_cache.model_key(IDENTITY)
        assert vector_cache.cached_vectors(corpus, changed_identity, ["h1"]) == {}

    def test_text_that_moves_from_one_prefix_to_the_other_changes_the_key(self) -> None:
        first = IDENTITY._replace(query_prefix="ab", passage_prefix="c")
        second = IDENTITY._replace(query_prefix="a", passage_prefix="bc")
        assert vector_cache.model_key(first) != vector_cache.model_key(second)

    def test_a_vector_of_the_wrong_length_is_not_returned(self, corpus: Corpus) -> None:
        keep(corpus, 1)
        corpus.run("UPDATE embedding_cache SET vector = x'0000'")
        assert vector_cache.cached_vectors(corpus, IDENTITY, ["h1"]) == {}


class TestBounds:
    def test_the_oldest_go_first(self, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vector_cache, "MAX_CACHE_BYTES", 3 * 4 * DIMENSIONS)
        keep(corpus, 1, 2)
        keep(corpus, 3, 4, 5)
        assert vector_cache.cache_size(corpus) == (3, 3 * 4 * DIMENSIONS)
        found = vector_cache.cached_vectors(corpus, IDENTITY, [f"h{n}" for n in range(9)])
        assert found.keys() == {"h3", "h4", "h5"}

    def test_a_vector_that_is_cached_again_counts_as_new(
        self, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_cache, "MAX_CACHE_BYTES", 2 * 4 * DIMENSIONS)
        keep(corpus, 1, 2)
        keep(corpus, 1)
        keep(corpus, 3)
        assert vector_cache.cached_vectors(corpus, IDENTITY, ["h1", "h2", "h3"]).keys() == {
            "h1",
            "h3",
        }


def test_a_damaged_vector_is_not_kept(corpus: Corpus) -> None:
    """It would come back under a hash of its own, as if it were sound."""
    fill(corpus, [document("a", ["one", "two"])])
    with corpus.writing():
        index = vector_index.create_index(corpus, IndexIdentity(IDENTITY, "c"))
        vector_index.add(corpus, index, [(1, "h1", vector(1)), (2, "h2", vector(2))])
    corpus.run("UPDATE embedded SET vector = ? WHERE chunk = 2", (vector(3),))
    with corpus.writing():
        vector_index.remove(corpus, index, [1, 2])
    assert vector_cache.cached_vectors(corpus, IDENTITY, ["h1", "h2"]) == {"h1": vector(1)}


# -- through ingest: what comes back is not embedded again ---------------------------------------


@dataclass
class Counting(HashingProvider):
    texts: int = 0

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += len(texts)
        return super().embed_passages(texts)


class World:
    def __init__(self, folder: Path) -> None:
        self.tree, self.db, self.provider = folder / "notes", folder / "c.db", Counting()
        self.tree.mkdir()
        for number in range(3):
            self.write(number)
        self.ingest()
        assert self.provider.texts > 8

    def write(self, number: int, second: str = "The second part stays.") -> None:
        parts = (f"First of {number}. " * 40, f"{second} {number}. " * 40, "Last. " * 40)
        (self.tree / f"n{number}.md").write_text(
            f"# Note {number}\n\n" + "\n\n".join(f"## {len(p)}\n\n{p}" for p in parts),
            encoding="utf-8",
        )

    def ingest(self, **chunking: int) -> IngestReport:
        with open_writer(self.db) as corpus:
            report = sync.ingest(
                corpus, [self.tree], self.provider, IngestOptions(chunking=chunking)
            )
        assert report.waiting == 0
        assert_sound(self.db)
        return report


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_moved_file_is_not_embedded_again(world: World) -> None:
    before = world.provider.texts
    (world.tree / "n1.md").rename(world.tree / "moved.md")
    report = world.ingest()
    assert (report.added, report.removed) == (1, 1)
    assert report.embedded > 0
    assert world.provider.texts == before


def test_chunking_back_is_not_embedded_again(world: World) -> None:
    vectors = contents(world.db)["vectors"]
    world.ingest(size=300, maximum=400)
    smaller = world.provider.texts
    world.ingest(size=1200, maximum=1800)
    assert world.provider.texts == smaller
    assert contents(world.db)["vectors"] == vectors
