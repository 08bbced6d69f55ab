"""Embedding providers: the protocol, the texts that are embedded, and windows of long ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b, shake_256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.errors import EmbedderError
from rolebundle.lazy import numpy as np
from rolebundle.resources import data_file
from rolebundle.text.decoding import cleaned
from rolebundle.text.words import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")


_NAME_WORD = re.compile(r"[^\W\d_]{2,}")


def embedding_text(
    title: str,
    headings: Sequence[str],
    content: str,
    tags: Sequence[str],
    uri: str = "",
    date: str | None = None,
) -> str:
    """What is embedded of a passage: its place, its content, its tags.

    Its place is the title, the name of the file if it has other words, the date, and the headings.
    """
    stem = PurePosixPath(uri.partition("#")[0]).stem
    words = {*_NAME_WORD.findall(stem.casefold())}
    name = stem if words.difference(_NAME_WORD.findall(title.casefold())) else ""
    place = dict.fromkeys((title, name, (date or "")[:10], *headings))
    lines = [" › ".join(filter(None, place)), content]
    return "\n".join([*lines, ", ".join(tags)] if tags else lines)


def input_hash(text: str) -> str:
    """The key of a text's vector, in an index and in the caches."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def prefixes_for(model: str) -> tuple[str, str]:
    """The texts before each query and before each passage of a model.

    Args:
        model: its name, as a server, a folder or a model card writes it.
    """
    name = model.casefold().replace("_", "-")
    table = data_file(__file__, "prefixes.toml")
    known: dict[str, str] = next(
        (row for row in table["models"] if re.search(row["pattern"], name)), {}
    )
    return known.get("query", ""), known.get("passage", "")


def folder_name(path: str) -> str:
    """The name of a model in a folder: the folder's, or that of a Hugging Face snapshot's model."""
    *_, model, kind, name = ("", "", *Path(path).parts)
    is_snapshot = kind == "snapshots"
    return model.removeprefix("models--").replace("--", "/") if is_snapshot else name


def prepared(texts: Sequence[str], prefix: str) -> list[str]:
    """The texts as they are embedded, with the model's prefix before each.

    NUL characters, at which a server that reads C strings would cut a text without an error, and
    unpaired surrogates, which have no UTF-8 form, become U+FFFD.
    """
    return [prefix + cleaned(text) for text in texts]


def batches(texts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The texts in order, at most ``size`` at a time."""
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


Matrix: TypeAlias = "NDArray[np.float32]"
"""Vectors as rows. numpy is not imported before a model is used."""

PROBE_TEXT = "Which model is this? 27 amber otters count the rivers between Lagos and Reykjavík."
"""The text whose vector identifies a model. Changing it changes every fingerprint."""

FINGERPRINT_BITS = 32

TEXT_FAULTS = frozenset(
    "input_too_long model_failed request_refused server_error embedding_count embedding_not_finite "
    "embedding_zero".split()
)
"""Error codes that a single text may cause, so that the rest of its batch may be tried without it.

Any other code is about the server, the model or the connection, and holds for every text.
"""


QUERY_DEADLINE_SECONDS = 10.0
"""For one request while a query waits. After that only the lexical lane answers."""
PASSAGES_DEADLINE_SECONDS = 60.0
"""For one request with a batch of passages."""


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """The configuration of an embedding model.

    Args:
        provider: one of :data:`rolebundle.embedding.registry.PROVIDERS`.
        model: its name there, or the path of its folder.
        url: the model server, if the provider has one.
        allow_host: the only host besides this machine that may be that server.
        deadline_seconds: for one request to the server, including its retries.
    """

    provider: str
    model: str = ""
    url: str = ""
    allow_host: str = ""
    deadline_seconds: float = PASSAGES_DEADLINE_SECONDS

    @property
    def name(self) -> str:
        """The model's name as its identity has it: without the path of its folder."""
        return folder_name(self.model) if self.provider == "folder" else self.model


class EmbeddingProvider(Protocol):
    """A local embedding model.

    Both methods return one row per text, in order: float32, shape ``(len(texts), dimensions)``.
    Only the provider adds the model's prefixes, which its identity names. A text is embedded whole
    or refused, never cut: a model of this process reads a text that is longer than its context in
    windows, a server refuses it. The vectors are not checked yet: see :func:`unit_vectors`.
    """

    @property
    def parallel_batches(self) -> int:
        """How many batches are worth embedding in parallel."""

    @property
    def batch_size(self) -> int:
        """How many texts are embedded and stored together; a second or two, so that it can end."""

    @property
    def identity(self) -> ModelIdentity:
        """Everything about the model that changes its vectors.

        Raises:
            EmbedderError: the model is not available.
        """

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Vectors of passages.

        Raises:
            EmbedderError: the model could not embed them.
        """

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries.

        Raises:
            EmbedderError: the model could not embed them.
        """


class Unavailable:
    """A provider that could not be set up. Every use raises the reason."""

    parallel_batches = batch_size = 1

    def __init__(self, reason: EmbedderError) -> None:
        self._reason = reason

    def _refuse(self, _texts: Sequence[str] = ()) -> Any:
        raise self._reason

    identity = property(_refuse)
    embed_passages = embed_queries = _refuse


def unit_vectors(vectors: Matrix, expected: int, dimensions: int) -> Matrix:
    """The rows of ``vectors`` scaled to unit length, after every value was checked.

    One bad row refuses the whole batch: sqlite-vec would store NaN and infinities and then return
    meaningless distances.

    Args:
        vectors: what a provider returned.
        expected: how many texts were embedded.
        dimensions: those of the index's model.

    Returns:
        float32, little-endian, shape ``(expected, dimensions)``.

    Raises:
        EmbedderError: a wrong count or dimension, a value that is not finite, or a zero vector.
    """
    if vectors.ndim != 2 or vectors.shape[0] != expected:
        count = counted(vectors.shape[0] if vectors.ndim else 0, "vector")
        raise _unsound("embedding_count", f"{count} for {counted(expected, 'text')}")
    if vectors.shape[1] != dimensions:
        found = f"{vectors.shape[1]} dimensions, its identity says {dimensions}"
        raise _unsound("embedding_dimensions", found)
    if not np.isfinite(vectors).all():
        raise _unsound("embedding_not_finite", "a value that is NaN or infinite")
    # In float64, so that very large or very small components neither overflow nor vanish.
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise _unsound("embedding_not_finite", "a vector of infinite length")
    if (lengths == 0).any():
        number = int(np.argmin(lengths)) + 1
        raise _unsound("embedding_zero", f"a zero vector for text {number}")
    return np.ascontiguousarray(vectors / lengths, dtype="<f4")


def _unsound(code: str, found: str) -> EmbedderError:
    hint = "check the model and its server, then run the same command again"
    return EmbedderError(code, f"the model returned {found}", hint)


def fingerprint(vector: Matrix) -> str:
    """The SimHash of one vector, as 8 hexadecimal digits.

    It identifies a model if the server reports nothing but a name. A hash of the vector itself
    would change with the last bit of a float, that is with the number of threads. SimHash keeps one
    bit for each of a few random directions, the side on which the vector lies: noise leaves the
    bits alone, another model's vector flips half of them.

    Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.
    """
    bits, size = FINGERPRINT_BITS, vector.size
    # The directions come from a hash, not from a random generator: they must never change.
    stream = shake_256(b"rolebundle directions 1").digest(-(-bits * size // 8))
    signs = np.unpackbits(np.frombuffer(stream, np.uint8), count=bits * size).reshape(bits, size)
    sides = (signs.astype(np.float64) * 2 - 1) @ vector.reshape(size).astype(np.float64) > 0
    return np.packbits(sides).tobytes().hex()


MAX_QUERY_WINDOWS = 8
"""An answer waits for its query: all-MiniLM-L6-v2 takes 0.1 to 0.4 s for a window."""


def embed_in_windows(
    texts: Sequence[str],
    prefix: str,
    context: int,
    count_tokens: Callable[[str], int],
    embed: Callable[[Sequence[str]], Matrix],
    *,
    max_windows: int | None = None,
) -> Matrix:
    """A vector for each text.

    A text that is longer than the context is read in consecutive windows, each with the prefix. Its
    vector is the mean of theirs, weighted by their tokens. If a window's vector is the mean of its
    token vectors, that is the mean of all of them. The vectors of other texts are those of
    ``embed``, to the last bit.

    Args:
        texts: without the prefix.
        prefix: put before each window.
        context: the number of tokens that the model reads.
        count_tokens: of a text with its prefix.
        embed: a row for each window.
        max_windows: if given, a text with more tokens than so many contexts is refused.

    Raises:
        EmbedderError: ``input_too_long``: by ``max_windows``, or because the prefix leaves no space
            for a text; and what ``embed`` raises.
    """
    readable = prepared(texts, "")
    most = context * (max_windows or 0)
    if most and any(count_tokens(prefix + text) > most for text in readable):
        raise EmbedderError(
            "input_too_long", f"a text has more than {most:,} tokens", "use a shorter text"
        )
    windows = [windows_of(text, prefix, context, count_tokens) for text in readable]
    vectors = embed([window for parts in windows for window, _ in parts])
    means = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    first = 0
    for row, parts in enumerate(windows):
        weights = [tokens for _, tokens in parts]
        # In float64, which a single vector passes unchanged.
        means[row] = np.average(vectors[first : first + len(parts)], axis=0, weights=weights)
        first += len(parts)
    return means


def windows_of(
    text: str, prefix: str, context: int, count_tokens: Callable[[str], int]
) -> list[tuple[str, int]]:
    """The windows of a text and their tokens: the whole text, or those of its halves."""
    tokens = max(1, count_tokens(prefix + text))
    if tokens <= context:
        return [(prefix + text, tokens)]
    if len(text) < 2:
        raise EmbedderError(
            "input_too_long",
            f"the model reads {context} tokens, and what precedes a text leaves no space for it",
            "use a shorter prefix or task",
        )
    middle = len(text) // 2
    cut = text.rfind(" ", middle // 2, middle) + 1 or middle
    halves = (text[:cut], text[cut:])
    return [window for half in halves for window in windows_of(half, prefix, context, count_tokens)]
