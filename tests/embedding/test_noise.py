"""What a model's cosines mean: measured on a fixed sample, whatever the model returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from rolebundle.contracts.documents import ModelIdentity, Noise
from rolebundle.embedding import noise
from rolebundle.embedding.noise import noise_of, sample_pairs
from rolebundle.embedding.static import StaticProvider
from rolebundle.errors import EmbedderError
from support.fake_embedder import IDENTITY, BrokenProvider, HashingProvider


@pytest.fixture(autouse=True)
def without_measured_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_measured", {})


@dataclass
class Scripted:
    """Returns the given vectors, whatever the texts are."""

    queries: np.ndarray
    passages: np.ndarray
    identity: ModelIdentity = field(default=IDENTITY)
    parallel_batches: int = 1
    batch_size: int = 512

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.queries

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return self.passages


def test_the_static_model_separates_the_topics() -> None:
    assert noise_of(StaticProvider()) == pytest.approx((0.158, 0.592), abs=0.002)


def test_a_worked_example() -> None:
    # Question i and passage i have the same vector; one unrelated pair has the cosine 0.6, and
    # then one in 39.
    size = len(sample_pairs())
    queries = np.eye(size, dtype=np.float32)
    passages = queries.copy()
    passages[0] = 0.8 * queries[0] + 0.6 * queries[1]
    identity = IDENTITY._replace(dimensions=size)
    assert noise_of(Scripted(queries, passages, identity)) == Noise(floor=0.0, related=1.0)
    passages = 0.6 * queries + 0.8 * np.roll(queries, 1, axis=0)
    noise._measured.clear()
    assert noise_of(Scripted(queries, passages, identity)) == Noise(floor=0.0, related=0.6)


def test_a_cosine_between_noise_and_related_is_a_share() -> None:
    measured = Noise(0.2, 0.6)
    assert [measured.closeness(cosine) for cosine in (-1, 0.2, 0.6, 1)] == [0, 0, 1, 1]
    assert measured.closeness(0.3) == pytest.approx(0.25)
    assert Noise(0.5, 0.5).closeness(0.6) == 1


def test_a_model_is_measured_once() -> None:
    provider = HashingProvider()
    assert noise_of(provider) == noise_of(provider) == noise_of(HashingProvider())
    assert provider.query_count == 1


def test_a_failure_is_an_error_and_is_not_kept() -> None:
    with pytest.raises(EmbedderError, match=r"\[embedding_zero\]"):
        noise_of(BrokenProvider(lambda texts: np.zeros((len(texts), IDENTITY.dimensions))))
    assert noise_of(HashingProvider())
