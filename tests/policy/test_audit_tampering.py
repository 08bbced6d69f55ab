"""No row of the audit is altered, dropped, moved or put in unseen; and what only a head shows."""

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.policy import AuditEntry, AuditSettings
from rolebundle.errors import WrongFile
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_check import verify_audit
from rolebundle.storage.audit import row_hash
from support.corpora import scratch_folder

REQUIRED = AuditSettings(mode="required", query="text")
COLUMNS = (
    "time kind agent role action query bundle_digest allowed blocked details previous hash"
).split()


def entry(agent: str = "bot", **fields: Any) -> AuditEntry:
    return AuditEntry(**({"kind": "retrieve", "agent": agent, "query": "a task"} | fields))


def execute(path: Path, *statements: str | tuple[str, Any]) -> None:
    with sqlite3.connect(path) as db:
        # Who tampers is not held up by a check.
        db.execute("PRAGMA ignore_check_constraints = 1")
        for statement in statements:
            db.execute(*((statement,) if isinstance(statement, str) else statement))
    db.close()


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
            assert verify_audit(log.path).ok
        yield folder, log.path


def found(path: Path, expect: str = "") -> bool:
    try:
        with AuditLog(path.with_name(path.name.removesuffix(".audit"))) as log:
            verification = verify_audit(log.path, expect)
    except WrongFile:
        return True
    assert verification.ok == (verification.problem is None)
    assert bool(verification.head) == verification.ok
    return not verification.ok


def found_after(sound: tuple[Path, Path], *statements: str | tuple[str, Any]) -> bool:
    """Whether these changes to a copy of the audit are found."""
    folder, path = sound
    copy = folder / "changed.db.audit"
    shutil.copy(path, copy)
    execute(copy, *statements)
    result = found(copy)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
    return result


_TWIN = f"INSERT INTO entry SELECT {{}}, {', '.join(COLUMNS)} FROM entry WHERE seq = 5"
_CLOSED = "UPDATE entry SET seq = seq - 1 WHERE seq > 4"
_HEAD = "UPDATE head SET rows = 12"


@pytest.mark.parametrize(
    "statements",
    [
        *(f"DELETE FROM entry WHERE seq {which}" for which in ("= 1", "= 9", "= 16", "> 0")),
        f"DELETE FROM entry WHERE seq = 4; {_CLOSED}",
        f"DELETE FROM entry WHERE seq > 12; {_HEAD}",
        "DELETE FROM entry WHERE seq > 12; "
        "UPDATE head SET hash = (SELECT hash FROM entry WHERE seq = 12)",
        *(_TWIN.format(place) for place in (0, -1, -(2**63), 2**63 - 1, 17, 18)),
        *(
            f"UPDATE entry SET {name} = (SELECT e.{name} FROM entry e WHERE e.seq = 11 - entry.seq) "
            "WHERE seq IN (5, 6)"
            for name in ("query", "previous", "hash")
        ),
        "UPDATE entry SET seq = -1 WHERE seq = 5; UPDATE entry SET seq = 5 WHERE seq = 6; "
        "UPDATE entry SET seq = 6 WHERE seq = -1",
        "DELETE FROM head",
        "INSERT INTO head SELECT 2, log_id, rows, hash, mode, query FROM head",
        *(f"UPDATE head SET mode = '{mode}'" for mode in ("off", "on", "x")),
        *(f"UPDATE head SET query = '{query}'" for query in ("off", "digest", "")),
        *(f"UPDATE head SET rows = rows + {more}" for more in (-1, 1, 5)),
        *(f"UPDATE head SET {name} = {name} || 'x'" for name in ("log_id", "hash")),
        "CREATE TABLE more (x)",
        "DROP INDEX entry_of_agent",
        "ALTER TABLE entry ADD COLUMN more TEXT",
        "CREATE VIEW v AS SELECT 1",
        *(f"PRAGMA {change}" for change in ("user_version = 0", "user_version = 9", "application_id = 0")),
    ],
)  # fmt: skip
def test_every_tampering_is_found(sound: tuple[Path, Path], statements: str) -> None:
    assert found_after(sound, *statements.split("; "))


def test_a_row_that_is_hashed_anew_does_not_fit_the_next(sound: tuple[Path, Path]) -> None:
    with AuditLog(sound[0] / "sound.db") as log:
        row = list(log.rows())[8]
    object.__setattr__(row, "allowed", row.allowed + 1)
    change = "UPDATE entry SET allowed = ?, hash = ? WHERE seq = 9"
    assert found_after(sound, (change, [row.allowed, row_hash(row)]))


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_column_of_every_row_counts(sound: tuple[Path, Path], step: int) -> None:
    """Also where the text is another one for the same value. By default every fifth column."""
    rows = sqlite3.connect(sound[1]).execute("SELECT * FROM entry ORDER BY seq").fetchall()
    for seq, *values in rows:
        # Other columns in each row.
        for name, value in list(zip(COLUMNS, values, strict=True))[seq % step :: step]:
            changed = [value + 1] if isinstance(value, int) else [f"{value} ", value + "0", "{}"]
            if name in ("blocked", "details"):
                plain = json.loads(value)
                backwards = dict(sorted(plain.items(), reverse=True))
                changed += [json.dumps(plain), json.dumps(backwards, separators=(",", ":"))]
                changed += ["[]", "NaN", "[" * 5000, f'{{"x":1,{value[1:]}']
                changed += [value.replace("1", "1.0"), value.replace("true", "1")]
            for another in changed:
                change = f"UPDATE entry SET {name} = ? WHERE seq = ?", [another, seq]
                assert another == value or found_after(sound, change), (seq, name, another)


def test_a_rewritten_audit_is_found_by_a_head_that_was_saved_elsewhere(
    sound: tuple[Path, Path],
) -> None:
    """What the chain alone cannot prove, and what does."""
    folder, path = sound
    with AuditLog(folder / "sound.db") as log:
        head = verify_audit(log.path).head
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
