"""What `audit verify` compares: every row, the chain between them, the head, the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rolebundle.contracts.audit import AuditProblem, AuditRow, Verification
from rolebundle.errors import CorpusCorrupt, UsageError
from rolebundle.storage.audit_chain import Head, genesis, row_hash
from rolebundle.storage.audit_file import open_audit_reader
from rolebundle.storage.audit_log import integrity, pages, read_head
from rolebundle.storage.sqlite_file import SqliteFile


def check(path: Path, expect: str = "") -> Verification:
    """Whether the rows are those that were written, in their order, and all of them.

    Args:
        path: the audit's file.
        expect: a head, ``seq:hash``, from an earlier time.

    Raises:
        UsageError: there is no audit, or ``expect`` is no head.
        WrongFile, StorageError: it cannot be read.
    """
    anchor = _anchor_of(expect)
    done, last = 0, ""
    try:
        # One snapshot: rows that are written meanwhile are not looked at, and wait for nothing.
        with open_audit_reader(path) as log, log.reading():
            head = read_head(log)
            last, anchored = genesis(head.log_id), False
            configured: Mapping[str, Any] = {}
            for row in pages(log):
                problem = _flaw(row, done + 1, last)
                if problem is not None:
                    return Verification(ok=False, rows=done, expected=expect, problem=problem)
                done, last = row.seq, row.hash
                anchored = anchored or (row.seq, row.hash) == anchor
                configured = row.details if row.kind == "settings" else configured
            problem = (
                _flaw_of_head(log, head, done, last)
                or _flaw_of_settings(head, configured)
                or _flaw_of_anchor(anchor, anchored, done)
            )
    except CorpusCorrupt as error:
        problem = AuditProblem(code="file_damaged", message=error.message.removeprefix(f"{path}: "))
    if problem is not None:
        return Verification(ok=False, rows=done, expected=expect, problem=problem)
    return Verification(ok=True, rows=done, head=f"{done}:{last}", expected=expect)


def _anchor_of(expect: str) -> tuple[int, str]:
    seq, _, digest = expect.partition(":")
    if not expect:
        return 0, ""
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19 and len(digest) == 64):
        raise UsageError(
            "bad_head",
            f"{expect[:100]!r} is no head of an audit",
            "give SEQ:HASH as `rolebundle audit verify` printed it",
        )
    return int(seq), digest


def _flaw(row: AuditRow, seq: int, previous: str) -> AuditProblem | None:
    if row.seq > seq:
        missing = f"row {seq} is missing; row {row.seq} stands in its place"
        return AuditProblem(code="row_missing", seq=seq, message=missing)
    if row.seq < seq:
        inserted = f"a row numbered {row.seq} stands before the first"
        return AuditProblem(code="row_inserted", seq=row.seq, message=inserted)
    if row_hash(row) != row.hash:
        altered = f"row {seq} was altered: it does not have its hash"
        return AuditProblem(code="row_altered", seq=seq, message=altered)
    if row.previous != previous:
        moved = f"row {seq} does not follow row {seq - 1}: one of them was replaced or moved"
        return AuditProblem(code="chain_broken", seq=seq, message=moved)
    return None


def _flaw_of_head(log: SqliteFile, head: Head, done: int, last: str) -> AuditProblem | None:
    if (head.rows, head.hash) != (done, last):
        kind = "rows were cut off" if head.rows > done else "rows or the head were replaced"
        message = f"the head speaks of {head.rows} rows and there are {done}: {kind} at the end"
        return AuditProblem(code="head_differs", seq=done, message=message)
    if log.value("SELECT count(*) FROM entry") != done:
        return AuditProblem(code="row_inserted", message="there are rows beside the chain")
    flaw = integrity(log)
    return AuditProblem(code="file_damaged", message=flaw) if flaw else None


def _flaw_of_settings(head: Head, configured: Mapping[str, Any]) -> AuditProblem | None:
    if (head.mode, head.query) == (configured.get("mode"), configured.get("query")):
        return None
    message = "the settings are not those that were put on record last"
    return AuditProblem(code="settings_differ", message=message)


def _flaw_of_anchor(anchor: tuple[int, str], anchored: bool, done: int) -> AuditProblem | None:
    seq, digest = anchor
    if not digest or anchored:
        return None
    message = (
        f"row {seq} is not the one that is expected: the rows up to it were replaced"
        if seq <= done
        else f"row {seq} is expected and there are {done} rows: the end was cut off"
    )
    return AuditProblem(code="expected_differs", seq=seq, message=message)
