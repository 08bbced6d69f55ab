"""Files that are no audits, damaged ones, and kills of a collection: nothing collected is lost."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rolebundle.policy.audit_collection import CollectedLog, collect, collected_logs
from rolebundle.storage import collected_audits
from rolebundle.storage.location import collected_audits_path
from support.amounts import rounds
from support.collecting import NOW, collect_one, collected, execute, exported, stored_rows, write
from support.corpora import scratch_folder
from support.killing import Report, run_child

SIDECARS = ("-wal", "-shm", "-journal")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The publisher's corpus, which need not exist here."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "team.db"


@pytest.fixture
def replica(tmp_path: Path) -> Path:
    (tmp_path / "replica").mkdir()
    return tmp_path / "replica" / "r.db"


@pytest.fixture
def file(replica: Path) -> Path:
    """An audit of 12 rows."""
    return write(replica, 12)


# -- what is no audit ----------------------------------------------------------------------------


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _another_application(path: Path) -> None:
    execute(path, "CREATE TABLE entry (x)", "PRAGMA application_id = 7")


def _newer(path: Path) -> None:
    write(path.with_name(path.name.removesuffix(".audit")), 3)
    execute(path, "PRAGMA user_version = 2")


def _other_tables(path: Path) -> None:
    write(path.with_name(path.name.removesuffix(".audit")), 3)
    execute(path, "ALTER TABLE entry ADD COLUMN more INT AS (length(query)) VIRTUAL")


def _view(path: Path) -> None:
    write(path.with_name(path.name.removesuffix(".audit")), 3)
    execute(path, "ALTER TABLE entry RENAME TO e", "CREATE VIEW entry AS SELECT * FROM e")


def _no_head(path: Path) -> None:
    write(path.with_name(path.name.removesuffix(".audit")), 3)
    execute(path, "DELETE FROM head")


def _odd_id(path: Path) -> None:
    write(path.with_name(path.name.removesuffix(".audit")), 3)
    execute(path, "UPDATE head SET log_id = char(27) || '[2J'")


def _cut_off(path: Path) -> None:
    write(path.with_name(path.name.removesuffix(".audit")), 300)
    os.truncate(path, path.stat().st_size // 2)


NO_AUDITS: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: None,
    "empty": lambda path: path.touch(),
    "garbage": lambda path: path.write_bytes(b"\xff\x00SQLite" * 3000),
    "another application": _another_application,
    "newer": _newer,
    "other tables": _other_tables,
    "a view": _view,
    "no head": _no_head,
    "odd id": _odd_id,
    "cut off": _cut_off,
    "pipe": os.mkfifo,
    "loop": _loop,
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes and links")
@pytest.mark.parametrize("kind", NO_AUDITS)
def test_a_file_that_is_no_audit(home: Path, replica: Path, file: Path, kind: str) -> None:
    collect_one(home, file)
    before = stored_rows(home)
    other = replica.with_name("other.db.audit")
    NO_AUDITS[kind](other)
    report = collect_one(home, other)
    assert (report.state, report.log_id, report.rows) == ("unreadable", "", 0)
    assert stored_rows(home) == before
    # And where the sound one was.
    for suffix in ("", *SIDECARS):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    NO_AUDITS[kind](file)
    report = collect_one(home, file)
    assert (report.state, report.rows) == ("unreadable", 12)
    assert [log.state for log in collected_logs(home)] == ["unreadable"]
    assert stored_rows(home) == before


@rounds(10, 300)
def test_random_damage_of_the_file(home: Path, replica: Path, file: Path, rounds: int) -> None:
    """What is collected from a damaged file are rows that were written, and none is lost."""
    write(replica, 60)
    sound, content = exported(replica), file.read_bytes()
    chance = random.Random(23)
    damaged = replica.with_name("damaged.audit")
    known = False
    for number in range(rounds):
        if number % 10 == 0:
            collected_audits_path(home).unlink(missing_ok=True)
        changed = bytearray(content)
        if chance.random() < 0.3:
            del changed[chance.randrange(len(changed)) :]
        for _ in range(chance.choice([1, 20])):
            if changed:
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        damaged.write_bytes(changed)
        report = collect_one(home, damaged)
        if report.rows:
            known = True
            rows = collected(home, report.log_id)
            assert set(rows) <= set(sound), (number, report)
            assert len(rows) == report.rows
    assert known
    report = collect_one(home, file)
    assert report.state == "ok"
    assert collected(home, report.log_id) == sound


# -- kills ---------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@rounds(3, 30)
def test_kill_during_a_collection(rounds: int) -> None:
    """Each log has its old or its new rows, and the next collection completes."""
    chance = random.Random(9)
    with scratch_folder() as folder:
        replicas = [folder / "in" / f"{name}.db" for name in "ab"]
        replicas[0].parent.mkdir()
        for replica in replicas:
            write(replica, 100)
        old = {len(exported(replica)) for replica in replicas}
        between = 0
        for number in range(rounds):
            home = folder / f"home-{number}.db"
            seen = {0}
            if number % 2:
                collect(home, [folder / "in"], lambda: NOW)
                seen = set(old)
                for replica in replicas:
                    write(replica, 20)
            sizes = [len(exported(replica)) for replica in replicas]

            at_time = chance.uniform(0, 0.08) if number % 3 == 2 else None
            at_row = chance.randrange(1, 41) if at_time is None else -1

            def work(report: Report, home: Path = home, at_row: int = at_row) -> None:
                rows = count(1)

                def add_row(*values: Any) -> None:
                    if next(rows) == at_row:
                        os.kill(os.getpid(), signal.SIGKILL)
                    real_add_row(*values)

                real_add_row = collected_audits.add_row
                collected_audits.add_row = add_row
                collect(home, [folder / "in"], lambda: NOW)

            killed = run_child(work, at_time)
            between += killed.killed
            for log in collected_logs(home):
                assert log.state == "ok"
                assert log.rows in seen | set(sizes), (log, seen, sizes)
                with CollectedLog(home, log.log_id) as rows:
                    assert rows.verify().ok
            reports = collect(home, [folder / "in"], lambda: NOW)
            assert [(log.state, log.rows) for log in reports] == [("ok", size) for size in sizes]
            for report, replica in zip(reports, replicas, strict=True):
                assert collected(home, report.log_id) == exported(replica)
            assert not list(folder.glob("*.partial*"))
            old = set(sizes)
        assert between, "no run was killed"
