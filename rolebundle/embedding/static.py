"""The default model: wordllama's static token vectors, which its wheel contains.

A text's vector is the mean of its tokens' vectors (Miller, "WordLlama", 2024). It needs no server,
no download and no GPU.

The package's two data files are read, but the package is not imported. Importing it configures the
root logger, loads an HTTP client that downloads a missing file, and takes twice as long. Its
pooling pads a batch to the longest text, so that one long text among 64 takes gigabytes. Here each
text is pooled alone, with the same result to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding.provider import Matrix, prepared
from rolebundle.errors import EmbedderError
from rolebundle.lazy import numpy as np
from rolebundle.text.words import lower_capitals

MODEL = "l2_supercat"
DIMENSIONS = 256
PREPARATION = "capitals-1"
"""The version of what is done to a text before its tokens are looked up; part of the identity.

The tokenizer knows few words in capitals and splits the others into pairs of letters, so
:func:`rolebundle.text.words.lower_capitals` is applied.
"""

MAX_FLUENT_TOKENS_PER_LETTER = 0.12
"""The threshold of (tokens − words) / letters. Above it the fluency of a text is less than 1."""
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")


class StaticProvider:
    """wordllama's ``l2_supercat`` at 256 dimensions. Loads on first use."""

    batch_size = 512
    parallel_batches = 2  # one thread looks up vectors while the other one tokenizes

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model: the size and the first bytes of its weights, and how texts are prepared."""
        return ModelIdentity("static", MODEL, _digest(), DIMENSIONS)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, _wide_vectors(_package_folder()).__getitem__)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        # The file is mapped, and few of its rows are read.
        _, stored = _load(_package_folder())
        return self._embed(texts, lambda ids: np.concatenate([stored[n : n + 1] for n in ids]))

    def fluency(self, text: str) -> float:
        """The fraction of a text that the model knows, from 0 to 1 (docs/quality.md).

        A word that the model knows is one token; other words are many. Besides one token per word,
        English has 0.04 tokens per letter, and hardly any question has more than 0.1; German has
        0.16, Russian 0.23, Chinese 1.2.

        Returns:
            ``min(1, 0.12 · letters / (tokens − words))``, squared; words include punctuation marks.
            1 if there are no letters, or no more tokens than words.
        """
        letters = sum(map(str.isalnum, text))
        tokenizer, _ = _load(_package_folder())
        [encoded] = tokenizer.encode_batch_fast(_prepared([text]), add_special_tokens=False)
        extra_tokens = len(encoded.ids) - len(_WORD_OR_MARK.findall(text))
        if not letters or extra_tokens <= 0:
            return 1.0
        return min(1.0, MAX_FLUENT_TOKENS_PER_LETTER * letters / extra_tokens) ** 2

    def _embed(self, texts: Sequence[str], vectors_of: Callable[[list[int]], Any]) -> Matrix:
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        if not texts:
            return vectors
        tokenizer, _ = _load(_package_folder())
        for row, text in enumerate(_prepared(texts)):
            # One text at a time: for several, the tokenizer starts threads of its own, which cost
            # more than they save while two batches are embedded in parallel. The "fast" method
            # computes no offsets.
            [encoded] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
            if encoded.ids:
                total = vectors_of(encoded.ids).sum(axis=0, dtype=np.float32)
                vectors[row] = total / np.float32(len(encoded.ids))
        return vectors


@cache
def _load(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the token vectors in their file, for all providers of a process."""
    try:
        from safetensors import safe_open
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(
            str(folder / "tokenizers" / f"{MODEL}_tokenizer_config.json")
        )
        weights: Any = safe_open(_weights(folder), framework="np")
        return tokenizer, weights.get_slice("embedding.weight")
    # The tokenizers library raises a bare Exception if it cannot read a file.
    except Exception as error:
        raise _unusable(f"could not be loaded ({error})") from error


@cache
def _wide_vectors(folder: Path) -> Any:
    # For passages only: the conversion takes as long as twenty queries, and saves a third of the
    # time for many texts.
    return _load(folder)[1][:].astype(np.float32)


def _prepared(texts: Sequence[str]) -> list[str]:
    """The texts as they are tokenized. Another result needs another ``PREPARATION``."""
    return prepared([lower_capitals(text) for text in texts], "")


def _package_folder() -> Path:
    package = find_spec("wordllama")
    if package is None or package.origin is None:
        raise _unusable("is missing: the package wordllama is not installed")
    return Path(package.origin).parent


def _weights(folder: Path) -> Path:
    return folder / "weights" / f"{MODEL}_{DIMENSIONS}.safetensors"


def _digest() -> str:
    # Reading and hashing the whole file would take longer than answering a query.
    weights = _weights(_package_folder())
    try:
        with weights.open("rb") as stream:
            head = stream.read(1 << 16)
        size = weights.stat().st_size
    except OSError as error:
        raise _unusable(f"cannot be read ({error.strerror})") from error
    return blake2b(head + f"{size} {PREPARATION}".encode(), digest_size=8).hexdigest()


def _unusable(reason: str) -> EmbedderError:
    return EmbedderError(
        "static_model_missing",
        f"the static model {reason}",
        "reinstall the package `wordllama`, or use --lexical-only",
    )
