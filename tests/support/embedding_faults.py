"""Helpers for tests of a model server that misbehaves."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.errors import EmbedderError
from support.embedding_server import EMBED_PATHS, Handler

DEADLINE = 0.6
"""Seconds that a provider under test may take."""
SHORT_DEADLINE = 0.1
"""Seconds in which a server that never answers can be waited for; an answer may take longer."""

Fault = Callable[[Handler], None]
Breaks = Callable[[Fault], None]


def failure(provider: EmbeddingProvider, texts: tuple[str, ...] = ("one", "two")) -> EmbedderError:
    """Return the error that embedding raises, checks of the vectors included."""
    with pytest.raises(EmbedderError) as caught:
        unit_vectors(provider.embed_passages(texts), len(texts), provider.identity.dimensions)
    assert caught.value.hint
    return caught.value


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


def answer(handler: Handler, rows: list[object]) -> None:
    """Answer with these vectors, in the API of the request."""
    if handler.path == EMBED_PATHS["ollama"]:
        handler.json({"embeddings": rows})
    else:
        handler.json({"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]})


def closed_port() -> int:
    """Return a port on which no server listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
