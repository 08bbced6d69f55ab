"""Row 4: whatever a power loss leaves of the files, nothing acknowledged is lost."""

import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.policy.audit import AuditLog, verify_audit
from rolebundle.storage import opening
from support.corpora import document, scratch_folder
from support.fake_embedder import HashingProvider
from support.faulty_file_system import Disk, shimmed_disk
from support.old_schema import build_schema_1
from support.operations import STEPS, Place, Rows, final_contents, schema_of, stored_rows
from support.power_loss import Files, crash_state, intact_state, write_files
from support.sound import assert_sound

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.usefixtures("_small_batches"),
]

SEQUENCES = 50
STATES = 500
SAMPLED = {0: 5}
"""Sequence → states by default."""
DATABASES = ("c.db", "c.db.audit", "saved.db", "saved.db.audit")


class Sequence(NamedTuple):
    """Steps, and the schema of the corpus before them; 0 if there is none."""

    schema: int
    steps: tuple[str, ...]


def sequence(number: int) -> Sequence:
    """The first ones have every step; the others are drawn."""
    fixed = (
        Sequence(0, ("create", "ingest", "policy", "purge", "audit")),
        Sequence(1, ("ingest", "embed", "update")),
        Sequence(0, ("ingest", "require", "release", "back up", "update", "restore")),
    )
    if number < len(fixed):
        return fixed[number]
    chance = random.Random(number)
    begin = chance.choice((("ingest",), ("create", "audit", "ingest"), ("audit", "ingest")))
    later_steps = chance.sample([step for step in STEPS if step not in ("create", "ingest")], 3)
    if "restore" in later_steps:
        later_steps.insert(chance.randint(0, later_steps.index("restore")), "back up")
    return Sequence(number % 4 == 3, (*begin, *later_steps))


class Recorded(NamedTuple):
    """What a sequence did to the files, and the contents after no step, one step, and so on."""

    disk: Disk
    contents: list[dict[str, object]]
    audit_rows: list[int]


def record(place: Place, schema: int, steps: tuple[str, ...]) -> Recorded:
    place.folder.mkdir()
    if schema:
        old = [document(f"d{n}", [f"token {n}", "part"]) for n in range(6)]
        beside = place.folder.parent / f"{place.folder.name}-old"
        beside.mkdir()
        shutil.copy(build_schema_1(beside, old, HashingProvider())[0], place.db)
    with shimmed_disk(place.folder) as disk:
        for step in steps:
            STEPS[step](place, disk.acknowledge)
            disk.acknowledge(f"step {step}")
    recorded = Recorded(disk, [], [])
    ends = [n + 1 for n, row in enumerate(disk.log) if row.to.startswith("step ")]
    for until in (0, *ends):
        after = Place(place.folder.parent / "after")
        write_files(intact_state(disk, until), after.folder)
        is_newest = schema_of(after.db) == opening.latest_version()
        recorded.contents.append(final_contents(after.db) if is_newest else {})
        recorded.audit_rows.append(count_audit_rows(after.db))
        shutil.rmtree(after.folder)
    return recorded


def count_audit_rows(db: Path) -> int:
    with AuditLog(db) as log:
        return verify_audit(log.path).rows if log.exists else 0


def rows_of(files: Files, name: str, folder: Path) -> Rows:
    """The rows of a database, from its files."""
    if not files.get(name):
        return {}
    write_files(files, folder)
    try:
        return stored_rows(folder / name)
    finally:
        shutil.rmtree(folder)


class History:
    """The states that the transactions of a sequence led to, one database at a time."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._states: dict[str, list[tuple[int, Rows]]] = {name: [(0, {})] for name in DATABASES}
        syncs = (number + 1 for number, row in enumerate(disk.log) if row.kind == "sync")
        before: dict[str, Files] = {}
        for until in (0, *syncs, len(disk.log)):
            files = intact_state(disk, until)
            for name in DATABASES:
                own = {key: files[key] for key in files if key.startswith(name)}
                if own == before.get(name):
                    continue
                before[name] = own
                rows = rows_of(own, name, folder)
                if rows != self._states[name][-1][1]:
                    self._states[name].append((until, rows))

    def allowed(self, name: str, acknowledged: int) -> list[Rows]:
        """The states that may be left after what was acknowledged so far."""
        states = self._states[name]
        first = max(number for number, (until, _) in enumerate(states) if until <= acknowledged)
        return [rows for _, rows in states[first:]]


def moments(disk: Disk, states: int, chance: random.Random) -> Iterator[int]:
    """A third of them is anywhere, one around syncs and changes of names, one after a report."""
    near = [
        number + after
        for number, operation in enumerate(disk.log)
        for after in (0, 1)
        if operation.kind not in ("write", "truncate")
    ]
    reported = [number + 1 for number, row in enumerate(disk.log) if row.kind == "acknowledge"]
    for number in range(states):
        yield chance.choice((range(len(disk.log) + 1), near, reported)[number % 3])


def check_state(
    place: Place, recorded: Recorded, history: History, until: int, steps: tuple[str, ...]
) -> None:
    """One state: it has what was acknowledged, it is sound, and the next step completes."""
    log = recorded.disk.log
    acknowledged = max((n for n in range(until) if log[n].kind == "acknowledge"), default=-1)
    finished = sum(row.to.startswith("step ") for row in log[:until])
    for name in DATABASES:
        assert stored_rows(place.folder / name) in history.allowed(name, acknowledged + 1), (
            "acknowledged, and lost",
            name,
        )
    backups = [path for path in place.folder.iterdir() if path.name.endswith(".bak")]
    for backup in backups:
        assert stored_rows(backup) == history.allowed("c.db", 0)[0], "half a backup"
    if any(".schema-" in row.to for row in log) and schema_of(place.db) > 1:
        assert backups, "migrated, and the backup is lost"
    if is_erased(steps, finished):
        for path in (place.db, Path(f"{place.db}-wal")):
            assert not path.exists() or ERASED not in path.read_bytes(), path.name
    assert_sound(place.db)
    assert count_audit_rows(place.db) >= recorded.audit_rows[finished]
    if until % 4 == 0:
        assert_answers(place.db)
    if finished < len(steps):
        # What was not acknowledged, the user does again.
        STEPS[steps[finished]](place, lambda _: None)
        if until % 4 == 1:
            assert_sound(place.db)
        finished += 1
    if recorded.contents[finished]:
        assert final_contents(place.db) == recorded.contents[finished]


ERASED = b"Word1 of part one"
"""What only a document has that the step `purge` erases."""


def is_erased(steps: tuple[str, ...], finished: int) -> bool:
    """Whether a purge was acknowledged, and nothing since then brings its documents back."""
    if "purge" not in steps[:finished]:
        return False
    later = steps[steps.index("purge") : finished + 1]
    return not {"ingest", "update", "restore"} & set(later)


def assert_answers(db: Path) -> None:
    """An agent gets an answer, also if the audit must record it."""
    if db.exists() and db.stat().st_size:
        with Engine(db, agent="bot") as engine:
            engine.retrieve(RetrievalRequest(task="new", limit=1, lexical_only=True))


@pytest.mark.parametrize(
    ("number", "states"),
    [*SAMPLED.items()]
    + [pytest.param(n, STATES, marks=pytest.mark.slow) for n in range(SEQUENCES)],
)
def test_a_power_loss_loses_nothing_acknowledged(number: int, states: int) -> None:
    schema, steps = sequence(number)
    chance = random.Random(number)
    with scratch_folder() as folder:
        recorded = record(Place(folder / "whole"), schema, steps)
        history = History(recorded.disk, folder / "history")
        tried: set[int] = set()
        for until in moments(recorded.disk, states, chance):
            files = crash_state(recorded.disk, until, chance)
            identity = hash((until, tuple(files.items())))
            if identity in tried:
                continue
            tried.add(identity)
            place = Place(folder / "state")
            place.folder.mkdir()
            write_files(files, place.folder)
            try:
                check_state(place, recorded, history, until, steps)
            except BaseException as error:
                error.add_note(
                    f"sequence {number} {steps}, after {until} of {len(recorded.disk.log)}"
                )
                raise
            shutil.rmtree(place.folder)
        print(f"sequence {number}: {len(recorded.disk.log)} operations, {len(tried)} states")
