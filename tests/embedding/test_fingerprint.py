"""A model's fingerprint survives noise and notices another model."""

from __future__ import annotations

import numpy as np

from rolebundle.embedding.fingerprint import BITS, fingerprint


def vector(seed: int, dimensions: int = 768) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal(dimensions)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def distance(left: str, right: str) -> int:
    return (int(left, 16) ^ int(right, 16)).bit_count()


def test_it_never_changes():
    # It stands in index identities: another value would orphan every index.
    assert fingerprint(np.arange(1, 9, dtype=np.float32)) == "e5954860"


def test_noise_of_other_threads_leaves_it_alone():
    noise = np.random.default_rng(0).standard_normal(768).astype(np.float32) * 1e-7
    assert all(fingerprint(vector(n)) == fingerprint(vector(n) + noise) for n in range(50))


def test_length_does_not_matter():
    assert fingerprint(vector(1)) == fingerprint(vector(1) * 7)


def test_another_model_turns_about_half_of_its_bits():
    turned = [distance(fingerprint(vector(n)), fingerprint(vector(n + 1))) for n in range(50)]
    assert BITS * 0.4 < np.mean(turned) < BITS * 0.6
    assert min(turned) > 4


def test_a_fine_tuned_model_is_noticed():
    # A cosine of 0.9 between the two models' vectors of the same text.
    noticed = 0
    for n in range(100):
        tuned = 0.9 * vector(n) + np.sqrt(1 - 0.81) * vector(n + 1000)
        noticed += fingerprint(vector(n)) != fingerprint(tuned.astype(np.float32))
    assert noticed >= 95
