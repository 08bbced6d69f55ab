"""The audits of replicas come home: rows as they were, gaps and forks shown, nothing lost."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.audit import AuditEntry, AuditSettings
from rolebundle.errors import CorpusCorrupt, UsageError, WrongFile
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_collection import CollectedLog, collect, collected_logs
from rolebundle.storage.audits import audit
from rolebundle.storage.audits.audit import open_audit_writer, read_head, row_hash, seal
from rolebundle.storage.location import audit_path, collected_audits_path
from support import commands
from support.amounts import rounds
from support.collecting import NOW, collect_one, collected, execute, exported, stored_rows, write
from support.commands import Outcome, invoke
from support.corpora import build, document
from support.killing import Report, run_child

SIDECARS = ("-wal", "-shm", "-journal")
COLUMNS = (
    "seq time kind agent role action query bundle_digest allowed blocked details previous hash"
).split()


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


# -- sound audits --------------------------------------------------------------------------------


def test_rows_are_collected_unchanged_and_the_next_time_only_the_new_rows(
    home: Path, replica: Path, file: Path
) -> None:
    first = collect_one(home, file)
    assert (first.state, first.new_rows, first.rows) == ("ok", 12, 12)
    assert (first.source, first.collected_at) == (str(file), NOW)
    with AuditLog(replica) as log:
        rows = list(log.rows())
    assert (first.first_time, first.last_time) == (rows[0].time, rows[-1].time)
    second_report = collect_one(home, file)
    assert (second_report.state, second_report.new_rows, second_report.rows) == ("ok", 0, 12)
    write(replica, 3)
    more = collect_one(home, file)
    assert (more.state, more.new_rows, more.rows) == ("ok", 3, 15)
    assert collected(home, more.log_id) == exported(replica)
    with CollectedLog(home, more.log_id[:6]) as log, AuditLog(replica) as own:
        assert log.verify() == own.verify()
        assert log.row(7) == own.row(7)
        assert list(log.rows("bot", limit=2)) == list(own.rows("bot", limit=2))
        assert list(log.rows(newest=True, limit=3)) == list(own.rows(newest=True, limit=3))
    assert collected_logs(home) == [more.model_copy(update={"new_rows": 0})]


def test_several_audits_in_a_folder_and_its_folders(tmp_path: Path, home: Path) -> None:
    places = ["a.db", "ana/r.db", "bob/r.db", "bob/deep/r.db", ".stversions/r.db"]
    for number, place in enumerate(places):
        (home.parent / place).parent.mkdir(parents=True, exist_ok=True)
        write(home.parent / place, 2 + number)
    write(home, 9)  # The publisher's own audit is in the same folder.
    reports = collect(home, [home.parent], lambda: NOW)
    assert [(report.state, report.rows) for report in reports] == [("ok", 2), ("ok", 3), ("ok", 4)]
    assert {report.log_id for report in reports} == {log.log_id for log in collected_logs(home)}
    for report, place in zip(reports, places, strict=False):
        assert collected(home, report.log_id) == exported(home.parent / place)


def test_nothing_changes_beside_the_file_also_if_its_log_is_there(
    home: Path, replica: Path, file: Path
) -> None:
    with open_audit_writer(file) as open_file:
        open_file.run("BEGIN IMMEDIATE")
        entry = AuditEntry(kind="get")
        audit._insert(open_file, seal(entry, read_head(open_file), NOW))
        open_file.run("COMMIT")
        arrived = replica.parent.with_name("came")
        arrived.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{file}{suffix}", arrived)
    before = {path.name: path.read_bytes() for path in arrived.iterdir()}
    assert len(before["r.db.audit-wal"]) > 0
    report = collect_one(home, arrived / file.name)
    assert (report.state, report.rows) == ("ok", 13)
    assert {path.name: path.read_bytes() for path in arrived.iterdir()} == before


def test_an_audit_that_is_being_written(home: Path, replica: Path, file: Path) -> None:
    with AuditLog(replica) as log:
        for number in range(3):
            assert log.record(AuditEntry(kind="get")).row is not None
            report = collect_one(home, file)
            assert (report.state, report.rows) == ("ok", 13 + number)


@pytest.mark.skipif(sys.platform != "linux", reason="permissions as Linux has them")
def test_a_folder_that_may_only_be_read(home: Path, replica: Path) -> None:
    write(replica, 4)

    def work(report: Report) -> None:
        commands._drop_permission_override()
        for log in collect(home, [replica.parent], lambda: NOW):
            report(f"{log.state} {log.rows}")

    try:
        for mode, expected in ((0o555, "ok 4"), (0o000, "unreadable 0")):
            replica.parent.chmod(mode)
            assert run_child(work).reported == [expected]
    finally:
        replica.parent.chmod(0o755)


# -- what is not as it was -----------------------------------------------------------------------


def test_a_gap_is_shown_and_can_be_filled_later(home: Path, replica: Path, file: Path) -> None:
    complete = replica.with_name("whole")
    shutil.copy(file, complete)
    execute(file, "DELETE FROM entry WHERE seq < 6")
    report = collect_one(home, file)
    assert (report.state, report.rows) == ("gap", 7)
    assert report.problem is not None
    assert report.problem.seq == 1
    with CollectedLog(home, report.log_id) as log:
        problem = log.verify().problem
        assert problem is not None
        assert (problem.code, problem.seq) == ("row_missing", 1)
    write(replica, 2)
    assert [(r.state, r.new_rows) for r in (collect_one(home, file),)] == [("gap", 2)]
    filled = collect_one(home, complete)
    # The file that was found last ends before the rows of the other one.
    assert (filled.state, filled.new_rows, filled.rows) == ("shortened", 5, 14)
    with CollectedLog(home, report.log_id) as log:
        assert log.verify().ok


def test_a_gap_between_two_collections(home: Path, replica: Path, file: Path) -> None:
    collect_one(home, file)
    write(replica, 8)
    execute(file, "DELETE FROM entry WHERE seq < 16")
    report = collect_one(home, file)
    assert (report.state, report.new_rows, report.rows) == ("gap", 5, 17)
    assert report.problem is not None
    assert report.problem.seq == 13


def test_rows_that_were_collected_and_are_gone(home: Path, replica: Path, file: Path) -> None:
    early = replica.with_name("early")
    shutil.copy(file, early)
    write(replica, 5)
    rows = collect_one(home, file).rows
    report = collect_one(home, early)
    assert (report.state, report.new_rows, report.rows) == ("shortened", 0, rows)
    execute(file, "DELETE FROM entry WHERE seq < 9")
    report = collect_one(home, file)
    assert (report.state, report.rows) == ("shortened", rows), "the beginning is gone"
    write(replica, 2)
    report = collect_one(home, file)
    assert (report.state, report.new_rows) == ("shortened", 2), "and its new rows come home"
    with CollectedLog(home, report.log_id) as log:
        assert log.verify().ok


@pytest.mark.parametrize(("rows", "forked_rows"), [(1, 1), (1, 5), (5, 2), (5, 9)])
def test_a_fork_is_shown_and_changes_nothing(
    home: Path, replica: Path, file: Path, rows: int, forked_rows: int
) -> None:
    fork = replica.with_name("fork.db")
    shutil.copy(file, audit_path(fork))
    write(replica, rows)
    write(fork, forked_rows, agent="other")
    report = collect_one(home, file)
    before = stored_rows(home)
    forked = collect_one(home, audit_path(fork))
    assert (forked.state, forked.new_rows, forked.log_id) == ("changed", 0, report.log_id)
    assert forked.problem is not None
    assert forked.problem.seq == 13
    assert stored_rows(home) == before
    assert collect_one(home, file).state == "ok"


def test_a_fork_in_a_gap(home: Path, replica: Path, file: Path) -> None:
    fork = replica.with_name("fork.db")
    shutil.copy(file, audit_path(fork))
    write(replica, 5)
    execute(file, "DELETE FROM entry WHERE seq < 15")
    assert collect_one(home, file).state == "gap"
    write(fork, 2, agent="other")
    report = collect_one(home, audit_path(fork))
    # Row 14 of the fork is not the one before the collected row 15.
    assert report.state == "changed"
    assert report.problem is not None
    assert (report.problem.seq, report.new_rows) == (14, 13)


def altered(column: str) -> str:
    values = {"seq": "99", "allowed": "allowed + 1", "blocked": "'{}'", "details": "'{}'"}
    value = values.get(column, f"{column} || 'x'")
    return f"UPDATE entry SET {column} = {value} WHERE seq = 7"


@pytest.mark.parametrize("before", [0, 4, 12])
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.sample(3)
def test_a_chain_that_breaks(
    home: Path, replica: Path, file: Path, column: str, before: int
) -> None:
    """Each column of a row: only the rows before it come home, what was collected stays."""
    write(replica, 0)
    sound = exported(replica)
    if before:
        early = replica.with_name("early.db")
        write(early, 1)
        shutil.copy(file, audit_path(early))
        execute(
            audit_path(early),
            f"DELETE FROM entry WHERE seq > {before}",
            f"UPDATE head SET rows = {before}, hash = (SELECT hash FROM entry WHERE seq = {before})",
        )
        assert collect_one(home, audit_path(early)).rows == before
    execute(file, altered(column))
    report = collect_one(home, file)
    assert report.state == "broken"
    assert report.problem is not None
    assert report.problem.seq == 7
    assert report.rows == max(6, before)
    assert collected(home, report.log_id) == sound[: report.rows]


def test_a_row_that_was_altered_and_hashed_again(home: Path, replica: Path, file: Path) -> None:
    report = collect_one(home, file)
    with AuditLog(replica) as log:
        row = log.row(7)
    forged = row.model_copy(update={"allowed": 77})
    execute(file, f"UPDATE entry SET allowed = 77, hash = '{row_hash(forged)}' WHERE seq = 7")
    before = stored_rows(home)
    report = collect_one(home, file)
    assert report.state == "changed"
    assert stored_rows(home) == before


def test_an_id_without_a_row_is_not_kept(home: Path, file: Path) -> None:
    execute(file, f"UPDATE head SET log_id = '{'a' * 32}'")
    report = collect_one(home, file)
    assert (report.state, report.rows) == ("broken", 0)
    assert collected_logs(home) == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DELETE FROM entry WHERE seq > 8", "head_differs"),
        ("DELETE FROM entry WHERE seq = 8", "row_missing"),
        ("UPDATE head SET rows = 11", "head_differs"),
        ("UPDATE head SET mode = 'off'", "settings_differ"),
        ("UPDATE entry SET seq = 0 WHERE seq = 1", "row_inserted"),
    ],
)
def test_other_damage_that_verify_finds(home: Path, file: Path, statement: str, code: str) -> None:
    execute(file, statement)
    report = collect_one(home, file)
    assert report.state == "broken"
    assert report.problem is not None
    assert report.problem.code == code


# -- hostile rows --------------------------------------------------------------------------------


def forge(file: Path, **fields: Any) -> None:
    """Add a row as no rolebundle writes it, with the right hashes."""
    with open_audit_writer(file) as log, log.writing():
        row = seal(AuditEntry(kind="get"), read_head(log), NOW).model_copy(update=fields)
        audit._insert(log, row.model_copy(update={"hash": row_hash(row)}))


def test_rows_with_control_characters_are_printed_safely(home: Path, file: Path) -> None:
    make_corpus(home)
    evil = "\x1b[2J\x07\u202e\r\nok"
    forge(
        file, time=evil, kind=evil, agent=evil, query=evil, details={evil: evil}, blocked={evil: 1}
    )
    outcome = invoke("policy", "audit", "collect", file, "--db", home)
    assert outcome.code == 0
    log_id = outcome.out.split()[1]
    outputs = [outcome.out]
    for arguments in (("list",), ("show", "13"), ("export",), ("verify",)):
        read = invoke("policy", "audit", *arguments, "--collected", log_id[:8], "--db", home)
        assert read.code == 0
        outputs += [read.out, read.err]
    for output in outputs:
        assert all(line.isprintable() for line in output.split("\n")), output


def test_a_row_that_is_too_long_ends_what_is_read(home: Path, replica: Path, file: Path) -> None:
    forge(file, query="x" * 3_000_000)
    report = collect_one(home, file)
    assert (report.state, report.rows) == ("broken", 0)
    assert collected_audits_path(home).stat().st_size < 1_000_000


def test_a_row_with_the_highest_number(home: Path, file: Path) -> None:
    execute(file, "DELETE FROM entry")
    forge(file, seq=2**63 - 1)
    report = collect_one(home, file)
    assert (report.state, report.rows) == ("gap", 1)
    assert collect_one(home, file).state == "gap"


# -- the collection itself -----------------------------------------------------------------------


def test_a_collection_that_cannot_be_used_is_not_changed(home: Path, file: Path) -> None:
    path = collected_audits_path(home)
    for content, error in ((b"not a database" * 100, CorpusCorrupt), (b"", CorpusCorrupt)):
        path.write_bytes(content)
        with pytest.raises(error) as refused:
            collect_one(home, file)
        assert refused.value.code == "collection_damaged"
        assert path.read_bytes() == content
        path.unlink()
    shutil.copy(file, path)
    with pytest.raises(WrongFile):
        collect_one(home, file)
    path.unlink()
    collect_one(home, file)
    execute(path, "UPDATE log SET state = 'fine'")
    with pytest.raises(CorpusCorrupt):
        collected_logs(home)


def test_a_changed_row_of_the_collection_is_found(home: Path, file: Path) -> None:
    log_id = collect_one(home, file).log_id
    execute(collected_audits_path(home), "UPDATE collected SET query = 'other' WHERE seq = 5")
    with CollectedLog(home, log_id) as log:
        problem = log.verify().problem
    assert problem is not None
    assert (problem.code, problem.seq) == ("row_altered", 5)


def test_a_log_is_named_by_the_beginning_of_its_id(home: Path, replica: Path, file: Path) -> None:
    with pytest.raises(UsageError) as none:
        CollectedLog(home, "ab")
    assert none.value.code == "no_collection"
    log_id = collect_one(home, file).log_id
    collect_one(home, write(replica.with_name("second.db"), 2))
    for name in ("", "x", "' OR 1 --", "%"):
        with pytest.raises(UsageError) as unknown:
            CollectedLog(home, name)
        assert unknown.value.code == "no_such_log"
    assert CollectedLog(home, log_id).log_id == log_id


# -- what is no audit ----------------------------------------------------------------------------


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _another_application(path: Path) -> None:
    execute(path, "CREATE TABLE entry (x)", "PRAGMA application_id = 7")


def _changed(*statements: str) -> Callable[[Path], None]:
    """Writes an audit and then changes it."""

    def change(path: Path) -> None:
        write(path.with_name(path.name.removesuffix(".audit")), 3)
        execute(path, *statements)

    return change


def _cut_off(path: Path) -> None:
    write(path.with_name(path.name.removesuffix(".audit")), 300)
    os.truncate(path, path.stat().st_size // 2)


NO_AUDITS: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: None,
    "empty": lambda path: path.touch(),
    "garbage": lambda path: path.write_bytes(b"\xff\x00SQLite" * 3000),
    "another application": _another_application,
    "newer": _changed("PRAGMA user_version = 2"),
    "other tables": _changed("ALTER TABLE entry ADD COLUMN more INT AS (length(query)) VIRTUAL"),
    "a view": _changed("ALTER TABLE entry RENAME TO e", "CREATE VIEW entry AS SELECT * FROM e"),
    "no head": _changed("DELETE FROM head"),
    "odd id": _changed("UPDATE head SET log_id = char(27) || '[2J'"),
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
    foreign = replica.with_name("other.db.audit")
    NO_AUDITS[kind](foreign)
    report = collect_one(home, foreign)
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


# -- the command line ----------------------------------------------------------------------------


def make_corpus(home: Path) -> None:
    build(home.parent, [document("a", ["the token"])], name=home.name)


def test_the_command(home: Path, replica: Path, file: Path) -> None:
    def at(*arguments: str | Path) -> Outcome:
        return invoke("policy", "audit", *arguments, "--db", home)

    assert at("collect", file).code == 2, "there is no corpus"
    make_corpus(home)
    assert (at("collect").code, at("collect").err) == (0, "no audit was collected\n")
    assert at("set", "on").code == 0
    shutil.copy(home, replica)  # SOURCE may be a replica: its audit is beside it.
    outcome = at("collect", replica, "--json")
    (log,) = outcome.json()["logs"]
    assert (outcome.code, log["state"], log["new_rows"]) == (0, "ok", 12)
    assert at("collect", file, "--json").json()["logs"][0]["new_rows"] == 0
    bad = at("collect", file, replica.parent / "none")
    assert bad.code == 7
    assert "collected_audits_flawed" in bad.err and "that can be read" in bad.err
    assert [line.split()[0] for line in bad.out.splitlines()] == ["ok", "unreadable", "there"]
    listed = at("collect")
    assert (listed.code, listed.out.split()[:2]) == (0, ["ok", log["log_id"]])
    name = log["log_id"][:5]
    assert len(at("list", "--collected", name).out.splitlines()) == 12
    assert at("verify", "--collected", name).out.startswith("12:")
    assert at("verify", "--collected", name, "--expect", f"12:{'0' * 64}").code == 7
    assert at("verify", "--collected", "zz").code == 2
    with AuditLog(home) as own:
        rows = [row.details for row in own.rows(kind="collect")]
        assert own.verify().ok
    assert rows[:3] == [
        {"logs": 1, "rows": 12, "flawed": 0},
        {"logs": 1, "rows": 0, "flawed": 0},
        {"logs": 1, "rows": 0, "flawed": 1},
    ]


def test_settings_of_a_replica_stay_as_its_audit_recorded_them(home: Path, replica: Path) -> None:
    file = write(replica, 3)
    with AuditLog(replica) as log:
        log.set(AuditSettings(mode="on", query="digest"))
    log_id = collect_one(home, file).log_id
    with CollectedLog(home, log_id) as log:
        assert [row.details["query"] for row in log.rows(kind="settings")] == ["text", "digest"]
