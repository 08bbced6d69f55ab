"""A cross-encoder for tests, which takes the place of every server inside a block."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from support.embedding_server import overlap

FAKE = "rerank:fake"


@dataclass
class CrossEncoder:
    """Scores a passage by its share of the task's words, and records what it read."""

    texts: list[str] = field(default_factory=list)

    def scores(self, task: str, passages: Sequence[str]) -> list[float]:
        self.texts += passages
        return [overlap(task, passage) for passage in passages]


@contextmanager
def known() -> Iterator[CrossEncoder]:
    """Ask this cross-encoder, whatever server a request names."""
    server = CrossEncoder()
    with patch("rolebundle.retrieval.rerank.rerank_server_for", lambda _spec: server):
        yield server
