"""The contextual model that a corpus has by default, and how far its index is.

A corpus begins with the static model, which takes no time. all-MiniLM-L6-v2 knows English, so it is
the default where at least nine tenths of the text are English; else multilingual-e5-small. A model
whose extra is not installed is passed over, and without any the static model stays.
"""

from __future__ import annotations

import os

from rolebundle.embedding.packaged import E5, MINILM
from rolebundle.embedding.registry import ProviderSpec, spec_from_json
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.passages import sampled_contents
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.text.languages import english_share

NO_CONNECTION = "{}"
"""No settings of the connection to a model: the defaults of its provider apply.

An index that the owner asked for always has settings; one that was built by default has none.
"""

ENGLISH_ENOUGH = 0.9
ENVIRONMENT = "ROLEBUNDLE_MODEL"
"""With the value ``static`` no contextual model is a default."""

_SAMPLE = 400
"""Chunks in which languages are looked for."""

Choice = tuple[ProviderSpec | None, str]
"""The contextual model of a corpus, ``None`` if it has none, and the reason in words."""


def count_waiting(corpus: Corpus, index: EmbeddingIndex | None = None) -> int:
    """How many chunks have no vector in an index. Default: in the active index."""
    index = index or vector_index.active_index(corpus)
    embedded = vector_index.count_vectors(corpus, index) if index else 0
    return corpus_counts(corpus).chunks - embedded


def contextual_model(corpus: Corpus) -> Choice:
    """The contextual model in this process that a corpus has, or is to have."""
    active = vector_index.active_index(corpus)
    if active is None:
        return (None, "no passage was embedded yet")
    model = active.identity.model
    if active.connection != NO_CONNECTION or model.provider not in ("static", "onnx"):
        is_local = model.provider == "onnx"
        spec = spec_from_json(active.connection, model) if is_local else None
        return (spec, "its owner chose it")
    if model.provider == "static" and os.environ.get(ENVIRONMENT) == "static":
        return (None, f"{ENVIRONMENT}=static")
    share = english_share(sampled_contents(corpus, _SAMPLE))
    of_text = f"{share:.0%} of the text is English"
    if model.provider == "onnx":
        return (ProviderSpec("onnx", model.model), of_text)
    candidates = [MINILM, E5] if share >= ENGLISH_ENOUGH else [E5]
    for candidate in candidates:
        if candidate.is_installed:
            return (ProviderSpec("onnx", candidate.name), of_text)
    best = candidates[0]
    return (None, f"{of_text}, and {best.name} is not installed: {best.install}")


def is_contextual(corpus: Corpus) -> bool:
    """Whether the active index is of a contextual model in this process."""
    active = vector_index.active_index(corpus)
    return active is not None and active.identity.model.provider == "onnx"


def building_note(corpus: Corpus) -> str:
    """How far an index is that is being built by default; empty if there is none."""
    for index in vector_index.all_indexes(corpus):
        model = index.identity.model
        if model.provider == "onnx" and index.connection == NO_CONNECTION and not index.active:
            chunks = corpus_counts(corpus).chunks
            return (
                f"the index of {model.model} has {chunks - count_waiting(corpus, index):,} of "
                f"{chunks:,} passages; until it is complete, another index answers"
            )
    return ""


def count_waiting_for(corpus: Corpus, spec: ProviderSpec) -> int:
    """How many chunks have no vector of a contextual model."""
    for index in reversed(vector_index.all_indexes(corpus)):
        model = index.identity.model
        if (model.provider, model.model) == (spec.provider, spec.model):
            return count_waiting(corpus, index)
    return corpus_counts(corpus).chunks
