"""The model that a corpus has if its owner did not choose one: contextual where one is installed.

A corpus begins with the static model, which takes no time. all-MiniLM-L6-v2 knows English, so it is
the default where at least nine tenths of the text are English; else multilingual-e5-small. A model
whose extra is not installed is passed over, and without any the static model stays.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from rolebundle.embedding.onnx import E5, MINILM
from rolebundle.embedding.registry import ProviderSpec, spec_from_json
from rolebundle.ingest.indexes import NO_CONNECTION, count_waiting
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.passages import sampled_texts
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.indexes import vector_index
from rolebundle.text.languages import english_share

ENGLISH_ENOUGH = 0.9
ENVIRONMENT = "ROLEBUNDLE_MODEL"
"""With the value ``static`` no contextual model is a default."""
_SAMPLE = 400
"""Chunks in which languages are looked for."""


class Choice(NamedTuple):
    """The contextual model of a corpus, ``None`` if it has none, and the reason in words."""

    spec: ProviderSpec | None
    reason: str


def contextual_model(corpus: Corpus) -> Choice:
    """The contextual model in this process that a corpus has, or is to have."""
    active = vector_index.active_index(corpus)
    if active is None:
        return Choice(None, "no passage was embedded yet")
    model = active.identity.model
    if active.connection != NO_CONNECTION or model.provider not in ("static", "onnx"):
        is_local = model.provider == "onnx"
        spec = spec_from_json(active.connection, model) if is_local else None
        return Choice(spec, "its owner chose it")
    if model.provider == "static" and os.environ.get(ENVIRONMENT) == "static":
        return Choice(None, f"{ENVIRONMENT}=static")
    share = english_share(text.content for text in sampled_texts(corpus, _SAMPLE))
    of_text = f"{share:.0%} of the text is English"
    if model.provider == "onnx":
        return Choice(ProviderSpec("onnx", model.model), of_text)
    candidates = [MINILM, E5] if share >= ENGLISH_ENOUGH else [E5]
    for candidate in candidates:
        if candidate.is_installed:
            return Choice(ProviderSpec("onnx", candidate.name), of_text)
    best = candidates[0]
    return Choice(None, f"{of_text}, and {best.name} is not installed: {best.install}")


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
