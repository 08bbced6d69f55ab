"""Row 12: a single flipped bit, anywhere in the file."""

from pathlib import Path

import apsw
import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.corpora import NOW
from support.damaged_files import put
from support.fake_embedder import HashingProvider
from support.flipped_files import filled_corpus, flipped, problems_of, sample_of_bits, stored_rows


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a filled corpus, nothing left in its log."""
    path = filled_corpus(tmp_path_factory.mktemp("flipped"))
    assert problems_of(path) == []
    return path.read_bytes()


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


def all_answers(path: Path) -> list[object]:
    """What an agent is shown by several requests: answers and documents, or codes of errors."""
    with Engine(Workspace(path, HashingProvider())) as engine:
        requests = [RetrievalRequest(task=task, agent="reader", now=NOW) for task in TASKS]
        answers: list[object] = [engine.retrieve(asked).without_timings() for asked in requests]
        for number in range(24):
            try:
                answers.append(engine.get(f"d{number}", "reader"))
            except RolebundleError as error:
                answers.append(error.code)
        return answers


def test_damage_in_what_an_agent_may_not_see_changes_no_answer(
    image: bytes, tmp_path: Path
) -> None:
    """Law 9: a document behind a deny pattern, one in quarantine, and their indexes."""
    path = tmp_path / "c.db"
    put(path, image)
    sound = all_answers(path)
    db = apsw.Connection(str(path))
    places = "SELECT compartment FROM document WHERE document_id IN ('d5', 'd7')"
    hidden = [number for (number,) in db.execute(places)]
    assert len(set(hidden)) == 2
    for number in hidden:
        db.execute(
            "UPDATE chunk SET content = 'token rotation forged' WHERE document IN "
            "(SELECT id FROM document WHERE compartment = ?)",
            (number,),
        )
        db.execute(f"INSERT INTO lexical_{number} (lexical_{number}) VALUES ('delete-all')")
        db.execute("UPDATE embedded SET vector = x'00' WHERE compartment = ?", (number,))
    db.close()
    assert {"content_damaged", "lexical_drift", "vectors_damaged"} <= set(problems_of(path))
    assert all_answers(path) == sound
