"""What an embedding model looks like to the rest of the package, and what it must deliver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rolebundle.contracts.index import ModelIdentity
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


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
"""Codes of what one text may have caused: the others of its batch are worth trying without it.

Any other code is about the server, the model or the way to it, and holds for every text.
"""


class EmbeddingProvider(Protocol):
    """A local embedding model.

    Both methods return one row a text, in order, float32, shape ``(len(texts), dimensions)``. The
    model's prefixes are put before the texts here and nowhere else; the identity names them. A
    text is embedded whole or refused, never cut. What comes back is not yet known to be sound:
    see :func:`unit_vectors`.
    """

    @property
    def at_once(self) -> int:
        """How many batches it can work on at the same time, and be the faster for it."""
        ...

    @property
    def identity(self) -> ModelIdentity:
        """Everything about the model that changes its vectors.

        Raises:
            EmbedderError: the model is not at hand.
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


@runtime_checkable
class KnowsItsLimits(Protocol):
    """A model that can tell how well it reads a text."""

    def grasp(self, text: str) -> float:
        """From 1, as well as any, down to nearly 0."""
        ...


@runtime_checkable
class KnownByFiles(Protocol):
    """What a provider has besides, whose model runs in this process and is told by its files.

    Nobody can put another model behind it while it runs, and whether it would answer is no
    server's affair: what it made before may stand for asking it.
    """

    def recognition(self) -> str:
        """A text that decides what ``identity`` is, found without loading the model.

        Whatever has a part in the identity has one in this text, so that what is remembered under
        it never is another model's. Empty where the model could not be loaded, or where it cannot
        be told what would load it.

        Raises:
            EmbedderError: the model is not at hand.
        """
        ...


class Unavailable:
    """Stands for a model that cannot be asked, and says why when it is."""

    at_once = 1

    def __init__(self, reason: EmbedderError) -> None:
        self._reason = reason

    @property
    def identity(self) -> ModelIdentity:
        """Never there."""
        raise self._reason

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Never done."""
        raise self._reason

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Never done."""
        raise self._reason


def unit_vectors(vectors: Matrix, expected: int, dimensions: int) -> Matrix:
    """The rows of ``vectors`` at unit length, once they are known to be sound.

    A batch is taken whole or refused whole: sqlite-vec would store NaN and infinities and then
    return distances that mean nothing.

    Args:
        vectors: what a provider returned.
        expected: how many texts went in.
        dimensions: what the index's identity says.

    Raises:
        EmbedderError: a wrong count or dimension, a value that is not finite, or a zero vector.
    """
    import numpy as np

    hint = "check the model and its server, then run the same command again; nothing was stored"
    if vectors.ndim != 2 or vectors.shape[0] != expected:
        raise EmbedderError(
            "embedding_count",
            f"the model returned {vectors.shape[0] if vectors.ndim else 0} vectors "
            f"for {expected} texts",
            hint,
        )
    if vectors.shape[1] != dimensions:
        raise EmbedderError(
            "embedding_dimensions",
            f"the model returned {vectors.shape[1]} dimensions, its identity says {dimensions}",
            hint,
        )
    if not bool(np.isfinite(vectors).all()):
        raise EmbedderError(
            "embedding_not_finite", "the model returned a value that is NaN or infinite", hint
        )
    # In float64, so that very large or very small components neither overflow nor vanish.
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not bool(np.isfinite(lengths).all()):
        raise EmbedderError(
            "embedding_not_finite", "the model returned a vector too long to measure", hint
        )
    if bool((lengths == 0).any()):
        which = int(np.argmin(lengths))
        raise EmbedderError(
            "embedding_zero", f"the model returned a zero vector for text {which + 1}", hint
        )
    return np.ascontiguousarray(vectors / lengths, dtype="<f4")
