"""Checks that the rows of an audit are all that were written, unchanged and in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rolebundle.contracts.audit import AuditProblem, AuditRow, AuditVerification
from rolebundle.errors import CorpusCorrupt, RolebundleError, UsageError
from rolebundle.storage.audits import audit
from rolebundle.storage.audits.audit import Head, genesis_hash, open_audit_reader, row_hash
from rolebundle.storage.files.sqlite_file import SqliteFile
from rolebundle.text.counts import counted


def verify_file(path: Path, expect: str = "") -> AuditVerification:
    """Compare every row, the chain between them, the head and the settings.

    Args:
        path: the audit's file.
        expect: the head of an earlier time, as ``seq:hash``.

    Raises:
        UsageError: there is no audit, or ``expect`` is not a head.
        WrongFile, StorageError: it cannot be read.
    """
    try:
        # One snapshot: rows that are written meanwhile are not part of it, and do not wait.
        with open_audit_reader(path) as log, log.reading():
            head = audit.read_head(log)
            return _verify_rows(log, head, expect)
    except CorpusCorrupt as error:
        problem = _damage_problem(path, error)
        return AuditVerification(ok=False, rows=0, expected=expect, problem=problem)


def _verify_rows(log: SqliteFile, head: Head, expect: str) -> AuditVerification:
    expected_head = _parse_head(expect)
    chain = _Chain(0, genesis_hash(head.log_id))
    has_expected_head = False
    try:
        for row in audit.read_rows(log):
            problem = chain.follow(row)
            if problem is not None:
                return AuditVerification(
                    ok=False, rows=chain.last, expected=expect, problem=problem
                )
            has_expected_head = has_expected_head or (row.seq, row.hash) == expected_head
        problem = chain.end_problem(log, head) or _expected_head_problem(
            expected_head, has_expected_head, chain.last
        )
    except CorpusCorrupt as error:
        problem = _damage_problem(log.path, error)
    if problem is not None:
        return AuditVerification(ok=False, rows=chain.last, expected=expect, problem=problem)
    last = f"{chain.last}:{chain.hash}"
    return AuditVerification(ok=True, rows=chain.last, head=last, expected=expect)


def _damage_problem(path: Path, error: RolebundleError) -> AuditProblem:
    """The problem of an audit that cannot be read any further."""
    message = error.message.removeprefix(f"{path}: ")
    return AuditProblem(code="file_damaged", message=message)


def _parse_head(expect: str) -> tuple[int, str]:
    seq, _, digest = expect.partition(":")
    if not expect:
        return 0, ""
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19 and len(digest) == 64):
        raise UsageError(
            "bad_head",
            f"{expect[:100]!r} is not the head of an audit",
            "give SEQ:HASH as `rolebundle policy audit verify` printed it",
        )
    return int(seq), digest


@dataclass(slots=True)
class _Chain:
    """Follows the rows of an audit one by one.

    Attributes:
        last: number of the last row that was followed.
        hash: its hash.
        configured: the details of the last row that set the settings.
    """

    last: int
    hash: str
    configured: Mapping[str, Any] = field(default_factory=dict)

    def follow(self, row: AuditRow) -> AuditProblem | None:
        """Go on to the next row, unless it is not what was written after the last one."""
        problem = self._problem(row)
        if problem is None:
            self.last, self.hash = row.seq, row.hash
            self.configured = row.details if row.kind == "settings" else self.configured
        return problem

    def _problem(self, row: AuditRow) -> AuditProblem | None:
        seq = self.last + 1
        if row.seq > seq:
            missing = f"row {seq} is missing; row {row.seq} is in its place"
            return AuditProblem(code="row_missing", seq=seq, message=missing)
        if row.seq < seq:
            inserted = f"a row with the number {row.seq} is before the first"
            return AuditProblem(code="row_inserted", seq=row.seq, message=inserted)
        if row_hash(row) != row.hash:
            altered = f"row {seq} was altered: its hash is wrong"
            return AuditProblem(code="row_altered", seq=seq, message=altered)
        if row.previous != self.hash:
            moved = f"row {seq} does not follow row {seq - 1}: one of them was replaced or moved"
            return AuditProblem(code="chain_broken", seq=seq, message=moved)
        return None

    def end_problem(self, log: SqliteFile, head: Head) -> AuditProblem | None:
        """Check that the last row is the end of the audit, and that nothing else is in the file.

        Raises:
            CorpusCorrupt: it is damaged.
        """
        return self._head_problem(log, head) or _settings_problem(head, self.configured)

    def _head_problem(self, log: SqliteFile, head: Head) -> AuditProblem | None:
        if (head.rows, head.hash) != (self.last, self.hash):
            kind = (
                "rows were cut off" if head.rows > self.last else "rows or the head were replaced"
            )
            named = counted(head.rows, "row")
            message = f"the head names {named}, and there are {self.last}: {kind} at the end"
            return AuditProblem(code="head_differs", seq=self.last, message=message)
        if audit.count_rows(log) != self.last:
            return AuditProblem(code="row_inserted", message="there are rows outside the chain")
        problem = audit.file_problem(log)
        return AuditProblem(code="file_damaged", message=problem) if problem else None


def _settings_problem(head: Head, configured: Mapping[str, Any]) -> AuditProblem | None:
    if (head.mode, head.query) == (configured.get("mode"), configured.get("query")):
        return None
    message = "the settings are not those that were recorded last"
    return AuditProblem(code="settings_differ", message=message)


def _expected_head_problem(
    expected_head: tuple[int, str], has_expected_head: bool, checked: int
) -> AuditProblem | None:
    seq, digest = expected_head
    if not digest or has_expected_head:
        return None
    message = (
        f"row {seq} is not the expected one: the rows up to it were replaced"
        if seq <= checked
        else f"row {seq} is expected, and the last one is {checked}: the end was cut off"
    )
    return AuditProblem(code="expected_differs", seq=seq, message=message)
