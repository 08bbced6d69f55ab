"""Row 19: a backup under write is a committed state; a restore survives what a kill left."""

import re
from collections.abc import Callable
from contextlib import closing
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from rolebundle.admin.backups import create_backup
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.corpora import document, file_of, put_file, scratch_folder
from support.killing import Report, run_child
from support.sound import assert_sound

TEXT = " ".join(f"word{n}" for n in range(200))


DOCUMENTS = 8


def write_states(db: Path, last: int | None = None) -> Callable[[Report], None]:
    """Commit one state after the other. State n changes ``a``, ``b``, and one of 8 documents."""

    def work(report: Report) -> None:
        with open_writer(db) as corpus:
            for state in count(1 + _written(corpus).get("a", 0)):
                with corpus.writing():
                    for name in ("a", "b", f"n{state % DOCUMENTS}"):
                        texts = [f"the state {state} of {name}: {TEXT}"]
                        put_file(corpus, file_of(name), [document(name, texts)])
                    increment_generation(corpus)
                report(str(state))
                if state == last:
                    return

    return work


def _written(corpus: Corpus) -> dict[str, int]:
    """Document → the state that wrote it."""
    rows = corpus.rows("SELECT content FROM chunk")
    states = (re.match(r"the state (\d+) of (\w+):", content) for (content,) in rows)
    return {match[2]: int(match[1]) for match in states if match}


def state_of(db: Path) -> int:
    """Which state a corpus has. Fails if it is between two."""
    with open_reader(db) as corpus:
        written = _written(corpus)
    state = written["a"]
    newest = {f"n{n % DOCUMENTS}": n for n in range(1, state + 1)[-DOCUMENTS:]}
    assert written == {"a": state, "b": state} | newest
    return state


@rounds(1, 100)
def test_a_backup_under_write_is_a_committed_state(rounds: int) -> None:
    with scratch_folder() as folder:
        db = folder / "c.db"
        run_child(write_states(db, last=3))
        states: list[int] = []
        child = get_context("fork").Process(target=write_states(db), args=(lambda _: None,))
        child.start()
        try:
            for number in range(rounds):
                before = state_of(db)
                with closing(Workspace(db)) as workspace:
                    report = create_backup(workspace, folder / f"{number}.bak")
                assert report.warnings == []
                states.append(state_of(folder / f"{number}.bak"))
                assert before <= states[-1] <= state_of(db)
                assert_sound(folder / f"{number}.bak")
                (folder / f"{number}.bak").unlink()
        finally:
            child.kill()
            child.join()
        print(f"{rounds} backups of the states {states[0]} to {states[-1]}")
        assert states[-1] > states[0] or rounds < 3, "nobody wrote meanwhile"
