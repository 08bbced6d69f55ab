"""Rows 5 and 7 for the audit: the chain holds."""

from itertools import count
from pathlib import Path

import apsw
import pytest

from rolebundle.contracts.policy import AuditEntry, AuditSettings
from rolebundle.errors import StorageError
from rolebundle.policy.audit import AuditLog, verify_audit
from support.corpora import scratch_folder
from support.faulty_file_system import shimmed_disk

REQUIRED = AuditSettings(mode="required", query="text")


def entry(number: int, agent: str = "bot") -> AuditEntry:
    return AuditEntry(kind="retrieve", agent=agent, query=f"task {number}", allowed=number)


def assert_acknowledged_rows(corpus: Path, reported: list[str]) -> int:
    """The chain verifies, and every row that was acknowledged is in it as it was acknowledged."""
    with AuditLog(corpus) as log:
        if not log.exists:
            assert reported == []
            return 0
        verification = verify_audit(log.path)
        assert verification.ok, verification
        hashes = {str(row.seq): row.hash for row in log.rows()}
        for line in reported:
            event, *fields = line.split()
            assert event == "begun" or hashes[fields[0]] == fields[1], "acknowledged, and lost"
        return verification.rows


@pytest.mark.parametrize(
    ("kind", "error"),
    [("write", apsw.FullError), ("write", apsw.IOError), ("sync", apsw.IOError)],
    ids=["full", "write", "sync"],
)
def test_a_disk_that_fails(kind: str, error: type[apsw.Error]) -> None:
    """Never acknowledged, reported in both modes, and the log goes on when there is room again."""
    failures = 0
    for nth in count(1):
        with scratch_folder() as folder:
            corpus = folder / "c.db"
            with AuditLog(corpus) as log:
                log.set(REQUIRED)
                acknowledged = [
                    f"row {row.seq} {row.hash}" for row in (log.record(entry(0))[0],) if row
                ]
            with shimmed_disk() as disk:
                log = AuditLog(corpus)
                disk.fail_at(kind, nth, error)
                failed = False
                try:
                    for number in range(3):
                        row = log.record(entry(number))[0]
                        assert row is not None
                        acknowledged.append(f"row {row.seq} {row.hash}")
                except StorageError as raised:
                    failed = True
                    assert (raised.code, raised.exit_code) == ("audit_unwritable", 6)
                disk.fail = None
                log.close()  # The faulty file system's files are held by one connection alone.
                log.set(AuditSettings(mode="on"))
                disk.fail_at(kind, 1, error)
                row, warning = log.record(entry(9))
                assert (row, bool(warning)) == (None, True)
                disk.fail = None
                row = log.record(entry(10))[0]
                assert row is not None
                acknowledged.append(f"row {row.seq} {row.hash}")
                log.close()
            assert_acknowledged_rows(corpus, acknowledged)
            failures += failed
            if not failed:
                break
    assert failures >= 3
