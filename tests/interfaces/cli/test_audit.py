"""`rolebundle policy audit`: data to standard output, messages to standard error, exit codes."""

import sqlite3
from pathlib import Path

import pytest

from rolebundle.contracts.policy import AuditEntry
from rolebundle.policy.audit import AuditLog
from support.commands import Outcome, invoke


@pytest.fixture
def db(sample_db: Path) -> Path:
    """A corpus with an audit: the settings, then two rows of two agents, then one of nobody's."""
    assert invoke("policy", "audit", "set", "on", "--query", "text", "--db", sample_db).code == 0
    with AuditLog(sample_db) as log:
        for agent in ("bot", "other"):
            log.record(
                AuditEntry(
                    kind="retrieve",
                    agent=agent,
                    role="mossline-security-reviewer",
                    action="read",
                    query=f"what {agent} asked \x1b[31m\ud800",
                    bundle_digest="blake2b:0",
                    allowed=3,
                    blocked={"stale": 2, "forbidden_source": 5},
                    details={"approved_by": "ada"},
                )
            )
        log.record(AuditEntry(kind="ingest", details={"added": 4}))
    return sample_db


def audit(db: Path, *arguments: str) -> Outcome:
    outcome = invoke("policy", "audit", *arguments, "--db", db)
    assert "Traceback" not in outcome.err
    assert "[internal]" not in outcome.err
    assert ("next:" in outcome.err) == bool(outcome.code)
    return outcome


def test_list(db: Path) -> None:
    listed = audit(db, "list")
    lines = listed.out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["seq 1", "seq 2", "seq 3", "seq 4"]
    assert "agent bot, role mossline-security-reviewer, action read" in lines[1]
    assert "allowed 3, blocked (forbidden_source 5, stale 2)" in lines[1]
    assert "details (added 4)" in lines[3]
    assert "\x1b" not in listed.out
    assert listed.err == ""
    assert len(audit(db, "list", "--limit", "2").out.splitlines()) == 2
    outcome = audit(db, "list", "--agent", "nobody")
    assert (outcome.code, outcome.out, bool(outcome.err)) == (0, "", True)


def test_verify(db: Path) -> None:
    sound = audit(db, "verify")
    head = sound.out.strip()
    assert head.startswith("4:")
    assert "4 rows" in sound.err
    assert "as expected" in audit(db, "verify", "--expect", head).err
    assert audit(db, "verify", "--expect", "nonsense").code == 2
    assert audit(db, "verify", "--expect", "3:" + "0" * 64).code == 7


def test_set(sample_db: Path) -> None:
    assert audit(sample_db, "set").out == "mode: off\nquery: digest\n"
    assert not Path(f"{sample_db}.audit").exists()
    outcome = audit(sample_db, "set", "required", "--json")
    assert outcome.json() == {"mode": "required", "query": "digest"}
    assert audit(sample_db, "set", "--query", "off").out == "mode: required\nquery: off\n"
    assert audit(sample_db, "set").out == "mode: required\nquery: off\n"
    assert [row["kind"] for row in audit(sample_db, "list", "--json").json()["rows"]] == [
        "settings"
    ] * 2


def test_without_an_audit(sample_db: Path) -> None:
    for command in (["list"], ["verify"], ["export"], ["list", "--agent", "bot"]):
        refused = audit(sample_db, *command)
        assert (refused.code, refused.out) == (2, "")
        assert "[audit_missing]" in refused.err


def test_another_applications_file(sample_db: Path) -> None:
    path = Path(f"{sample_db}.audit")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE entry (x)")
    connection.close()
    before = path.read_bytes()
    for command in (["list"], ["verify"], ["set", "on"], ["set"]):
        assert audit(sample_db, *command).code == 8
    assert path.read_bytes() == before
