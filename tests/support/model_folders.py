"""Small random models in folders, as Sentence Transformers distributes them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WIDTH, INNER, HEADS, LAYERS, PLACES = 16, 32, 4, 2, 48
_BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"[]abcdefghijklmnopqrstuvwxyz?.:"]
_BERT += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"] + ["the", "last", "writer"]
_ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"</>abcdefghijklmnopqrstuvwxyz?.:", "▁the"]


def _tokenizer(model_type: str) -> Tokenizer:
    if model_type == "bert":
        numbers = {word: number for number, word in enumerate(_BERT)}
        tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        tokenizer.add_special_tokens(_BERT[:5])
    else:
        pieces = [(piece, 0.0 if number < 4 else -2.0) for number, piece in enumerate(_ROBERTA)]
        tokenizer = Tokenizer(models.Unigram(pieces, 3, False))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[("<s>", 0), ("</s>", 2)],
        )
        tokenizer.add_special_tokens(_ROBERTA[:4])
    # Both are ignored: no text is cut or filled up.
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=20)
    return tokenizer


def _weights(model_type: str, words: int, places: int, outputs: int) -> dict[str, np.ndarray]:
    random = np.random.RandomState(7)
    is_bert = model_type == "bert"
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, WIDTH),
        "embeddings.position_embeddings.weight": (places, WIDTH),
        "embeddings.token_type_embeddings.weight": (2 if is_bert else 1, WIDTH),
        "embeddings.LayerNorm": (WIDTH,),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{layer}.attention.{part}"] = (WIDTH, WIDTH)
        shapes[f"{layer}.attention.output.LayerNorm"] = (WIDTH,)
        shapes[f"{layer}.intermediate.dense"] = (INNER, WIDTH)
        shapes[f"{layer}.output.dense"] = (WIDTH, INNER)
        shapes[f"{layer}.output.LayerNorm"] = (WIDTH,)
    shapes["pooler.dense" if is_bert else "classifier.dense"] = (WIDTH, WIDTH)
    if outputs:
        shapes["classifier" if is_bert else "classifier.out_proj"] = (outputs, WIDTH)
    weights = {}
    for name, shape in shapes.items():
        own = "" if name.startswith("classifier") else f"{model_type.rsplit('-', maxsplit=1)[-1]}."
        if name.endswith(".weight"):
            weights[own + name] = random.uniform(-1, 1, shape)
        else:
            weights[f"{own}{name}.weight"] = random.uniform(-1, 1, shape) + ("Norm" in name)
            weights[f"{own}{name}.bias"] = random.uniform(-1, 1, shape[:1])
    return {name: values.astype(np.float32) for name, values in weights.items()}


def write_model(
    folder: Path,
    *,
    pooling: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    modules: tuple[str, ...] = ("Transformer", "Pooling", "Normalize"),
    max_length: int = PLACES,
    words: int | None = None,
    outputs: int = 1,
    numbers: type[np.floating] = np.float32,
    **config: Any,
) -> Path:
    """A sentence model with a classifier; the weights are the same for the same ``model_type``.

    Args:
        folder: is made.
        pooling: ``1_Pooling/config.json``. Default: the mean.
        options: ``config_sentence_transformers.json``.
        modules: their classes.
        max_length: the tokens that it reads.
        words: how many tokens have weights. Default: all.
        outputs: of the classifier.
        numbers: the type of the weights.
        config: what differs in ``config.json``.
    """
    model_type = config.setdefault("model_type", "bert")
    is_bert, tokenizer = model_type == "bert", _tokenizer(model_type)
    words, places = words or tokenizer.get_vocab_size(), PLACES if is_bert else PLACES + 2
    plain = {
        "architectures": ["BertModel" if is_bert else "XLMRobertaModel"],
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": places,
        "vocab_size": words,
        "type_vocab_size": 2 if is_bert else 1,
        "layer_norm_eps": 1e-12 if is_bert else 1e-5,
        "hidden_act": "gelu",
        "pad_token_id": 0 if is_bert else 1,
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    }
    tokens = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length}
    marks = ("[CLS]", "[PAD]") if is_bert else ("<s>", "<pad>")
    tokens |= dict(zip(("cls_token", "pad_token"), marks, strict=True))
    steps = [
        {
            "idx": n,
            "name": str(n),
            "path": "" if n == 0 else f"{n}_{name}",
            "type": f"sentence_transformers.models.{name}",
        }
        for n, name in enumerate(modules)
    ]
    files = {
        "config.json": plain | config,
        "modules.json": steps,
        "1_Pooling/config.json": pooling
        or {
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
            "word_embedding_dimension": WIDTH,
        },
        "config_sentence_transformers.json": options or {},
        "sentence_bert_config.json": {"max_seq_length": max_length, "do_lower_case": False},
        "tokenizer_config.json": tokens,
    }
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "2_Normalize").mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(
        save(
            {
                name: values.astype(numbers)
                for name, values in _weights(model_type, words, places, outputs).items()
            },
            {"format": "pt"},
        )
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
