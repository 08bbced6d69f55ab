"""The embedded default: wordllama's static token vectors, which come with its wheel.

Mean-pooled token vectors (Miller, "WordLlama", 2024): no server, no download, no GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.embed.provider import Matrix

MODEL = "l2_supercat"
DIMENSIONS = 256


class StaticProvider:
    """wordllama's ``l2_supercat`` at 256 dimensions. Loads on first use."""

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, told apart by the bytes of its weights."""
        return ModelIdentity("static", MODEL, _weights_digest(), DIMENSIONS)

    @cached_property
    def _model(self) -> Any:
        try:
            import wordllama

            # 0.4.0 looks for the tokenizer in the wrong folder and would then download it; its
            # own package folder as "cache" makes it find what its wheel carries.
            return wordllama.WordLlama.load(
                MODEL,
                cache_dir=Path(wordllama.__file__).parent,
                dim=DIMENSIONS,
                disable_download=True,
            )
        except (ImportError, OSError, ValueError) as error:
            raise EmbedderError(
                "static_model_missing",
                f"the embedded static model could not be loaded ({error})",
                "reinstall the package `wordllama`, or use --lexical-only",
            ) from error

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embed.provider.EmbeddingProvider`."""
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embed.provider.EmbeddingProvider`."""
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        return np.asarray(self._model.embed(list(texts), norm=False), dtype=np.float32)


def _weights_digest() -> str:
    # The package's path is found without importing it: the identity alone must stay cheap.
    from importlib.util import find_spec

    found = find_spec("wordllama")
    if found is None or found.origin is None:
        raise EmbedderError(
            "static_model_missing",
            "the package wordllama is not installed",
            "install rolebundle with its dependencies, or use --lexical-only",
        )
    weights = Path(found.origin).parent / "weights" / f"{MODEL}_{DIMENSIONS}.safetensors"
    try:
        with weights.open("rb") as stream:
            head = stream.read(1 << 16)
        size = weights.stat().st_size
    except OSError as error:
        raise EmbedderError(
            "static_model_missing",
            f"the weights of the embedded static model cannot be read ({error.strerror})",
            "reinstall the package `wordllama`, or use --lexical-only",
        ) from error
    return blake2b(head + str(size).encode(), digest_size=8).hexdigest()
