"""Row 4: whatever a power loss leaves of the files, nothing acknowledged is lost."""

import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_check import verify_audit
from rolebundle.storage import opening
from support.corpora import document, scratch_folder
from support.fake_embedder import HashingProvider
from support.faulty_file_system import TEMPORARY, Disk, Operation, shimmed_disk
from support.old_schema import build_schema_1
from support.operations import STEPS, Place, Rows, final_contents, schema_of, stored_rows
from support.sound import assert_sound
from support.source_tree import write_files

# -- What a file system may leave of a log of operations after a power loss ------------------------
# The model is stricter than usual file systems:
# - What was written before the last sync of a file is there.
# - Of later writes, each sector (512 or 4096 bytes) is there as it was after any of them, and so is
#   the size of the file. So writes are lost, torn and stored out of order. A sector that was never
#   written is zero, or random if the file has grown. A file is cut as a whole: cutting it is a
#   change of its size.
# - Names of files are there as they were at the last sync of the folder. Later changes are there up
#   to any of them, or each by chance. The sync of a file does not make its name durable.

Files = dict[str, bytes]


def state_of(disk: Disk, until: int, chance: Random | None = None) -> Files:
    """Files that a power loss after so many operations may leave, by chance.

    Without ``chance``, those that a process sees.
    """
    durable: dict[int, bytes] = {}
    pending: dict[int, list[Operation]] = {}
    names: dict[str, int] = {}
    renamed: list[Operation] = []
    for inode, (name, content) in enumerate(disk.base.items(), start=1):
        durable[inode], names[name] = content, inode
    for operation in disk.log[:until]:
        if operation.file == TEMPORARY:
            continue
        if operation.kind in ("write", "truncate"):
            pending.setdefault(operation.inode, []).append(operation)
        elif operation.kind == "sync":
            inode = operation.inode
            durable[inode] = _all_of(durable.get(inode, b""), pending.pop(inode, []))
        elif operation.kind in ("create", "delete", "link", "rename"):
            renamed.append(operation)
        elif operation.kind == "sync_folder":
            _rename(names, renamed)
            renamed = []
    kind, sector = "all", 0
    if chance is not None:
        renamed = _part_of(renamed, chance)
        # One kind of loss for all files of a state: nothing, all, or some of it.
        kind = chance.choice(("none", "all", "some", "some", "some", "some"))
        sector = chance.choice((512, 4096))
    _rename(names, renamed)
    contents = dict(durable)
    for inode, operations in pending.items():
        before = durable.get(inode, b"")
        if chance is not None and kind == "some":
            contents[inode] = _some_of(before, operations, sector, chance)
        elif kind == "all":
            contents[inode] = _all_of(before, operations)
    return {name: contents.get(inode, b"") for name, inode in names.items()}


def _all_of(content: bytes, operations: Sequence[Operation]) -> bytes:
    if not operations:
        return content
    result = bytearray(content)
    for operation in operations:
        if operation.kind == "truncate":
            del result[operation.offset :]
            continue
        if len(result) < operation.offset:
            result.extend(bytes(operation.offset - len(result)))
        result[operation.offset : operation.offset + len(operation.data)] = operation.data
    return bytes(result)


def _some_of(content: bytes, operations: Sequence[Operation], sector: int, chance: Random) -> bytes:
    """Each sector as it was after a random one of the operations, and a size likewise."""
    sizes = [len(content)]
    for operation in operations:
        end = operation.offset + len(operation.data)
        sizes.append(end if operation.kind == "truncate" else max(sizes[-1], end))
    resized = _stored(len(operations), chance)
    size = sizes[resized]
    grown = max(0, size - len(content))
    filling = chance.randbytes(grown) if chance.random() < 0.2 else bytes(grown)
    result = bytearray(content[:size] + filling)
    stored: dict[int, int] = {}
    for number, operation in enumerate(operations, start=1):
        start = operation.offset
        if operation.kind == "truncate":
            if number <= resized:
                result[start:] = bytes(len(result[start:]))
            continue
        end = min(start + len(operation.data), size)
        while start < end:
            place = start // sector
            next_start = min((place + 1) * sector, end)
            if place not in stored:
                stored[place] = _stored(len(operations), chance)
            if stored[place] >= number:
                first = start - operation.offset
                result[start:next_start] = operation.data[first : first + next_start - start]
            start = next_start
    return bytes(result)


def _stored(operations: int, chance: Random) -> int:
    """How many of the operations reached the disk: often all, often none."""
    kind = chance.random()
    return operations if kind < 0.4 else 0 if kind < 0.6 else chance.randint(0, operations)


def _part_of(operations: list[Operation], chance: Random) -> list[Operation]:
    if chance.random() < 0.75:
        return operations[: chance.randint(0, len(operations))]
    return [operation for operation in operations if chance.random() < 0.5]


def _rename(names: dict[str, int], operations: Sequence[Operation]) -> None:
    for operation in operations:
        if operation.kind == "create":
            names[operation.file] = operation.inode
        elif operation.kind == "delete":
            names.pop(operation.file, None)
        elif operation.file in names:  # It is missing if its creation was lost.
            inode = names[operation.file]
            if operation.kind == "rename":
                del names[operation.file]
            names[operation.to] = inode


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
        after.folder.mkdir()
        write_files(after.folder, state_of(disk, until))
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
    write_files(folder, files)
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
            files = state_of(disk, until)
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
    if until % 4 == 0 and place.db.exists() and place.db.stat().st_size:
        # An agent gets an answer, also if the audit must record it.
        with Engine(place.db, agent="bot") as engine:
            engine.retrieve(RetrievalRequest(task="new", limit=1, lexical_only=True))
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
            files = state_of(recorded.disk, until, chance)
            identity = hash((until, tuple(files.items())))
            if identity in tried:
                continue
            tried.add(identity)
            place = Place(folder / "state")
            place.folder.mkdir()
            write_files(place.folder, files)
            try:
                check_state(place, recorded, history, until, steps)
            except BaseException as error:
                error.add_note(f"sequence {number} {steps}, after {until}")
                raise
            shutil.rmtree(place.folder)
        print(f"sequence {number}: {len(recorded.disk.log)} operations, {len(tried)} states")
