"""Texts that are longer than the context of a model in this process: read in windows, never cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rolebundle.embedding.texts import prepared
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

CountTokens = Callable[[str], int]
"""How many tokens a model reads for a text, with its marks."""

MAX_QUERY_WINDOWS = 8
"""An answer waits for its query: all-MiniLM-L6-v2 takes 0.1 to 0.4 s for a window."""


def embed_in_windows(
    texts: Sequence[str],
    prefix: str,
    context: int,
    count_tokens: CountTokens,
    embed: Callable[[Sequence[str]], Matrix],
    *,
    max_windows: int | None = None,
) -> Matrix:
    """A vector for each text.

    A text that is longer than the context is read in consecutive windows, each with the prefix. Its
    vector is the mean of theirs, weighted by their tokens. If a window's vector is the mean of its
    token vectors, that is the mean of all of them. The vectors of other texts are those of
    ``embed``, to the last bit.

    Args:
        texts: without the prefix.
        prefix: put before each window.
        context: the number of tokens that the model reads.
        count_tokens: of a text with its prefix.
        embed: a row for each window.
        max_windows: if given, a text with more tokens than so many contexts is refused.

    Raises:
        EmbedderError: ``input_too_long``: by ``max_windows``, or because the prefix leaves no space
            for a text; and what ``embed`` raises.
    """
    import numpy as np

    readable = prepared(texts, "")
    most = context * (max_windows or 0)
    if most and any(count_tokens(prefix + text) > most for text in readable):
        raise EmbedderError(
            "input_too_long", f"a text has more than {most:,} tokens", "use a shorter text"
        )
    windows = [_windows(text, prefix, context, count_tokens) for text in readable]
    vectors = embed([window for parts in windows for window, _ in parts])
    means = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    first = 0
    for row, parts in enumerate(windows):
        weights = [tokens for _, tokens in parts]
        # In float64, which a single vector passes unchanged.
        means[row] = np.average(vectors[first : first + len(parts)], axis=0, weights=weights)
        first += len(parts)
    return means


def _windows(
    text: str, prefix: str, context: int, count_tokens: CountTokens
) -> list[tuple[str, int]]:
    """The windows of a text and their tokens: the whole text, or those of its halves."""
    tokens = max(1, count_tokens(prefix + text))
    if tokens <= context:
        return [(prefix + text, tokens)]
    if len(text) < 2:
        raise EmbedderError(
            "input_too_long",
            f"the model reads {context} tokens, and its prefix leaves no space for a text",
            "use a shorter prefix",
        )
    middle = len(text) // 2
    cut = text.rfind(" ", middle // 2, middle) + 1 or middle
    halves = (text[:cut], text[cut:])
    return [window for half in halves for window in _windows(half, prefix, context, count_tokens)]
