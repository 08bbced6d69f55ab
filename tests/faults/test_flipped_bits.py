"""Row 12: a single flipped bit, anywhere in the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.corpora import NOW
from support.fake_embedder import HashingProvider
from support.flipping import filled_corpus, flipped, problems_of, sample_of_bits, stored_rows


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a filled corpus, nothing left in its log."""
    path = filled_corpus(tmp_path_factory.mktemp("flipped"))
    assert problems_of(path) == []
    return path.read_bytes()


def put(path: Path, data: bytes) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(data)


@rounds(24, 1000)
def test_no_flip_that_changed_a_row_goes_unnoticed(
    image: bytes, tmp_path: Path, rounds: int
) -> None:
    path = tmp_path / "c.db"
    put(path, image)
    before = stored_rows(path)
    changed = 0
    for bit in sample_of_bits(image, rounds, seed=12):
        put(path, flipped(image, bit))
        if stored_rows(path) != before:
            changed += 1
            assert problems_of(path), bit
    print(f"{rounds} flips, {changed} changed a stored row")
    assert changed >= rounds // 2


# -- what is shown -------------------------------------------------------------------------------

TASKS = ("token rotation audit", "the threat model of the kernel release")
Shown = dict[str, object]


def shown(path: Path, part: slice = slice(None)) -> list[Shown | str]:
    """What an agent is shown by several requests: passages by id, or the code of the error."""
    with Engine(Workspace(path, HashingProvider())) as engine:
        requests: list[Callable[[], Shown]] = [
            *(partial(_answered, engine, task) for task in TASKS),
            *(partial(_looked_up, engine, f"d{n}") for n in range(24)[part]),
        ]
        answers: list[Shown | str] = []
        for request in requests:
            try:
                answers.append(request())
            except RolebundleError as error:
                assert error.hint
                answers.append(error.code)
        return answers


def _answered(engine: Engine, task: str) -> Shown:
    request = RetrievalRequest(task=task, agent="reader", now=NOW)
    return {
        passage.chunk_id: (passage.content, passage.title, passage.metadata, passage.citation)
        for passage in engine.retrieve(request).selected
    }


def _looked_up(engine: Engine, document_id: str) -> Shown:
    lookup = engine.get(document_id, "reader")
    return {
        f"get {passage.chunk_id}": (
            passage,
            lookup.document.model_copy(update={"superseded_by": []}),
        )
        for passage in lookup.passages
    }


@rounds(16, 1000)
def test_no_altered_passage_is_shown(image: bytes, tmp_path: Path, rounds: int) -> None:
    path = tmp_path / "c.db"
    put(path, image)
    sound: Shown = {}
    for answer in shown(path):
        if isinstance(answer, dict):
            sound |= answer
    assert len(sound) > 60
    refused = 0
    for number, bit in enumerate(sample_of_bits(image, rounds, seed=13)):
        put(path, flipped(image, bit))
        for answer in shown(path, slice(number % 12, None, 12)):
            if isinstance(answer, str):
                refused += answer not in ("not_found", "access_denied")
            else:
                assert answer.items() <= sound.items(), bit
    print(f"{rounds} flips, {refused} requests refused")
