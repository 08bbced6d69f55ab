"""Whether the rows of an audit are those that were written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rolebundle.contracts.policy import AuditProblem, AuditVerification
from rolebundle.errors import CorpusCorrupt, UsageError
from rolebundle.storage import audit
from rolebundle.storage.audit import Head, genesis_hash, open_audit_reader, row_hash
from rolebundle.storage.sqlite import SqliteFile
from rolebundle.text.words import counted


def verify_audit(path: Path, expect: str = "") -> AuditVerification:
    """Compare every row, the chain between them, the head and the settings.

    Args:
        path: the audit's file.
        expect: the head of an earlier time, as ``seq:hash``.

    Raises:
        UsageError: there is no audit, or ``expect`` is not a head.
        WrongFile, StorageError: it cannot be read.
    """
    last, last_hash, has_expected = 0, "", not expect
    settings: Mapping[str, Any] = {}
    problem: AuditProblem | None = None
    try:
        # One snapshot: rows that are written meanwhile are not part of it, and do not wait.
        with open_audit_reader(path) as log, log.reading():
            head = audit.read_head(log)
            expected = _parse_head(expect)
            last_hash = genesis_hash(head.log_id)
            for row in audit.read_rows(log):
                number = last + 1
                written = row.seq == number and row.previous == last_hash
                if not written or row_hash(row) != row.hash:
                    message = f"row {number} is not what was written: it was altered, or rows "
                    message += "were removed, moved or put in"
                    problem = AuditProblem(code="row_altered", seq=number, message=message)
                    break
                last, last_hash = row.seq, row.hash
                settings = row.details if row.kind == "settings" else settings
                has_expected = has_expected or (row.seq, row.hash) == expected
            if problem is None:
                problem = _end_problem(log, head, last, last_hash, settings)
            if problem is None and not has_expected:
                problem = _expected_problem(expected[0], last)
    except CorpusCorrupt as error:
        message = error.message.removeprefix(f"{path}: ")
        problem = AuditProblem(code="file_damaged", message=message)
    if problem is not None:
        return AuditVerification(ok=False, rows=last, expected=expect, problem=problem)
    return AuditVerification(ok=True, rows=last, head=f"{last}:{last_hash}", expected=expect)


def _parse_head(expect: str) -> tuple[int, str]:
    seq, _, digest = expect.partition(":")
    if not expect:
        return 0, ""
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19 and len(digest) == 64):
        step = "give SEQ:HASH as `rolebundle policy audit verify` printed it"
        raise UsageError("bad_head", f"{expect[:100]!r} is not the head of an audit", step)
    return int(seq), digest


def _end_problem(
    log: SqliteFile, head: Head, last: int, last_hash: str, settings: Mapping[str, Any]
) -> AuditProblem | None:
    """Check that the last row is the end of the audit, and that nothing else is in the file.

    Args:
        log: the audit.
        head: what the file says of its end.
        last: the number of the last row.
        last_hash: its hash.
        settings: the details of the last row that set the settings.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    if (head.rows, head.hash) != (last, last_hash):
        kind = "rows were cut off" if head.rows > last else "rows or the head were replaced"
        named = counted(head.rows, "row")
        message = f"the head names {named}, and there are {last}: {kind} at the end"
        return AuditProblem(code="head_differs", seq=last, message=message)
    if audit.count_rows(log) != last:
        return AuditProblem(code="row_inserted", message="there are rows outside the chain")
    if problem := audit.file_problem(log):
        return AuditProblem(code="file_damaged", message=problem)
    if (head.mode, head.query) != (settings.get("mode"), settings.get("query")):
        message = "the settings are not those that were recorded last"
        return AuditProblem(code="settings_differ", message=message)
    return None


def _expected_problem(seq: int, checked: int) -> AuditProblem:
    message = (
        f"row {seq} is not the expected one: the rows up to it were replaced"
        if seq <= checked
        else f"row {seq} is expected, and the last one is {checked}: the end was cut off"
    )
    return AuditProblem(code="expected_differs", seq=seq, message=message)
