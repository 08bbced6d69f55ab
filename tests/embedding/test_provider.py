"""A batch of vectors is accepted whole or refused whole; a fingerprint identifies a model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from rolebundle.embedding.provider import fingerprint, unit_vectors
from rolebundle.errors import EmbedderError

shapes = nps.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8)
CODES = {"embedding_count", "embedding_dimensions", "embedding_not_finite", "embedding_zero"}


@given(
    matrix=st.one_of(
        nps.arrays(np.float32, nps.array_shapes(min_dims=1, max_dims=3, max_side=6)),
        nps.arrays(np.float64, shapes),
        nps.arrays(np.float16, shapes),
    ),
    expected=st.integers(1, 6),
    dimensions=st.integers(1, 6),
)
def test_a_batch_is_accepted_whole_or_refused_whole(
    matrix: np.ndarray, expected: int, dimensions: int
) -> None:
    try:
        vectors = unit_vectors(matrix, expected, dimensions)
    except EmbedderError as error:
        assert error.code in CODES
        assert error.exit_code == 9
        assert error.hint
        return
    assert vectors.shape == (expected, dimensions)
    assert vectors.dtype == np.dtype("<f4")
    assert vectors.flags["C_CONTIGUOUS"]
    assert np.isfinite(vectors).all()
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@example(np.full((1, 2), 1e-45, np.float32))
@given(nps.arrays(np.float32, shapes, elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_sound_batches_keep_their_directions(matrix: np.ndarray) -> None:
    rows, columns = matrix.shape
    # The tolerances below are smaller than the smallest number that a matrix may hold.
    wide = matrix.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1)
    if (lengths == 0).any():
        with pytest.raises(EmbedderError):
            unit_vectors(matrix, rows, columns)
        return
    vectors = unit_vectors(matrix, rows, columns)
    assert np.allclose(
        vectors * lengths[:, None], wide, rtol=1e-4, atol=float(lengths.max()) * 1e-6
    )


@pytest.mark.parametrize(
    ("matrix", "expected", "dimensions", "code"),
    [
        (np.ones((2, 3)), 3, 3, "embedding_count"),
        (np.ones((4, 3)), 3, 3, "embedding_count"),
        (np.ones(3), 1, 3, "embedding_count"),
        (np.float32(1), 1, 1, "embedding_count"),
        (np.ones((3, 2)), 3, 3, "embedding_dimensions"),
        (np.array([[1, np.nan]]), 1, 2, "embedding_not_finite"),
        (np.array([[1, np.inf]]), 1, 2, "embedding_not_finite"),
        (np.array([[1e300, 1e300]]), 1, 2, "embedding_not_finite"),
        (np.array([[1.0, 0.0], [0.0, 0.0]]), 2, 2, "embedding_zero"),
    ],
)
def test_a_bad_batch_is_refused(
    matrix: np.ndarray, expected: int, dimensions: int, code: str
) -> None:
    with pytest.raises(EmbedderError) as caught:
        unit_vectors(matrix, expected, dimensions)
    assert caught.value.code == code


def vector(seed: int, dimensions: int = 768) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal(dimensions)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def test_a_fingerprint_never_changes():
    # It is part of index identities: another value would orphan every index.
    assert fingerprint(np.arange(1, 9, dtype=np.float32)) == "e5954860"


def test_a_fine_tuned_model_is_noticed():
    # A cosine of 0.9 between the two models' vectors of the same text.
    noticed = 0
    for n in range(100):
        tuned = 0.9 * vector(n) + np.sqrt(1 - 0.81) * vector(n + 1000)
        noticed += fingerprint(vector(n)) != fingerprint(tuned.astype(np.float32))
    assert noticed >= 95
