"""A model server on loopback, with APIs to embed and to rerank, which misbehaves on request."""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

from rolebundle.embedding.provider import PROBE_TEXT
from support.fake_embedder import vector_of


class LocalServer(ThreadingHTTPServer):
    """``state`` is what the test and the handlers share."""

    daemon_threads = True
    block_on_close = False
    state: Any

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that close the connection are expected.
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handle_error(request, client_address)


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], port: int = 0) -> Iterator[LocalServer]:
    """Run a server on ``port``, or on a free port if it is 0."""
    with LocalServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.002,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


MODEL = "nomic-embed-text"
DIGEST = "0a109f422b47e3a30ba2b10eca18548e944e8a23073ee3f3e947efcf3c45e59f"
CONTEXT = 2048

EMBED_PATHS = {"ollama": "/api/embed", "openai": "/v1/embeddings"}
RERANK_PATHS = {"rerank": "/v1/rerank"}


@dataclass
class Seen:
    """A request that the server received."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class EmbeddingServer:
    """The state of a running server.

    ``faults`` maps a path to a function that answers its requests instead of the server.
    """

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    faults: dict[str, Callable[[Handler], None]] = field(default_factory=dict)
    digest: str = DIGEST
    sent: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def bodies_for(self, path: str) -> list[Any]:
        """The bodies of the requests to one path, apart from the probe that identifies a model."""
        bodies = [seen.body for seen in self.seen if seen.path == path]
        return [body for body in bodies if body.get("input") != [PROBE_TEXT]]


class Handler(BaseHTTPRequestHandler):
    """Answer both APIs. A fault gets this handler and may do anything with it."""

    protocol_version = "HTTP/1.1"
    server: LocalServer

    @property
    def state(self) -> EmbeddingServer:
        return self.server.state

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.body = json.loads(raw) if raw else None
        self.state.seen.append(Seen(self.path, dict(self.headers), self.body))
        route = self.state.faults.get(self.path) or ROUTES.get(self.path, not_found)
        route(self)

    do_GET = do_POST

    def json(self, value: Any, status: int = 200, **headers: str) -> None:
        self.text(json.dumps(value), status, "application/json", **headers)

    def text(self, body: str, status: int = 200, kind: str = "text/plain", **headers: str) -> None:
        payload = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(payload)

    def reset(self) -> None:
        """Close so that the client gets a connection reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def pour(self, piece: bytes, pause: float = 0.0) -> None:
        """Send the same bytes again and again until the client closes the connection."""
        while not self.state.stopping.is_set():
            self.wfile.write(piece)
            self.wfile.flush()
            self.state.sent += len(piece)
            time.sleep(pause)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def embedding_server(port: int = 0) -> Iterator[EmbeddingServer]:
    """Run a server on ``port``, or on a free port if it is 0."""
    with serving(Handler, port) as server:
        state = server.state = EmbeddingServer(server.server_address[1])
        try:
            yield state
        finally:
            state.stopping.set()


def not_found(handler: Handler) -> None:
    handler.text("404 page not found", 404)


def _tags(handler: Handler) -> None:
    name = f"{MODEL}:latest"
    handler.json({"models": [{"name": name, "model": name, "digest": handler.state.digest}]})


def _embed(handler: Handler) -> None:
    if not _known(handler):
        return
    assert handler.body["truncate"] is False
    if _too_long(handler):
        handler.json({"error": "the input length exceeds the context length"}, 400)
        return
    handler.json({"model": handler.body["model"], "embeddings": vectors(handler)})


def _models(handler: Handler) -> None:
    handler.json({"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1}]})


def _embeddings(handler: Handler) -> None:
    if not _known(handler):
        return
    if _too_long(handler):
        message = f"This model's maximum context length is {CONTEXT} tokens."
        handler.json({"error": {"message": message, "code": 400}}, 400)
        return
    data = [{"index": n, "embedding": v} for n, v in enumerate(vectors(handler))]
    # In reverse order: the client must use the indexes.
    handler.json({"object": "list", "data": data[::-1], "model": handler.body["model"]})


def overlap(question: str, passage: str) -> float:
    """Return the score that the cross-encoders give: the part of the question's words."""
    words = set(question.casefold().split())
    return len(words & set(passage.casefold().split())) / len(words)


def _rerank(handler: Handler) -> None:
    texts = handler.body["documents"]
    assert handler.body["top_n"] == len(texts)
    if any(len(text.split()) > CONTEXT for text in texts):
        handler.json({"error": f"`inputs` must have less than {CONTEXT} tokens."}, 413)
        return
    scores = [overlap(handler.body["query"], text) for text in texts]
    # The best come first.
    order = sorted(range(len(texts)), key=lambda n: -scores[n])
    results = [{"index": n, "relevance_score": scores[n]} for n in order]
    handler.json({"model": MODEL, "results": results})


def vectors(handler: Handler) -> list[list[float]]:
    """Return valid vectors for the request."""
    return [[float(x) for x in vector_of(text)] for text in handler.body["input"]]


def _known(handler: Handler) -> bool:
    model = handler.body["model"]
    if model.removesuffix(":latest") == MODEL:
        return True
    message = f'model "{model}" not found, try pulling it first'
    ollama = handler.path.startswith("/api/")
    handler.json({"error": message if ollama else {"message": message}}, 404)
    return False


def _too_long(handler: Handler) -> bool:
    return any(len(text.split()) > CONTEXT for text in handler.body["input"])


ROUTES: dict[str, Callable[[Handler], None]] = {
    "/api/tags": _tags,
    "/api/embed": _embed,
    "/v1/models": _models,
    "/v1/embeddings": _embeddings,
    "/v1/rerank": _rerank,
}


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
    with patch("rolebundle.retrieval.rerank.cross_encoder_for", lambda _spec: server):
        yield server


DEADLINE = 0.6
"""Seconds that a provider under test may take."""

Fault = Callable[[Handler], None]
Breaks = Callable[[Fault], None]
