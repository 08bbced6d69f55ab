"""Rows 1 to 3, 16 and 19: kill -9 at any moment of what writes. Nothing acknowledged is lost.

Every other run is killed after a random time, and the others before a random operation on a file.
After it the corpus is sound and has what was reported. The same command again completes it: the
result equals that of an undisturbed run, and no files are left over.
"""

import os
import random
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.backups import restore_backup
from rolebundle.errors import CorpusCorrupt
from rolebundle.ingest.options import IngestOptions
from rolebundle.memory.decisions import all_decisions
from rolebundle.memory.facts import all_facts
from rolebundle.memory.marks import all_marks
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_check import verify_audit
from rolebundle.storage import opening, vector_index
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.amounts import rounds
from support.canaries import files_of, found_in, make_canary, vector_traces
from support.corpora import as_owner, build, document, scratch_folder
from support.fake_embedder import HashingProvider
from support.faulty_file_system import Operation, shimmed_disk
from support.killing import Report, run_child
from support.old_schema import build_schema_1
from support.operations import (
    OTHER_MODEL,
    STEPS,
    Place,
    assert_acknowledged_rows,
    final_contents,
    schema_of,
    stored_rows,
)
from support.publications import stage
from support.purging import finish_purges, purge
from support.sound import assert_sound
from support.vectors import assert_never_mixed


@contextmanager
def killed_at_operation(folder: Path, operation: int, report: Report) -> Iterator[None]:
    """A block that kills the process before this operation on a file; 0 for never.

    If it comes to its end, it reports how many operations there were.
    """
    operations = 0

    def count(_: Operation) -> None:
        nonlocal operations
        operations += 1
        if operations == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    with shimmed_disk(folder) as disk:
        disk.fail = count
        yield
        disk.fail = None
    report(f"operations {operations}")


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs fork, SIGKILL and /proc"),
    pytest.mark.usefixtures("_small_batches"),
]

FILES = 16
_MOMENT = re.compile(r"\d{8}-\d{6}(\.\d+)?")


# -- what is killed ------------------------------------------------------------------------------


@dataclass
class Case:
    """Something that a kill may end.

    Attributes:
        step: what is killed, and what is done again. It reports its progress.
        prepare: makes what is there before it.
        before, after: the contents of the corpus before it, and after an undisturbed run.
    """

    step: Callable[[Place, Report], None]
    prepare: Callable[[Place], None] = lambda place: None
    before: Any = None
    after: Any = None

    def check(self, place: Place, reported: Sequence[str]) -> None:
        """What must hold after the kill, of a copy of the files."""

    def check_end(self, place: Place, reported: Sequence[str]) -> None:
        """What must hold after the step was repeated, and what it then reported."""


def contents_of(db: Path) -> Any:
    """The contents of a corpus of the newest schema, or the rows of an older one."""
    is_newest = schema_of(db) == opening.latest_version()
    return final_contents(db) if is_newest else stored_rows(db)


def steps(*names: str) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        for name in names:
            STEPS[name](place, lambda _: None)

    return prepare


def count_of(reported: Sequence[str], step: str) -> int:
    return max(
        (int(line.split()[1]) for line in reported if line.startswith(f"{step} ")), default=0
    )


class Ingest(Case):
    """Only the report at the end acknowledges what was read; the progress acknowledges vectors."""

    def check(self, place: Place, reported: Sequence[str]) -> None:
        if embedded := count_of(reported, "embedding"):
            with open_reader(place.db) as corpus:
                assert corpus.value("SELECT count(*) FROM embedded") >= embedded


class Embed(Case):
    def check(self, place: Place, reported: Sequence[str]) -> None:
        counted = assert_never_mixed(place.db)
        chunks = len(self.before["chunks"])
        self.done = embedded = counted.get(OTHER_MODEL.model, 0)
        assert counted["hashed-words"] == chunks, "a vector of the old index is lost"
        assert embedded >= count_of(reported, "embedding")
        with open_reader(place.db) as corpus:
            index = vector_index.active_index(corpus)
        assert index.identity.model != OTHER_MODEL or embedded == chunks

    def check_end(self, place: Place, reported: Sequence[str]) -> None:
        missing = len(self.before["chunks"]) - self.done
        assert count_of(reported, "embedding") == missing, "nothing is embedded twice"


class AllOrNothing(Case):
    def check(self, place: Place, reported: Sequence[str]) -> None:
        assert contents_of(place.db) in (self.before, self.after), "a part of it is done"


class Migration(AllOrNothing):
    def check(self, place: Place, reported: Sequence[str]) -> None:
        super().check(place, reported)
        self.check_backups(place)

    def check_end(self, place: Place, reported: Sequence[str]) -> None:
        assert self.check_backups(place) == 1

    def check_backups(self, place: Place) -> int:
        """Half a copy never has the name of a backup."""
        backups = [path for path in files_of(place.db) if re.search(r"\.bak(\.\d+)?$", path.name)]
        for path in backups:
            assert contents_of(path) == self.before
        return len(backups)


class Audit(Case):
    def check(self, place: Place, reported: Sequence[str]) -> None:
        assert_acknowledged_rows(place.db, reported)

    check_end = check


class Records(Case):
    """Decisions, marks or facts, each acknowledged and recorded in the audit by itself."""

    def __init__(self, kind: str, records: Callable[[Workspace], Any], name: str) -> None:
        super().__init__(STEPS[kind], steps("ingest", "require"))
        self.kind, self.records, self.name = kind, records, name

    def check(self, place: Place, reported: Sequence[str]) -> None:
        acknowledged = {line.split()[1] for line in reported if line.startswith("recorded ")}
        names = [getattr(record, self.name) for record in as_owner(place.db, self.records)]
        assert acknowledged <= set(names), "acknowledged, and lost"
        with AuditLog(place.db) as log:
            assert verify_audit(log.path).ok
            assert sum(row.kind == self.kind for row in log.rows()) >= len(names)

    def check_end(self, place: Place, reported: Sequence[str]) -> None:
        self.check(place, reported)
        recorded = len(as_owner(place.db, self.records))
        assert recorded == (FILES if self.kind == "mark" else 6)


class BackUp(AllOrNothing):
    def check(self, place: Place, reported: Sequence[str]) -> None:
        super().check(place, reported)
        if place.saved.exists():
            self.check_end(place, ())

    def check_end(self, place: Place, reported: Sequence[str]) -> None:
        """What has the name of the backup is complete, and can be restored."""
        assert contents_of(place.saved) == self.before
        assert as_owner(place.db, restore_backup, place.saved).created_at


class Restore(AllOrNothing):
    def check(self, place: Place, reported: Sequence[str]) -> None:
        super().check(place, reported)
        assert place.db.exists()
        for path in files_of(place.db):
            if re.fullmatch(rf"c\.db\.replaced-{_MOMENT.pattern}", path.name):
                assert contents_of(path) in (self.before, self.after)


class Purge(Case):
    """Of documents whose every word and vector is looked for in the bytes of all files."""

    def __init__(self) -> None:
        super().__init__(self.purge, self.fill)
        self.names: list[str] = []
        self.traces: set[bytes] = set()
        self.repeated = 0

    def fill(self, place: Place) -> None:
        chance = random.Random(7)
        common = tuple(f"common{number}" for number in range(200))
        canaries = [make_canary(chance, common, number) for number in range(FILES)]
        documents = [canary.document for canary in canaries]
        build(place.folder, documents, HashingProvider(), name="c.db")
        purged = canaries[::3]
        ids = {canary.document.metadata.document_id for canary in purged}
        remaining = {canary.document.metadata.document_id for canary in canaries} - ids
        with open_reader(place.db) as corpus:
            self.traces = vector_traces(corpus, ids) - vector_traces(corpus, remaining)
        self.traces |= {trace for canary in purged for trace in canary.traces}
        stage(place.db, "/published", sorted(ids))
        assert found_in(files_of(place.db), self.traces) == self.traces, "the look finds them"
        self.names = sorted(ids)

    def purge(self, place: Place, report: Report) -> None:
        """If the names are gone already, an ingest or the command for it does what is left."""
        with open_writer(place.db) as corpus:
            if corpus.value("SELECT count(*) FROM purge") == 0:
                assert purge(corpus, self.names).state == "done"
            elif self.repeated % 2:
                finish_purges(corpus)
        self.repeated += 1
        empty = place.folder.parent / "empty"
        empty.mkdir(exist_ok=True)
        with Admin(place.db) as admin:
            admin.ingest([empty], IngestOptions(lexical_only=True))

    def check(self, place: Place, reported: Sequence[str]) -> None:
        states = (self.before, self.after, contents_of(place.db))
        before, after, killed = ({**state, "purges": None} for state in states)
        assert killed in (before, after), "a part of it is done"

    def check_end(self, place: Place, reported: Sequence[str]) -> None:
        assert found_in(files_of(place.db), self.traces) == set()


def old_schema(place: Place) -> None:
    """A corpus of the first schema with documents of three scopes."""
    scopes = ("shared", "hr", "board")
    documents = [
        document(f"d{n}", [f"the token number {n}", f"part {n % 7}"], scope=scopes[n % 3])
        for n in range(40)
    ]
    beside = place.folder.parent / "old"
    beside.mkdir()
    shutil.copy(build_schema_1(beside, documents, HashingProvider())[0], place.db)


CASES: dict[str, Callable[[], Case]] = {
    "creation": lambda: Case(STEPS["create"]),
    "first ingest": lambda: Ingest(STEPS["ingest"]),
    "update": lambda: Ingest(STEPS["update"], steps("ingest")),
    "embed": lambda: Embed(STEPS["embed"], steps("ingest")),
    "purge": Purge,
    "migration": lambda: Migration(STEPS["create"], old_schema),
    "decide": lambda: Records("decide", all_decisions, "id"),
    "mark": lambda: Records("mark", all_marks, "target"),
    "remember": lambda: Records("remember", all_facts, "document_id"),
    "policy": lambda: AllOrNothing(STEPS["policy"], steps("ingest")),
    "new audit": lambda: Audit(STEPS["audit"], steps("ingest")),
    "audit": lambda: Audit(STEPS["audit"], steps("ingest", "require")),
    "backup": lambda: BackUp(STEPS["back up"], steps("ingest", "require")),
    "restore": lambda: Restore(STEPS["restore"], steps("ingest", "require", "back up", "update")),
}


# -- the kill --------------------------------------------------------------------------------------


def run_until(case: Case, place: Place, operation: int = 0) -> Callable[[Report], None]:
    """The step for a child that kills itself before this operation on a file; 0 for never."""

    def work(report: Report) -> None:
        with killed_at_operation(place.folder, operation, report):
            case.step(place, report)

    return work


def copy_of(folder: Path, target: Path) -> Place:
    """A copy of a folder. Hard links directly in it stay links."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    copied: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            shutil.copytree(path, target / path.name)
            continue
        inode = path.stat().st_ino
        if inode in copied:
            (target / path.name).hardlink_to(copied[inode])
        else:
            copied[inode] = Path(shutil.copy(path, target / path.name))
    return Place(target, FILES)


def names_in(folder: Path) -> set[str]:
    names = {_MOMENT.sub("DATE", path.name) for path in folder.iterdir()}
    return {name for name in names if not name.endswith(("-wal", "-shm"))}


@pytest.mark.sample(4)
@rounds(1, 200)
@pytest.mark.parametrize("name", CASES)
def test_a_kill_loses_nothing_acknowledged(name: str, rounds: int) -> None:
    chance = random.Random(name)
    case = CASES[name]()
    with scratch_folder() as folder:
        base = Place(folder / "base", FILES)
        base.folder.mkdir()
        case.prepare(base)
        case.before = contents_of(base.db)
        complete = copy_of(base.folder, folder / "whole")
        undisturbed = run_child(run_until(case, complete))
        assert undisturbed.code == 0
        operations = count_of(undisturbed.reported, "operations")
        case.after = contents_of(complete.db)
        expected_names = names_in(complete.folder)
        killed = runs = 0
        while killed < rounds:
            runs += 1
            assert runs <= 5 * rounds, "it ends before it is killed"
            place = copy_of(base.folder, folder / "killed")
            if runs % 2:
                at_operation = chance.randint(1, operations)
                ended = run_child(run_until(case, place, at_operation))
            else:
                moment = chance.uniform(0, undisturbed.seconds)
                ended = run_child(lambda report, at=place: case.step(at, report), moment)
            killed += ended.killed
            assert ended.killed or ended.code == 0
            # A copy, because opening it would already clean up what the kill left.
            copy = copy_of(place.folder, folder / "copy")
            case.check(copy_of(copy.folder, folder / "looked-at"), ended.reported)
            assert_sound(copy.db)
            if not ended.killed:
                assert contents_of(copy.db) == case.after
                continue
            reported: list[str] = []
            case.step(place, reported.append)
            assert contents_of(place.db) == case.after
            assert_sound(place.db)
            case.check_end(place, reported)
            assert names_in(place.folder) <= expected_names, "left over"
        print(f"{name}: {killed} of {runs} runs killed, {operations} operations")


@pytest.mark.parametrize("step", [47, pytest.param(1, marks=pytest.mark.slow)])
def test_a_new_corpus_is_there_as_a_whole_or_not_at_all(tmp_path: Path, step: int) -> None:
    path = tmp_path / "new.db"

    def create(report: Report, operation: int = 0) -> None:
        with killed_at_operation(tmp_path, operation, report):
            open_writer(path).close()

    operations = count_of(run_child(create).reported, "operations")
    for operation in range(1, operations + 1, step):
        path.unlink(missing_ok=True)
        assert run_child(lambda report, at=operation: create(report, at)).killed
        if path.exists():
            open_reader(path).close()
        open_writer(path).close()
        assert names_in(tmp_path) == {"new.db"}


def test_a_corpus_that_was_never_filled_is_called_so_and_filled(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("application_id", opening.APPLICATION_ID)
    with pytest.raises(CorpusCorrupt, match="never filled") as caught:
        open_reader(path)
    assert "rolebundle ingest FOLDER" in caught.value.hint
    open_writer(path).close()
    open_reader(path).close()
