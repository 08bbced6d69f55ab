"""The embedded default: wordllama's static token vectors, which come with its wheel.

A text's vector is the mean of its tokens' vectors (Miller, "WordLlama", 2024): no server, no
download, no GPU.

The package is found and its two data files are read; it is not imported. Importing it configures
the root logger, brings an HTTP client that its loader uses when a file is missing, and takes twice
as long. Its own pooling pads a batch to the longest text, so that one long text among 64 takes
gigabytes; here each text is pooled alone, to the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.texts import prepared
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

MODEL = "l2_supercat"
DIMENSIONS = 256


FAMILIAR = 0.12
"""Tokens a letter beside one for each word, up to which the model knows a text's words."""
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")


class StaticProvider:
    """wordllama's ``l2_supercat`` at 256 dimensions. Loads on first use."""

    at_once = 2  # one thread looks tokens up while the other one's text is cut into tokens

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, told apart by the size and the beginning of its weights."""
        return ModelIdentity("static", MODEL, _weights_digest(), DIMENSIONS)

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        try:
            from safetensors import safe_open
            from tokenizers import Tokenizer

            folder = _package_folder()
            tokenizer = Tokenizer.from_file(
                str(folder / "tokenizers" / f"{MODEL}_tokenizer_config.json")
            )
            with safe_open(_weights(folder), framework="np") as weights:
                return tokenizer, weights.get_tensor("embedding.weight")
        # The tokenizer's own library raises a bare Exception for a file it cannot read.
        except EmbedderError:
            raise
        except Exception as error:
            raise _unusable(f"could not be loaded ({error})") from error

    @cached_property
    def _wide_vectors(self) -> Any:
        # Made for passages only: it takes as long as twenty queries, and saves a third of the time
        # of many texts.
        import numpy as np

        return self._model[1].astype(np.float32)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._wide_vectors)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._model[1])

    def grasp(self, text: str) -> float:
        """How well the model reads a text: a word that it knows is one token (docs/quality.md).

        English has 0.04 tokens a letter beside one for each word, and nearly no question has more
        than 0.1; German has 0.16, Russian 0.23, Chinese 1.2.

        Returns:
            ``min(1, 0.12 · letters / (tokens − words))``, squared.
        """
        letters = sum(map(str.isalnum, text))
        tokenizer, _ = self._model
        [encoded] = tokenizer.encode_batch_fast(prepared([text], ""), add_special_tokens=False)
        pieces = len(encoded.ids) - len(_WORD_OR_MARK.findall(text))
        return min(1.0, FAMILIAR * letters / pieces) ** 2 if letters and pieces > 0 else 1.0

    def _embed(self, texts: Sequence[str], token_vectors: Any) -> Matrix:
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        if not texts:
            return vectors
        tokenizer, _ = self._model
        for row, text in enumerate(prepared(texts, "")):
            # One at a time: for many, the tokenizer would start threads of its own, which cost more
            # than they save where two batches are worked on at once. "fast" leaves out offsets.
            [encoded] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
            if encoded.ids:
                total = token_vectors[encoded.ids].sum(axis=0, dtype=np.float32)
                vectors[row] = total / np.float32(len(encoded.ids))
        return vectors


def _package_folder() -> Path:
    from importlib.util import find_spec

    found = find_spec("wordllama")
    if found is None or found.origin is None:
        raise _unusable("is not there: the package wordllama is not installed")
    return Path(found.origin).parent


def _weights(folder: Path) -> Path:
    return folder / "weights" / f"{MODEL}_{DIMENSIONS}.safetensors"


def _weights_digest() -> str:
    # The whole file would take longer to read and hash than a query takes to answer.
    weights = _weights(_package_folder())
    try:
        with weights.open("rb") as stream:
            head = stream.read(1 << 16)
        size = weights.stat().st_size
    except OSError as error:
        raise _unusable(f"cannot be read ({error.strerror})") from error
    return blake2b(head + str(size).encode(), digest_size=8).hexdigest()


def _unusable(reason: str) -> EmbedderError:
    return EmbedderError(
        "static_model_missing",
        f"the embedded static model {reason}",
        "reinstall the package `wordllama`, or use --lexical-only",
    )
