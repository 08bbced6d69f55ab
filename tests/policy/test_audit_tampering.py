"""No row of the audit is altered, dropped, moved or put in unseen; and what only a head shows."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.audit import AuditEntry, AuditSettings
from rolebundle.errors import RolebundleError, WrongFile
from rolebundle.policy.audit import AuditLog
from rolebundle.storage.audits.audit import row_hash
from support.amounts import rounds
from support.corpora import scratch_folder

REQUIRED = AuditSettings(mode="required", query="text")
COLUMNS = (
    "seq time kind agent role action query bundle_digest allowed blocked details previous hash"
).split()
Rows = list[dict[str, Any]]


def entry(agent: str = "bot", **fields: Any) -> AuditEntry:
    return AuditEntry(**({"kind": "retrieve", "agent": agent, "query": "a task"} | fields))


def execute(path: Path, *statements: str | tuple[str, Any]) -> None:
    with sqlite3.connect(path) as db:
        # Who tampers is not held up by a check.
        db.execute("PRAGMA ignore_check_constraints = 1")
        for statement in statements:
            db.execute(*((statement,) if isinstance(statement, str) else statement))
    db.close()


def dump(path: Path) -> list[str]:
    db = sqlite3.connect(path)
    lines = list(db.iterdump())
    db.close()
    return lines


def rewrite(path: Path, rows: Rows) -> None:
    marks = ", ".join("?" * len(COLUMNS))
    execute(
        path,
        "DELETE FROM entry",
        *((f"INSERT INTO entry VALUES ({marks})", [row[name] for name in COLUMNS]) for row in rows),
    )


def another_value(chance: random.Random, value: Any) -> Any:
    """Another value of the same type, near or far."""
    if isinstance(value, int):
        return value + chance.choice([-1, 1, 7, 10**6, -(10**9)])
    place = chance.randrange(len(value) + 1)
    return chance.choice(
        [
            value[:place] + chance.choice(" xX0é{}\0") + value[place:],
            value[:place] + value[place + 1 :],
            value.upper(),
            value[::-1],
            "",
            f" {value}",
        ]
    )


def alter(chance: random.Random, path: Path, rows: Rows) -> None:
    row, name = chance.choice(rows), chance.choice(COLUMNS)
    row[name] = chance.choice([another_value(chance, row[name]), chance.choice(rows)[name]])
    if len({row["seq"] for row in rows}) == len(rows):
        rewrite(path, rows)


def alter_and_hash_anew(chance: random.Random, path: Path, rows: Rows) -> None:
    place = chance.randrange(len(rows))
    with AuditLog(path.with_name(path.name.removesuffix(".audit"))) as log:
        row = list(log.rows())[place]
    object.__setattr__(row, "allowed", row.allowed + 1)
    rows[place] |= {"allowed": row.allowed, "hash": row_hash(row)}
    rewrite(path, rows)


def drop(chance: random.Random, path: Path, rows: Rows) -> None:
    del rows[chance.randrange(len(rows))]
    rewrite(path, rows)


def drop_and_close_the_gap(chance: random.Random, path: Path, rows: Rows) -> None:
    del rows[chance.randrange(len(rows))]
    rewrite(path, [row | {"seq": number} for number, row in enumerate(rows, start=1)])


def reorder(chance: random.Random, path: Path, rows: Rows) -> None:
    first, second = chance.sample(range(len(rows)), 2)
    names = chance.choice([["seq"], ["seq", "previous"], ["time"], COLUMNS[1:-2], ["hash"]])
    for name in names:
        rows[first][name], rows[second][name] = rows[second][name], rows[first][name]
    rewrite(path, rows)


def insert(chance: random.Random, path: Path, rows: Rows) -> None:
    twin = dict(chance.choice(rows))
    place = chance.choice([0, -1, -(2**63), 2**63 - 1, len(rows) + 1, len(rows) + 2, None])
    if place is None:
        rows.insert(chance.randrange(len(rows) + 1), twin)
        rewrite(path, [row | {"seq": number} for number, row in enumerate(rows, start=1)])
    else:
        rewrite(path, [*rows, twin | {"seq": place}])


def truncate(chance: random.Random, path: Path, rows: Rows) -> None:
    remaining = rows[: chance.randrange(len(rows))]
    rewrite(path, remaining)
    # Half-hearted: the count or the hash is mended, and not both.
    mended = chance.choice(["none", "rows", "hash"])
    if mended == "rows":
        execute(path, ("UPDATE head SET rows = ?", [len(remaining)]))
    elif mended == "hash" and remaining:
        execute(path, ("UPDATE head SET hash = ?", [remaining[-1]["hash"]]))


def damage_head(chance: random.Random, path: Path, rows: Rows) -> None:
    name = chance.choice(["log_id", "rows", "hash", "mode", "query", "*", "twin"])
    if name == "*":
        execute(path, "DELETE FROM head")
    elif name == "twin":
        execute(path, "INSERT INTO head SELECT 2, log_id, rows, hash, mode, query FROM head")
    elif name == "mode":
        execute(path, ("UPDATE head SET mode = ?", [chance.choice(["off", "on", "x"])]))
    elif name == "query":
        execute(path, ("UPDATE head SET query = ?", [chance.choice(["off", "digest", ""])]))
    elif name == "rows":
        execute(path, ("UPDATE head SET rows = rows + ?", [chance.choice([-1, 1, 5])]))
    else:
        value = sqlite3.connect(path).execute(f"SELECT {name} FROM head").fetchone()[0]
        execute(path, (f"UPDATE head SET {name} = ?", [another_value(chance, value)]))


KINDS = (
    alter,
    alter_and_hash_anew,
    drop,
    drop_and_close_the_gap,
    reorder,
    insert,
    truncate,
    damage_head,
)


@pytest.fixture(scope="module")
def sound() -> Iterator[tuple[Path, Path]]:
    """A folder, and in it an audit with rows of several kinds."""
    with scratch_folder() as folder:
        chance = random.Random(7)
        with AuditLog(folder / "sound.db") as log:
            log.set(REQUIRED)
            for number in range(14):
                log.record(
                    entry(
                        chance.choice(["bot", "other", ""]),
                        kind=chance.choice(["retrieve", "get", "purge"]),
                        role="r" * number,
                        action="read",
                        query=f"task {number}",
                        bundle_digest=f"blake2b:{number}",
                        allowed=number,
                        blocked={"stale": number, "taint_blocked": 1},
                        details={"approved_by": "ada", "n": [number, None, True]},
                    )
                )
                if number == 6:
                    log.set(REQUIRED, {"by": "ada"})
            assert log.verify().ok
        yield folder, log.path


def found(path: Path, expect: str = "") -> bool:
    try:
        with AuditLog(path.with_name(path.name.removesuffix(".audit"))) as log:
            verification = log.verify(expect)
    except WrongFile:
        return True
    assert verification.ok == (verification.problem is None)
    assert bool(verification.head) == verification.ok
    return not verification.ok


@rounds(40, 10_000)
def test_every_random_tampering_is_found(sound: tuple[Path, Path], rounds: int) -> None:
    folder, path = sound
    before = dump(path)
    chance = random.Random(500)
    found_by_kind: dict[str, int] = {}
    copy = folder / "tampered.db.audit"
    while sum(found_by_kind.values()) < rounds:
        shutil.copy(path, copy)
        db = sqlite3.connect(copy)
        db.row_factory = sqlite3.Row
        rows = [dict(row) for row in db.execute("SELECT * FROM entry ORDER BY seq")]
        db.close()
        tamper = chance.choice(KINDS)
        tamper(chance, copy, rows)
        after = dump(copy)
        if after != before:
            assert found(copy), (tamper.__name__, sorted(set(after) ^ set(before)))
            found_by_kind[tamper.__name__] = found_by_kind.get(tamper.__name__, 0) + 1
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
    assert set(found_by_kind) == {kind.__name__ for kind in KINDS}
    assert min(found_by_kind.values()) > rounds // 50, found_by_kind


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_column_of_every_row_counts(sound: tuple[Path, Path], step: int) -> None:
    """Also where the text is another one for the same value. By default every fifth column."""
    folder, path = sound
    copy = folder / "column.db.audit"
    rows = sqlite3.connect(path).execute("SELECT * FROM entry ORDER BY seq").fetchall()
    for seq, *values in rows:
        # Other columns in each row.
        for name, value in list(zip(COLUMNS[1:], values, strict=True))[seq % step :: step]:
            changed_values = (
                [value + 1] if isinstance(value, int) else [f"{value} ", value + "0", "{}"]
            )
            if name in ("blocked", "details"):
                plain = json.loads(value)
                backwards = dict(sorted(plain.items(), reverse=True))
                changed_values += [json.dumps(plain), json.dumps(backwards, separators=(",", ":"))]
                changed_values += [
                    "[]",
                    "NaN",
                    "[" * 5000,
                    f'{{"x":1,{value[1:]}',
                    value.replace("1", "1.0"),
                ]
                changed_values += [value.replace("true", "1")]
            for another in changed_values:
                if another == value:
                    continue
                shutil.copy(path, copy)
                execute(copy, (f"UPDATE entry SET {name} = ? WHERE seq = ?", [another, seq]))
                assert found(copy), (seq, name, another)
                for suffix in ("", "-wal", "-shm"):
                    Path(f"{copy}{suffix}").unlink(missing_ok=True)


@rounds(20, 200)
def test_flipped_bits_are_found_or_change_nothing(sound: tuple[Path, Path], rounds: int) -> None:
    folder, path = sound
    with AuditLog(folder / "sound.db") as log:
        exported = list(log.export())
    content = path.read_bytes()
    chance = random.Random(12)
    unseen = 0
    for _ in range(rounds):
        copy = folder / "flipped.db.audit"
        flipped = bytearray(content)
        flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        copy.write_bytes(flipped)
        with AuditLog(folder / "flipped.db") as log:
            try:
                sound_still = log.verify().ok
                if sound_still:
                    assert list(log.export()) == exported
                    unseen += 1
            except RolebundleError as error:
                assert error.exit_code in (6, 7, 8)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
    assert unseen < rounds


def test_changed_tables_and_indexes_are_found(sound: tuple[Path, Path]) -> None:
    folder, path = sound
    copy = folder / "changed.db.audit"
    for statement in (
        "CREATE TABLE more (x)",
        "DROP INDEX entry_of_agent",
        "ALTER TABLE entry ADD COLUMN more TEXT",
        "CREATE VIEW v AS SELECT 1",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 9",
        "PRAGMA application_id = 0",
    ):
        shutil.copy(path, copy)
        execute(copy, statement)
        assert found(copy), statement


def test_a_rewritten_audit_is_found_by_a_head_that_was_saved_elsewhere(
    sound: tuple[Path, Path],
) -> None:
    """What the chain alone cannot prove, and what does."""
    folder, path = sound
    with AuditLog(folder / "sound.db") as log:
        head = log.verify().head
        earlier = next(f"{row.seq}:{row.hash}" for row in log.rows() if row.seq == 10)
    assert not found(path, head)
    assert not found(path, earlier), "rows that were added since are no flaw"
    copy = folder / "anew.db.audit"
    shutil.copy(path, copy)
    execute(
        copy,
        "DELETE FROM entry WHERE seq > 12",
        "UPDATE head SET rows = 12, hash = (SELECT hash FROM entry WHERE seq = 12)",
    )
    assert not found(copy), "the last rows cut off, and the head with them"
    assert found(copy, head)
    assert not found(copy, earlier), "nothing was done to the first ten"
    forged = folder / "forged.db.audit"
    with AuditLog(folder / "forged.db") as log:
        log.set(REQUIRED)
        for _ in range(20):
            log.record(entry())
    assert not found(forged)
    assert found(forged, head)
