"""Row 12: a single flipped bit, anywhere in the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.corpora import NOW
from support.fake_embedder import HashingProvider
from support.flipped_files import filled_corpus, flipped, problems_of, sample_of_bits, stored_rows


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


@rounds(5, 1000)
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
Answers = dict[str, object]


def all_answers(path: Path, part: slice = slice(None)) -> list[Answers | str]:
    """What an agent is shown by several requests: passages by id, or the code of the error."""
    with Engine(Workspace(path, HashingProvider())) as engine:
        requests: list[Callable[[], Answers]] = [
            *(partial(_answered, engine, task) for task in TASKS),
            *(partial(_looked_up, engine, f"d{n}") for n in range(24)[part]),
        ]
        answers: list[Answers | str] = []
        for request in requests:
            try:
                answers.append(request())
            except RolebundleError as error:
                assert error.hint
                answers.append(error.code)
        return answers


def _answered(engine: Engine, task: str) -> Answers:
    request = RetrievalRequest(task=task, agent="reader", now=NOW)
    return {
        passage.chunk_id: (
            passage.content,
            passage.headings,
            passage.title,
            passage.uri,
            passage.citation.locator,
            passage.metadata.freshness.updated_at,
            passage.metadata.model_dump(exclude={"freshness", "version"}),
        )
        for passage in engine.retrieve(request).selected
    }


def _looked_up(engine: Engine, document_id: str) -> Answers:
    lookup = engine.get(document_id, "reader")
    document = lookup.document.model_dump(exclude={"superseded_by"})
    return {f"get {passage.chunk_id}": (passage, document) for passage in lookup.passages}


def test_damage_in_what_an_agent_may_not_see_changes_no_answer(
    image: bytes, tmp_path: Path
) -> None:
    """Law 9: a document behind a deny pattern, one in quarantine, and their indexes."""
    path = tmp_path / "c.db"
    put(path, image)
    sound = all_answers(path)
    db = apsw.Connection(str(path))
    hidden = [
        number
        for (number,) in db.execute(
            "SELECT compartment FROM document WHERE document_id IN ('d5', 'd7')"
        )
    ]
    assert len(set(hidden)) == 2
    for number in hidden:
        db.execute(
            "UPDATE chunk SET content = 'token rotation forged' WHERE document IN "
            "(SELECT id FROM document WHERE compartment = ?)",
            (number,),
        )
        db.execute(f"INSERT INTO lexical_{number} (lexical_{number}) VALUES ('delete-all')")
        db.execute(f"DELETE FROM vectors_1_{number}_chunks")
    db.close()
    assert {"content_damaged", "lexical_drift", "vectors_damaged"} <= set(problems_of(path))
    assert all_answers(path) == sound
