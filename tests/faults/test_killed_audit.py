"""Rows 5 and 7 for the audit: the chain holds."""

from itertools import count

import apsw
import pytest

from rolebundle.contracts.policy import AuditSettings
from rolebundle.errors import StorageError
from rolebundle.policy.audit import AuditLog
from support.corpora import scratch_folder
from support.faulty_file_system import shimmed_disk
from support.operations import assert_acknowledged_rows, audit_entry, reported_row


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
                log.set(AuditSettings(mode="required", query="text"))
                acknowledged = [reported_row(log, 0)]
            with shimmed_disk() as disk:
                log = AuditLog(corpus)
                disk.fail_at(kind, nth, error)
                failed = False
                try:
                    acknowledged += (reported_row(log, number) for number in range(3))
                except StorageError as raised:
                    failed = True
                    assert (raised.code, raised.exit_code) == ("audit_unwritable", 6)
                disk.fail = None
                log.close()  # The faulty file system's files are held by one connection alone.
                log.set(AuditSettings(mode="on"))
                disk.fail_at(kind, 1, error)
                record = log.record(audit_entry(9))
                assert (record.row, bool(record.warning)) == (None, True)
                disk.fail = None
                acknowledged.append(reported_row(log, 10))
                log.close()
            assert_acknowledged_rows(corpus, acknowledged)
            failures += failed
            if not failed:
                break
    assert failures >= 3
