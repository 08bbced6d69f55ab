"""Texts that are longer than a model's context: every token counts, and other vectors are unchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.embedding.provider import embed_in_windows
from rolebundle.errors import EmbedderError

CONTEXT = 12
MARKS = 2


class Characters:
    """A model with a token for each character; the vector is the mean of its tokens' vectors."""

    def __init__(self) -> None:
        self.windows: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text) + MARKS

    def embed(self, windows: Sequence[str]) -> np.ndarray:
        self.windows += windows
        return np.array([self.token_vectors(window).mean(axis=0) for window in windows])

    def token_vectors(self, window: str) -> np.ndarray:
        codes = [1, *map(ord, window), 2]
        return np.array([[code % 7, code / 3, 1] for code in codes], dtype=np.float32)


def embedded(
    texts: Sequence[str], prefix: str = "", max_windows: int | None = None
) -> tuple[np.ndarray, list[str]]:
    """The vectors of the texts, and the windows that the model read."""
    model = Characters()
    vectors = embed_in_windows(
        texts, prefix, CONTEXT, model.count_tokens, model.embed, max_windows=max_windows
    )
    return vectors, model.windows


@given(st.text(min_size=CONTEXT, max_size=80))
def test_every_character_is_read_in_its_order_and_no_window_is_too_long(text: str):
    _, windows = embedded([text])
    assert "".join(windows) == text.replace("\0", " ")
    assert all(len(window) + MARKS <= CONTEXT for window in windows)


@given(st.text("abc ", min_size=CONTEXT, max_size=80))
def test_the_vector_is_the_mean_of_all_token_vectors(text: str):
    [vector], windows = embedded([text])
    every = np.concatenate([Characters().token_vectors(window) for window in windows])
    assert np.allclose(vector, every.mean(axis=0), rtol=1e-5)


def test_a_text_that_fits_has_the_vector_of_the_model_itself_among_any_others():
    fits = ["short", "x" * (CONTEXT - MARKS), ""]
    vectors, windows = embedded([fits[0], "a long text, in windows", *fits[1:]])
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[[0, 2, 3]], Characters().embed(fits))
    assert [windows[0], *windows[-2:]] == fits


def test_a_text_of_one_token_too_many_has_two_windows():
    assert len(embedded(["x" * (CONTEXT - MARKS + 1)])[1]) == 2


def test_each_window_has_the_prefix_and_words_stay_whole():
    assert embedded(["one two three"], "p: ")[1] == ["p: one ", "p: two ", "p: three"]


def test_a_prefix_that_leaves_no_space_is_refused():
    with pytest.raises(EmbedderError, match="leaves no space") as caught:
        embedded(["text"], "p" * CONTEXT)
    assert caught.value.code == "input_too_long"


def test_a_text_of_too_many_windows_is_refused_before_it_is_read():
    assert embedded(["x" * (3 * CONTEXT - MARKS)], max_windows=3)[0].any()
    with pytest.raises(EmbedderError, match="more than 36 tokens") as caught:
        embedded(["short", "x" * (3 * CONTEXT)], max_windows=3)
    assert caught.value.code == "input_too_long"
