"""The interface of an embedding model, the check of its vectors, and its fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rolebundle.contracts.index import ModelIdentity
from rolebundle.errors import EmbedderError
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float32]"
"""Vectors as rows. numpy is not imported before a model is used."""

PROBE_TEXT = "Which model is this? 27 amber otters count the rivers between Lagos and Reykjavík."
"""The text whose vector identifies a model. Changing it changes every fingerprint."""

FINGERPRINT_BITS = 32

TEXT_FAULTS = frozenset(
    {
        "input_too_long",
        "model_failed",
        "request_refused",
        "server_error",
        "embedding_count",
        "embedding_not_finite",
        "embedding_zero",
    }
)
"""Error codes that a single text may cause, so that the rest of its batch may be tried without it.

Any other code is about the server, the model or the connection, and holds for every text.
"""


QUERY_DEADLINE_SECONDS = 10.0
"""For one request while a query waits. After that only the lexical lane answers."""
PASSAGES_DEADLINE_SECONDS = 60.0
"""For one request with a batch of passages."""


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """The configuration of an embedding model.

    Args:
        provider: one of :data:`rolebundle.embedding.registry.PROVIDERS`.
        model: its name there.
        url: the model server, if the provider has one.
        allow_host: the only host besides this machine that may be that server.
        prefixes: query and passage prefix, instead of those that belong to the model's name.
        key_variable: the environment variable that may hold the server's key.
        deadline_seconds: for one request to the server, including its retries.
    """

    provider: str
    model: str = ""
    url: str = ""
    allow_host: str = ""
    prefixes: tuple[str, str] | None = None
    key_variable: str = "ROLEBUNDLE_OPENAI_KEY"
    deadline_seconds: float = PASSAGES_DEADLINE_SECONDS


class EmbeddingProvider(Protocol):
    """A local embedding model.

    Both methods return one row per text, in order: float32, shape ``(len(texts), dimensions)``.
    Only the provider adds the model's prefixes, which its identity names. A text is embedded whole
    or refused, never cut: a model of this process reads a text that is longer than its context in
    windows, a server refuses it. The vectors are not checked yet: see :func:`unit_vectors`.
    """

    @property
    def parallel_batches(self) -> int:
        """How many batches are worth embedding in parallel."""
        ...

    @property
    def batch_size(self) -> int:
        """How many texts are embedded and stored together; a second or two, so that it can end."""
        ...

    @property
    def identity(self) -> ModelIdentity:
        """Everything about the model that changes its vectors.

        Raises:
            EmbedderError: the model is not available.
        """
        ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Vectors of passages.

        Raises:
            EmbedderError: the model could not embed them.
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries.

        Raises:
            EmbedderError: the model could not embed them.
        """
        ...


class WithSubstitutes:
    """A provider, and those of the corpus's other indexes, which may answer if it fails.

    Args:
        provider: does everything.
        substitutes: sets up the others, the one to try first first.
    """

    def __init__(
        self,
        provider: EmbeddingProvider,
        substitutes: Callable[[], Iterable[EmbeddingProvider]],
    ) -> None:
        self._provider = provider
        self.substitutes = substitutes

    def __getattr__(self, name: str) -> Any:
        # Also what only some providers have, such as `fluency`.
        return getattr(self._provider, name)


class Unavailable:
    """A provider that could not be set up. Every use raises the reason."""

    parallel_batches = batch_size = 1

    def __init__(self, reason: EmbedderError) -> None:
        self._reason = reason

    def _refuse(self, _texts: Sequence[str] = ()) -> Any:
        raise self._reason

    identity = property(_refuse)
    embed_passages = embed_queries = _refuse


def unit_vectors(vectors: Matrix, expected: int, dimensions: int) -> Matrix:
    """The rows of ``vectors`` scaled to unit length, after every value was checked.

    One bad row refuses the whole batch: sqlite-vec would store NaN and infinities and then return
    meaningless distances.

    Args:
        vectors: what a provider returned.
        expected: how many texts were embedded.
        dimensions: those of the index's model.

    Returns:
        float32, little-endian, shape ``(expected, dimensions)``.

    Raises:
        EmbedderError: a wrong count or dimension, a value that is not finite, or a zero vector.
    """
    import numpy as np

    if vectors.ndim != 2 or vectors.shape[0] != expected:
        count = counted(vectors.shape[0] if vectors.ndim else 0, "vector")
        raise _unsound("embedding_count", f"{count} for {counted(expected, 'text')}")
    if vectors.shape[1] != dimensions:
        found = f"{vectors.shape[1]} dimensions, its identity says {dimensions}"
        raise _unsound("embedding_dimensions", found)
    if not bool(np.isfinite(vectors).all()):
        raise _unsound("embedding_not_finite", "a value that is NaN or infinite")
    # In float64, so that very large or very small components neither overflow nor vanish.
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not bool(np.isfinite(lengths).all()):
        raise _unsound("embedding_not_finite", "a vector of infinite length")
    if bool((lengths == 0).any()):
        number = int(np.argmin(lengths)) + 1
        raise _unsound("embedding_zero", f"a zero vector for text {number}")
    return np.ascontiguousarray(vectors / lengths, dtype="<f4")


def _unsound(code: str, found: str) -> EmbedderError:
    hint = "check the model and its server, then run the same command again"
    return EmbedderError(code, f"the model returned {found}", hint)


def fingerprint(vector: Matrix) -> str:
    """The SimHash of one vector, as 8 hexadecimal digits.

    It identifies a model if the server reports nothing but a name. A hash of the vector itself
    would change with the last bit of a float, that is with the number of threads. SimHash keeps one
    bit for each of a few random directions, the side on which the vector lies: noise leaves the
    bits alone, another model's vector flips half of them.

    Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.
    """
    import numpy as np

    bits, size = FINGERPRINT_BITS, vector.size
    # The directions come from a hash, not from a random generator: they must never change.
    stream = shake_256(b"rolebundle directions 1").digest(-(-bits * size // 8))
    signs = np.unpackbits(np.frombuffer(stream, np.uint8), count=bits * size).reshape(bits, size)
    sides = (signs.astype(np.float64) * 2 - 1) @ vector.reshape(size).astype(np.float64) > 0
    return np.packbits(sides).tobytes().hex()
