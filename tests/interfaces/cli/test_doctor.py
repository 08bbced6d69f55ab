"""`doctor`: each check finds what it is for, and none changes a byte."""

import shutil
import sys
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from rolebundle.contracts.upkeep import DoctorReport
from rolebundle.storage.file import audit_path, published_folder
from rolebundle.storage.writing import open_writer
from rolebundle.system import IS_UNIX
from support.commands import invoke, invoke_as_a_common_user
from support.templates import Template

Snapshot = dict[str, tuple[int, int, str]]


def make(folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("# A\n\nThe token.\n", encoding="utf-8")
    (folder / "notes" / "b.md").write_text("# B\n\nThe key.\n", encoding="utf-8")
    (folder / "store").mkdir()
    db = folder / "store" / "c.db"
    assert invoke("ingest", folder / "notes", "--lexical-only", "--db", db).code == 0
    assert invoke("policy", "audit", "set", "on", "--db", db).code == 0


@pytest.fixture
def tree(template: Template) -> Path:
    return template.put_back() / "notes"


@pytest.fixture
def db(tree: Path) -> Path:
    return tree.with_name("store") / "c.db"


def snapshot(folder: Path) -> Snapshot:
    """Every file of a folder with its time, mode and hash."""
    return {
        path.name: (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            sha256(path.read_bytes()).hexdigest(),
        )
        for path in folder.iterdir()
        if path.is_file()
    }


def doctor_report(db: Path, code: int = 0) -> DoctorReport:
    """The report; nothing in the folder may have changed."""
    before = snapshot(db.parent), db.parent.stat().st_mtime_ns
    outcome = invoke("corpus", "doctor", "--json", "--db", db)
    assert (snapshot(db.parent), db.parent.stat().st_mtime_ns) == before
    assert outcome.code == code, outcome
    report = DoctorReport.model_validate_json(outcome.out)
    assert report.sound == (code == 0)
    return report


def states(report: DoctorReport) -> dict[str, str]:
    return {check.name: check.state for check in report.checks}


def finding(report: DoctorReport, name: str, state: str = "warning") -> tuple[str, str]:
    """The message and remedy of the only check that is not ok."""
    [check] = [check for check in report.checks if check.state != "ok"]
    assert (check.name, check.state) == (name, state)
    assert check.remedy
    return check.message, check.remedy


def raw(db: Path, *statements: str) -> None:
    connection = apsw.Connection(str(db))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.skipif(not IS_UNIX, reason="needs permissions of files")
def test_a_sound_corpus(db: Path) -> None:
    report = doctor_report(db)
    assert states(report) == dict.fromkeys(
        ["permissions", "copies", "content", "policy", "purges", "audit"],
        "ok",
    )  # fmt: skip
    text = invoke("corpus", "doctor", "--db", db)
    location, sound, *checks = text.out.splitlines()
    assert (location, sound) == (f"location: {report.location}", "sound: yes")
    assert checks == [
        f"checks: name {check.name}, state ok, message {check.message}" for check in report.checks
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="permissions as Linux has them")
@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_read_only_file_or_folder(db: Path, place: str) -> None:
    for file in db.parent.iterdir():
        file.chmod(0o444)
    if place == "folder":
        db.parent.chmod(0o555)
    before = snapshot(db.parent)
    outcome = invoke_as_a_common_user("corpus", "doctor", "--db", db)
    assert outcome.code == 0, outcome
    assert "checks: name content, state ok, " in outcome.out
    assert snapshot(db.parent) == before
    db.parent.chmod(0o755)


@pytest.mark.skipif(not IS_UNIX, reason="needs permissions of files")
def test_files_that_others_may_open(db: Path) -> None:
    published_folder(db).mkdir(mode=0o750)
    for file in (db, audit_path(db)):
        file.chmod(0o640)
    message, remedy = finding(doctor_report(db), "permissions")
    assert message == "other users may open c.db, c.db.audit, c.db.published"
    assert remedy == f"chmod go= {db} {audit_path(db)} {published_folder(db)}"


def test_older_copies(db: Path) -> None:
    for name in ("c.db.schema-6.bak", "c.db.damaged-20261101-000000"):
        shutil.copy(db, db.with_name(name))
    message, remedy = finding(doctor_report(db), "copies")
    assert "c.db.damaged-20261101-000000, c.db.schema-6.bak" in message
    assert "purge --backups" in remedy


def test_a_policy_file_that_changed(db: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"agents": {"ada": {"scopes": ["*"], "access_level": "internal"}}}')
    assert invoke("policy", "set", policy, "--db", db).code == 0
    doctor_report(db)
    policy.write_text("{}")
    message, remedy = finding(doctor_report(db), "policy")
    assert "every agent is denied" in message
    assert "policy set" in remedy


def test_a_pending_purge(db: Path) -> None:
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("INSERT INTO purge VALUES ('r', '2026-11-01T00:00:00Z', 1, 1, 1, 'erased')")
    assert finding(doctor_report(db), "purges")[1] == "rolebundle corpus purge"


def test_a_tampered_audit(db: Path) -> None:
    raw(audit_path(db), "UPDATE entry SET agent = 'mallory'")
    assert "row 1 is not what was written" in finding(doctor_report(db, 7), "audit", "problem")[0]


def test_an_unexpected_error_names_the_doctor(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rolebundle.doctor.examine", fail)
    outcome = invoke("corpus", "doctor", "--db", db)
    assert outcome.code == 1
    assert "[internal]" in outcome.err
    assert "rolebundle corpus doctor" in outcome.err
