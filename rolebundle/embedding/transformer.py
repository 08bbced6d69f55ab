"""The encoder of BERT in numpy.

It computes what a runtime for neural networks would. A runtime takes 78 MB and a third of a second
to start, and the models here are small (decision 37).

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
2019 (https://arxiv.org/abs/1810.04805).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rolebundle.lazy import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_GELU = (7.9750788e-1, 3.7005646e-2, -3.5151685e-4)
"""``tanh(x · (a + b·x² + c·x⁴))`` for ``erf(x / √2)``: GELU differs by at most 2.6e-5.

Beyond ``x² = 36`` both are 1 or −1 in float32, and the polynomial would turn back.
"""


class Linear(NamedTuple):
    """``x @ weights + bias``, weights of shape (inputs, outputs)."""

    weights: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """The function of each row."""
        result: Floats = x @ self.weights
        result += self.bias
        return result


class Norm(NamedTuple):
    """Layer normalization: each row gets mean 0 and variance 1, then weights and bias."""

    weights: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """The normalized rows."""
        x = x - x.mean(axis=1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-12))
        x *= self.weights
        x += self.bias
        return x


class Layer(NamedTuple):
    """One layer: attention, then two linear functions for each token.

    Attributes:
        attention: queries, keys and values beside each other, of shape (width, 3 * width).
    """

    attention: Linear
    attended: Linear
    attended_norm: Norm
    inner: Linear
    outer: Linear
    outer_norm: Norm

    def __call__(self, x: Floats, heads: int) -> Floats:
        """The tokens' next vectors, of shape (tokens, width)."""
        x = self.attended_norm(self.attended(_attend(self.attention(x), heads)) + x)
        return self.outer_norm(self.outer(_gelu(self.inner(x))) + x)


def _attend(parts: Floats, heads: int) -> Floats:
    """Scaled dot-product attention of all tokens to all, of shape (tokens, width)."""
    tokens = len(parts)
    queries, keys, values = parts.reshape(tokens, 3, heads, -1).transpose(1, 2, 0, 3)
    scores = (queries / np.float32(queries.shape[-1] ** 0.5)) @ keys.transpose(0, 2, 1)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    attended = (scores @ values) / scores.sum(axis=-1, keepdims=True)
    result: Floats = attended.transpose(1, 0, 2).reshape(tokens, -1)
    return result


def _gelu(x: Floats) -> Floats:
    """``x/2 · (1 + erf(x/√2))`` (Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415)."""
    a, b, c = (np.float32(value) for value in _GELU)
    # In place, because most of the time goes into memory.
    square = x * x
    np.minimum(square, np.float32(36), out=square)
    result: Floats = square * c
    result += b
    result *= square
    result += a
    result *= x
    np.tanh(result, out=result)
    result += 1
    result *= x
    result *= np.float32(0.5)
    return result


class Network(NamedTuple):
    """A model that was read from its file.

    Attributes:
        token_ids: the tokens of a text, with the two marks.
        embeddings: of tokens at their positions, of shape (tokens, width).
        norm: of the embeddings.
        layers: from the first to the last.
        heads: of each layer's attention.
    """

    token_ids: Callable[[str], list[int]]
    embeddings: Callable[[list[int]], Any]
    norm: Norm
    layers: Sequence[Layer]
    heads: int

    def vector(self, ids: list[int]) -> Floats:
        """The mean of the tokens' vectors, of shape (width,)."""
        x = self.norm(self.embeddings(ids))
        for layer in self.layers:
            x = layer(x, self.heads)
        mean: Floats = x.mean(axis=0)
        return mean
