"""kill -9 while `rolebundle embed` builds a new index: never mixed, nothing lost, a re-run ends it."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from rolebundle.contracts.index import ModelIdentity
from rolebundle.embedding.noise_sample import PAIRS
from rolebundle.ingest import indexes
from rolebundle.storage import vector_index
from rolebundle.storage.opening import open_reader
from support.amounts import rounds
from support.commands import invoke
from support.corpora import build, document, scratch_folder
from support.embedding_server import MODEL, EmbeddingServer, embedding_server
from support.vectors import TextByText, assert_never_mixed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

OLD = ModelIdentity("fake", "old", "1111", 12)
CHUNKS = 120
BATCH = 8
PATIENCE = 30.0


def arguments(server: EmbeddingServer, db: Path) -> list[str]:
    return [
        "embed", "--provider", "ollama", "--model", MODEL, "--embed-url", server.url,
        "--db", str(db),
    ]  # fmt: skip


def start(server: EmbeddingServer, db: Path) -> BaseProcess:
    """A forked process that embeds. A Python of its own would take longer to start than to embed."""

    def embed() -> None:
        indexes.BATCH = BATCH
        os._exit(invoke(*arguments(server, db)).code)

    process = multiprocessing.get_context("fork").Process(target=embed)
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    process.join(PATIENCE)
    return process.exitcode


def wait_for(process: BaseProcess, happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.is_alive() and not happened():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def embedded(server: EmbeddingServer) -> int:
    """Chunks that the server was asked to embed; the sample that measures noise does not count."""
    sample = tuple(text for pair in PAIRS for text in pair)
    bodies = [body for body in server.asked("/api/embed") if body]
    # The model's prefix stands before each text.
    return sum(not text.endswith(sample) for body in bodies for text in body["input"])


def look(db: Path) -> dict[str, int]:
    """How many vectors each model has: never mixed, and whoever asks now misses none."""
    counted = assert_never_mixed(db)
    assert counted["old"] == CHUNKS, "a vector of the old index is lost"
    with open_reader(db) as corpus:
        index = vector_index.active_index(corpus)
    assert index is not None
    assert counted[index.identity.model.model] == CHUNKS
    return counted


def active_model(db: Path) -> str:
    with open_reader(db) as corpus:
        index = vector_index.active_index(corpus)
    assert index is not None
    return index.identity.model.provider


@rounds(3, 100)
def test_kill_during_embed_and_around_the_change_over(rounds: int) -> None:
    chance = random.Random(4)
    killed = partial = late = over = 0
    with scratch_folder() as folder, embedding_server() as server:
        texts = [f"token {n} of threat model {n % 7}" for n in range(CHUNKS)]
        pages = [document(f"d{n}", texts[n : n + 40]) for n in range(0, CHUNKS, 40)]
        base = build(folder, pages, TextByText(OLD)).read_bytes()
        timed = folder / "timed.db"
        timed.write_bytes(base)
        process = start(server, timed)
        wait_for(process, lambda: embedded(server) > 0)
        first = time.monotonic()
        assert ended(process) == 0
        seconds = time.monotonic() - first
        assert look(timed) == {"old": CHUNKS, f"{MODEL}:latest": CHUNKS}
        for number in range(rounds):
            db = folder / f"killed-{number}.db"
            db.write_bytes(base)
            server.seen.clear()
            process = start(server, db)
            if number % 3 == 0:
                wait_for(process, lambda: bool(server.seen))
                time.sleep(chance.uniform(0, seconds))
            elif number % 3 == 1:
                asked = chance.randrange(BATCH, CHUNKS)
                wait_for(process, lambda asked=asked: embedded(server) >= asked)  # type: ignore[misc]
                time.sleep(chance.uniform(0, 0.01))
            else:
                # Around the change-over: the model has been asked for everything.
                wait_for(process, lambda: embedded(server) >= CHUNKS)
                time.sleep(chance.uniform(0, 0.012))
            process.kill()
            killed += ended(process) != 0
            done = look(db).get(f"{MODEL}:latest", 0)
            changed = active_model(db) == "ollama"
            assert not changed or done == CHUNKS
            partial += 0 < done < CHUNKS
            late += done == CHUNKS
            over += changed
            server.seen.clear()
            again = invoke(*arguments(server, db))
            assert (again.code, again.out) == (
                0,
                f"{CHUNKS - done} chunks embedded, 0 waiting\n",
            )
            assert embedded(server) == CHUNKS - done, "nothing is embedded twice"
            assert look(db) == {"old": CHUNKS, f"{MODEL}:latest": CHUNKS}
            assert active_model(db) == "ollama"
            db.unlink()
    print(
        f"{rounds} runs: {killed} killed, {partial} with a part done, {late} with all done, "
        f"{over} changed over"
    )
    assert killed >= rounds // 2
    assert partial >= rounds // 6
